"""Pictures of pairs: which of them carry a ranker, and how many of them it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plot_axes import BLUE, GREY, ORANGE, axes_or_new, finish

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

__all__ = ["pair_accuracy", "support_distribution"]

_MARKS = ("o", "s", "D", "^", "v", "P")


def support_distribution(
    distribution: Any, *, by_difference: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw α of the pairs from order-closest to farthest, as Figures 1 and 2 of Lin et al. (2013).

    A point is a pair; those of neighbouring labels, the 1-closest ones, have the other colour.
    Where the pairs were too many to be kept one by one, mean α is drawn against the order
    difference.

    Parameters
    ----------
    distribution : SupportDistribution
        What :func:`linrank.support_distribution` returns.
    by_difference : bool, default=False
        Draw mean α against the order difference in any case.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.

    Returns
    -------
    matplotlib Axes
    """
    if not hasattr(distribution, "alpha_sum"):
        raise TypeError(
            "support_distribution draws what linrank.support_distribution returns; got "
            f"{type(distribution).__name__}"
        )
    ax = axes_or_new(ax)
    n_closest = distribution.n_closest
    label = f"1-closest: {n_closest:,}"
    if by_difference or distribution.alpha is None:
        r, mean = distribution.difference, distribution.mean_alpha
        ax.plot(r, mean, ".-", color=BLUE, markersize=3, linewidth=0.8, label="mean of its pairs")
        ax.plot(r[r == 1], mean[r == 1], "o", color=ORANGE, label=label)
        ax.set(xlabel="order difference", ylabel="mean α")
    else:
        index, alpha = np.arange(len(distribution.alpha)), distribution.alpha
        far, near = slice(n_closest, None), slice(n_closest)
        # As pixels: thousands of points would make megabytes of an SVG file.
        dots: dict[str, Any] = {"marker": ".", "linestyle": "", "rasterized": True}
        ax.plot(index[far], alpha[far], color=BLUE, markersize=2, label="other pairs", **dots)
        ax.plot(index[near], alpha[near], color=ORANGE, markersize=3, label=label, **dots)
        ax.set(xlabel="pair, from order-closest to farthest", ylabel="α")
    n_seen = int(distribution.n_pairs.sum())
    what = f"{n_seen:,} pairs"
    if distribution.is_sample:
        what = f"a sample of {n_seen:,} of {distribution.n_total:,} pairs"
    ax.set_title(f"{what}, C = {distribution.C:g}: {distribution.support_share:.1%} have α > 0")
    ax.legend(frameon=False)
    return finish(ax)


def pair_accuracy(
    curves: Mapping[str, Sequence[Any]],
    *,
    whole: float | None = None,
    metric: str = "pairwise accuracy",
    ax: Axes | None = None,
) -> Axes:
    """Draw accuracy against the number of pairs for several ways of choosing them.

    Figure 3 of Lin et al. (2013) compares closest and pruned pairs so.

    Parameters
    ----------
    curves : mapping from name to (n_pairs, accuracy) or (n_pairs, accuracy, error)
        A curve for each way of choosing; errors are drawn as bars of their length up and down.
    whole : float, optional
        The accuracy with all pairs, drawn as a line.
    metric : str, default="pairwise accuracy"
        The name on the axis.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.

    Returns
    -------
    matplotlib Axes
    """
    if not curves:
        raise ValueError("curves is empty; give at least one way of choosing pairs")
    ax = axes_or_new(ax)
    for k, (name, curve) in enumerate(curves.items()):
        if len(curve) not in (2, 3) or len({len(part) for part in curve}) != 1:
            raise ValueError(
                f"the curve {name!r} must be (n_pairs, accuracy) or (n_pairs, accuracy, error), "
                f"all of one length; got {len(curve)} of lengths {[len(part) for part in curve]}"
            )
        error = curve[2] if len(curve) == 3 else None
        mark = _MARKS[k % len(_MARKS)]
        ax.errorbar(curve[0], curve[1], error, marker=mark, markersize=4, capsize=2, label=name)
    if whole is not None:
        ax.axhline(whole, color=GREY, linestyle="--", label="all pairs")
    ax.set(xscale="log", xlabel="pairs", ylabel=metric, title=f"{metric} by the number of pairs")
    ax.legend(frameon=False)
    return finish(ax)
