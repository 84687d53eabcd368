"""Where a ranking goes wrong: the worst queries, their documents, their wrong pairs explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.models.linear import LinearModel

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
    contributions: NDArray[np.float64] | None
    values: tuple[NDArray[np.float64], NDArray[np.float64]] | None


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
    scores: NDArray[np.float64],
    values: NDArray[np.float64],
    *,
    model: LinearModel | None = None,
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
    model : LinearModel, optional
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
    counts = _wrong_counts(data, scores)
    open_ = np.flatnonzero((counts > 0) & ~np.isnan(values))
    signed = values if higher_is_better else -values
    order = open_[np.lexsort((open_, -counts[open_], signed[open_]))][:n_queries]
    return tuple(
        _diagnose(
            data, scores, int(q), float(values[q]), int(counts[q]), model, n_documents, n_pairs
        )
        for q in order
    )


def _wrong_counts(data: Dataset, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Pairs of each query in the wrong order, ties included."""
    from linrank.metrics.evaluate import evaluate_queries

    pairs = evaluate_queries(data.queries, data.labels, scores, metrics="pairwise_accuracy").pairs
    if pairs is None:
        raise RuntimeError("pairs were not counted")
    return np.asarray(pairs.discordant + pairs.tied, dtype=np.int64)


def _diagnose(
    data: Dataset,
    scores: NDArray[np.float64],
    query: int,
    value: float,
    n_wrong: int,
    model: LinearModel | None,
    n_documents: int,
    n_pairs: int,
) -> QueryDiagnosis:
    queries = data.queries
    places = np.arange(queries.offsets[query], queries.offsets[query + 1])
    rows = places if queries.order is None else queries.order[places]
    rows = rows[np.argsort(-scores[rows], kind="stable")]  # by rank
    labels = data.labels[rows]
    part = data.select(rows)  # the whole query: a scaling by query looks at all of it
    chosen, shown = _worst_pairs(labels, n_pairs), _shown(labels, n_documents)
    named = {*shown, *(place for i, j, _ in chosen for place in (i, j))}
    documents = _documents(data, rows, labels, scores, sorted(named))
    return QueryDiagnosis(
        query,
        None if queries.ids is None else queries.ids.tolist()[query],
        value,
        len(rows),
        int(queries.pairs_per_query[query]),
        n_wrong,
        tuple(documents[k] for k in shown),
        tuple(_explained(part, documents, i, j, loss, model) for i, j, loss in chosen),
    )


def _documents(
    data: Dataset,
    rows: NDArray[np.int64],
    labels: NDArray[np.float64],
    scores: NDArray[np.float64],
    places: Sequence[int],
) -> dict[int, Document]:
    """The documents at some places of the ranking; a query may have a million."""
    best = np.searchsorted(np.sort(-labels), -labels, side="left") + 1
    comments = data.comments
    return {
        k: Document(
            int(rows[k]),
            None if comments is None else comments.docid(int(rows[k])),
            k + 1,
            int(best[k]),
            float(labels[k]),
            float(scores[rows[k]]),
        )
        for k in places
    }


def _shown(labels: NDArray[np.float64], n_documents: int) -> list[int]:
    """The first places, and half as many of the best documents behind them; by rank."""
    first = list(range(min(n_documents, len(labels))))
    behind = np.arange(len(first), len(labels))
    behind = behind[labels[behind] > labels.min()]
    best = behind[np.argsort(-labels[behind], kind="stable")][: (n_documents + 1) // 2]
    return first + sorted(best.tolist())


def gains(labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """``2^y - 1``; of labels below 0 or very large ones, where that is absurd, ``y - min y``."""
    if labels.min() < 0 or labels.max() > LARGEST_GRADE:
        return np.asarray(labels - labels.min())
    return np.asarray(np.exp2(labels) - 1.0)


def _worst_pairs(labels: NDArray[np.float64], n_pairs: int) -> list[tuple[int, int, float]]:
    """(better, worse, loss) by place in the ranking, the costliest first, no document twice.

    For two labels the costliest pair is the last document of the higher one and the first of the
    lower one: so the first and the last ``n_pairs`` of each label are all that need be compared.
    """
    gain = gains(labels)
    places = _candidates(labels, n_pairs)
    g, discount = gain[places], 1.0 / np.log2(places + 2.0)
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


def _candidates(labels: NDArray[np.float64], n_pairs: int) -> NDArray[np.int64]:
    found: list[int] = []
    for label in np.unique(labels)[::-1][: CANDIDATES // (2 * n_pairs)]:
        places = np.flatnonzero(labels == label)
        found += [*places[:n_pairs].tolist(), *places[-n_pairs:].tolist()]
    first = range(min(len(labels), CANDIDATES // 2))  # many labels: the top of the list as well
    return np.array(sorted({*found, *first}), dtype=np.int64)


def _explained(
    part: Dataset,
    documents: Mapping[int, Document],
    better: int,
    worse: int,
    loss: float,
    model: LinearModel | None,
) -> WrongPair:
    if model is None:
        return WrongPair(documents[better], documents[worse], loss, None, None)
    two = part.select([better, worse])
    rows = np.asarray(two.X.toarray() if hasattr(two.X, "toarray") else two.X, dtype=np.float64)
    contributions = np.asarray(model.explain(part, pair=(better, worse)), dtype=np.float64)
    return WrongPair(documents[better], documents[worse], loss, contributions, (rows[0], rows[1]))
