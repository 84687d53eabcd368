"""Losses over pairs that are never listed: the sweeps of the core."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from linrank import _core
from linrank.data.streamed_rows import Design, StreamedRows
from linrank.losses.base import PairLoss

__all__ = ["SweptLoss"]

Array = NDArray[Any]


class SweptLoss(PairLoss):
    """A loss of the core: a point costs O(n log n), a product no more."""

    name: ClassVar[str]

    def at(self, z: Array, near: _core.PairPoint | None = None) -> _core.PairPoint:
        return _core.pair_point(self.problem, self.name, self.epsilon, z, near, self.n_threads)

    def curvature(self, point: _core.PairPoint, v: Array) -> Array:
        return point.multiply(v, self.n_threads)

    def hessian_product(
        self, rows: Design, point: _core.PairPoint, v: Array
    ) -> tuple[Array, Array]:
        """The same two products in one pass: each query's rows are used twice while in cache."""
        if isinstance(rows, StreamedRows):
            return super().hessian_product(rows, point, v)
        return _core.hessian_product(rows.core, self.order, point, v, self.n_threads)

    def hessian_matrix(self, rows: Design, point: _core.PairPoint) -> Array:
        """``Xᵀ∇²L(z)X`` in full."""
        n = rows.shape[1]
        flat = _core.hessian_matrix(rows.core, self.order, point, self.n_threads)
        return flat.reshape(n, n)

    def hessian_diagonal(self, rows: Design, point: _core.PairPoint) -> Array:
        """An estimate of the diagonal of ``Xᵀ∇²L(z)X`` from one pass over the non-zeros."""
        return _core.hessian_diagonal(rows.core, self.order, point, self.n_threads)
