"""A comparison as tables for people who never saw the code behind it."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from linrank.comparison.significance import EXACT_UP_TO
from linrank.tables import Column, Table

if TYPE_CHECKING:
    from linrank.comparison.comparison import Comparison

__all__ = ["details", "html", "markdown", "overview", "text"]

_MARKS = {"better": "▲", "worse": "▼", "unclear": " ", "baseline": " "}
_WORDS = {"better": "better", "worse": "worse", "unclear": "unclear", "baseline": "(baseline)"}


def text(comparison: Comparison) -> str:
    """The tables one below the other, then the legend."""
    return "\n\n".join(
        [*(t.to_text() for t in _tables(comparison)), "\n".join(notes(comparison))]
    )


def markdown(comparison: Comparison) -> str:
    """The tables one below the other, then the legend as a list."""
    legend = "\n".join(f"- {note}" for note in notes(comparison))
    return "\n\n".join([*(t.to_markdown() for t in _tables(comparison)), legend])


def html(comparison: Comparison) -> str:
    """The tables and the legend in one element; wide tables scroll inside it."""
    tables = "\n".join(
        f'<div style="overflow-x:auto">{t.to_html()}</div>' for t in _tables(comparison)
    )
    legend = "".join(f"<li>{escape(note)}</li>" for note in notes(comparison))
    return f'<div class="linrank-comparison">\n{tables}\n<ul class="notes">{legend}</ul>\n</div>'


def _tables(comparison: Comparison) -> list[Table]:
    first = [overview(comparison)] if len(comparison.metrics) > 1 else []
    return first + [details(comparison, metric) for metric in comparison.metrics]


def overview(comparison: Comparison) -> Table:
    """Means of all metrics, one row a method, in the order given."""
    columns = [Column("method", "left"), *(Column(_heading(comparison, m)) for m in comparison.metrics)]
    rows = [
        [_name(comparison, method)]
        + [
            f"{_number(comparison.cells[method, metric].mean)} "
            + _MARKS[comparison.verdict(method, metric)]
            for metric in comparison.metrics
        ]
        for method in comparison.methods
    ]
    title = f"Means over {comparison.n_queries} queries"
    if len(comparison.methods) > 1:
        title += f"; ▲ better, ▼ worse than {comparison.baseline}"
    return Table(columns, rows, title)


def details(comparison: Comparison, metric: str) -> Table:
    """Everything on one metric, the best method first."""
    percent = f"{100 * comparison.confidence:g} %"
    columns = [Column("method", "left"), Column("mean"), Column(f"{percent} interval")]
    alone = len(comparison.methods) == 1
    if not alone:
        p = "p" if comparison.correction is None else "corrected p"
        columns += [Column("difference"), Column(f"{percent} interval"), Column(p)]
        columns += [Column("won/tied/lost"), Column("verdict", "left")]
    rows = [_row(comparison, method, metric, alone) for method in _best_first(comparison, metric)]
    judged = max(comparison.cells[m, metric].n_queries for m in comparison.methods)
    title = f"{_heading(comparison, metric)}, {judged} queries"
    return Table(columns, rows, title)


def _row(comparison: Comparison, method: str, metric: str, alone: bool) -> list[str]:
    cell = comparison.cells[method, metric]
    row = [_name(comparison, method), _number(cell.mean), _range(cell.low, cell.high)]
    if alone:
        return row
    if method == comparison.baseline:
        return [*row, "", "", "", "", _WORDS["baseline"]]
    return [
        *row,
        _signed(cell.difference),
        _range(cell.difference_low, cell.difference_high, signed=True),
        _p(cell.p_corrected),
        f"{cell.wins}/{cell.ties}/{cell.losses}",
        _WORDS[comparison.verdict(method, metric)],
    ]


def notes(comparison: Comparison) -> list[str]:
    """The legend."""
    percent = f"{100 * comparison.confidence:g} %"
    lines = [
        f"interval: {percent} bootstrap interval over queries ({comparison.n_resamples:,} resamples)."
    ]
    if len(comparison.methods) > 1:
        lines += _notes_on_tests(comparison)
    lines.append(f"convention: {comparison.convention.describe()}.")
    return lines


def _notes_on_tests(comparison: Comparison) -> list[str]:
    base, resamples = comparison.baseline, f"{comparison.n_resamples:,}"
    test = {
        "randomisation": f"two-sided randomisation test, {resamples} random exchanges of the two "
        f"methods' results by query (all exchanges where at most {EXACT_UP_TO} queries differ)",
        "t": "two-sided paired t-test over queries",
        "bootstrap": f"two-sided bootstrap test over queries, {resamples} resamples",
    }[comparison.test]
    family = "of each metric" if comparison.family == "metric" else "of all metrics"
    correction = {
        "holm": f"by Holm's method over the comparisons {family}",
        "bonferroni": f"by Bonferroni's method over the comparisons {family}",
        "bh": f"by Benjamini and Hochberg's method over the comparisons {family}",
        None: "not at all",
    }[comparison.correction]
    return [
        f"difference: method less {base}, over the same queries; won/tied/lost: queries on which "
        f"the method is better than, equal to and worse than {base}.",
        f"p: chance of a difference at least this large if the two were equally good; {test}; "
        f"corrected {correction}.",
        f"verdict: better or worse if that p is below {1 - comparison.confidence:.4g}; unclear: the "
        "data do not tell, which does not mean that the two are equally good.",
    ]


def _best_first(comparison: Comparison, metric: str) -> list[str]:
    sign = -1.0 if comparison.higher_is_better(metric) else 1.0

    def key(method: str) -> float:
        mean = comparison.cells[method, metric].mean
        return math.inf if math.isnan(mean) else sign * mean

    return sorted(comparison.methods, key=key)


def _heading(comparison: Comparison, metric: str) -> str:
    return metric if comparison.higher_is_better(metric) else f"{metric} (lower is better)"


def _name(comparison: Comparison, method: str) -> str:
    return method


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def _signed(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:+.4f}"


def _range(low: float, high: float, signed: bool = False) -> str:
    if math.isnan(low) or math.isnan(high):
        return "undefined"
    number = _signed if signed else _number
    return f"{number(low)} to {number(high)}"


def _p(value: float) -> str:
    if math.isnan(value):
        return "undefined"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
