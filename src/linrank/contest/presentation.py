"""A contest as tables for people who have to decide and never saw the code."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from linrank.comparison.presentation import STYLE, details, notes, overview
from linrank.tables import Column, Table

if TYPE_CHECKING:
    from linrank.comparison.comparison import Comparison
    from linrank.contest.result import Contest, Entry

__all__ = ["html", "markdown", "text"]


def text(contest: Contest, width: int | None = None) -> str:
    """The tables one below the other, then the legend."""
    lines = 100 if width is None else min(width, 100)
    legend = [
        textwrap.fill(note, lines, subsequent_indent="  ", break_long_words=False)
        for note in legend_of(contest)
    ]
    return "\n\n".join([*(t.to_text(width) for t in _tables(contest)), "\n".join(legend)])


def markdown(contest: Contest) -> str:
    """The tables one below the other, then the legend as a list."""
    legend = "\n".join(f"- {note}" for note in legend_of(contest))
    return "\n\n".join([*(t.to_markdown() for t in _tables(contest)), legend])


def html(contest: Contest) -> str:
    """The tables and the legend in one element; wide tables scroll inside it."""
    tables = "\n".join(
        f'<div style="overflow-x:auto">{t.to_html()}</div>' for t in _tables(contest)
    )
    legend = "".join(f"<li>{escape(note)}</li>" for note in legend_of(contest))
    inside = f'{STYLE}\n{tables}\n<ul class="notes">{legend}</ul>'
    return f'<div class="linrank-comparison linrank-contest">\n{inside}\n</div>'


def _tables(contest: Contest) -> list[Table]:
    tables = []
    if contest.comparison is not None:
        tables.append(_quality(contest, contest.comparison))
        if len(contest.metrics) > 1:
            tables.append(_by_rank(overview(contest.comparison), contest.comparison))
    tables.append(_cost(contest))
    lost = [entry for entry in contest.entries if entry.remark]
    if lost:
        rows = [
            [entry.name, "counts" if entry.has_result else "no result", entry.remark]
            for entry in lost
        ]
        columns = [Column(name, "left") for name in ("method", "outcome", "why")]
        tables.append(Table(columns, rows, "What went wrong"))
    return tables


def _quality(contest: Contest, comparison: Comparison) -> Table:
    """The first metric, best method first; a row too for each method without a result."""
    table = details(comparison, contest.metrics[0])
    empty = [""] * (len(table.columns) - 2)
    lost = [[e.name, "—", *empty] for e in contest.entries if not e.has_result]
    for row in lost:
        row[-1] = "no result"
    title = f"{table.title}; {contest.protocol}; the best on validation by {contest.rules.scoring}"
    return replace(table, rows=[*table.rows, *lost], title=title)


def ranked(comparison: Comparison) -> list[int]:
    """Numbers of the methods, the best by the first metric first."""
    metric = comparison.metrics[0]
    sign = -1.0 if comparison.higher_is_better(metric) else 1.0
    means = [comparison.cells[method, metric].mean for method in comparison.methods]
    keys = [math.inf if math.isnan(mean) else sign * mean for mean in means]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _by_rank(table: Table, comparison: Comparison) -> Table:
    return replace(table, rows=[table.rows[k] for k in ranked(comparison)])


def _cost(contest: Contest) -> Table:
    """Time, size and parameters, in the order of the first table."""
    headings = ["one fit", "search", "candidates", "model", "made of"]
    columns = [Column("method", "left"), *map(Column, headings), Column("chosen", "left")]
    names = [] if contest.comparison is None else list(contest.comparison.methods)
    order = [] if contest.comparison is None else [names[k] for k in ranked(contest.comparison)]
    entries = [contest[name] for name in order]
    rows = [_cost_row(entry) for entry in entries]
    rows += [
        [e.name, *[""] * 5, "no result: see below"] for e in contest.entries if not e.has_result
    ]
    n_folds = max(len(entry.outcomes) for entry in contest.entries)
    of_folds = f", means of {n_folds} folds" if n_folds > 1 else ""
    return Table(columns, rows, f"Cost of a model{of_folds}; processor time, one thread")


def _cost_row(entry: Entry) -> list[str]:
    sizes = [outcome.size for outcome in entry.outcomes if outcome.size is not None]
    n_parts = sum(size.n_parts for size in sizes) / len(sizes)
    n_candidates = max(outcome.n_candidates for outcome in entry.outcomes)
    return [
        entry.name + (" *" if entry.remark else ""),
        "" if entry.fit_seconds is None else _seconds(entry.fit_seconds),
        _seconds(entry.search_seconds),
        f"{n_candidates}",
        _bytes(entry.model_bytes or 0.0),
        _counted(n_parts, sizes[0].part),
        chosen(entry),
    ]


def chosen(entry: Entry) -> str:
    """The parameters: the value where folds agree, else the range or the values that occur."""
    parts = []
    for name in entry.outcomes[0].parameters:
        values = list(dict.fromkeys(outcome.parameters.get(name) for outcome in entry.outcomes))
        parts.append(f"{name} {_values(values)}")
    return ", ".join(parts)


def _values(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return _value(values[0])
    if all(isinstance(value, (int, float)) for value in values):
        return f"{_value(min(values))}–{_value(max(values))}"
    return " or ".join(_value(value) for value in values)


def _value(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _counted(number: float, things: str) -> str:
    return f"{number:,.0f} {things.removesuffix('s') if number == 1 else things}"


def _seconds(duration: float) -> str:
    if duration < 0.0995:
        return f"{1000 * duration:.0f} ms"
    return f"{duration:.1f} s" if duration < 99.5 else f"{duration:.0f} s"


def _bytes(size: float) -> str:
    units = ["B", "kB", "MB", "GB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.3g} {units[0]}"


def legend_of(contest: Contest) -> list[str]:
    """What the tables mean, and what to know before trusting them."""
    rules = contest.rules
    lines = [f"Note: {remark}." for remark in contest.remarks]
    if contest.comparison is not None:
        lines += notes(contest.comparison)
    lines += [
        f"chosen: each method's candidate with the best {rules.scoring} on the validation part; "
        "the test part is looked at once, with that model.",
        "one fit: with the chosen parameters; search: all candidates, validation included; model: "
        "its saved form.",
        f"features: scaled ({rules.scale}, from the training part) for linear methods and kernels, "
        "as they are for trees."
        if rules.scale != "none"
        else "features: as they are, for all methods.",
        f"seed {rules.seed}, budget {rules.budget:g} s for a method and fold; all of it took "
        f"{_seconds(contest.seconds)} on the clock.",
    ]
    if any(entry.has_result and entry.remark for entry in contest.entries):
        lines.append("*: the budget ended the search; the best candidate so far counts.")
    return lines
