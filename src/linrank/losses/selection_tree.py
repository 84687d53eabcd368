"""The squared hinge as published: a selection tree per query, one thread."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linrank import _core
from linrank.losses.base import Dual, PairLoss

__all__ = ["SelectionTreeSquaredHinge"]

Array = NDArray[Any]


class SelectionTreeSquaredHinge(PairLoss):
    """``l(ξ) = max(0, ξ)²`` by Lee and Lin's Algorithm 2: the baseline of every comparison."""

    def at(self, z: Array, near: Any = None) -> _core.SelectionTreePoint:
        return _core.selection_tree_point(self.problem, z)

    def curvature(self, point: _core.SelectionTreePoint, v: Array) -> Array:
        return point.multiply(v)

    def dual(self, point: _core.SelectionTreePoint) -> Dual:
        return Dual(2.0 * point.sum_of_slacks, point.value)
