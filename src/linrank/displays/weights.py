"""Displays of weights: those of a model, and what they say about a pair of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import plots
from linrank.displays.base import Display
from linrank.plots.axes import BLUE, finish, label, readable
from linrank.plots.weight_plots import bars_height, spread_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray


@dataclass(eq=False, repr=False)
class WeightsDisplay(Display):
    """The largest weights of a linear model: :func:`linrank.plots.weights`.

    Parameters
    ----------
    coef : array (n_features,)
    names : sequence of str, optional
        Of the features; ``x[j]`` when absent.
    n : int, default=30
        How many to show.
    spread : array (n_features,), optional
        A typical difference of each feature between two rows; the bars are then its product with
        the weights.

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
        if coef is None:
            raise TypeError(
                f"{type(estimator).__name__} has no weights of features: pass a fitted linear "
                "estimator or a LinearModel"
            )
        known = getattr(estimator, "feature_names_in_", getattr(estimator, "feature_names", None))
        return cls(coef, known if names is None else names, n, spread)

    @property
    def title(self) -> str:
        """What the picture is."""
        return "Weights of the features"

    @property
    def description(self) -> str:
        """The five largest, with their names."""
        values = self._values
        n = min(self.n, len(values))
        return f"The {n} largest of {len(values):,} weights: {_listed(values, self.names)}."

    @property
    def _values(self) -> NDArray[Any]:
        return spread_weights(self.coef, self.spread)

    @property
    def _height(self) -> float:
        return bars_height(max(1, min(self.n, int(np.count_nonzero(self._values)))))

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.weights(
            self.coef, names=self.names, spread=self.spread, top=self.n, ax=axes[0], **style
        )


@dataclass(eq=False, repr=False)
class PairExplanationDisplay(Display):
    """What each feature adds to the difference of two scores: `linrank.plots.pair_explanation`.

    Parameters
    ----------
    contributions : array (n_features,)
        ``w·(x_i - x_j)`` feature by feature: ``LinearModel.explain(X, pair=(i, j))``.
    names : sequence of str, optional
        Of the features; ``x[j]`` when absent.
    pair : (str, str), default=("i", "j")
        What the two rows are called.
    n : int, default=10
        How many features get a bar of their own.
    """

    contributions: ArrayLike
    names: Sequence[str] | None = None
    pair: tuple[str, str] = ("i", "j")
    n: int = 10

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
        names = getattr(model, "term_names", model.feature_names) if names is None else names
        told = (f"row {i}", f"row {j}") if called is None else called
        return cls(model.explain(X, qid=qid, pair=(i, j)), names, told, n)

    @property
    def title(self) -> str:
        """What the picture is."""
        first, second = (readable(name) for name in self.pair)
        return f"Scores of {first} and {second}, feature by feature"

    @property
    def description(self) -> str:
        """The difference of the scores, and the features that make most of it."""
        values = np.ravel(np.asarray(self.contributions, dtype=np.float64))
        first, second = (readable(name) for name in self.pair)
        return (
            f"The score of {first} less that of {second} is {values.sum():+.4g}; the features "
            f"that say most: {_listed(values, self.names)}."
        )

    @property
    def _height(self) -> float:
        n_nonzero = int(np.count_nonzero(np.asarray(self.contributions)))
        return bars_height(max(1, min(self.n, n_nonzero)) + 1 + (n_nonzero > self.n))

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        plots.pair_explanation(
            self.contributions,
            names=self.names,
            pair=self.pair,
            top=self.n,
            ax=axes[0],
            **style,
        )


@dataclass(eq=False, repr=False)
class CurvesDisplay(Display):
    """What each feature adds to a score, as a curve of its value: those that matter most.

    Parameters
    ----------
    lines : sequence of (array, array)
        The points that each curve goes through: ``AdditiveModel.curve(j)``.
    names : sequence of str, optional
        Of the features; ``x[j]`` when absent.
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
        return cls(lines, model.feature_names if names is None else names, n)

    @property
    def title(self) -> str:
        """What the picture is."""
        return "Curves of the features"

    @property
    def description(self) -> str:
        """The five largest spans, with the names of their features."""
        n, spans = self.n_panels, self._spans
        order = np.argsort(-spans, kind="stable")[: min(n, 5)]
        told = ", ".join(f"{self._name(j)} {spans[j]:.4g}" for j in order)
        return f"The {n} curves of the largest span, of {len(spans):,}: {told}."

    @property
    def n_panels(self) -> int:
        """One for each curve that is shown."""
        return max(1, min(self.n, len(self.lines)))

    @property
    def _spans(self) -> NDArray[Any]:
        return np.array([float(np.ptp(np.asarray(y))) for _, y in self.lines])

    @property
    def _height(self) -> float:
        return 0.6 + 1.6 * self.n_panels

    def _name(self, j: int) -> str:
        return readable(self.names[j]) if self.names is not None else f"x[{j}]"

    def _draw(self, axes: Sequence[Axes], style: dict[str, Any]) -> None:
        order = np.argsort(-self._spans, kind="stable")
        for ax, j in zip(axes, order.tolist(), strict=False):
            x, y = (np.asarray(part, dtype=np.float64) for part in self.lines[j])
            ax.plot(x, y - y.min(), **{"color": BLUE, **style})
            label(ax, x=self._name(j), y="score")
            finish(ax)


def _listed(values: NDArray[Any], names: Sequence[str] | None, most: int = 5) -> str:
    """The largest few with their names, as a list in words."""
    order = np.argsort(-np.abs(values), kind="stable")[:most]
    called = (readable(names[j]) if names is not None else f"x[{j}]" for j in order)
    return ", ".join(f"{name} {values[j]:+.4g}" for name, j in zip(called, order, strict=True))
