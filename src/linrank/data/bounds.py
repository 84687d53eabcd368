"""Bounds of the coefficients: the box that a solver stays in, and how users describe it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.frames import Array, as_array, first_true
from linrank.errors import did_you_mean

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset


@dataclass(frozen=True, eq=False)
class Box:
    """``lower <= w <= upper``, feature by feature; -inf and inf where an end is open."""

    lower: Array
    upper: Array

    def clip(self, w: Array) -> Array:
        """The point of the box nearest to ``w``."""
        return np.minimum(np.maximum(w, self.lower), self.upper)

    def is_free(self, w: Array, r: Array) -> Array:
        """Whether each variable can move at ``w`` in the direction of ``r``, by its sign.

        A step to a bound other than 0 may miss it by a rounding.
        """
        with np.errstate(invalid="ignore"):  # inf - inf where an end is open: NaN, so False
            is_low = w <= self.lower + 4e-16 * np.abs(self.lower)
            is_high = w >= self.upper - 4e-16 * np.abs(self.upper)
        return ~((is_low & (r <= 0.0)) | (is_high & (r >= 0.0)))

    def _room_by_variable(self, w: Array, d: Array) -> Array:
        """The largest t with ``w + t d`` within the bounds of each variable."""
        end = np.where(d < 0.0, self.lower, self.upper)
        room = np.divide(end - w, d, out=np.full_like(w, np.inf), where=d != 0.0)
        return np.maximum(room, 0.0)

    def room(self, w: Array, d: Array) -> float:
        """The largest ``t >= 1`` with ``w + t d`` in the box, for a ``w + d`` that is."""
        return max(1.0, float(self._room_by_variable(w, d).min()))

    def first_hit(self, w: Array, d: Array) -> tuple[float, Array]:
        """How far ``w + t d`` gets before a bound stops it, and the variables that stop it."""
        room = self._room_by_variable(w, d)
        t = float(room.min())
        return t, room <= t


def without_rounding(w: Array, varies: Array, bounds: tuple[Array, Array] | None = None) -> Array:
    """``w`` with exact weights of the columns that no pair sees.

    Of a column that is the same on all rows of each query the slope is 0 but for rounding, and so
    is its weight but for rounding: the best one is 0, or the nearest to it within bounds.

    Parameters
    ----------
    w : float64 array (n_columns,)
        Weights that minimize.
    varies : bool array (n_columns,)
        See `linrank.data.queries.varying_columns`.
    bounds : (lower, upper), float64 arrays (n_columns,), optional
        As in `Box`.
    """
    nearest = np.zeros_like(w) if bounds is None else Box(*bounds).clip(np.zeros_like(w))
    return np.where(varies, w, nearest)


def weight_bounds(
    positive: bool, coef_bounds: Any, data: Dataset, factors: Array | None = None
) -> tuple[Array, Array] | None:
    """The bounds of the weights ``w = coef / d`` that bounds of the coefficients mean, or None.

    Parameters
    ----------
    positive : bool
        Whether ``coef >= 0``, beside all other bounds.
    coef_bounds : None, mapping, (lower, upper) or array of shape (n_features, 2)
        A mapping goes from a feature, by name or column number from 0, to (low, high). A tuple has
        two numbers, for all features, or two arrays. None, -inf and inf leave an end open.
    data : Dataset
        Its number of features and their names.
    factors : array of shape (n_features,) or None
        The factors d of the scaling; a feature with ``d_j = 0`` has the coefficient 0.
    """
    if not isinstance(positive, bool | np.bool_):
        raise ValueError(f"positive must be True or False, got {positive!r}")
    if coef_bounds is None and not positive:
        return None
    lower, upper = _as_arrays(coef_bounds, data)
    if (j := first_true(np.isnan(lower) | np.isnan(upper))) is not None:
        raise ValueError(
            f"the bounds of {_label(data, j)} are {lower[j]:g} and {upper[j]:g}; use None, -inf or "
            "inf for an open end"
        )
    if positive:
        if (j := first_true(upper < 0.0)) is not None:
            raise ValueError(
                f"positive=True, but the upper bound of {_label(data, j)} is {upper[j]:g}; raise "
                "it, or set positive=False"
            )
        lower = np.maximum(lower, 0.0)
    if (j := first_true((lower > upper) | (lower == np.inf) | (upper == -np.inf))) is not None:
        raise ValueError(
            f"no coefficient of {_label(data, j)} is between its lower bound {lower[j]:g} and its "
            f"upper bound {upper[j]:g}; lower one or raise the other"
        )
    return (lower, upper) if factors is None else _divide(lower, upper, factors, data)


def parse_bounds(text: str) -> dict[str, tuple[float, float]]:
    """Bounds as the command line has them: ``FEATURE:LOW:HIGH``, separated by commas or lines.

    An empty LOW or HIGH leaves that end open; what follows a # in a line is a comment. FEATURE may
    be ``*``: all features without an entry of their own.

    Examples
    --------
    >>> parse_bounds("1:0:, bm25:-1:2.5")
    {'1': (0.0, inf), 'bm25': (-1.0, 2.5)}
    """
    bounds: dict[str, tuple[float, float]] = {}
    lines = (line.split("#")[0] for line in text.splitlines())
    for entry in (entry.strip() for line in lines for entry in line.split(",")):
        if not entry:
            continue
        feature, *ends = entry.rsplit(":", 2)
        try:
            low, high = (end.strip() for end in ends)
            pair = (float(low) if low else -math.inf, float(high) if high else math.inf)
        except ValueError:
            raise ValueError(
                f"bound {entry!r} is not FEATURE:LOW:HIGH, such as 3:0: or 3:-1:2.5; LOW and HIGH "
                "are numbers, or empty for an open end"
            ) from None
        if feature.strip() in bounds:
            raise ValueError(f"feature {feature.strip()!r} has bounds twice, again in {entry!r}")
        bounds[feature.strip()] = pair
    return bounds


def _as_arrays(coef_bounds: Any, data: Dataset) -> tuple[Array, Array]:
    """Lower and upper bounds by column; those of indicators of missing values are open."""
    n = data.n_raw_features
    if isinstance(coef_bounds, Mapping):
        return _from_mapping(coef_bounds, data)
    if coef_bounds is None:
        low = high = None
    elif isinstance(coef_bounds, tuple) and len(coef_bounds) == 2:
        low, high = coef_bounds
    else:
        table = np.asarray(coef_bounds, dtype=object)
        if table.shape != (n, 2):
            raise ValueError(
                f"coef_bounds must have a row (low, high) for each of {n} features, got shape "
                f"{table.shape}; bounds for all features are a tuple (lower, upper)"
            )
        low, high = table.T
    added = (0, data.n_features - n)
    lower = np.pad(_bound_of_each(low, "lower", -np.inf, n), added, constant_values=-np.inf)
    return lower, np.pad(_bound_of_each(high, "upper", np.inf, n), added, constant_values=np.inf)


def _bound_of_each(bound: Any, name: str, open_end: float, n: int) -> Array:
    """One bound for each feature, from a number or an array; None is an open end."""
    values = as_array(bound, f"the {name} bound")
    try:
        if values.dtype == object:
            is_open = np.array([value is None for value in values.flat], dtype=bool)
            values = np.where(is_open.reshape(values.shape), open_end, values)
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} bounds must be numbers or None, got {bound!r}") from error
    if values.shape not in ((), (n,)):
        raise ValueError(
            f"the {name} bounds have shape {values.shape}; give one number, or one for each of "
            f"{n} features"
        )
    return np.array(np.broadcast_to(values, (n,)))


def _from_mapping(bounds: Mapping[Any, Any], data: Dataset) -> tuple[Array, Array]:
    lower, upper = np.full(data.n_features, -np.inf), np.full(data.n_features, np.inf)
    places = {name: j for j, name in enumerate(data.feature_names or ())}
    seen: set[int] = set()
    for feature, pair in bounds.items():
        j = _place(feature, places, data.n_features)
        if j in seen:
            raise ValueError(f"coef_bounds has {_label(data, j)} twice, by name and by number")
        seen.add(j)
        try:
            low, high = pair
        except (TypeError, ValueError):
            raise ValueError(
                f"coef_bounds[{feature!r}] must be a pair (low, high), got {pair!r}"
            ) from None
        lower[j] = _bound_of_each(low, "lower", -np.inf, 1)[0]
        upper[j] = _bound_of_each(high, "upper", np.inf, 1)[0]
    return lower, upper


def feature_column(feature: Any, data: Dataset, what: str) -> int:
    """The column of a feature, by its number from 0 or its name; ``what`` is the parameter."""
    places = {name: j for j, name in enumerate(data.raw_feature_names or ())}
    n = data.n_raw_features
    return _place(feature, places, n, what)


def _place(feature: Any, places: dict[str, int], n: int, what: str = "coef_bounds") -> int:
    """The column of a feature, from its number or name."""
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        if not 0 <= feature < n:
            raise ValueError(f"{what} has the column {feature}; those of X are 0 to {n - 1}")
        return int(feature)
    if not places:
        raise ValueError(
            f"{what} names {feature!r}, but the features have no names; use column "
            "numbers from 0, or a data frame"
        )
    if feature not in places:
        hint = did_you_mean(feature, places)
        raise ValueError(f"{what} names {feature!r}, which is no feature{hint}")
    return places[feature]


def _divide(lower: Array, upper: Array, factors: Array, data: Dataset) -> tuple[Array, Array]:
    """Bounds of ``w = coef / d``, rounded so that ``d w`` keeps those of ``coef``."""
    is_gone = factors == 0.0
    if (j := first_true(is_gone & ((lower > 0.0) | (upper < 0.0)))) is not None:
        raise ValueError(
            f"{_label(data, j)} is constant, so that scaling makes its coefficient 0, which is not "
            f"between its bounds {lower[j]:g} and {upper[j]:g}; widen them"
        )
    d = np.where(is_gone, 1.0, factors)
    low, high = lower / d, upper / d
    low = np.where(low * d < lower, np.nextafter(low, np.inf), low)
    high = np.where(high * d > upper, np.nextafter(high, -np.inf), high)
    high = np.maximum(low, high)  # a fixed coefficient that d w cannot hit exactly
    return np.where(is_gone, -np.inf, low), np.where(is_gone, np.inf, high)


def _label(data: Dataset, j: int) -> str:
    """A feature by its name, or by its number as in the file, or its column."""
    if data.feature_names is not None:
        return f"feature {data.feature_names[j]!r}"
    return f"column {j}" if data.index_base is None else f"feature {j + data.index_base}"
