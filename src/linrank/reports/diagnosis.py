"""Where it goes wrong: the worst queries, what stands where, and which features are to blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data import Array, Dataset
from linrank.judging.inspect import sample_pairs
from linrank.metrics.evaluate import evaluate_queries
from linrank.models.additive import INTERACTIONS, AdditiveModel
from linrank.models.linear import LinearModel
from linrank.reports import html
from linrank.reports.html import paragraph, push, short, table, text, value, wide
from linrank.system import Column, Markup, Table, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linrank.reports.material import Material


LARGEST_GRADE = 30.0  # beyond it 2^label is no gain: labels themselves are taken
CANDIDATES = 400  # documents of a query among which wrong pairs are looked for


@dataclass(frozen=True)
class Document:
    """A row of a query, where the ranking has put it.

    Attributes
    ----------
    row : int
        Its number in the data, from 0.
    docid : str or None
        Its name, if the data have one.
    rank : int
        Its place, 1 for the highest score; equal scores in input order.
    best_rank : int
        The best place that its label allows: 1 plus the documents of higher label.
    label, score : float
    """

    row: int
    docid: str | None
    rank: int
    best_rank: int
    label: float
    score: float


@dataclass(frozen=True, eq=False)
class WrongPair:
    """Two documents in the wrong order.

    Attributes
    ----------
    better : Document
        That of the higher label, which stands below.
    worse : Document
        That of the lower label, which stands above.
    loss : float
        What their order costs in DCG: ``(g_better - g_worse)·(d(rank_worse) - d(rank_better))``,
        with ``g = 2^y - 1`` and ``d(i) = 1/log2(i + 1)``.
    contributions : float64 array (n_features,) or None
        ``w_j·(x_better,j - x_worse,j)``: what each feature adds to the difference of the two
        scores, positive for the right order. Their sum is negative, or 0 for a tie. None without
        a linear model.
    values : (float64 array, float64 array) or None
        The two raw rows, that of the better document first.
    """

    better: Document
    worse: Document
    loss: float
    contributions: Array | None
    values: tuple[Array, Array] | None


@dataclass(frozen=True, eq=False)
class QueryDiagnosis:
    """A query that is ranked badly.

    Attributes
    ----------
    query : int
        Its position among the queries of the data.
    id : object
        Its id; None if the data have none.
    value : float
        Its value of the measure.
    n_rows, n_pairs, n_wrong : int
        Documents, pairs of different labels, and those of these in the wrong order or tied.
    documents : tuple of Document
        The first of the ranking, and the best ones that come after them, by rank.
    pairs : tuple of WrongPair
        The pairs whose order costs most; no document is in two of them.
    """

    query: int
    id: Any
    value: float
    n_rows: int
    n_pairs: int
    n_wrong: int
    documents: tuple[Document, ...]
    pairs: tuple[WrongPair, ...]


def worst_queries(
    data: Dataset,
    scores: Array,
    values: Array,
    *,
    model: LinearModel | AdditiveModel | None = None,
    n_queries: int = 5,
    n_documents: int = 10,
    n_pairs: int = 3,
    higher_is_better: bool = True,
) -> tuple[QueryDiagnosis, ...]:
    """The queries that a ranking serves worst, the worst first.

    Queries without two different labels, which no ranking can order wrongly, and those that the
    measure leaves out do not count, nor do those without a wrong pair. Of equal values the query
    with more wrong pairs comes first.

    Parameters
    ----------
    data : Dataset
        The judged rows.
    scores : array (n_rows,)
        Higher is better.
    values : array (n_queries,)
        The measure by query, in the order of ``data.queries``: ``evaluation.per_query[name]``.
    model : LinearModel or AdditiveModel, optional
        What computed the scores: wrong pairs are then explained by feature.
    n_queries, n_documents, n_pairs : int
        How much to show.
    higher_is_better : bool, default=True
        Of the measure.

    Examples
    --------
    >>> import numpy as np
    >>> from linrank import Dataset, LinearModel
    >>> data = Dataset.of([[1.0, 0.0], [0.0, 1.0]], [1, 0], qid=["q", "q"])
    >>> model = LinearModel([1.0, 3.0])
    >>> worst = worst_queries(data, model.predict(data.X), np.array([0.63]), model=model)
    >>> worst[0].pairs[0].contributions  # the second feature is to blame
    array([ 1., -3.])
    """
    judged = evaluate_queries(data.queries, data.labels, scores, metrics="pairwise_accuracy").pairs
    assert judged is not None
    counts = np.asarray(judged.discordant + judged.tied, dtype=np.int64)
    open_ = np.flatnonzero((counts > 0) & ~np.isnan(values))
    signed = values if higher_is_better else -values
    order = open_[np.lexsort((open_, -counts[open_], signed[open_]))][:n_queries]
    queries = data.queries

    def diagnose(query: int) -> QueryDiagnosis:
        rows = np.arange(queries.offsets[query], queries.offsets[query + 1])
        rows = rows if queries.order is None else queries.order[rows]
        rows = rows[np.argsort(-scores[rows], kind="stable")]  # by rank
        labels = data.labels[rows]
        part = data.select(rows)  # the whole query: a scaling by query looks at all of it
        best = np.searchsorted(np.sort(-labels), -labels, side="left") + 1

        def document(k: int) -> Document:
            row, comments = int(rows[k]), data.comments
            docid = None if comments is None else comments.docid(row)
            label, score = float(labels[k]), float(scores[row])
            return Document(row, docid, k + 1, int(best[k]), label, score)

        def explain_pair(better: int, worse: int, loss: float) -> WrongPair:
            two = document(better), document(worse)
            if model is None:
                return WrongPair(*two, loss, None, None)
            X = part.select([better, worse]).X
            x = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
            shares = np.asarray(model.explain(part, pair=(better, worse)), dtype=np.float64)
            return WrongPair(*two, loss, shares, (x[0], x[1]))

        id_ = None if queries.ids is None else queries.ids.tolist()[query]
        sizes = len(rows), int(queries.pairs_per_query[query]), int(counts[query])
        shown = tuple(map(document, _first_and_best(labels, n_documents)))
        wrong = tuple(explain_pair(*pair) for pair in _worst_pairs(labels, n_pairs))
        return QueryDiagnosis(query, id_, float(values[query]), *sizes, shown, wrong)

    return tuple(map(diagnose, order.tolist()))


def _first_and_best(labels: Array, n_documents: int) -> list[int]:
    """The first places, and half as many of the best documents behind them; by rank."""
    first = list(range(min(n_documents, len(labels))))
    behind = np.arange(len(first), len(labels))
    behind = behind[labels[behind] > labels.min()]
    best = behind[np.argsort(-labels[behind], kind="stable")][: (n_documents + 1) // 2]
    return first + sorted(best.tolist())


def gains(labels: Array) -> Array:
    """``2^y - 1``; of labels below 0 or very large ones, where that is absurd, ``y - min y``."""
    if labels.min() < 0 or labels.max() > LARGEST_GRADE:
        return np.asarray(labels - labels.min())
    return np.asarray(np.exp2(labels) - 1.0)


def _worst_pairs(labels: Array, n_pairs: int) -> list[tuple[int, int, float]]:
    """(better, worse, loss) by place in the ranking, the costliest first, no document twice.

    For two labels the costliest pair is the last document of the higher one and the first of the
    lower one: so the first and the last ``n_pairs`` of each label are all that need be compared.
    """
    found: list[int] = []
    for label in np.unique(labels)[::-1][: CANDIDATES // (2 * n_pairs)]:
        same = np.flatnonzero(labels == label)
        found += [*same[:n_pairs].tolist(), *same[-n_pairs:].tolist()]
    first = range(min(len(labels), CANDIDATES // 2))  # many labels: the top of the list as well
    places = np.array(sorted({*found, *first}), dtype=np.int64)
    g, discount = gains(labels)[places], 1.0 / np.log2(places + 2.0)
    loss = np.subtract.outer(g, g) * -np.subtract.outer(discount, discount)
    loss[np.subtract.outer(labels[places], labels[places]) <= 0] = 0.0
    chosen: list[tuple[int, int, float]] = []
    while len(chosen) < n_pairs:
        i, j = np.unravel_index(int(np.argmax(loss)), loss.shape)
        if not loss[i, j] > 0:
            break
        chosen.append((int(places[i]), int(places[j]), float(loss[i, j])))
        loss[[i, j], :] = loss[:, [i, j]] = 0.0
    return chosen


# ---- all pairs ----------------------------------------------------------------------------------


BLOCK = 4096  # rows whose scores are shared out at a time
SAMPLE = 50_000  # pairs that are drawn; of fewer, all are taken


@dataclass(frozen=True, eq=False)
class Pushes:
    """Means of what each feature adds to ``score(better) - score(worse)``, over pairs of labels.

    Of a linear model, of ``w_j·(x_better,j - x_worse,j)``. The pairs are all there are, or sampled.

    Attributes
    ----------
    wrong, right : float64 arrays (n_features,), and one more where there are interactions
        Over the pairs in the wrong order, or tied, and over the others; 0 where there are none.
    n_wrong, n_right : int
        Pairs of each kind among those.
    is_sample : bool
        Whether the pairs are drawn rather than all there are.
    """

    wrong: Array
    right: Array
    n_wrong: int
    n_right: int
    is_sample: bool = False


def pushes(
    data: Dataset, scores: Array, model: LinearModel | AdditiveModel, n_samples: int = SAMPLE
) -> Pushes:
    """The pushes of all features of a model that shares its scores out.

    A mean over pairs is linear in the rows: each row counts by how often it is the better document
    of a pair less how often it is the worse one, so that one product does for all features: with
    the rows, or with what is added by each.
    """
    better, worse = sample_pairs(data.queries, n_samples)
    is_wrong = scores[better] <= scores[worse]
    means = []
    for kind in (is_wrong, ~is_wrong):
        above, below = (np.bincount(one[kind], minlength=data.n_rows) for one in (better, worse))
        net = (above - below) / max(1.0, kind.sum())
        means.append(_sum_contributions(data, model, net))
    n_wrong = int(np.count_nonzero(is_wrong))
    is_sample = data.queries.n_pairs > len(is_wrong)
    return Pushes(means[0], means[1], n_wrong, len(is_wrong) - n_wrong, is_sample)


def _sum_contributions(data: Dataset, model: LinearModel | AdditiveModel, net: Array) -> Array:
    """``Σ_i c_i·explain(x_i)``."""
    total = np.zeros(model.n_features if isinstance(model, LinearModel) else model.n_terms)
    for part in _blocks(data, model, np.flatnonzero(net)):
        total += net[part] @ model.explain(data.select(part))
    return total


def _blocks(data: Dataset, model: LinearModel | AdditiveModel, counted: Array) -> list[Array]:
    """Rows to explain at a time; of whole queries where the model scales within each."""
    if isinstance(model, AdditiveModel) or model.scaling.kind != "query":
        return np.split(counted, range(BLOCK, len(counted), BLOCK))
    queries = data.queries
    rows = np.arange(data.n_rows) if queries.order is None else queries.order
    begins = np.searchsorted(queries.offsets, range(BLOCK, data.n_rows, BLOCK))
    return np.split(rows, np.unique(queries.offsets[begins]))


# ---- the section --------------------------------------------------------------------------------


SHOWN = 4  # features on each side of an explanation
RANKED = "By score; ideal: the best rank its label allows"
MISLEADING = 6  # features that are named for all queries


def failures(material: Material) -> tuple[str, ...]:
    """The section on the worst queries."""
    if not material.worst:
        nothing = "No test query has a pair of documents in the wrong order"
        return (f"{nothing}: there is nothing to show.",)
    lede = (
        f"The queries with the lowest {text(material.scoring)}, without those that no ranking can "
        "order. For each, what stands where, and the pairs whose wrong order costs most."
    )
    if material.ranking.explained is not None:
        lede += (
            " Features that push the wrong way in many of them are the place to look: is the "
            "feature broken, or is the label?"
        )
    shown = []
    for k, one in enumerate(material.worst):
        name = "All rows" if one.id is None else f"Query {text(one.id)}"
        wrong = f"{one.n_wrong:,} of {count(one.n_pairs, 'pair')} wrong"
        measured = f"{text(material.scoring)} {value(one.value)}"
        sizes = f"{measured} · {wrong} · {count(one.n_rows, 'document')}"
        heading = f'{name} <span class="small num">{sizes}</span>'
        shown.append(html.details(heading, _body(material, one), is_open=k == 0))
    why = material.ranking.why_unexplained
    if why:
        told = f"Pairs are shown without the share of each feature. {text(why)}"
        why = paragraph(told, "absent")
    return lede, why, *shown, _misleading_features(material)


def _misleading_features(material: Material) -> str:
    """The features that push the wrong way in the wrong pairs of all queries."""
    found = material.pushes
    if found is None or not found.n_wrong:
        return ""
    order = np.argsort(found.wrong, kind="stable")[:MISLEADING].tolist()
    order = [j for j in order if found.wrong[j] < 0]
    if not order:  # all weights are 0
        return ""
    rows = _bar_rows(material, order, (found.wrong, found.right))
    headings = ["", "in wrong pairs", "", "in right pairs"]
    which = "a sample of" if found.is_sample else "all"
    which += f" {found.n_wrong + found.n_right:,} test pairs"
    said = (
        f"{_push_of(material).capitalize()} on average over {which}, of which {found.n_wrong:,} "
        "are in the wrong order or tied. A feature that pushes far to the left in wrong pairs "
        "and to the right in right ones is strong but sometimes misled; one that is left "
        "in both does harm."
    )
    content = table(Table([Column("feature", "left"), *map(Column, headings)], rows))
    return f"<h3>Features that mislead most</h3>{paragraph(said, 'small')}{content}"


def _term(material: Material, j: int) -> str:
    """The name of what adds to a score: a feature, or the interactions behind them."""
    model = material.ranking.model
    if isinstance(model, AdditiveModel) and j >= model.n_features:
        return INTERACTIONS
    return material.names[j]


def _push_of(material: Material) -> str:
    """What a push is."""
    is_linear = material.ranking.linear is not None
    return "weight × difference" if is_linear else "difference of its curve"


def _bar_rows(
    material: Material, order: Sequence[int], pushes: Sequence[Array], *values: Array
) -> list[list[str]]:
    """For each feature its name, a bar and a number of each kind of push, and values of rows."""
    largest = max((abs(float(one[j])) for one in pushes for j in order), default=0.0)
    rows = []
    for j in order:
        row: list[str] = [wide(_term(material, j))]
        for one in pushes:
            row += [html.bar(float(one[j]), largest), push(float(one[j]), largest)]
        for x in values:  # interactions have none
            row.append("" if j >= len(x) else "missing" if np.isnan(x[j]) else short(x[j]))
        rows.append(row)
    return rows


def _body(material: Material, one: QueryDiagnosis) -> str:
    headings = [Column("rank"), Column("label", "left"), Column("ideal"), Column("score")]
    content = Table([*headings, Column("document", "left")], [*_document_rows(one)], RANKED)
    pairs = [_pair(material, pair, k) for k, pair in enumerate(one.pairs, start=1)]
    return html.beside(table(content), "".join(pairs[:1])) + html.columns(*pairs[1:])


def _document_rows(one: QueryDiagnosis) -> Iterator[list[str]]:
    last, top = 0, max(document.label for document in one.documents)
    for document in one.documents:
        if document.rank > last + 1:
            yield _gap(document.rank - last - 1)
        last = document.rank
        kind = "grade high" if document.label == top and top > 0 else "grade"
        label = Markup(f'<span class="{kind}">{document.label:g}</span>')
        ranks, score = (f"{document.rank:,}", f"{document.best_rank:,}"), short(document.score)
        yield [ranks[0], label, ranks[1], score, Markup(_name(document))]
    if last < one.n_rows:
        yield _gap(one.n_rows - last)


def _gap(n_rows: int) -> list[str]:
    return ["⋮", "", "", "", Markup(f'<span class="gap">{n_rows:,} more</span>')]


def _name(document: Document) -> str:
    return f"row {document.row:,}" if document.docid is None else text(document.docid)


def _pair(material: Material, pair: WrongPair, number: int) -> str:
    better, worse = pair.better, pair.worse
    heading = (
        f"<h4>Wrong pair {number}: {_name(better)} (label {better.label:g}, rank {better.rank:,}) "
        f"below {_name(worse)} (label {worse.label:g}, rank {worse.rank:,})</h4>"
    )
    if pair.contributions is None or pair.values is None:
        told = f"Their scores are {short(better.score)} and {short(worse.score)}."
        return heading + paragraph(told, "small")
    told = _blame(material, pair.contributions)
    return heading + paragraph(told, "small") + _shares(material, pair.contributions, *pair.values)


def _blame(material: Material, shares: Array) -> str:
    against = shares[shares < 0]
    if not against.size:
        return "No feature tells the two apart: the model gives them equal scores."
    worst = int(np.argmin(shares))
    share = html.percent(-float(shares[worst]), -float(against.sum()))
    return (
        f"Difference of scores {push(float(shares.sum()))}. Most to blame: <strong>"
        f"{text(_term(material, worst))}</strong>, {share} of all that pushes the wrong way."
    )


def _shares(material: Material, shares: Array, better: Array, worse: Array) -> str:
    """The largest shares on both sides, and the rest of each in a row."""
    order = np.argsort(shares, kind="stable").tolist()
    chosen = [j for j in order[:SHOWN] if shares[j] < 0]
    chosen += [j for j in order[::-1][:SHOWN] if shares[j] > 0]
    largest = float(np.abs(shares).max(initial=0.0))
    rows = _bar_rows(material, chosen, (shares,), better, worse)
    rest = np.setdiff1d(np.flatnonzero(shares), chosen)
    if rest.size:
        name = f"{count(rest.size, 'other feature')} together"
        total = push(float(shares[rest].sum()), largest)
        # No bar: a sum of many is not to be compared with bars of one.
        rows.append([wide(name), "", total, "", ""])
    headings = ["", _push_of(material), "value below", "value above"]
    key = (
        '<p class="small"><span class="key against">pushes the wrong way</span> &nbsp; '
        '<span class="key for">pushes the right way</span></p>'
    )
    content = Table([Column("feature", "left"), *map(Column, headings)], rows)
    return table(content) + key
