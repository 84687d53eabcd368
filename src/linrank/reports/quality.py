"""How good it is: the verdict at the top of the page, all measures, then query by query."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.displays import QueryHistogramDisplay, QueryScatterDisplay
from linrank.metrics import parse
from linrank.reports.html import (
    MISSING,
    absent,
    clear,
    columns,
    figure,
    interval,
    notices,
    p_value,
    paragraph,
    percent,
    power,
    signed,
    table,
    text,
    tiles,
    typeset,
    value,
)
from linrank.solvers.result import certified_share, distance_text
from linrank.system.resources import count
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.judging.compare import Cell
    from linrank.reports.material import Material

SHIFTED = 5  # queries named at each end
NAMED = 6  # queries that no ranking can order


def header(material: Material, title: str) -> str:
    """Title, verdict, key figures and caveats."""
    test = material.test
    rows = count(test.n_rows, "document")
    queries = count(test.queries.n_queries, "query", "queries")
    return "\n".join(
        (
            '<p class="kicker">linrank report</p>',
            f"<h1>{text(title)}</h1>",
            paragraph(f"{text(test.source)}: {rows} of {queries}", "small"),
            paragraph(_verdict(material), "verdict"),
            tiles(_figures(material)),
            notices(material.caveats),
        )
    )


def _cell(material: Material) -> Cell:
    return material.comparison.cells[material.ranking.name, material.scoring]


def _verdict(material: Material) -> str:
    """Two or three sentences that a reader may take away."""
    cell, scoring = _cell(material), text(material.scoring)
    lines = [
        f"<strong>{text(material.ranking.name)}</strong> reaches <strong class=num>{scoring} "
        f"{value(cell.mean)}</strong> {_ends(cell)}."
    ]
    if material.against is not None:
        lines.append(_against(material, cell))
    bound = certificate(material)
    if bound is not None:
        lines.append(bound[2])
    return " ".join(lines)


def _ends(cell: Cell, *, difference: bool = False) -> str:
    """The interval, or why there is none."""
    low, high = (cell.difference_low, cell.difference_high) if difference else (cell.low, cell.high)
    if math.isnan(low) or math.isnan(high):
        return "(one query, so no interval)" if cell.n_queries == 1 else "(no interval)"
    return f'<span class="num">{interval(low, high, difference=difference)}</span>'


def _against(material: Material, cell: Cell) -> str:
    if material.against is None:
        return ""
    rival = f"<em>{text(material.against.name)}</em>"
    verdict = material.comparison.verdict(material.ranking.name, material.scoring)
    sizes = f'<span class="num">{signed(cell.difference)}</span>, {p_value(cell.p_corrected)}'
    known = value(material.comparison.cells[material.against.name, material.scoring].mean)
    if cell.wins == cell.losses == 0:
        return f"On every query it does as well as {rival}, no better and no worse."
    if cell.n_queries == 1:
        return f"{rival} has {known}; one query cannot tell whether the difference is chance."
    if verdict == "better":
        return f"It beats {rival} ({known}): {sizes}, so chance is an unlikely explanation."
    if verdict == "worse":
        return f"It is <strong>worse</strong> than {rival} ({known}): {sizes}."
    return (
        f"It is <strong>not shown to differ</strong> from {rival} ({known}): {sizes}; these "
        "queries cannot tell the two apart."
    )


def certificate(material: Material) -> tuple[str, str, str] | None:
    """Of the fit: a word, a detail, a sentence; None where nothing is known of it."""
    training: Any = {} if material.ranking.model is None else material.ranking.model.training
    objective, gap = training.get("objective"), training.get("gap")
    if not isinstance(objective, float) or not isinstance(gap, (int, float)) or math.isnan(gap):
        return None
    share, converged = certified_share(objective, gap), bool(training.get("converged", True))
    if share is None:
        detail = distance_text(objective, gap, converged)
        return "no", detail, f"Of the objective of the fit, {detail}."
    detail = f"at most {power(share)} of the objective above its minimum"
    if not converged:
        return "no", detail, f"The fit stopped before its tolerance: it is {detail}."
    return "yes", detail, f"The fit is certified: {detail}, proven by duality."


def _figures(material: Material) -> list[tuple[str, str, str]]:
    cell, comparison = _cell(material), material.comparison
    level = f"{100 * comparison.confidence:g}% interval"
    better = "higher" if parse(material.scoring).higher_is_better else "lower"
    shown = [
        (
            f"{text(material.scoring)} ({better} is better)",
            value(cell.mean),
            f"{level} {_ends(cell)}<br>over "
            f"{count(cell.n_queries, 'query', 'queries')}, rules of "
            f"{text(comparison.convention.name)}",
        )
    ]
    if material.against is not None:
        ends = f"{level} {_ends(cell, difference=True)}"
        tested = f"<br>{p_value(cell.p_corrected)}, {_test(comparison.test)}"
        shown += [
            (
                f"Against {text(material.against.name)}",
                signed(cell.difference),
                ends + (tested if cell.n_queries > 1 else ""),
            ),
            (
                "Queries won, tied, lost",
                f"{cell.wins:,} · {cell.ties:,} · {cell.losses:,}",
                f"by {text(material.scoring)} of each query",
            ),
        ]
    bound = certificate(material)
    if bound is not None:
        shown.append(("Fit certified", bound[0], bound[1]))
    return shown


def _test(name: str) -> str:
    return "paired t test" if name == "t" else f"{name} test"


def summary_dict(material: Material) -> dict[str, Any]:
    """What the top of the page says, as plain values, ready for JSON."""
    bound = certificate(material)
    return {
        "model": {"name": material.ranking.name, "about": material.ranking.about},
        "against": None
        if material.against is None
        else {"name": material.against.name, "about": material.against.about},
        "test": {
            "source": material.test.source,
            "rows": material.test.n_rows,
            "queries": material.test.queries.n_queries,
            "pairs": material.test.queries.n_pairs,
        },
        "scoring": material.scoring,
        "C": None if material.training is None else material.training.C,
        "certified": None if bound is None else bound[0] == "yes",
        "comparison": material.comparison.to_dict(),
        "worst_queries": [
            {"id": one.id, "value": one.value, "pairs": one.n_pairs, "wrong": one.n_wrong}
            for one in material.worst
        ],
        "caveats": [
            {"code": one.code, "message": one.message, "grave": one.grave}
            for one in material.caveats
        ],
    }


def measures(material: Material) -> tuple[str, ...]:
    """All measures in a table."""
    comparison, name, rival = material.comparison, material.ranking.name, material.against
    level = f"{100 * comparison.confidence:g}% interval"
    headings = [f"mean [{level}]", "queries"]
    if rival is not None:
        headings += ["against", f"difference [{level}]", "p", "won · tied · lost"]
    rows = []
    for metric in comparison.metrics:
        cell = comparison.cells[name, metric]
        arrow = "" if comparison.higher_is_better(metric) else " (lower is better)"
        mean = f"{value(cell.mean)} {interval(cell.low, cell.high)}"
        row = [metric + arrow, mean, f"{cell.n_queries:,}"]
        if rival is not None:
            ends = interval(cell.difference_low, cell.difference_high, difference=True)
            row += [value(comparison.cells[rival.name, metric].mean)]
            row += [f"{signed(cell.difference)} {ends}"]
            row += [p_value(cell.p_corrected).removeprefix("p ").removeprefix("= ")]
            row += [f"{cell.wins:,} · {cell.ties:,} · {cell.losses:,}"]
        rows.append(row)
    content = Table([Column("measure", "left"), *map(Column, headings)], rows, "", _notes(material))
    return _lede(material), table(content)


def _lede(material: Material) -> str:
    if material.against is None:
        return (
            "Every measure, with the interval that other queries of the same kind would have given."
        )
    name, comparison = material.ranking.name, material.comparison
    verdicts = [comparison.verdict(name, metric) for metric in comparison.metrics]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    rival = f"<em>{text(material.against.name)}</em>"
    if better == len(verdicts):
        said = f"By all {len(verdicts)} measures it is better than {rival}, beyond chance."
    elif not better and not worse:
        said = f"By none of the {len(verdicts)} measures can it be told from {rival}."
    else:
        rest = f", worse by {worse}" if worse else ""
        unclear = len(verdicts) - better - worse
        end = {0: "", 1: "; the other one cannot tell"}.get(unclear, "; the others cannot tell")
        said = f"It is better than {rival} by {better} of {len(verdicts)} measures{rest}{end}."
    return f"{said} A p of 0.05 or less says that chance alone would seldom do this."


def _notes(material: Material) -> list[str]:
    comparison, queries = material.comparison, material.test.queries
    notes = [f"Rules: {typeset(comparison.convention.describe())}."]
    n_flat = int(np.count_nonzero(queries.n_levels == 1))
    if n_flat:
        notes.append(
            f"{n_flat:,} of {count(queries.n_queries, 'query', 'queries')} "
            f"{'has' if n_flat == 1 else 'have'} one label only: no ranking can do better or worse "
            "on them."
        )
    notes.append(
        f"Intervals: bootstrap over queries, {comparison.n_resamples:,} resamples, seed "
        f"{comparison.seed}."
    )
    if material.against is not None:
        notes.append(
            f"Against: {clear(material.against.name)}. Difference: mean of "
            f"{clear(material.ranking.name)} less "
            f"that mean. p: two-sided {_test(comparison.test)} on the differences by query."
        )
    return notes


def by_query(material: Material) -> tuple[str, ...]:
    """The scatter of two rankings, the histogram, and the queries that moved most."""
    scoring, rival = material.scoring, material.against
    own = material.evaluation.per_query[scoring]
    is_flat = material.test.queries.n_levels == 1
    spread = None
    if not np.isnan(own).all():
        spread = QueryHistogramDisplay(own, scoring, is_flat=is_flat)
    told = f"How {text(scoring)} is spread over the queries.{_flat(material, own, is_flat)}"
    histogram = figure(spread, told) or MISSING
    if rival is None:
        how = absent(
            "Compared with nothing: <code>--against</code> a model or scores, or "
            "<code>--train</code> data, of which the best single feature is taken, adds the "
            "picture of both."
        )
        lede = "A mean hides what single queries get. Look for a heap at the low end."
        return lede, columns(histogram), how
    lede = (
        "A mean hides what single queries get: a change that helps many a little may ruin a few. "
        "Points above the diagonal are queries that the model serves better."
    )
    other = material.evaluations[rival.name].per_query[scoring]
    names, ids = (material.ranking.name, rival.name), material.test.queries.ids
    both, open_ = None, np.where(is_flat, np.nan, own)
    if not np.isnan(open_ + other).all():
        both = QueryScatterDisplay(open_, other, names, scoring, ids)
    caption = (
        f"Each point is a test query: {text(scoring)} of <em>{text(rival.name)}</em> to the right, "
        f"of <strong>{text(material.ranking.name)}</strong> upwards; large points are several "
        "queries."
    )
    lost, won = _shifted(material, own, other)
    return lede, columns(figure(both, caption) + lost, histogram + won)


def _flat(material: Material, own: NDArray[np.float64], is_flat: NDArray[np.bool_]) -> str:
    """What the gray part of the histogram is, by name."""
    found = np.flatnonzero(is_flat & ~np.isnan(own))
    ids = material.test.queries.ids
    if not len(found) or ids is None:
        return ""
    shown = ", ".join(f"<em>{text(ids[q])}</em>" for q in found[:NAMED].tolist())
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    what = "1 query" if len(found) == 1 else f"{len(found):,} queries"
    return (
        f" Gray: {what} whose documents all have the same label, so that no ranking can order "
        f"them: {shown}{more}."
    )


def _shifted(
    material: Material, own: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[str, str]:
    """The queries with the largest losses, and those with the largest gains."""
    gain = (own - other) * (1.0 if parse(material.scoring).higher_is_better else -1.0)
    known = np.flatnonzero(~np.isnan(gain) & (np.abs(gain) > 1e-9))
    order = known[np.argsort(gain[known], kind="stable")]
    n_lost, n_won = (int(np.count_nonzero(sign * gain[known] > 0)) for sign in (-1, 1))
    lost = percent(n_lost, len(gain)) + " of the queries lose; these lose most. Look at them first."
    won = percent(n_won, len(gain)) + " of the queries gain; these gain most."
    return (
        _named(material, "Largest losses", lost, order[: min(SHIFTED, n_lost)], own, other),
        _named(material, "Largest gains", won, order[::-1][: min(SHIFTED, n_won)], own, other),
    )


def _named(
    material: Material,
    title: str,
    said: str,
    chosen: NDArray[np.int64],
    own: NDArray[np.float64],
    other: NDArray[np.float64],
) -> str:
    """A table of some queries."""
    if not len(chosen):
        return ""
    queries = material.test.queries
    ids, sizes = queries.ids, np.diff(queries.offsets)
    headings = ("documents", "model", "against", "difference")
    rows = [
        [
            "all rows" if ids is None else clear(ids[q]),
            f"{sizes[q]:,}",
            value(own[q]),
            value(other[q]),
            signed(own[q] - other[q]),
        ]
        for q in chosen.tolist()
    ]
    content = Table([Column("query", "left"), *map(Column, headings)], rows)
    return f"<h3>{title}</h3>{paragraph(said, 'small')}{table(content)}"
