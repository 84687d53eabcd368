"""Pictures of many models: a regularisation path, the rounds of feature induction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plot_axes import BLUE, ORANGE, finish, new_panels
from linrank.plot_text import label, plain_powers, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

__all__ = ["induction", "path"]


def path(
    result: Any,
    *,
    scores: ArrayLike | None = None,
    chosen: float | None = None,
    metric: str = "score",
    axes: Sequence[Axes] | None = None,
    **style: Any,
) -> Sequence[Axes]:
    """Draw a regularisation path against C or alpha: measure, objective, norm and non-zeros.

    Parameters
    ----------
    result : PathResult, DominationPathResult, RankSVMCV or DominationRankerCV
        A path, or a fitted estimator, which brings its scores, its choice and the name of the
        measure.
    scores : array (n_models,) or (n_folds, n_models), optional
        A measure of each model; the panel of the measure is left out when absent.
    chosen : float, optional
        The C or alpha to mark.
    metric : str, default="score"
        The name of the measure.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each panel: four, or three without scores. A new figure when absent.
    **style
        Of the lines, as ``Axes.plot`` takes it.

    Returns
    -------
    sequence of matplotlib Axes
    """
    if hasattr(result, "path_"):
        chosen = result.C_ if hasattr(result, "C_") else result.alpha_
        result, scores, metric = result.path_, result.scores_, result.scoring
    if not hasattr(result, "objectives"):
        raise TypeError(
            "path draws what ranksvm_path or domination_path returns, or a fitted RankSVMCV or "
            f"DominationRankerCV; got {type(result).__name__}"
        )
    name, grid = ("C", result.Cs) if hasattr(result, "Cs") else ("alpha", result.alphas)
    panels = [
        (result.objectives, "objective", "log"),
        (result.norms, "norm of weights", "log"),
        (result.n_nonzero, "weights not 0", "linear"),
    ]
    n_panels = len(panels) + (scores is not None)
    if axes is None:
        axes = new_panels(n_panels)
    if len(axes) != n_panels:
        raise ValueError(f"axes has {len(axes)} elements for {n_panels} panels")
    look = {"color": BLUE, "marker": "o", "markersize": 4, **style}
    if scores is not None:
        _draw_scores(axes[0], grid, np.atleast_2d(np.asarray(scores)), metric, look)
    for ax, (values, text, scale) in zip(axes[-3:], panels, strict=True):
        ax.plot(grid, values, **look)
        ax.set(ylabel=text)
        # Zeros have no logarithm: a path of zero models is drawn on a linear axis.
        if scale == "log" and np.min(values) > 0:
            ax.set(yscale="log")
            plain_powers(ax.yaxis)
    for ax in axes:
        if chosen is not None:
            ax.axvline(chosen, color=ORANGE, linestyle="--", label=f"{name} = {chosen:.3g}")
        ax.set(xscale="log", xlabel=name if ax is axes[-1] else "")
        plain_powers(ax.xaxis)
        finish(ax)
    if chosen is not None:
        axes[0].legend(frameon=False)
    return axes


def _draw_scores(ax: Axes, grid: Any, scores: Any, metric: str, look: dict[str, Any]) -> None:
    """The mean, with a band of one standard error over the folds."""
    mean = scores.mean(axis=0)
    ax.plot(grid, mean, **look)
    if len(scores) > 1:
        error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
        ax.fill_between(
            grid, mean - error, mean + error, color=look["color"], alpha=0.15, linewidth=0
        )
    label(ax, y=readable(metric) + (f"\n({len(scores)} folds)" if len(scores) > 1 else ""))


def induction(
    result: Any,
    *,
    by: str = "features",
    metric: str | None = None,
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """Draw the rounds of feature induction: objective, non-zeros and validation measure.

    Parameters
    ----------
    result : DominationRanker or InductionResult
        An estimator fitted with ``feature_induction``, which brings the name of the measure, or
        what :func:`linrank.domination.training.train` returns with it.
    by : {"features", "rounds"}, default="features"
        Against the number of features that have entered, a mark for each round, or against that of
        rounds.
    metric : str, optional
        The name of the measure.
    axes : sequence of matplotlib Axes, optional
        Where to draw: three, or two without validation data. A new figure when absent.

    Returns
    -------
    sequence of matplotlib Axes
    """
    rounds = getattr(result, "rounds_", None) or getattr(result, "rounds", None)
    if not rounds:
        raise TypeError(
            "induction draws a DominationRanker fitted with feature_induction, or what training "
            f"with it returns, with at least one round; got {type(result).__name__}"
        )
    if by not in ("features", "rounds"):
        raise ValueError(f"by must be 'features' or 'rounds', got {by!r}")
    name = metric or str(getattr(result, "scoring", "validation measure"))
    panels = [
        ([one.objective for one in rounds], "objective"),
        ([one.n_nonzero for one in rounds], "weights other than 0"),
    ]
    if all(one.validation is not None for one in rounds):
        panels.insert(0, ([one.validation for one in rounds], name))
    axes = new_panels(len(panels)) if axes is None else axes
    if len(axes) != len(panels):
        raise ValueError(f"axes has {len(axes)} elements for {len(panels)} panels")
    by_round = list(range(1, len(rounds) + 1))
    x = [one.n_chosen for one in rounds] if by == "features" else by_round
    for ax, (values, text) in zip(axes, panels, strict=True):
        ax.plot(x, values, "o-", color=BLUE, markersize=4)
        ax.set(ylabel=text)
        finish(ax)
    axes[-1].set(xlabel="features that have entered" if by == "features" else "round")
    return axes
