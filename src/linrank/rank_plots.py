"""Pictures of dual matrices: how many dimensions hold their energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plot_axes import BLUE, GREY, ORANGE, axes_or_new, finish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["rank_profile"]

_NAMES = {
    "size": "dimensions / rows of the query",
    "possible": "dimensions / largest possible rank",
}


def rank_profile(
    profile: Any, *, relative_to: str = "size", axes: Sequence[Axes] | None = None
) -> Sequence[Axes]:
    """Draw how many queries need which share of their dimensions, as Figure 2 of Xu et al. (2019).

    A panel for each share of the energy: bars count the queries in each tenth. Marks show the
    shuffled baseline, if the profile has one.

    Parameters
    ----------
    profile : RankProfile
        What :func:`linrank.rank_profile` returns.
    relative_to : {"size", "possible"}, default="size"
        Dimensions relative to the rows of the query, as in the paper, or to the largest rank that
        its matrix could have.
    axes : sequence of matplotlib Axes, optional
        Where to draw, one for each share of the energy. A new figure when absent.

    Returns
    -------
    sequence of matplotlib Axes
    """
    if not hasattr(profile, "distribution"):
        raise TypeError(
            f"rank_profile draws what linrank.rank_profile returns; got {type(profile).__name__}"
        )
    counts = profile.distribution(relative_to)
    if axes is None:
        axes = _side_by_side(len(counts))
    if len(axes) != len(counts):
        raise ValueError(f"axes has {len(axes)} elements for {len(counts)} shares of the energy")
    middle = 10.0 * np.arange(10) + 5.0
    for k, ax in enumerate(axes):
        ax.bar(middle, counts[k], width=9.0, color=BLUE, label="dual variables")
        if profile.baseline is not None:
            shuffled = profile.baseline.distribution(relative_to)[k]
            ax.plot(middle, shuffled, "D", color=ORANGE, markersize=5, label="shuffled")
            ax.legend(frameon=False)
        median = 100.0 * float(np.median(profile.ratios(relative_to)[:, k]))
        ax.axvline(median, color=GREY, linestyle="--", linewidth=1)
        ax.set(
            xlim=(0, 100),
            xlabel=f"{_NAMES[relative_to]} (%)",
            ylabel="queries",
            title=f"{profile.energy[k]:.0%} of the energy: median {median:.0f} %",
        )
        ax.locator_params(axis="y", integer=True)  # queries are counted
        finish(ax, grid="y")
    return axes


def _side_by_side(n_panels: int) -> Sequence[Axes]:
    """Axes beside each other, in a new figure, that share the vertical one."""
    figure: Any = axes_or_new(None).figure
    figure.clear()
    figure.set_size_inches(5.0 * n_panels, 3.6)
    panels: Sequence[Axes] = list(np.atleast_1d(figure.subplots(1, n_panels, sharey=True)))
    return panels
