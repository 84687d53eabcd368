"""Pictures of many models: a regularisation path, the rounds of feature induction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plots.axes import (
    BLUE,
    GREY,
    ORANGE,
    axes_or_new,
    finish,
    label,
    new_panels,
    plain_powers,
    readable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


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
    result : PathResult, RankSVMCV or DominationRankerCV
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
        (chosen,) = result.best_params_.values()
        result, scores, metric = result.path_, result.scores_, result.scoring
    if not hasattr(result, "objectives"):
        raise TypeError(
            "path draws what ranksvm_path or domination_path returns, or a fitted RankSVMCV or "
            f"DominationRankerCV; got {type(result).__name__}"
        )
    name, grid = result.parameter, result.values
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
        what :func:`linrank.domination.train.train` returns with it.
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


_MOST_NUMBERS = 150  # cells that are large enough to be written into


def grid(
    result: Any, *, metric: str | None = None, numbers: bool | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the measure of every (C, γ) of a search as a heat map, the choice marked.

    Parameters
    ----------
    result : KernelRankSVMCV or Tuning
        A fitted estimator, which brings the name of the measure, or what
        :func:`linrank.search.kernel.tune_kernel` returns.
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
