"""Where it goes wrong: the worst queries, what stands where, and which features are to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.models.kernel import KernelModel
from linrank.reports.html import (
    absent,
    bar,
    details,
    paragraph,
    percent,
    push,
    row,
    rows_table,
    short,
    text,
    value,
)
from linrank.system.resources import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from linrank.reports.diagnosis import Document, QueryDiagnosis, WrongPair
    from linrank.reports.material import Material

SHOWN = 4  # features on each side of an explanation
RANKED = "By score; ideal: the best rank its label allows"
MISLEADING = 6  # features that are named for all queries


def failures(material: Material) -> tuple[str, ...]:
    """The section on the worst queries."""
    if not material.worst:
        return (
            "No test query has a pair of documents in the wrong order: there is nothing to show.",
        )
    lede = (
        f"The queries with the lowest {text(material.scoring)}, without those that no ranking can "
        "order. For each, what stands where, and the pairs whose wrong order costs most."
    )
    if material.ranking.linear is not None:
        lede += (
            " Features that push the wrong way in many of them are the place to look: is the "
            "feature broken, or is the label?"
        )
    shown = [
        details(_heading(material, one), _body(material, one), is_open=k == 0)
        for k, one in enumerate(material.worst)
    ]
    return lede, _why_unexplained(material), *shown, _misleading(material)


def _misleading(material: Material) -> str:
    """The features that push the wrong way in the wrong pairs of all queries."""
    found = material.pushes
    if found is None or not found.n_wrong:
        return ""
    order = [int(j) for j in np.argsort(found.wrong, kind="stable")[:MISLEADING]]
    order = [j for j in order if found.wrong[j] < 0]
    if not order:  # all weights are 0
        return ""
    largest = float(max(np.abs(found.wrong[order]).max(), np.abs(found.right[order]).max()))
    rows = [
        row(
            ("wide", text(material.names[j])),
            *_cells(float(found.wrong[j]), largest),
            *_cells(float(found.right[j]), largest),
        )
        for j in order
    ]
    headings = [("", "feature"), ("bars", ""), ("right", "in wrong pairs"), ("bars", "")]
    which = "a sample of" if found.is_sample else "all"
    which += f" {found.n_wrong + found.n_right:,} test pairs"
    said = (
        f"Weight × difference on average over {which}, of which {found.n_wrong:,} are in the wrong "
        "order or tied. A feature that pushes far to the left in wrong pairs "
        "and to the right in right ones is strong but sometimes misled; one that is left "
        "in both does harm."
    )
    return (
        "<h3>Features that mislead most</h3>"
        + paragraph(said, "small")
        + rows_table([*headings, ("right", "in right pairs")], rows)
    )


def _cells(share: float, largest: float) -> list[tuple[str, str]]:
    """A bar and its number."""
    return [("", bar(share, largest)), ("right", push(share, largest))]


def _why_unexplained(material: Material) -> str:
    if material.ranking.linear is not None:
        return ""
    if isinstance(material.ranking.model, KernelModel):
        why = (
            "this is a kernel model: its score is a sum over support documents, which does not "
            "fall apart into features"
        )
    elif material.ranking.model is not None:
        why = "this model has curves; <code>AdditiveModel.explain</code> shares a score out"
    else:
        why = "scores were given, not the model; <code>--model</code> with a linear model explains"
    return absent(f"Pairs are shown without the share of each feature: {why}.")


def _heading(material: Material, one: QueryDiagnosis) -> str:
    name = "All rows" if one.id is None else f"Query {text(one.id)}"
    wrong = f"{one.n_wrong:,} of {count(one.n_pairs, 'pair')} wrong"
    return (
        f'{name} <span class="small num">{text(material.scoring)} {value(one.value)} · {wrong} · '
        f"{count(one.n_rows, 'document')}</span>"
    )


def _body(material: Material, one: QueryDiagnosis) -> str:
    headings = [("right", "rank"), ("", "label"), ("right", "ideal"), ("right", "score")]
    documents = rows_table([*headings, ("", "document")], _document_rows(one), RANKED)
    pairs = [_pair(material, pair, k) for k, pair in enumerate(one.pairs, start=1)]
    return "\n".join([documents, *pairs])


def _document_rows(one: QueryDiagnosis) -> Iterator[str]:
    last, top = 0, max(document.label for document in one.documents)
    for document in one.documents:
        if document.rank > last + 1:
            yield _gap(document.rank - last - 1, 5)
        last = document.rank
        kind = "grade high" if document.label == top and top > 0 else "grade"
        yield row(
            ("right", f"{document.rank:,}"),
            ("", f'<span class="{kind}">{document.label:g}</span>'),
            ("right", f"{document.best_rank:,}"),
            ("right", short(document.score)),
            ("", _name(document)),
        )
    if last < one.n_rows:
        yield _gap(one.n_rows - last, 5)


def _gap(n_rows: int, n_columns: int) -> str:
    return f'<tr class="gap"><td colspan="{n_columns}">{n_rows:,} more</td></tr>'


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


def _blame(material: Material, shares: NDArray[np.float64]) -> str:
    against = shares[shares < 0]
    if not against.size:
        return "No feature tells the two apart: the model gives them equal scores."
    worst = int(np.argmin(shares))
    return (
        f"Difference of scores {push(float(shares.sum()))}. Most to blame: <strong>"
        f"{text(material.names[worst])}</strong>, "
        f"{percent(-float(shares[worst]), -float(against.sum()))} of all that pushes the wrong way."
    )


def _shares(
    material: Material,
    shares: NDArray[np.float64],
    better: NDArray[np.float64],
    worse: NDArray[np.float64],
) -> str:
    """The largest shares on both sides, and the rest of each in a row."""
    order = np.argsort(shares, kind="stable")
    chosen = [int(j) for j in order[:SHOWN] if shares[j] < 0]
    chosen += [int(j) for j in order[::-1][:SHOWN] if shares[j] > 0]
    largest = float(np.abs(shares).max(initial=0.0))
    rows = [
        row(
            ("wide", text(material.names[j])),
            *_cells(float(shares[j]), largest),
            ("right", short(better[j])),
            ("right", short(worse[j])),
        )
        for j in chosen
    ]
    rest = np.setdiff1d(np.flatnonzero(shares), chosen)
    if rest.size:
        name = f"{count(rest.size, 'other feature')} together"
        total = push(float(shares[rest].sum()), largest)
        # No bar: a sum of many is not to be compared with bars of one.
        rows.append(row(("wide", name), ("", ""), ("right", total), ("", ""), ("", "")))
    headings = [("", "feature"), ("bars", ""), ("right", "weight × difference")]
    headings += [("right", "value below"), ("right", "value above")]
    key = (
        '<p class="small"><span class="key against">pushes the wrong way</span> &nbsp; '
        '<span class="key for">pushes the right way</span></p>'
    )
    return rows_table(headings, rows) + key
