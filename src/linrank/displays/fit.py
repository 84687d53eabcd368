"""Displays of a training: convergence, paths and grids, rounds of induction, dual variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linrank.displays.base import (
    BLUE,
    GRAY,
    ORANGE,
    Display,
    check_has,
    finish,
    plain_powers,
    readable,
)
from linrank.errors import check_one_of
from linrank.metrics import parse
from linrank.system.resources import count


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """How a fit came near to its optimum, on a logarithmic scale.

    Two upper bounds of ``(F(w) - F*) / F`` against time: the objective above the best lower bound
    that the whole run has proved, ``(F_k - max_j D_j) / F_end``, and the certified duality gap of
    each iterate, ``(F_k - D_k) / F_end``. Where nothing is certified, as of `FactorizedRankSVM`:
    the objective above its last value. Of a stochastic fit: the objective against the steps.

    Parameters
    ----------
    history : mapping
        ``history_`` of an estimator: ``"objective"``, ``"seconds"`` and, if it is certified,
        ``"gap"``, one entry per iteration. Of an `SGDRanker` with ``record="exact"`` or
        ``"sampled"``: ``"n_steps"`` and ``"objective"``.
    optimum : float, optional
        Of a stochastic fit: the minimum, drawn as a line. It is ``RankSVM(C, loss="hinge")``'s
        ``objective_`` times λ, with ``C = 1/(λ p)``.

    Examples
    --------
    >>> from linrank import ConvergenceDisplay, RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_features=3, random_state=0)
    >>> ranker = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    >>> picture = ConvergenceDisplay.from_estimator(ranker).to_svg()
    """

    history: Mapping[str, Sequence[float]]
    optimum: float | None = None
    title = "Convergence"

    def __post_init__(self) -> None:
        if not np.isfinite(self.history.get("objective", ())).any():
            raise ValueError(
                "the history has no objective: fit a model first, a stochastic one with "
                "record='exact' or 'sampled'"
            )
        gap, objective = self.history.get("gap", ()), self.history["objective"]
        is_certified = len(gap) and np.isfinite(gap[-1])
        certified = f", certified to be within {gap[-1]:.3g} of the optimum" if is_certified else ""
        self._steps = count(len(objective) - 1, "iteration")
        if "n_steps" in self.history:
            self._steps = count(int(self.history["n_steps"][-1]), "step")
        self.description = f"After {self._steps} the objective is {objective[-1]:.6g}{certified}."

    @classmethod
    def from_estimator(cls, estimator: Any, *, optimum: float | None = None) -> ConvergenceDisplay:
        """Display of a fitted estimator: one with ``history_``, or the ``history`` of a result."""
        for name in ("history_", "history"):
            if isinstance(getattr(estimator, name, None), dict):
                return cls(getattr(estimator, name), optimum)
        raise TypeError(
            f"{type(estimator).__name__} has no history of one fit; fit an estimator of linrank "
            "first, or pass a history"
        )

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        (ax,) = axes
        objective = np.asarray(self.history["objective"], dtype=np.float64)
        is_stochastic = "n_steps" in self.history
        (self._draw_descent if is_stochastic else self._draw_bounds)(ax, objective, style)
        plain_powers(ax.yaxis)
        kind = "Stochastic descent" if is_stochastic else "Convergence"
        ax.legend(frameon=False)
        finish(ax, f"{kind}: {self._steps}, objective {objective[-1]:.6g}")

    def _draw_bounds(self, ax: Any, objective: Any, style: dict[str, Any]) -> None:
        seconds, unit = self.history["seconds"], abs(objective[-1]) or 1.0
        gap = np.asarray(self.history["gap"], np.float64) if "gap" in self.history else None
        bound = objective[-1] if gap is None else np.nanmax(objective - gap)
        # Zero has no logarithm; a distance below the rounding of F is not a distance.
        floor = np.finfo(np.float64).eps
        text = "objective above " + ("its last value" if gap is None else "the best bound")
        first = {"color": BLUE, "marker": "o", "label": text, **style}
        ax.plot(seconds, np.maximum((objective - bound) / unit, floor), **first)
        if gap is not None:
            second = {"color": ORANGE, "marker": "s", "linestyle": "--", **style}
            ax.plot(seconds, np.maximum(gap / unit, floor), label="certified duality gap", **second)
        ax.set(yscale="log", xlabel="seconds", ylabel="relative to the objective")
        ax.set_xlim(left=0)
        ax.locator_params(axis="x", nbins=5)

    def _draw_descent(self, ax: Any, objective: Any, style: dict[str, Any]) -> None:
        look = {"color": BLUE, "marker": "o", "markersize": 3, "label": "objective", **style}
        ax.plot(self.history["n_steps"], objective, **look)
        if self.optimum is not None:
            ax.axhline(self.optimum, color=GRAY, linestyle="--", label="optimum")
        ax.set(xscale="log", yscale="log", xlabel="steps", ylabel="objective")
        plain_powers(ax.xaxis)


@dataclass(eq=False, repr=False)
class PathDisplay(Display):
    """The models of a regularization path against C or alpha.

    With scores, the measure of each model; without, its objective and the norm of its weights.
    Below, how many weights are not 0, where that is not the same for all.

    Parameters
    ----------
    path : PathResult
        What :func:`linrank.ranksvm_path` or :func:`linrank.domination_path` returns.
    scores : array (n_models,) or (n_folds, n_models), optional
        A measure of each model, drawn with a band of one standard error over the folds.
    chosen : float, optional
        The C or alpha to mark.
    metric : str, default="score"
        The name of the measure.
    """

    path: Any
    scores: ArrayLike | None = None
    chosen: float | None = None
    metric: str = "score"
    _one_axis = True

    def __post_init__(self) -> None:
        path = self.path
        check_has(path, "objectives", "a path is what ranksvm_path or domination_path returns")
        name, grid = path.parameter, path.values
        self.title = f"Regularization path over {name}"
        told = f"{count(len(grid), 'model')} for {name} from {min(grid):.3g} to {max(grid):.3g}."
        self._panels, self._error = [], None
        if self.scores is None:
            self._panels = [(path.objectives, "objective", "log")]
            self._panels.append((path.norms, "norm of weights", "log"))
        else:
            scores = np.atleast_2d(np.asarray(self.scores, dtype=np.float64))
            n_folds, mean, measure = len(scores), scores.mean(axis=0), readable(self.metric)
            if n_folds > 1:
                self._error = scores.std(axis=0, ddof=1) / np.sqrt(n_folds)
            folds = f"\n({n_folds} folds)" if n_folds > 1 else ""
            self._panels.append((mean, measure + folds, "linear"))
            best = int(np.nanargmax(mean))
            told += f" {measure} is {mean[best]:.4f} at most, at {name} = {grid[best]:.3g}."
        if len(np.unique(path.n_nonzero)) > 1:
            self._panels.append((path.n_nonzero, "weights not 0", "linear"))
        self.n_panels = len(self._panels)
        self._height = 1.3 + 1.4 * self.n_panels + (0.0 if self.scores is None else 0.6)
        chosen = "" if self.chosen is None else f" Chosen: {name} = {self.chosen:.3g}."
        self.description = told + chosen

    @classmethod
    def from_estimator(cls, estimator: Any) -> PathDisplay:
        """Display of a fitted `RankSVMCV` or `DominationRankerCV`, with its scores and choice."""
        told = "a path belongs to a fitted RankSVMCV or DominationRankerCV"
        check_has(estimator, "path_", told)
        (chosen,) = estimator.best_params_.values()
        return cls(estimator.path_, estimator.scores_, chosen, str(parse(estimator.scoring)))

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        name, grid = self.path.parameter, self.path.values
        look = {"color": BLUE, "marker": "o", "markersize": 4, **style}
        for ax, (values, text, scale) in zip(axes, self._panels, strict=True):
            ax.plot(grid, values, **look)
            if self._error is not None and ax is axes[0]:
                band = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
                ax.fill_between(grid, values - self._error, values + self._error, **band)
            # Zeros have no logarithm: a path of zero models is drawn on a linear axis.
            if scale == "log" and np.min(values) > 0:
                ax.set(yscale="log")
                plain_powers(ax.yaxis)
            if self.chosen is not None:
                said = f"{name} = {self.chosen:.3g}"
                ax.axvline(self.chosen, color=ORANGE, linestyle="--", label=said)
            ax.set(xscale="log", xlabel=name if ax is axes[-1] else "")
            plain_powers(ax.xaxis)
            finish(ax, y=text)
        if self.chosen is not None:
            axes[0].legend(frameon=False)


@dataclass(eq=False, repr=False)
class InductionDisplay(Display):
    """The rounds of feature induction: validation measure, objective and non-zeros.

    Parameters
    ----------
    rounds : sequence of InductionRound
        ``rounds_`` of a `DominationRanker`, ``rounds`` of a result.
    by : {"features", "rounds"}, default="features"
        Against the number of features that have entered, a mark for each round, or against that of
        rounds.
    metric : str, default="validation measure"
        The name of the measure.
    """

    rounds: Sequence[Any]
    by: str = "features"
    metric: str = "validation measure"
    title = "Feature induction, round by round"
    _one_axis = True

    def __post_init__(self) -> None:
        check_one_of("by", self.by, ("features", "rounds"))
        rounds, end = self.rounds, self.rounds[-1]
        told = f"After {count(len(rounds), 'round')} {count(end.n_chosen, 'feature')} entered,"
        self.description = (
            f"{told} {end.n_nonzero:,} with a weight; the objective is {end.objective:.6g}."
        )
        self._panels = {
            "objective": [one.objective for one in rounds],
            "weights other than 0": [one.n_nonzero for one in rounds],
        }
        if all(one.validation is not None for one in rounds):
            measured = {readable(self.metric): [one.validation for one in rounds]}
            self._panels = measured | self._panels
        self.n_panels = len(self._panels)
        self._height = 1.0 + 1.7 * self.n_panels

    @classmethod
    def from_estimator(cls, estimator: Any, *, by: str = "features") -> InductionDisplay:
        """Display of a `DominationRanker` fitted with ``feature_induction``, or of its result."""
        rounds = getattr(estimator, "rounds_", None) or getattr(estimator, "rounds", None)
        if not rounds:
            raise TypeError(
                "rounds belong to a DominationRanker fitted with feature_induction, or to what "
                f"training with it returns, with at least one round; got {type(estimator).__name__}"
            )
        scoring = getattr(estimator, "scoring", None)
        return cls(rounds, by, cls.metric if scoring is None else str(parse(scoring)))

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        is_by_feature = self.by == "features"
        x = [one.n_chosen if is_by_feature else k for k, one in enumerate(self.rounds, 1)]
        for ax, (text, values) in zip(axes, self._panels.items(), strict=True):
            ax.plot(x, values, **{"marker": "o", "color": BLUE, "markersize": 4, **style})
            finish(ax, y=text)
        axes[-1].set(xlabel="features that have entered" if is_by_feature else "round")


_MOST_NUMBERS = 150  # cells that are large enough to be written into


@dataclass(eq=False, repr=False)
class GridDisplay(Display):
    """The measure of every (C, γ) of a search as a heat map, the choice marked.

    Parameters
    ----------
    Cs, gammas : arrays
        The two grids.
    means : array (n_gammas, n_Cs)
        The mean measure of each.
    chosen : (int, int)
        Where in ``means`` the choice is.
    metric : str, default="mean score"
        The name of the measure.
    numbers : bool or None, default=None
        Whether to write the means into the cells; None writes them where there is room.
    """

    Cs: Any
    gammas: Any
    means: Any
    chosen: tuple[int, int]
    metric: str = "mean score"
    numbers: bool | None = None

    def __post_init__(self) -> None:
        (g, c), metric, means = self.chosen, readable(self.metric, 40), self.means
        at = f"C = {self.Cs[c]:g}, γ = {self.gammas[g]:g}"
        self._choice = f"{metric} {means[g][c]:.4f} at {at}"
        self.title = f"{metric} by C and γ"
        low, high = np.min(means), np.max(means)
        models = f"{np.size(means):,} models"
        self.description = f"{models} from {low:.4f} to {high:.4f}. {self._choice}."
        self._height = 1.8 + 0.45 * len(self.gammas)

    @classmethod
    def from_estimator(cls, estimator: Any, *, numbers: bool | None = None) -> GridDisplay:
        """Display of a fitted `KernelRankSVMCV`."""
        told = "a grid of C and γ belongs to a fitted KernelRankSVMCV"
        check_has(estimator, "gammas_", told)
        Cs, gammas = estimator.Cs_, estimator.gammas_
        g, c = np.searchsorted(gammas, estimator.gamma_), np.searchsorted(Cs, estimator.C_)
        scoring = str(parse(estimator.scoring))
        return cls(Cs, gammas, estimator.mean_scores_, (int(g), int(c)), scoring, numbers)

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        ax, means = axes[0], np.asarray(self.means)
        look = {"origin": "lower", "aspect": "auto", "cmap": "cividis", **style}
        image = ax.imshow(means, **look)
        ax.set_xticks(range(len(self.Cs)), [f"{C:.3g}" for C in self.Cs], rotation=45, ha="right")
        ax.set_yticks(range(len(self.gammas)), [f"{gamma:.3g}" for gamma in self.gammas])
        if means.size <= _MOST_NUMBERS if self.numbers is None else self.numbers:
            middle = 0.5 * (means.min() + means.max())
            for (g, c), mean in np.ndenumerate(means):  # light on dark and dark on light
                color = "black" if mean > middle else "white"
                ax.text(c, g, f"{mean:.3f}", ha="center", va="center", fontsize=7, color=color)
        place = self.chosen[::-1]
        ax.plot(*place, "s", markersize=18, markerfacecolor="none", color=ORANGE, markeredgewidth=2)
        finish(ax, self._choice, x="C", y="γ")
        ax.grid(visible=False)
        ax.figure.colorbar(image, ax=ax, label=readable(self.metric))


@dataclass(eq=False, repr=False)
class SupportDistributionDisplay(Display):
    """α of the pairs from order-closest to farthest, as Figures 1 and 2 of Lin et al. (2013).

    A point is a pair; those of neighboring labels, the 1-closest ones, have the other color.
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
        told = "a SupportDistributionDisplay draws what linrank.support_distribution returns"
        check_has(self.distribution, "alpha_sum", told)
        found = self.distribution
        n_pairs = int(found.n_pairs.sum())
        self.description = (
            f"{n_pairs:,} pairs, C = {found.C:g}: {found.support_share:.1%} have α > 0."
        )

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
        ax.legend(frameon=False)
        finish(ax, self.description.removesuffix("."))


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
        told = "a RankProfileDisplay draws what linrank.rank_profile returns"
        check_has(self.profile, "distribution", told)
        energy, ratios = self.profile.energy, self.profile.ratios(self.relative_to)
        self.n_panels = len(energy)
        self._height = 0.8 + 2.3 * self.n_panels
        self._medians = [100.0 * float(np.median(ratios[:, k])) for k in range(self.n_panels)]
        self._said = [
            f"{share:.0%} of the energy: median {median:.0f}%"
            for share, median in zip(energy, self._medians, strict=True)
        ]
        self.description = "; ".join(self._said) + "."

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
            ax.axvline(self._medians[k], color=GRAY, linestyle="--", linewidth=1)
            ax.set(xlim=(0, 100), ylabel="queries")
            ax.locator_params(axis="y", integer=True)  # queries are counted
            unit = f"{_RELATIVE[self.relative_to]} (%)" if ax is axes[-1] else None
            finish(ax, self._said[k], x=unit, grid="y")
