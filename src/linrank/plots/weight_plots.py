"""Pictures of weights: the largest ones, and what they say about a pair of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.plots.axes import (
    BLUE,
    GREY,
    ORANGE,
    axes_or_new,
    counted,
    finish,
    label,
    readable,
    tick_labels,
    titled,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray


def bars_height(n_bars: int) -> float:
    """Inches of a picture of so many bars, one below the other."""
    return 1.2 + 0.26 * max(2, n_bars)


def weights(
    coef: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    spread: ArrayLike | None = None,
    top: int = 20,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw the largest coefficients as bars, the largest at the top.

    Parameters
    ----------
    coef : array (n_features,)
        ``coef_`` of an estimator or ``coef`` of a linear model.
    names : sequence of str, optional
        Name of each feature; ``x[j]`` when absent.
    spread : array (n_features,), optional
        A typical difference of each feature between two rows, such as its standard deviation. The
        bars are then ``coef · spread``, what the feature moves a score by, which can be compared
        between features in different units.
    top : int, default=20
        How many features to show; those with weight 0 only if there is no other.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of the bars, as ``Axes.barh`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    if hasattr(coef, "predict"):
        raise TypeError(
            f"weights takes an array, coef_ of an estimator or coef of a LinearModel, got a "
            f"{type(coef).__name__}; a kernel model has no weights of features"
        )
    values = spread_weights(coef, spread)
    _check(values, names, top, "coefficients")
    chosen = _largest(values, top)
    ax = axes_or_new(ax, height=bars_height(len(chosen)))
    _draw_bars(ax, values[chosen], [_name(names, j) for j in chosen], style)
    label(ax, x="weight" if spread is None else "weight × spread of the feature")
    titled(ax, _said(values, chosen))
    return finish(ax, grid="x")


def pair_explanation(
    contributions: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    pair: tuple[str, str] = ("i", "j"),
    top: int = 10,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw what every feature adds to the difference of two scores, and the difference itself.

    Parameters
    ----------
    contributions : array (n_features,)
        ``coef · (x_i - x_j)``, what ``LinearModel.explain(X, pair=(i, j))`` returns.
    names : sequence of str, optional
        Name of each feature; ``x[j]`` when absent.
    pair : (str, str), default=("i", "j")
        What the two rows are called, the first one first.
    top : int, default=10
        How many features get a bar of their own; the others share one.
    ax : matplotlib Axes, optional
        Where to draw; a new figure when absent.
    **style
        Of the bars, as ``Axes.barh`` takes it.

    Returns
    -------
    matplotlib Axes
    """
    values = np.ravel(np.asarray(contributions, dtype=np.float64))
    _check(values, names, top, "contributions")
    first, second = (readable(name, 18) for name in pair)
    chosen = _largest(values, top)
    bars, labels = values[chosen].tolist(), [_name(names, j) for j in chosen]
    rest = np.delete(values, chosen)
    if rest.any():
        bars.append(float(rest.sum()))
        labels.append(f"{counted(int(np.count_nonzero(rest)), 'other feature')}")
    total = float(values.sum())
    bars, labels = [*bars, total], [*labels, "difference of scores"]
    ax = axes_or_new(ax, height=bars_height(len(bars)))
    _draw_bars(ax, np.array(bars), labels, style)
    ax.patches[-1].set_facecolor(GREY)
    ax.axhline(0.5, color=GREY, linewidth=0.8)
    label(ax, x="contribution to the difference of scores")
    above, below = (first, second) if total > 0 else (second, first)
    verdict = f"Why {above} is above {below}" if total else f"Why {first} and {second} are tied"
    titled(ax, f"{verdict}: blue for {first}, orange for {second}")
    return finish(ax, grid="x")


def _draw_bars(ax: Any, values: NDArray[Any], labels: list[str], style: dict[str, Any]) -> None:
    place = np.arange(len(values))[::-1]
    colours = np.where(values >= 0, BLUE, ORANGE)
    ax.barh(place, values, **{"color": colours, "height": 0.7, **style})
    ax.set_ylim(-0.6, len(values) - 0.4)
    tick_labels(ax, place.tolist(), labels)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.axvline(0, color=GREY, linewidth=0.8)


def _name(names: Sequence[str] | None, j: int) -> str:
    return str(names[j]) if names is not None else f"x[{j}]"


def _largest(values: NDArray[Any], top: int) -> NDArray[Any]:
    """The numbers of the largest magnitudes, zeros left out unless all are."""
    order = np.argsort(-np.abs(values), kind="stable")
    return order[: min(top, max(1, np.count_nonzero(values)))]


def _said(values: NDArray[Any], chosen: NDArray[Any]) -> str:
    """How many there are and how many are shown."""
    n_nonzero = np.count_nonzero(values)
    if not n_nonzero:
        return f"Weights: all {len(values):,} are 0"
    shown = "all"
    if len(chosen) < n_nonzero:
        shown = f"{len(chosen)} largest of {len(values):,}"
    elif n_nonzero < len(values):
        shown = f"{n_nonzero:,} of {len(values):,}, the others are 0"
    return f"Weights ({shown}): blue ranks up, orange down"


def spread_weights(coef: ArrayLike, spread: ArrayLike | None) -> NDArray[Any]:
    """The coefficients, times the spread of the features if it is given."""
    values = np.ravel(np.asarray(coef, dtype=np.float64))
    if spread is None:
        return values
    factors = np.ravel(np.asarray(spread, dtype=np.float64))
    if len(factors) != len(values):
        raise ValueError(f"spread has {len(factors)} entries for {len(values)} coefficients")
    return values * factors


def _check(values: NDArray[Any], names: Sequence[str] | None, top: int, what: str) -> None:
    if top < 1:
        raise ValueError(f"top must be ≥ 1, got {top}")
    if not len(values):
        raise ValueError(f"there are no {what} to draw")
    if names is not None and len(names) != len(values):
        raise ValueError(f"names has {len(names)} entries for {len(values)} {what}")
    if not np.isfinite(values).all():
        j = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{what[:-1]} {j} is {values[j]}; {what} must be finite")
