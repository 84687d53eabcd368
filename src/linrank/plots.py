"""Pictures of a fit: how it converged, what it learnt, which queries it serves well.

Every function draws on the Matplotlib axes it is given, or on a new figure, and returns the axes.
Matplotlib is imported when a picture is asked for: ``pip install linrank[plot]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["convergence", "descent", "path", "query_histogram", "weights"]

# From the palette of Okabe and Ito: told apart by every kind of colour vision, and in print.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"


def convergence(history: Mapping[str, Sequence[float]], *, ax: Axes | None = None) -> Axes:
    """Draw the distance to the optimum against time, on a logarithmic scale.

    Two upper bounds of ``(F(w) - F*) / F``: the objective above the best lower bound that the whole
    run has proved, ``(F_k - max_j D_j) / F_end``, and the certified duality gap of each iterate,
    ``(F_k - D_k) / F_end``.

    Parameters
    ----------
    history : mapping
        ``history_`` of an estimator or ``history`` of a result: ``"objective"``, ``"gap"`` and
        ``"seconds"``, one entry per iteration, the starting point first.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.

    Returns
    -------
    matplotlib Axes
    """
    objective = np.asarray(history["objective"], dtype=np.float64)
    gap = np.asarray(history["gap"], dtype=np.float64)
    seconds = np.asarray(history["seconds"], dtype=np.float64)
    if not len(objective):
        raise ValueError("the history is empty: fit a model first")
    ax = _axes(ax)
    bound = np.nanmax(objective - gap)
    unit = abs(objective[-1]) or 1.0
    above = (objective - bound) / unit
    # Zero has no logarithm; a distance below the rounding of F is not a distance.
    floor = np.finfo(np.float64).eps
    ax.plot(
        seconds, np.maximum(above, floor), "o-", color=BLUE, label="objective above the best bound"
    )
    ax.plot(
        seconds, np.maximum(gap / unit, floor), "s--", color=ORANGE, label="certified duality gap"
    )
    ax.set(
        yscale="log",
        xlabel="seconds",
        ylabel="relative to the objective",
        title=f"Convergence: {len(objective) - 1} iterations, objective {objective[-1]:.6g}",
    )
    ax.set_xlim(left=0)
    ax.legend(frameon=False)
    return _finish(ax)


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
    ax = _axes(ax)
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
    return _finish(ax)


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
        ``coef_`` of an estimator or ``coef`` of a model.
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
        ax = _axes(None, height=1.2 + 0.26 * len(chosen))
    place = np.arange(len(chosen))[::-1]
    ax.barh(place, values[chosen], color=np.where(values[chosen] >= 0, BLUE, ORANGE), height=0.7)
    ax.set_yticks(place, labels)
    ax.axvline(0, color=GREY, linewidth=0.8)
    shown = f"{len(chosen)} largest of {len(values):,}" if len(chosen) < len(values) else "all"
    ax.set(
        xlabel="weight" if spread is None else "weight × spread of the feature",
        title=f"Weights ({shown}): blue ranks up, orange down",
    )
    return _finish(ax, grid="x")


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
    ax = _axes(ax)
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
    return _finish(ax)


def path(
    result: Any,
    *,
    scores: ArrayLike | None = None,
    chosen: float | None = None,
    metric: str = "score",
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """Draw a regularisation path against C: measure, objective, norm and non-zeros.

    Parameters
    ----------
    result : PathResult or RankSVMCV
        A path, or a fitted estimator, which brings its scores, its C and the name of the measure.
    scores : array (n_C,) or (n_folds, n_C), optional
        A measure of each model; the panel of the measure is left out when absent.
    chosen : float, optional
        The C to mark.
    metric : str, default="score"
        The name of the measure.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each panel: four, or three without scores. A new figure when absent.

    Returns
    -------
    sequence of matplotlib Axes
    """
    if hasattr(result, "path_"):
        result, scores, chosen, metric = result.path_, result.scores_, result.C_, result.scoring
    if not hasattr(result, "objectives"):
        raise TypeError(
            "path draws what ranksvm_path returns, or a fitted RankSVMCV; got "
            f"{type(result).__name__}"
        )
    panels = [
        (result.objectives, "objective", "log"),
        (result.norms, "norm of the weights", "log"),
        (result.n_nonzero, "coefficients other than 0", "linear"),
    ]
    n_panels = len(panels) + (scores is not None)
    if axes is None:
        axes = _panels(n_panels)
    if len(axes) != n_panels:
        raise ValueError(f"axes has {len(axes)} elements for {n_panels} panels")
    if scores is not None:
        _draw_scores(axes[0], result.Cs, np.atleast_2d(np.asarray(scores)), metric)
    for ax, (values, label, scale) in zip(axes[-3:], panels, strict=True):
        ax.plot(result.Cs, values, "o-", color=BLUE, markersize=4)
        # Zeros have no logarithm: a path of zero models is drawn on a linear axis.
        ax.set(ylabel=label, yscale=scale if np.min(values) > 0 else "linear")
    for ax in axes:
        if chosen is not None:
            ax.axvline(chosen, color=ORANGE, linestyle="--", label=f"C = {chosen:g}")
        ax.set(xscale="log", xlabel="C")
        _finish(ax)
    if chosen is not None:
        axes[0].legend(frameon=False)
    return axes


def _draw_scores(ax: Axes, Cs: Any, scores: Any, metric: str) -> None:
    """The mean, with a band of one standard error over the folds."""
    mean = scores.mean(axis=0)
    ax.plot(Cs, mean, "o-", color=BLUE, markersize=4)
    if len(scores) > 1:
        error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
        ax.fill_between(Cs, mean - error, mean + error, color=BLUE, alpha=0.15, linewidth=0)
    folds = f" ({len(scores)} folds)" if len(scores) > 1 else ""
    ax.set(ylabel=metric + folds)


def _panels(n_panels: int) -> Sequence[Axes]:
    """Axes above each other that share C."""
    figure = _axes(None, height=2.0 + 1.7 * n_panels).figure
    figure.clear()
    panels: Sequence[Axes] = list(figure.subplots(n_panels, 1, sharex=True))
    return panels


def _axes(ax: Axes | None, height: float = 4.0) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need Matplotlib: pip install linrank[plot]") from None
    return pyplot.subplots(figsize=(6.5, height), layout="constrained")[1]


def _finish(ax: Any, grid: str = "both") -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, alpha=0.25)
    ax.set_axisbelow(True)
    result: Axes = ax
    return result
