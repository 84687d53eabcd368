"""Pictures of a fit: how it converged, what it learnt, which queries it serves well.

Every function draws on the Matplotlib axes it is given, or on a new figure, and returns the axes.
Matplotlib is imported when a picture is asked for: ``pip install linrank[plot]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank.grid_plots import grid
from linrank.pair_plots import pair_accuracy, support_distribution
from linrank.path_plots import induction, path
from linrank.plot_axes import BLUE, GREY, ORANGE, axes_or_new, finish
from linrank.rank_plots import rank_profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = [
    "convergence",
    "descent",
    "grid",
    "induction",
    "pair_accuracy",
    "path",
    "query_histogram",
    "rank_profile",
    "support_distribution",
    "weights",
]


def convergence(history: Mapping[str, Sequence[float]], *, ax: Axes | None = None) -> Axes:
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
    ax.plot(seconds, np.maximum(above, floor), "o-", color=BLUE, label=label)
    if gap is not None:
        certified = np.maximum(gap / unit, floor)
        ax.plot(seconds, certified, "s--", color=ORANGE, label="certified duality gap")
    ax.set(
        yscale="log",
        xlabel="seconds",
        ylabel="relative to the objective",
        title=f"Convergence: {len(objective) - 1} iterations, objective {objective[-1]:.6g}",
    )
    ax.set_xlim(left=0)
    ax.legend(frameon=False)
    return finish(ax)


def descent(
    history: Mapping[str, Sequence[float]],
    *,
    optimum: float | None = None,
    label: str | None = None,
    ax: Axes | None = None,
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

    Returns
    -------
    matplotlib Axes
    """
    steps = np.asarray(history.get("n_steps", ()), dtype=np.float64)
    objective = np.asarray(history.get("objective", ()), dtype=np.float64)
    if not np.isfinite(objective).any():
        raise ValueError("the history has no objective: fit with record='exact' or 'sampled'")
    ax = axes_or_new(ax)
    ax.plot(steps, objective, "o-", markersize=3, label=label or "objective")
    if optimum is not None:
        ax.axhline(optimum, color=GREY, linestyle="--", label="optimum")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="steps",
        ylabel="objective",
        title=f"Stochastic descent: {int(steps[-1]):,} steps, objective {objective[-1]:.6g}",
    )
    ax.legend(frameon=False)
    return finish(ax)


def weights(
    coef: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    spread: ArrayLike | None = None,
    top: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest coefficients as bars, the largest at the top.

    Parameters
    ----------
    coef : array (n_features,)
        ``coef_`` of an estimator or ``coef`` of a linear model.
    names : sequence of str, optional
        Name of each feature; ``x[j]`` when absent.
    spread : array (n_features,), optional
        A typical difference of each feature between two rows, such as its standard deviation. The
        bars are then ``coef · spread``, what the feature moves a score by, which can be compared
        between features in different units.
    top : int, default=20
        How many features to show.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.

    Returns
    -------
    matplotlib Axes
    """
    if hasattr(coef, "predict"):
        raise TypeError(
            f"weights takes an array, coef_ of an estimator or coef of a LinearModel, got a "
            f"{type(coef).__name__}; a kernel model has no weights of features"
        )
    values = np.ravel(np.asarray(coef, dtype=np.float64))
    if spread is not None:
        values = values * np.ravel(np.asarray(spread, dtype=np.float64))
    if top < 1:
        raise ValueError(f"top must be ≥ 1, got {top}")
    if names is not None and len(names) != len(values):
        raise ValueError(f"names has {len(names)} entries for {len(values)} coefficients")
    chosen = np.argsort(-np.abs(values), kind="stable")[:top]
    labels = [names[j] if names is not None else f"x[{j}]" for j in chosen]
    if ax is None:
        ax = axes_or_new(None, height=1.2 + 0.26 * len(chosen))
    place = np.arange(len(chosen))[::-1]
    ax.barh(place, values[chosen], color=np.where(values[chosen] >= 0, BLUE, ORANGE), height=0.7)
    ax.set_yticks(place, labels)
    ax.axvline(0, color=GREY, linewidth=0.8)
    shown = f"{len(chosen)} largest of {len(values):,}" if len(chosen) < len(values) else "all"
    ax.set(
        xlabel="weight" if spread is None else "weight × spread of the feature",
        title=f"Weights ({shown}): blue ranks up, orange down",
    )
    return finish(ax, grid="x")


def query_histogram(
    values: ArrayLike, *, metric: str = "ndcg@10", bins: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw how a metric in [0, 1] is spread over queries.

    Parameters
    ----------
    values : array (n_queries,)
        ``evaluation.per_query[metric]``; NaN marks queries that the metric leaves out.
    metric : str, default="ndcg@10"
        The name on the axis.
    bins : int, default=20
        Number of bars between 0 and 1.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.

    Returns
    -------
    matplotlib Axes
    """
    values = np.ravel(np.asarray(values, dtype=np.float64))
    known = values[~np.isnan(values)]
    if not len(known):
        raise ValueError(f"{metric} is undefined for all {len(values)} queries")
    ax = axes_or_new(ax)
    ax.hist(
        known,
        bins=np.linspace(0, 1, bins + 1).tolist(),
        color=BLUE,
        edgecolor="white",
        linewidth=0.5,
    )
    mean, median = known.mean(), np.median(known)
    ax.axvline(mean, color=ORANGE, linewidth=2, label=f"mean {mean:.4f}")
    ax.axvline(median, color=GREY, linestyle="--", label=f"median {median:.4f}")
    left_out = f", {len(values) - len(known):,} left out" if len(known) < len(values) else ""
    ax.set(
        xlim=(0, 1),
        xlabel=metric,
        ylabel="queries",
        title=f"{metric} of {len(known):,} queries{left_out}",
    )
    ax.legend(frameon=False)
    return finish(ax)
