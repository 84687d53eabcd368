"""Bounds of the coefficients: the box that a solver stays in, and how users describe it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Box:
    """``lower <= w <= upper``, feature by feature; -inf and inf where an end is open."""

    lower: Array
    upper: Array

    def clip(self, w: Array) -> Array:
        """The point of the box nearest to ``w``."""
        clipped: Array = np.minimum(np.maximum(w, self.lower), self.upper)
        return clipped

    def is_free(self, w: Array, r: Array) -> Array:
        """Whether each variable can move at ``w`` in the direction of ``r``, by its sign.

        A step to a bound other than 0 may miss it by a rounding.
        """
        with np.errstate(invalid="ignore"):  # inf - inf where an end is open: NaN, so False
            is_low = w <= self.lower + 4e-16 * np.abs(self.lower)
            is_high = w >= self.upper - 4e-16 * np.abs(self.upper)
        free: Array = ~((is_low & (r <= 0.0)) | (is_high & (r >= 0.0)))
        return free

    def _room_by_variable(self, w: Array, d: Array) -> Array:
        """The largest t with ``w + t d`` within the bounds of each variable."""
        end = np.where(d < 0.0, self.lower, self.upper)
        room: Array = np.divide(end - w, d, out=np.full_like(w, np.inf), where=d != 0.0)
        room = np.maximum(room, 0.0)
        return room

    def room(self, w: Array, d: Array) -> float:
        """The largest ``t >= 1`` with ``w + t d`` in the box, for a ``w + d`` that is."""
        return max(1.0, float(self._room_by_variable(w, d).min()))

    def first_hit(self, w: Array, d: Array) -> tuple[float, Array]:
        """How far ``w + t d`` gets before a bound stops it, and the variables that stop it."""
        room = self._room_by_variable(w, d)
        t = float(room.min())
        hit: Array = room <= t
        return t, hit
