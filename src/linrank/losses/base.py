"""What a solver may ask of a pair loss."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from linrank import _core
from linrank.data.queries import Queries
from linrank.data.rows import Rows

__all__ = ["LossPoint", "PairLoss"]

Array = NDArray[Any]


class LossPoint(Protocol):
    """The loss at one vector of scores; what the sweep found there is kept for the products."""

    @property
    def value(self) -> float:
        """``L(z) = Σ ω ξ²`` over the violated pairs, ``ξ = 1 - z_i + z_j``."""

    @property
    def sum_of_slacks(self) -> float:
        """``Σ ω ξ``, the linear term of the dual objective."""

    @property
    def n_violations(self) -> float:
        """``Σ ω`` over the violated pairs."""

    @property
    def gradient(self) -> Array:
        """``∂L/∂z``, by position."""


class PairLoss:
    """``L(z) = Σ_q c_q Σ_(i above j) u_i u_j l(1 - z_i + z_j)``, convex, once differentiable.

    Parameters
    ----------
    queries : Queries
        Which rows are compared: i is above j iff both are in one query and level_i > level_j.
    row_weight : float64 array by position, or None
        The factors u of the pair weights; None for ones.
    query_weight : float64 array by query, or None
        The factors c of the pair weights; None for ones.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    def __init__(
        self,
        queries: Queries,
        row_weight: Array | None = None,
        query_weight: Array | None = None,
        n_threads: int = 1,
    ) -> None:
        self.queries = queries
        self.n_threads = n_threads
        self.problem = _core.pair_problem(
            queries.offsets, queries.levels, queries.n_levels, row_weight, query_weight
        )

    def at(self, z: Array, near: Any = None) -> Any:
        """The loss at the scores ``z``, by position; ``near`` is a point with similar scores."""
        raise NotImplementedError("a pair loss defines its point by at(z)")

    def curvature(self, point: Any, v: Array) -> Array:
        """``∇²L(z) v`` at the scores of ``point``."""
        raise NotImplementedError("a pair loss defines its curvature by curvature(point, v)")

    def hessian_product(self, rows: Rows, point: Any, v: Array) -> tuple[Array, Array]:
        """``(Xᵀ∇²L(z)X v, X v)``, by two products with the rows."""
        image = _core.scores(rows.core, v, self.queries.order, self.n_threads)
        curved = self.curvature(point, image)
        return _core.gradient(rows.core, curved, self.queries.order, self.n_threads), image

    def hessian_matrix(self, rows: Rows, point: Any) -> Array:
        """``Xᵀ∇²L(z)X`` in full."""
        raise NotImplementedError("this loss offers Hessian products only; use solver='tron'")

    def hessian_diagonal(self, rows: Rows, point: Any) -> Array:
        """An estimate of the diagonal of ``Xᵀ∇²L(z)X``."""
        raise NotImplementedError("this loss offers Hessian products only; use solver='tron'")
