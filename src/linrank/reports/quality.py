"""How good it is: all measures with intervals, then query by query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.metrics import parse
from linrank.reports import pictures
from linrank.reports.html import absent, clear, columns, figure, paragraph, section, table, text
from linrank.reports.pictures import count, interval, p_value, percent, signed, value
from linrank.system.tables import Column, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.reports.material import Material

SHIFTED = 5  # queries named at each end


def measures(material: Material) -> str:
    """All measures in a table."""
    comparison, name = material.comparison, material.ranking.name
    level = f"{100 * comparison.confidence:g} % interval"
    columns = [Column("measure", "left"), Column("mean"), Column(level), Column("queries")]
    if material.against is not None:
        columns += [Column("against"), Column("difference")]
        columns += [Column(level), Column("p"), Column("won · tied · lost")]
    rows = []
    for metric in comparison.metrics:
        cell = comparison.cells[name, metric]
        arrow = "" if comparison.higher_is_better(metric) else " (lower is better)"
        row = [
            metric + arrow,
            value(cell.mean),
            interval(cell.low, cell.high),
            f"{cell.n_queries:,}",
        ]
        if material.against is not None:
            ends = interval(cell.difference_low, cell.difference_high, difference=True)
            row += [value(comparison.cells[material.against.name, metric].mean)]
            row += [signed(cell.difference), ends, _bare(p_value(cell.p_corrected))]
            row += [f"{cell.wins:,} · {cell.ties:,} · {cell.losses:,}"]
        rows.append(row)
    return section(
        "measures",
        "How good is it?",
        _lede(material),
        table(Table(columns, rows, notes=_notes(material))),
    )


def _bare(p: str) -> str:
    return p.removeprefix("p ").removeprefix("= ")


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
    notes = [f"Rules: {comparison.convention.describe()}."]
    n_flat = int(np.count_nonzero(queries.n_levels == 1))
    if n_flat:
        notes.append(
            f"{n_flat:,} of {count(queries.n_queries, 'query', 'queries')} have one label only: no "
            "ranking can do better or worse on them."
        )
    notes.append(
        f"Intervals: bootstrap over queries, {comparison.n_resamples:,} resamples, seed "
        f"{comparison.seed}."
    )
    if material.against is not None:
        kind = {"t": "paired t test"}.get(comparison.test, f"{comparison.test} test")
        notes.append(
            f"Against: {clear(material.against.name)}. Difference: mean of "
            f"{clear(material.ranking.name)} less "
            f"that mean. p: two-sided {kind} on the differences by query."
        )
    return notes


def by_query(material: Material) -> str:
    """The scatter of two rankings, the histogram, and the queries that moved most."""
    rules = text(material.scoring)
    shapes = pictures.histogram(material)
    pair = pictures.scatter(material)
    lost, won = _shifted(material)
    missing = "" if shapes else absent(pictures.MISSING)
    drawn = columns(
        (figure(pair, _scatter_caption(material)) if pair else "") + lost,
        (figure(shapes, f"How {rules} is spread over the queries.") if shapes else "") + won,
    )
    if material.against is None:
        how = absent(
            "Compared with nothing: <code>--against</code> a model or scores, or "
            "<code>--train</code> data, of which the best single feature is taken, adds the "
            "picture of both."
        )
        lede = "A mean hides what single queries get. Look for a heap at the low end."
        return section("queries", "Query by query", lede, drawn, how, missing)
    lede = (
        "A mean hides what single queries get: a change that helps many a little may ruin a few. "
        "Points above the diagonal are queries that the model serves better."
    )
    return section("queries", "Query by query", lede, missing, drawn)


def _scatter_caption(material: Material) -> str:
    if material.against is None:
        return ""
    return (
        f"Each point is a test query: {text(material.scoring)} of "
        f"<em>{text(material.against.name)}</em> to the right, of "
        f"<strong>{text(material.ranking.name)}</strong> upwards; large points are several queries."
    )


def _shifted(material: Material) -> tuple[str, str]:
    """The queries with the largest losses, and those with the largest gains."""
    if material.against is None:
        return "", ""
    own = material.evaluation.per_query[material.scoring]
    other = material.evaluations[material.against.name].per_query[material.scoring]
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
