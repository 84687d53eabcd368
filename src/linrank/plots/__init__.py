"""Pictures of a fit: how it converged, what it learnt, which queries it serves well.

Every function draws on the Matplotlib axes it is given, or on a new figure, and returns the axes.
Matplotlib is imported when a picture is asked for: ``pip install linrank[plot]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plots.axes import (
    BLUE,
    GREY,
    ORANGE,
    axes_or_new,
    counted,
    finish,
    plain_powers,
    titled,
)
from linrank.plots.comparison_plots import comparison
from linrank.plots.path_plots import (
    grid,
    induction,
    pair_accuracy,
    path,
    rank_profile,
    support_distribution,
)
from linrank.plots.query_plots import labels, query_histogram, query_scatter
from linrank.plots.weight_plots import pair_explanation, weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = [
    "comparison",
    "convergence",
    "descent",
    "grid",
    "induction",
    "labels",
    "pair_accuracy",
    "pair_explanation",
    "path",
    "query_histogram",
    "query_scatter",
    "rank_profile",
    "support_distribution",
    "weights",
]


def convergence(
    history: Mapping[str, Sequence[float]], *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Draw the distance to the optimum against time, on a logarithmic scale.

    Two upper bounds of ``(F(w) - F*) / F``: the objective above the best lower bound that the whole
    run has proved, ``(F_k - max_j D_j) / F_end``, and the certified duality gap of each iterate,
    ``(F_k - D_k) / F_end``. Where nothing is certified, as of `FactorizedRankSVM`: the objective
    above its last value.

    Parameters
    ----------
    history : mapping
        ``history_`` of an estimator or ``history`` of a result: ``"objective"``, ``"seconds"`` and,
        if there is one, ``"gap"``, one entry per iteration, the starting point first.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of both lines, as ``Axes.plot`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    objective = np.asarray(history["objective"], dtype=np.float64)
    seconds = np.asarray(history["seconds"], dtype=np.float64)
    if not len(objective):
        raise ValueError("the history is empty: fit a model first")
    ax = axes_or_new(ax)
    gap = np.asarray(history["gap"], dtype=np.float64) if "gap" in history else None
    bound = objective[-1] if gap is None else np.nanmax(objective - gap)
    unit = abs(objective[-1]) or 1.0
    above = (objective - bound) / unit
    # Zero has no logarithm; a distance below the rounding of F is not a distance.
    floor = np.finfo(np.float64).eps
    label = "objective above " + ("its last value" if gap is None else "the best bound")
    first = {"color": BLUE, "marker": "o", "label": label, **style}
    ax.plot(seconds, np.maximum(above, floor), **first)
    if gap is not None:
        certified = np.maximum(gap / unit, floor)
        second = {"color": ORANGE, "marker": "s", "linestyle": "--", **style}
        ax.plot(seconds, certified, label="certified duality gap", **second)
    ax.set(yscale="log", xlabel="seconds", ylabel="relative to the objective")
    plain_powers(ax.yaxis)
    steps = counted(len(objective) - 1, "iteration")
    titled(ax, f"Convergence: {steps}, objective {objective[-1]:.6g}")
    ax.set_xlim(left=0)
    ax.locator_params(axis="x", nbins=5)
    ax.legend(frameon=False)
    return finish(ax)


def descent(
    history: Mapping[str, Sequence[float]],
    *,
    optimum: float | None = None,
    label: str | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw the objective of a stochastic fit against its steps, on logarithmic axes.

    Parameters
    ----------
    history : mapping
        ``history_`` of an `SGDRanker` with ``record="exact"`` or ``"sampled"``: ``"n_steps"`` and
        ``"objective"``.
    optimum : float, optional
        The minimum, drawn as a line: ``RankSVM(C, loss="hinge")``'s ``objective_`` times λ, with
        ``C = 1/(λ p)``.
    label : str, optional
        Name of the curve; draw several fits on the same axes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of the curve, as ``Axes.plot`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    steps = np.asarray(history.get("n_steps", ()), dtype=np.float64)
    objective = np.asarray(history.get("objective", ()), dtype=np.float64)
    if not np.isfinite(objective).any():
        raise ValueError("the history has no objective: fit with record='exact' or 'sampled'")
    ax = axes_or_new(ax)
    ax.plot(
        steps, objective, **{"marker": "o", "markersize": 3, "label": label or "objective", **style}
    )
    if optimum is not None:
        ax.axhline(optimum, color=GREY, linestyle="--", label="optimum")
    ax.set(xscale="log", yscale="log", xlabel="steps", ylabel="objective")
    plain_powers(ax.xaxis)
    plain_powers(ax.yaxis)
    titled(ax, f"Stochastic descent: {int(steps[-1]):,} steps, objective {objective[-1]:.6g}")
    ax.legend(frameon=False)
    return finish(ax)
