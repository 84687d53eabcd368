"""The squared hinge."""

from __future__ import annotations

from typing import Any

from linrank.losses.base import Dual, Errors
from linrank.losses.swept import SweptLoss

__all__ = ["SquaredHinge", "SquaredHingeKind"]


class SquaredHingeKind:
    """``l(ξ) = max(0, ξ)²``, with the dual point ``α = 2Cωξ``, wherever the pairs come from."""

    name = "squared_hinge"

    def dual(self, point: Any, errors: Errors) -> Dual:
        linear = 2.0 * (point.sum_of_slacks - errors.dual)
        return Dual(linear, point.value + errors.value)


class SquaredHinge(SquaredHingeKind, SweptLoss):
    """``l(ξ) = max(0, ξ)²`` over the pairs of queries."""
