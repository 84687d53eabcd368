"""Pictures of a search over two parameters: a heat map of the measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plot_axes import ORANGE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["grid"]

_MOST_NUMBERS = 150  # cells that are large enough to be written into


def grid(
    result: Any, *, metric: str | None = None, numbers: bool | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the measure of every (C, γ) of a search as a heat map, the choice marked.

    Parameters
    ----------
    result : KernelRankSVMCV or KernelTuning
        A fitted estimator, which brings the name of the measure, or what
        :func:`linrank.kernel_tuning.tune_kernel` returns.
    metric : str, optional
        The name of the measure.
    numbers : bool or None, default=None
        Whether to write the means into the cells; None writes them where there is room.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.

    Returns
    -------
    matplotlib Axes
    """
    Cs, gammas, means, place = _parts(result)
    metric = metric or str(getattr(result, "scoring", "mean score"))
    ax = axes_or_new(ax, height=1.6 + 0.45 * len(gammas))
    image = ax.imshow(means, origin="lower", aspect="auto", cmap="cividis")
    ax.set_xticks(range(len(Cs)), [f"{C:.3g}" for C in Cs], rotation=45, ha="right")
    ax.set_yticks(range(len(gammas)), [f"{gamma:.3g}" for gamma in gammas])
    if means.size <= _MOST_NUMBERS if numbers is None else numbers:
        _write_numbers(ax, means)
    g, c = place
    ax.plot(c, g, "s", markersize=18, markerfacecolor="none", color=ORANGE, markeredgewidth=2)
    ax.set(
        xlabel="C",
        ylabel="γ",
        title=f"{metric} {means[g, c]:.4f} at C = {Cs[c]:g}, γ = {gammas[g]:g}",
    )
    ax.figure.colorbar(image, ax=ax, label=metric)
    return ax


def _parts(result: Any) -> tuple[Any, Any, Any, tuple[int, int]]:
    """Both grids, the means, and the indices of the γ and the C that were chosen."""
    if hasattr(result, "gammas_"):
        Cs, gammas, means = result.Cs_, result.gammas_, result.mean_scores_
        place = (np.searchsorted(gammas, result.gamma_), np.searchsorted(Cs, result.C_))
    elif hasattr(result, "gammas") and hasattr(result, "mean_scores"):
        Cs, gammas, means, place = result.Cs, result.gammas, result.mean_scores, result.chosen
    else:
        raise TypeError(
            "grid draws a fitted KernelRankSVMCV, or what tune_kernel returns; got "
            f"{type(result).__name__}"
        )
    return Cs, gammas, means, (int(place[0]), int(place[1]))


def _write_numbers(ax: Any, means: Any) -> None:
    """The mean of each cell, light on dark and dark on light."""
    middle = 0.5 * (means.min() + means.max())
    for g, row in enumerate(means):
        for c, mean in enumerate(row):
            color = "black" if mean > middle else "white"
            ax.text(c, g, f"{mean:.3f}", ha="center", va="center", fontsize=7, color=color)
