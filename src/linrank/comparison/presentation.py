"""A comparison as tables for people who never saw the code behind it."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import TYPE_CHECKING

from linrank.comparison.significance import EXACT_UP_TO
from linrank.tables import Column, Table

if TYPE_CHECKING:
    from linrank.comparison.comparison import Comparison

__all__ = ["STYLE", "details", "html", "markdown", "notes", "overview", "text"]

_BLANK = "\u2003"  # an em space: as wide as a mark, and kept by HTML
_MARKS = {"better": "▲", "worse": "▼", "unclear": _BLANK, "baseline": _BLANK}
# Only what holds in the dark, too: lines and text take the colour of the page.
STYLE = """<style>
.linrank-comparison table { border-collapse: collapse; margin: 1em 0; min-width: min(100%, 38em); }
.linrank-comparison caption { text-align: left; font-weight: bold; padding: 0.3em 0; }
.linrank-comparison th, .linrank-comparison td { padding: 0.25em 0.7em; white-space: nowrap; }
.linrank-comparison tr { border-bottom: 1px solid rgba(128, 128, 128, 0.4); }
.linrank-comparison td { font-variant-numeric: tabular-nums; }
</style>"""


def text(comparison: Comparison, width: int | None = None) -> str:
    """The tables one below the other, then the legend."""
    lines = 100 if width is None else min(width, 100)
    legend = [
        textwrap.fill(note, lines, subsequent_indent="  ", break_long_words=False)
        for note in notes(comparison)
    ]
    return "\n\n".join([*(t.to_text(width) for t in _tables(comparison)), "\n".join(legend)])


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
    inside = f'{STYLE}\n{tables}\n<ul class="notes">{legend}</ul>'
    return f'<div class="linrank-comparison">\n{inside}\n</div>'


def _tables(comparison: Comparison) -> list[Table]:
    first = [overview(comparison)] if len(comparison.metrics) > 1 else []
    return first + [details(comparison, metric) for metric in comparison.metrics]


def overview(comparison: Comparison) -> Table:
    """Means of all metrics, one row a method, in the order given."""
    lower = [m for m in comparison.metrics if not comparison.higher_is_better(m)]
    columns = [Column(f"{m} ↓" if m in lower else m) for m in comparison.metrics]
    rows = [
        [_name(comparison, method)]
        + [
            f"{_number(comparison.cells[method, metric].mean)} "
            + _MARKS[comparison.verdict(method, metric)]
            for metric in comparison.metrics
        ]
        for method in comparison.methods
    ]
    title = f"Means over {_count(comparison.n_queries, 'query', 'queries')}"
    if len(comparison.methods) > 1:
        title += f"; ▲ better, ▼ worse than {comparison.baseline}, no mark: unclear"
    if lower:
        title += "; ↓ lower is better"
    return Table([Column("method", "left"), *columns], rows, title)


def details(comparison: Comparison, metric: str) -> Table:
    """Everything on one metric, the best method first."""
    percent = f"{100 * comparison.confidence:g} %"
    columns = [Column("method", "left"), Column("mean"), Column(f"{percent} interval")]
    alone = len(comparison.methods) == 1
    if not alone:
        p = "p" if comparison.correction is None else "corrected p"
        columns += [Column("difference"), Column(f"its {percent} interval"), Column(p)]
        columns += [Column("won/tied/lost"), Column("verdict", "left")]
    rows = [_row(comparison, method, metric, alone) for method in _best_first(comparison, metric)]
    judged = max(comparison.cells[m, metric].n_queries for m in comparison.methods)
    direction = "higher" if comparison.higher_is_better(metric) else "lower"
    return Table(
        columns, rows, f"{metric}: {direction} is better; {_count(judged, 'query', 'queries')}"
    )


def _row(comparison: Comparison, method: str, metric: str, alone: bool) -> list[str]:
    cell = comparison.cells[method, metric]
    row = [_name(comparison, method), _number(cell.mean), _range(cell.low, cell.high)]
    if alone:
        return row
    if method == comparison.baseline:
        return [*row, "", "", "", "", ""]
    return [
        *row,
        _signed(cell.difference),
        _range(cell.difference_low, cell.difference_high, signed=True),
        _p(cell.p_corrected),
        f"{cell.wins}/{cell.ties}/{cell.losses}",
        comparison.verdict(method, metric),
    ]


def notes(comparison: Comparison) -> list[str]:
    """The legend: what stands in each column, how it came about, and what it does not say."""
    percent = f"{100 * comparison.confidence:g} %"
    lines = [
        f"interval: where the mean over all queries of this kind lies, with {percent} confidence; "
        f"bootstrap over queries, {comparison.n_resamples:,} resamples, seed {comparison.seed}."
    ]
    if len(comparison.methods) > 1:
        lines += _notes_on_tests(comparison)
    if any(math.isnan(c.mean) or math.isnan(c.low) for c in comparison.cells.values()):
        lines.append(
            "undefined: the metric can judge no query, or a single one, which has no interval."
        )
    lines.append(f"convention: {comparison.convention.describe()}.")
    return [" ".join(line.split()) for line in lines]  # a name may hold a line break


def _notes_on_tests(comparison: Comparison) -> list[str]:
    base, resamples = comparison.baseline, f"{comparison.n_resamples:,}"
    test = {
        "randomisation": f"randomisation test, {resamples} random exchanges of the two methods by "
        f"query (all exchanges where at most {EXACT_UP_TO} queries differ)",
        "t": "paired t-test over queries",
        "bootstrap": f"bootstrap test over queries, {resamples} resamples",
    }[comparison.test]
    return [
        f"difference: mean of the method less that of {base}, over the same queries.",
        f"p: chance of a difference at least this large, in either direction, if the method and "
        f"{base} were equally good; {test}. {_correction(comparison)}",
        f"won/tied/lost: queries on which the method is better than {base}, as good, and worse.",
        f"verdict: better or worse where this p is below {1 - comparison.confidence:.4g}. Unclear "
        "does not mean equally good: these queries do not tell.",
    ]


def _correction(comparison: Comparison) -> str:
    if comparison.correction is None:
        return "Not corrected for several comparisons."
    name = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini and Hochberg"}
    others = len(comparison.methods) - 1
    each, n = "under each metric", others
    if comparison.family == "table":
        each, n = "in all tables", others * len(comparison.metrics)
    number = _count(n, "comparison", "comparisons")
    return f"Corrected after {name[comparison.correction]} for {number} {each}."


def _count(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


def _best_first(comparison: Comparison, metric: str) -> list[str]:
    sign = -1.0 if comparison.higher_is_better(metric) else 1.0

    def key(method: str) -> float:
        mean = comparison.cells[method, metric].mean
        return math.inf if math.isnan(mean) else sign * mean

    return sorted(comparison.methods, key=key)


def _name(comparison: Comparison, method: str) -> str:
    alone = len(comparison.methods) == 1
    return method if alone or method != comparison.baseline else f"{method} (baseline)"


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}".replace("-0.0000", "0.0000")


def _signed(value: float) -> str:
    text = f"{value:+.4f}"
    return "undefined" if math.isnan(value) else "0.0000" if float(text) == 0.0 else text


def _range(low: float, high: float, signed: bool = False) -> str:
    if math.isnan(low) or math.isnan(high):
        return "undefined"
    number = _signed if signed else _number
    return f"{number(low)} to {number(high)}"


def _p(value: float) -> str:
    if math.isnan(value):
        return "undefined"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
