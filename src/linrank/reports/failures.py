"""Where it goes wrong: the worst queries, what stands where, and which features are to blame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.models.kernel import KernelModel
from linrank.reports.html import absent, bar, details, paragraph, rows_table, section, text
from linrank.reports.pictures import count, percent, push, short, value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linrank.reports.diagnosis import Document, QueryDiagnosis, WrongPair
    from linrank.reports.material import Material

SHOWN = 4  # features on each side of an explanation
RANKED = "By score; ideal: the best rank its label allows"
MISLEADING = 6  # features that are named for all queries


def failures(material: Material) -> str:
    """The section on the worst queries."""
    if not material.worst:
        lede = "No test query has a pair of documents in the wrong order: there is nothing to show."
        return section("worst", "Where it goes wrong", lede)
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
    return section(
        "worst",
        "Where it goes wrong",
        lede,
        _why_unexplained(material),
        *shown,
        _misleading(material),
    )


def _misleading(material: Material) -> str:
    """The features that push the wrong way in the wrong pairs of all queries."""
    found = material.pushes
    if found is None or not found.n_wrong:
        return ""
    order = [int(j) for j in np.argsort(found.wrong, kind="stable")[:MISLEADING]]
    order = [j for j in order if found.wrong[j] < 0]
    largest = float(max(np.abs(found.wrong[order]).max(), np.abs(found.right[order]).max()))
    rows = [
        f'<tr><td class="wide">{text(material.names[j])}</td>'
        + _cells(float(found.wrong[j]), largest)
        + _cells(float(found.right[j]), largest)
        + "</tr>"
        for j in order
    ]
    headings = [("feature", ""), ("", "bars"), ("in wrong pairs", "right"), ("", "bars")]
    which = (
        f"a sample of {found.n_wrong + found.n_right:,} test pairs"
        if found.is_sample
        else f"all {found.n_wrong + found.n_right:,} test pairs"
    )
    said = (
        f"Weight × difference on average over {which}, of which {found.n_wrong:,} are in the wrong "
        "order or tied. A feature that pushes far to the left in wrong pairs "
        "and to the right in right ones is strong but sometimes misled; one that is left "
        "in both does harm."
    )
    return (
        "<h3>Features that mislead most</h3>"
        + paragraph(said, "small")
        + rows_table([*headings, ("in right pairs", "right")], rows)
    )


def _cells(share: float, largest: float) -> str:
    """A bar and its number."""
    return f'<td>{bar(share, largest)}</td><td class="right">{push(share, largest)}</td>'


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
    parts = [_documents(one)]
    parts += [_pair(material, pair, k) for k, pair in enumerate(one.pairs, start=1)]
    return "\n".join(parts)


def _documents(one: QueryDiagnosis) -> str:
    top = max(document.label for document in one.documents)
    headings = [("rank", "right"), ("label", ""), ("ideal", "right"), ("score", "right")]
    headings += [("document", "")]
    return rows_table(headings, _document_rows(one, top), RANKED)


def _document_rows(one: QueryDiagnosis, top: float) -> Iterator[str]:
    last = 0
    for document in one.documents:
        if document.rank > last + 1:
            yield _gap(document.rank - last - 1, 5)
        last = document.rank
        yield (
            f'<tr><td class="right">{document.rank:,}</td><td>{_grade(document.label, top)}</td>'
            f'<td class="right">{document.best_rank:,}</td>'
            f'<td class="right">{short(document.score)}</td><td>{_name(document)}</td></tr>'
        )
    if last < one.n_rows:
        yield _gap(one.n_rows - last, 5)


def _gap(n_rows: int, n_columns: int) -> str:
    return f'<tr class="gap"><td colspan="{n_columns}">{n_rows:,} more</td></tr>'


def _grade(label: float, top: float) -> str:
    kind = "grade high" if label == top and label > 0 else "grade"
    return f'<span class="{kind}">{label:g}</span>'


def _name(document: Document) -> str:
    row = f"row {document.row:,}"
    return row if document.docid is None else f"{text(document.docid)}"


def _pair(material: Material, pair: WrongPair, number: int) -> str:
    better, worse = pair.better, pair.worse
    heading = (
        f"<h4>Wrong pair {number}: {_name(better)} (label {better.label:g}, rank {better.rank:,}) "
        f"below {_name(worse)} (label {worse.label:g}, rank {worse.rank:,})</h4>"
    )
    if pair.contributions is None or pair.values is None:
        return heading + paragraph(
            f"Their scores are {short(better.score)} and {short(worse.score)}.", "small"
        )
    return heading + _sentence(material, pair) + _shares(material, pair)


def _sentence(material: Material, pair: WrongPair) -> str:
    shares = pair.contributions
    if shares is None:
        return ""
    total, wrong = float(shares.sum()), np.flatnonzero(shares < 0)
    if not wrong.size:
        return paragraph(
            "No feature tells the two apart: the model gives them equal scores.", "small"
        )
    worst = int(np.argmin(shares))
    part = percent(-float(shares[worst]), -float(shares[wrong].sum()))
    return paragraph(
        f"Difference of scores {push(total)}. Most to blame: <strong>"
        f"{text(material.names[worst])}</strong>, {part} of all that pushes the wrong way.",
        "small",
    )


def _shares(material: Material, pair: WrongPair) -> str:
    """The largest shares on both sides, and the rest of each in a row."""
    if pair.contributions is None or pair.values is None:
        return ""
    shares, (better, worse) = pair.contributions, pair.values
    order = np.argsort(shares, kind="stable")
    against = [int(j) for j in order[:SHOWN] if shares[j] < 0]
    right = [int(j) for j in order[::-1][:SHOWN] if shares[j] > 0]
    largest = float(np.abs(shares).max(initial=0.0))
    rows = [
        f'<tr><td class="wide">{text(material.names[j])}</td>'
        + _cells(float(shares[j]), largest)
        + f'<td class="right">{short(better[j])}</td><td class="right">{short(worse[j])}</td></tr>'
        for j in [*against, *right]
    ]
    rest = np.setdiff1d(np.flatnonzero(shares), [*against, *right])
    if rest.size:
        total = float(shares[rest].sum())
        # No bar: a sum of many is not to be compared with bars of one.
        rows.append(
            f'<tr><td class="wide">{count(rest.size, "other feature")} together</td><td></td>'
            f'<td class="right">{push(total, largest)}</td><td></td><td></td></tr>'
        )
    headings = [("feature", ""), ("", "bars"), ("weight × difference", "right")]
    headings += [("value below", "right"), ("value above", "right")]
    key = (
        '<p class="small"><span class="key against">pushes the wrong way</span> &nbsp; '
        '<span class="key for">pushes the right way</span></p>'
    )
    return rows_table(headings, rows) + key
