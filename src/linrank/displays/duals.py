"""Displays of dual variables: which pairs have one, and how many dimensions they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.displays.axes import BLUE, GREY, ORANGE, finish, label, titled
from linrank.displays.base import Display

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(eq=False, repr=False)
class SupportDistributionDisplay(Display):
    """α of the pairs from order-closest to farthest, as Figures 1 and 2 of Lin et al. (2013).

    A point is a pair; those of neighbouring labels, the 1-closest ones, have the other colour.
    Where the pairs were too many to be kept one by one, mean α is drawn against the order
    difference.

    Parameters
    ----------
    distribution : SupportDistribution
        What :func:`linrank.support_distribution` returns.
    by_difference : bool, default=False
        Draw mean α against the order difference in any case.
    """

    distribution: Any
    by_difference: bool = False
    title = "Dual variables by the closeness of the labels"

    def __post_init__(self) -> None:
        if not hasattr(self.distribution, "alpha_sum"):
            raise TypeError(
                "a SupportDistributionDisplay draws what linrank.support_distribution returns; "
                f"got {type(self.distribution).__name__}"
            )

    @property
    def description(self) -> str:
        """Pairs, and how many of them have a dual variable."""
        found = self.distribution
        n_seen = int(found.n_pairs.sum())
        pairs = f"{n_seen:,} pairs"
        if found.is_sample:
            pairs = f"a sample of {n_seen:,} of {found.n_total:,} pairs"
        return f"{pairs}, C = {found.C:g}: {found.support_share:.1%} have α > 0."

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        ax, found = axes[0], self.distribution
        near = f"1-closest: {found.n_closest:,}"
        if self.by_difference or found.alpha is None:
            r, mean = found.difference, found.mean_alpha
            line = {"color": BLUE, "marker": ".", "markersize": 3, "linewidth": 0.8, **style}
            ax.plot(r, mean, label="mean of its pairs", **line)
            ax.plot(r[r == 1], mean[r == 1], "o", color=ORANGE, label=near)
            ax.set(xlabel="order difference", ylabel="mean α")
        else:
            index, alpha, n_near = np.arange(len(found.alpha)), found.alpha, found.n_closest
            # As pixels: thousands of points would make megabytes of an SVG file.
            dots: dict[str, Any] = {"marker": ".", "linestyle": "", "rasterized": True, **style}
            for part, color, size, text in (
                (slice(n_near, None), BLUE, 2, "other pairs"),
                (slice(n_near), ORANGE, 3, near),
            ):
                look = {"color": color, "markersize": size, "label": text, **dots}
                ax.plot(index[part], alpha[part], **look)
            ax.set(xlabel="pair, from order-closest to farthest", ylabel="α")
        titled(ax, self.description.removesuffix("."))
        ax.legend(frameon=False)
        finish(ax)


_RELATIVE = {
    "size": "dimensions / rows of the query",
    "possible": "dimensions / largest possible rank",
}


@dataclass(eq=False, repr=False)
class RankProfileDisplay(Display):
    """How many queries need which share of their dimensions, as Figure 2 of Xu et al. (2019).

    A panel for each share of the energy: bars count the queries in each tenth. Marks show the
    shuffled baseline, if the profile has one.

    Parameters
    ----------
    profile : RankProfile
        What :func:`linrank.rank_profile` returns.
    relative_to : {"size", "possible"}, default="size"
        Dimensions relative to the rows of the query, as in the paper, or to the largest rank that
        its matrix could have.
    """

    profile: Any
    relative_to: str = "size"
    title = "Dimensions that the dual variables of a query need"
    _one_axis = True

    def __post_init__(self) -> None:
        if not hasattr(self.profile, "distribution"):
            raise TypeError(
                "a RankProfileDisplay draws what linrank.rank_profile returns; got "
                f"{type(self.profile).__name__}"
            )

    @property
    def n_panels(self) -> int:
        """One for each share of the energy."""
        return len(self.profile.energy)

    @property
    def _height(self) -> float:
        return 0.8 + 2.3 * self.n_panels

    @property
    def description(self) -> str:
        """The median share of dimensions, for each share of the energy."""
        return "; ".join(map(self._panel_title, range(self.n_panels))) + "."

    def _median(self, k: int) -> float:
        return 100.0 * float(np.median(self.profile.ratios(self.relative_to)[:, k]))

    def _panel_title(self, k: int) -> str:
        return f"{self.profile.energy[k]:.0%} of the energy: median {self._median(k):.0f} %"

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        profile, middle = self.profile, 10.0 * np.arange(10) + 5.0
        counts = profile.distribution(self.relative_to)
        for k, ax in enumerate(axes):
            look = {"width": 9.0, "color": BLUE, "label": "dual variables", **style}
            ax.bar(middle, counts[k], **look)
            if profile.baseline is not None:
                shuffled = profile.baseline.distribution(self.relative_to)[k]
                ax.plot(middle, shuffled, "D", color=ORANGE, markersize=5, label="shuffled")
                ax.legend(frameon=False)
            ax.axvline(self._median(k), color=GREY, linestyle="--", linewidth=1)
            ax.set(xlim=(0, 100), ylabel="queries")
            titled(ax, self._panel_title(k))
            ax.locator_params(axis="y", integer=True)  # queries are counted
            finish(ax, grid="y")
        label(axes[-1], x=f"{_RELATIVE[self.relative_to]} (%)")
