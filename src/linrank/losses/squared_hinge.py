"""The squared hinge over all pairs."""

from __future__ import annotations

from linrank import _core
from linrank.losses.base import Dual
from linrank.losses.swept import SweptLoss

__all__ = ["SquaredHinge"]


class SquaredHinge(SweptLoss):
    """``l(ξ) = max(0, ξ)²``, with the dual point ``α = 2Cωξ``."""

    name = "squared_hinge"

    def dual(self, point: _core.PairPoint) -> Dual:
        return Dual(2.0 * point.sum_of_slacks, point.value)
