"""The domination loss: every row against all rows of lower layers at once."""

from __future__ import annotations

from copy import copy
from typing import Any

from numpy.typing import NDArray

from linrank import _core
from linrank.losses.base import CoreLoss, Dual, Errors
from linrank.pairs.layering import Layering

Array = NDArray[Any]


class DominationLoss(CoreLoss):
    """``L(z) = Σ_q c_q Σ_i u_i log(1 + Σ_(j in D(i)) u_j exp(m_j - m_i + Δ(i, j)))``.

    ``m = z - s``, and D(i) are the rows of lower layers in i's query; see `Layering`. A point costs
    O(n) and one exponential a row, a product O(n); K² more for the K layers of a query where
    margins come from a table.

    Parameters
    ----------
    layering : Layering
        Layers, margins and weights.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    kind = "domination_"

    def __init__(self, layering: Layering, n_threads: int = 1) -> None:
        queries = layering.queries
        super().__init__(queries.order, queries.n_rows, n_threads)
        self.layering = self.pairs = layering

    def by_position(self) -> DominationLoss:
        """The same loss of rows that lie in the order of their positions."""
        other = copy(self)
        other.order = None
        return other

    def at(self, z: Array, near: Any = None) -> _core.DominationPoint:
        return _core.domination_point(self.layering.core, z, self.n_threads)

    def errors(self, point: _core.DominationPoint, z: Array | None) -> Errors:
        value = point.value_error
        return Errors(value, value, value + point.slope_error, point.gradient_error)

    def dual(self, point: _core.DominationPoint, errors: Errors) -> Dual:
        """The tangent plane: ``L(z') >= t(L(z) - ∇L(z)·z) + t∇L(z)·z'`` for ``t <= 1``.

        At t = 1 by convexity, at t = 0 since ``L >= 0``, and in between by both. `entropy_dual` is
        a better bound there.
        """
        return Dual(point.value - point.slope - errors.dual, largest=1.0)

    def entropy_dual(self, point: _core.DominationPoint, t: float) -> float:
        """A lower bound ``D(t)`` of ``L(z') - t∇L(z)·z'`` over all ``z'``, for ``0 <= t <= 1``.

        With ``ρ_i = σ(log Z_k(i) - m_i)`` and ω = c u,
        ``D(t) = Σ_i ω_i [h(tρ_i) + tρ_i (log Z_k(i) - m_i)] - t∇L(z)·z``, h the binary entropy:
        every row keeps its mixture of dominated rows, and gives it t times the probability.
        ``D(1) = L(z) - ∇L(z)·z``. It certifies ``min L + α‖w‖₁ >= D(t)`` for the t that brings
        ``t‖Xᵀ∇L(z)‖_∞`` down to α. Rounding cannot take it above that.
        """
        return point.dual(t, self.n_threads) - 4.0 * point.value_error - point.slope_error
