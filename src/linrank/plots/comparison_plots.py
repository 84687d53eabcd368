"""Pictures of a comparison: the difference of every method from one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plots.axes import (
    BLUE,
    GREY,
    axes_or_new,
    finish,
    label,
    readable,
    tick_labels,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def comparison(
    result: Any, *, metric: str | None = None, ax: Axes | None = None, **style: Any
) -> Axes:
    """Draw the difference of each method from the baseline with its interval, best at the top.

    A filled mark is a difference whose corrected p is below 1 - confidence.

    Parameters
    ----------
    result : Comparison
        What :func:`linrank.compare` returns.
    metric : str, optional
        Which measure; the first one when absent.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of marks and intervals, as ``Axes.errorbar`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    metric = chosen_metric(result, metric)
    rows = differences(result, metric)
    ax = axes_or_new(ax, height=1.6 + 0.34 * max(2, len(rows)))
    level = round(1.0 - float(getattr(result, "confidence", 0.95)), 12)
    look = {"color": BLUE, "fmt": "o", "capsize": 3, "markersize": 6, **style}
    for place, (_, cell) in zip(range(len(rows) - 1, -1, -1), rows, strict=True):
        ends = [[cell.difference - cell.difference_low], [cell.difference_high - cell.difference]]
        known = bool(np.isfinite(ends).all())
        drawn = ax.errorbar(cell.difference, place, xerr=ends if known else None, **look)
        if not _p(cell) < level:
            drawn[0].set_markerfacecolor("white")
    tick_labels(ax, list(range(len(rows) - 1, -1, -1)), [name for name, _ in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.axvline(0, color=GREY, linewidth=1)
    side = "right" if higher_is_better(result, metric) else "left"
    told = f"{readable(metric, 40)} less that of {readable(result.baseline, 22)}"
    label(ax, x=f"{told} ({side} is better)")
    titled(ax, f"Bars: {100 * (1 - level):g} % intervals. Filled marks: p below {level:.3g}")
    return finish(ax, grid="x")


def chosen_metric(result: Any, metric: str | None) -> str:
    """The measure asked for, if the comparison has it."""
    if not hasattr(result, "cells"):
        raise TypeError(
            f"comparison draws what linrank.compare returns, got {type(result).__name__}"
        )
    known = list(result.metrics)
    if metric is None:
        return str(known[0])
    if metric not in known:
        raise ValueError(f"{metric!r} was not compared; there are {', '.join(known)}")
    return metric


def differences(result: Any, metric: str) -> list[tuple[str, Any]]:
    """Methods and their cells, the best first; the baseline and those without a value left out."""
    rows = [
        (str(method), result.cells[method, metric])
        for method in result.methods
        if method != result.baseline
    ]
    known = [row for row in rows if row[1].difference == row[1].difference]
    if not known:
        raise ValueError(f"no method has a {metric} to compare with that of {result.baseline!r}")
    sign = -1.0 if higher_is_better(result, metric) else 1.0
    return sorted(known, key=lambda row: sign * row[1].difference)


def higher_is_better(result: Any, metric: str) -> bool:
    """What the comparison says of a measure; up is better where it does not."""
    told = getattr(result, "higher_is_better", None)
    return True if told is None else bool(told(metric))


def _p(cell: Any) -> float:
    """The corrected p; where there is none, that of the test alone; NaN without a test."""
    for p in (cell.p_corrected, cell.p):
        if p is not None:
            return float(p)
    return float("nan")
