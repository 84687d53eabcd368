"""Weights and the range of floating-point numbers: which power of two keeps an order whole."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["power_of_two", "unheld"]

# Binary exponents of the smallest normal and of the largest number.
_LIMITS = {"float32": (-126, 127), "float64": (-1022, 1023)}
# The share of them that is used as it is. The rest is room for values that are larger or smaller
# than those of training, and for all values where those are not known. A product that is too small
# is lost among the others, one that is too large takes the whole order with it: the room above is
# the same for all, 2^63 in float32.
_SEEN, _UNSEEN = 0.8, 0.5


def power_of_two(
    coef: NDArray[np.float64],
    reach: NDArray[np.float64] | None,
    extra: NDArray[np.float64],
    precision: str,
) -> float:
    """The factor by which weights are to be multiplied: 1 where they are fine as they are.

    What must be held are the weights ``|w_j|``, what missing values add, the products
    ``|w_j| r_j`` with the largest training values ``r_j`` (as far as they are known) and their
    sum, the largest score. With ``lo`` and ``hi`` the least and the largest of these, the factor
    is 1 while both stay clear of the ends of the type's range. Else it puts them around the
    middle, and where they span too much for that, ``hi`` a quarter of the exponents below the top:
    small weights are lost before large scores overflow.
    """
    least, most = _limits(precision)
    weights = np.abs(coef[coef != 0.0])
    # Exponents, not products: those may overflow in double precision already.
    exponents = [np.log2(weights), np.log2(np.abs(extra[extra != 0.0]))]
    if reach is not None:
        seen = reach[coef != 0.0]
        exponents.append(np.log2(weights[seen > 0.0]) + np.log2(seen[seen > 0.0]))
    held = np.concatenate(exponents)
    low, high = float(held.min()), float(held.max()) + math.log2(len(held))
    share = _UNSEEN if reach is None else _SEEN
    if low >= share * least and high <= _UNSEEN * most:
        return 1.0
    middle = (least + most) / 2
    shift = math.floor(middle - (low + high) / 2)
    shift = min(shift, math.floor(most - most / 4 - high))
    return math.ldexp(1.0, max(-1022, min(1023, shift)))


def unheld(
    coef: NDArray[np.float64], weights: NDArray[np.float64], precision: str
) -> NDArray[np.int64]:
    """Places where ``coef`` is not 0, and the weight made of it is 0 or no normal number."""
    least, _ = _limits(precision)
    return np.flatnonzero((coef != 0.0) & (np.abs(weights) < math.ldexp(1.0, least)))


def _limits(precision: str) -> tuple[int, int]:
    if precision not in _LIMITS:
        raise ValueError(f"precision must be 'float32' or 'float64', got {precision!r}")
    return _LIMITS[precision]
