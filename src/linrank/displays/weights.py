"""Displays of weights: those of a model, and what they say about a pair of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linrank.data import Array
from linrank.data.frames import feature_name
from linrank.displays.base import BLUE, GRAY, ORANGE, Display, finish, name_rows, readable
from linrank.system.resources import count


@dataclass(eq=False, repr=False)
class WeightsDisplay(Display):
    """The largest weights of a linear model as bars, the largest at the top.

    Parameters
    ----------
    coef : array (n_features,)
        ``coef_`` of an estimator or ``coef`` of a linear model.
    names : sequence of str, optional
        Of the features; ``feature j`` when absent, j from 0.
    n : int, default=30
        How many to show; those with weight 0 only if there is no other.
    spread : array (n_features,), optional
        A typical difference of each feature between two rows, such as its standard deviation. The
        bars are then ``coef · spread``, what the feature moves a score by, which can be compared
        between features in different units.

    Examples
    --------
    >>> from linrank import WeightsDisplay
    >>> display = WeightsDisplay([0.5, -2.0], names=["age", "bm25"])
    >>> print(display.description)
    The 2 largest of 2 weights: bm25 -2, age +0.5.
    """

    coef: ArrayLike
    names: Sequence[str] | None = None
    n: int = 30
    spread: ArrayLike | None = None
    title = "Weights of the features"

    def __post_init__(self) -> None:
        if self.spread is not None and np.size(self.spread) != np.size(self.coef):
            raise ValueError(
                f"spread has {np.size(self.spread)} entries for {np.size(self.coef)} coefficients"
            )
        coef = np.ravel(np.asarray(self.coef, dtype=np.float64))
        values = coef if self.spread is None else coef * np.ravel(np.asarray(self.spread))
        _check(values, self.names, self.n, "coefficients")
        self._values, self._chosen = values, _largest(values, self.n)
        self._height = _bars_height(len(self._chosen))
        n = min(self.n, len(values))
        told = f"The {n} largest of {len(values):,} weights"
        self.description = f"{told}: {_list_largest(values, self.names)}."

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        names: Sequence[str] | None = None,
        n: int = 30,
        spread: ArrayLike | None = None,
    ) -> WeightsDisplay:
        """Display of a fitted estimator or a `LinearModel`; it brings names if it knows them."""
        coef = getattr(estimator, "coef_", getattr(estimator, "coef", None))
        if coef is None or hasattr(estimator, "kernel"):
            raise TypeError(
                f"{type(estimator).__name__} has no weights of features: pass a fitted linear "
                "estimator or a LinearModel"
            )
        known = getattr(estimator, "feature_names_in_", None)
        known = _known_names(getattr(estimator, "model_", estimator)) if known is None else known
        return cls(coef, known if names is None else names, n, spread)

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        (ax,), values, chosen = axes, self._values, self._chosen
        _draw_bars(ax, values[chosen], [feature_name(self.names, j) for j in chosen], style)
        # How many there are and how many are shown.
        n_nonzero, shown = np.count_nonzero(values), "all"
        if len(chosen) < n_nonzero:
            shown = f"{len(chosen)} largest of {len(values):,}"
        elif n_nonzero < len(values):
            shown = f"{n_nonzero:,} of {len(values):,}, the others are 0"
        said = f"Weights ({shown}): blue ranks up, orange down"
        if not n_nonzero:
            said = f"Weights: all {len(values):,} are 0"
        unit = "weight" if self.spread is None else "weight × spread of the feature"
        finish(ax, said, x=unit, grid="x")


@dataclass(eq=False, repr=False)
class PairExplanationDisplay(Display):
    """What each feature adds to the difference of two scores, and the difference itself.

    Parameters
    ----------
    contributions : array (n_features,)
        ``w·(x_i - x_j)`` feature by feature: ``LinearModel.explain(X, pair=(i, j))``.
    names : sequence of str, optional
        Of the features; ``feature j`` when absent, j from 0.
    pair : (str, str), default=("i", "j")
        What the two rows are called.
    n : int, default=10
        How many features get a bar of their own; the others share one.
    """

    contributions: ArrayLike
    names: Sequence[str] | None = None
    pair: tuple[str, str] = ("i", "j")
    n: int = 10

    def __post_init__(self) -> None:
        values = np.ravel(np.asarray(self.contributions, dtype=np.float64))
        _check(values, self.names, self.n, "contributions")
        # The largest contributions, that of all others, and the difference; with names.
        chosen = _largest(values, self.n)
        bars, named = values[chosen].tolist(), [feature_name(self.names, j) for j in chosen]
        rest = np.delete(values, chosen)
        if rest.any():
            bars.append(float(rest.sum()))
            named.append(count(int(np.count_nonzero(rest)), "other feature"))
        self._bars = [*bars, float(values.sum())], [*named, "difference of scores"]
        self._height = _bars_height(len(self._bars[0]))
        first, second = (readable(name) for name in self.pair)
        self.title = f"Scores of {first} and {second}, feature by feature"
        self.description = (
            f"The score of {first} less that of {second} is {values.sum():+.4g}; the features "
            f"that say most: {_list_largest(values, self.names)}."
        )

    @classmethod
    def from_model(
        cls,
        model: Any,
        X: Any,
        pair: tuple[int, int],
        *,
        qid: Any = None,
        names: Sequence[str] | None = None,
        called: tuple[str, str] | None = None,
        n: int = 10,
    ) -> PairExplanationDisplay:
        """Display of rows ``pair`` of ``X`` by a `LinearModel`; ``called`` names the two rows."""
        model = getattr(model, "model_", model)
        if not hasattr(model, "coef") and not hasattr(model, "curve"):
            raise TypeError(
                f"{type(model).__name__} has no weights of features: only linear models explain "
                "a pair feature by feature"
            )
        i, j = pair
        names = _known_names(model) if names is None else names
        told = (f"row {i}", f"row {j}") if called is None else called
        return cls(model.explain(X, qid=qid, pair=(i, j)), names, told, n)

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        (ax,), (bars, names) = axes, self._bars
        _draw_bars(ax, np.array(bars), names, style)
        ax.patches[-1].set_facecolor(GRAY)
        ax.axhline(0.5, color=GRAY, linewidth=0.8)
        (first, second), total = (readable(name, 18) for name in self.pair), bars[-1]
        above, below = (first, second) if total > 0 else (second, first)
        verdict = f"Why {above} is above {below}" if total else f"Why {first} and {second} are tied"
        said = f"{verdict}: blue for {first}, orange for {second}"
        finish(ax, said, x="contribution to the difference of scores", grid="x")


def _draw_bars(ax: Any, values: Array, names: list[str], style: dict[str, Any]) -> None:
    colors = np.where(values >= 0, BLUE, ORANGE)
    ax.barh(name_rows(ax, names), values, **{"color": colors, "height": 0.7, **style})


def _bars_height(n_bars: int) -> float:
    """Inches of a picture of so many bars, one below the other."""
    return 1.2 + 0.26 * max(2, n_bars)


def _known_names(model: Any) -> Sequence[str] | None:
    """The names that a model knows, or the numbers of its features in the file."""
    if hasattr(model, "term_names"):
        return tuple(model.term_names)
    base = getattr(model, "training", {}).get("index_base")
    known: Sequence[str] | None = getattr(model, "feature_names", None)
    if known is not None or base is None:
        return known
    return [feature_name(None, j, base) for j in range(model.n_features)]


def _largest(values: Array, n: int) -> Array:
    """The numbers of the largest magnitudes, zeros left out unless all are."""
    order = np.argsort(-np.abs(values), kind="stable")
    return order[: min(n, max(1, np.count_nonzero(values)))]


@dataclass(eq=False, repr=False)
class CurvesDisplay(Display):
    """What each feature adds to a score, as a curve of its value: those that matter most.

    Parameters
    ----------
    lines : sequence of (array, array)
        The points that each curve goes through: ``AdditiveModel.curve(j)``.
    names : sequence of str, optional
        Of the features; ``feature j`` when absent, j from 0.
    n : int, default=6
        How many to show, those of the largest span.

    Examples
    --------
    >>> from linrank import CurvesDisplay
    >>> lines = [([0.0, 1.0], [0.0, 2.0]), ([0.0, 9.0], [5.0, 1.0])]
    >>> display = CurvesDisplay(lines, ["bm25", "age"])
    >>> print(display.description)
    The 2 curves of the largest span, of 2: age 4, bm25 2.
    """

    lines: Sequence[tuple[ArrayLike, ArrayLike]]
    names: Sequence[str] | None = None
    n: int = 6
    title = "Curves of the features"

    def __post_init__(self) -> None:
        spans = np.array([float(np.ptp(np.asarray(y))) for _, y in self.lines])
        self._order = np.argsort(-spans, kind="stable").tolist()
        self.n_panels = max(1, min(self.n, len(self.lines)))
        self._height = 0.6 + 1.6 * self.n_panels
        most = self._order[: min(self.n_panels, 5)]
        told = ", ".join(f"{self._name(j)} {spans[j]:.4g}" for j in most)
        n_all = f"{len(spans):,}"
        self.description = f"The {self.n_panels} curves of the largest span, of {n_all}: {told}."

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: Sequence[str] | None = None, n: int = 6
    ) -> CurvesDisplay:
        """Display of a fitted estimator or an `AdditiveModel`; it brings names if it knows them."""
        model = getattr(estimator, "model_", estimator)
        if not hasattr(model, "curve"):
            raise TypeError(
                f"{type(model).__name__} has no curves: pass an AdditiveModel, or an estimator "
                "that was fitted with curves="
            )
        lines = [model.curve(j) for j in range(model.n_features)]
        return cls(lines, model.term_names[: len(lines)] if names is None else names, n)

    def _name(self, j: int) -> str:
        return readable(feature_name(self.names, j))

    def _draw(self, axes: Sequence[Any], style: dict[str, Any]) -> None:
        for ax, j in zip(axes, self._order, strict=False):
            x, y = (np.asarray(part, dtype=np.float64) for part in self.lines[j])
            ax.plot(x, y - y.min(), **{"color": BLUE, **style})
            finish(ax, x=self._name(j), y="score")


def _list_largest(values: Array, names: Sequence[str] | None, most: int = 5) -> str:
    """The largest few with their names, as a list in words."""
    order = np.argsort(-np.abs(values), kind="stable")[:most]
    return ", ".join(f"{readable(feature_name(names, j))} {values[j]:+.4g}" for j in order)


def _check(values: Array, names: Sequence[str] | None, n: int, what: str) -> None:
    if n < 1:
        raise ValueError(f"n must be ≥ 1, got {n}")
    if not len(values):
        raise ValueError(f"there are no {what} to draw")
    if names is not None and len(names) != len(values):
        raise ValueError(f"names has {len(names)} entries for {len(values)} {what}")
    if not np.isfinite(values).all():
        j = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{what[:-1]} {j} is {values[j]}; {what} must be finite")
