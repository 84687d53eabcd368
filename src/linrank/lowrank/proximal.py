"""Proximal maps of low rank: singular value thresholding, and the RankSVM dual near a matrix.

The α that balances the RankSVM dual and the distance to a given matrix, by Newton's method.

``min over 0 <= α <= Cω of ½‖β‖² - e'α + Σ ρ/2 (α - y)²`` has one unknown for each pair, but
``‖β‖²`` has the rank of the features. In its dual, ``min over w of ½‖w‖² + L(Xw)`` with the smooth
loss ``L(z) = Σ max over a of a(1 - z_i + z_j) - ρ/2 (a - y)²``, the unknowns are the weights: a
RankSVM whose loss differs from pair to pair. The best a is ``clip(y + (1 - z_i + z_j)/ρ)``, and
``∇F(w) = w - β(α(w))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank import _core
from linrank.data.rows import Array, Rows
from linrank.losses.base import Errors, PairLoss, SquaredHinge
from linrank.lowrank.rectangles import Rectangles
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.solvers.conjugate import Directions, Preconditioner, half_square
from linrank.solvers.newton import line_search

_STEPS = 60  # of Newton's method for one y; a handful is usual
_MATRIX = 2000  # features up to which a Cholesky factor pays


@dataclass(frozen=True, eq=False)
class ProximalPoint:
    """The loss at the scores ``z``, for the y and ρ of the moment."""

    z: Array
    value: float
    total_curvature: float
    gradient: Array


class ProximalHinge(PairLoss):
    """``L(z) = Σ max over a of a(1 - z_i + z_j) - ρ/2 (a - y)² + ρ/2 y²``, ``0 <= a <= Cω``."""

    def __init__(self, rectangles: Rectangles, y: Array, rho: Array, n_threads: int) -> None:
        super().__init__(rectangles.pairs, n_threads)
        self.rectangles = rectangles
        self.y, self.rho = y, rho  # the owner writes to y between two solutions

    def at(self, z: Array, near: Any = None) -> ProximalPoint:
        found = self.rectangles.core.loss(z, self.y, self.rho, self.n_threads)
        return ProximalPoint(z, *found)

    def errors(self, point: ProximalPoint, z: Array | None) -> Errors:
        """What the search along a line is to take for noise; no certificate is made of it."""
        return Errors(1e-13 * abs(point.value), 0.0, 0.0, 0.0)

    def curvature(self, point: ProximalPoint, v: Array) -> Array:
        core = self.rectangles.core
        return np.asarray(core.curvature(point.z, self.y, self.rho, v, self.n_threads))


class AllPairs(Preconditioner):
    """``M = I + t K``, K the Hessian if all pairs were inside their bounds, t the share that is."""

    limit = 100

    def __init__(self, rows: Rows, pairs: Pairs, scale: Array | None, n_threads: int) -> None:
        # At w = 0 all pairs are violated, and half the squared hinge has the curvature 1.
        risk = Risk(rows, SquaredHinge(pairs, n_threads), 0.5, scale).at(np.zeros(rows.shape[1]))
        self._total = pairs.total_weight()
        is_small = rows.shape[1] <= _MATRIX
        self._identity = np.eye(rows.shape[1]) if is_small else np.ones(rows.shape[1])
        self._hessian = 2.0 * (risk.hessian_matrix() if is_small else risk.hessian_diagonal())
        self._share = 0.0

    def matrix(self, point: Any, n_last: int) -> Array:
        share = max(point.parts[1].loss.total_curvature / self._total, 1e-12)
        if not 0.7 < share / max(self._share, 1e-300) < 1.4:
            self._share = share
            self._scaled: Array = self._identity + share * self._hessian
        return self._scaled


class ProximalProblem:
    """The problem for any y: solves, and writes the α that belongs to the solution.

    Parameters
    ----------
    whole : Splitting
        Has the features and their factors, ``rows`` and ``scale``; ``rectangles``, the pairs and
        the bounds of their dual variables; the matrix ``y`` to be near to, and for each block the
        weight ``rho`` of the distance. To both it may write between two solutions.
    """

    def __init__(self, whole: Any) -> None:
        rows, scale, n_threads = whole.rows, whole.scale, whole.n_threads
        rectangles: Rectangles = whole.rectangles
        self.loss = ProximalHinge(rectangles, whole.y, whole.rho, n_threads)
        self.risk = Risk(rows, self.loss, 1.0, scale)
        self.objective = Sum(Ridge(), self.risk)
        weight = np.zeros(rectangles.pairs.queries.n_queries)
        weight[rectangles.query] = 1.0 / whole.rho
        pairs = Pairs(rectangles.pairs.queries, query_weight=weight)
        self._directions = Directions(AllPairs(rows, pairs, scale, n_threads), rows.shape[1])

    def solve(self, w: Array, goal: float) -> tuple[Any, bool]:
        """A point with ``½‖w - β‖² <= goal``; False where rounding keeps Newton's method from it.

        That half square is all that a solution too early adds to the certified gap.
        """
        point = self.objective.at(w)
        for _ in range(_STEPS):
            half = half_square(point.gradient)
            if half <= goal:
                return point, True
            step = self._directions.at(point, residual=max(0.01 * half, 0.25 * goal))
            trial, _ = line_search(point, step.d, step.image)
            if trial is None:
                return point, False
            point = trial
        return point, half_square(point.gradient) <= goal

    def write(self, point: Any, alpha: Array) -> None:
        """The α of a point."""
        loss, z = self.loss, point.parts[1].z
        loss.rectangles.core.point(z, loss.y, loss.rho, alpha, loss.n_threads)

    def weights(self, alpha: Array) -> Array:
        """``β = Σ α_ij (x_i - x_j)``, from row and column sums of α."""
        loss, risk = self.loss, self.risk
        c = np.asarray(loss.rectangles.core.coefficients(alpha, loss.n_threads))
        return risk.stretch(_core.gradient(risk.rows.core, c, loss.order, loss.n_threads))


# ---- singular value thresholding: the singular values of a block above a threshold, and no others
# With τ the threshold and ``M = Σ_k σ_k u_k v_kᵀ``, ``SVT_τ(M) = Σ_(σ_k > τ) (σ_k - τ) u_k v_kᵀ``.
# The triplets below τ are never needed. Of the smaller Gram matrix, say ``G = M Mᵀ = Q Σ² Qᵀ``, the
# eigenvectors with ``σ > τ`` give ``SVT_τ(M) = Q diag(1 - τ/σ) Qᵀ M``: no singular vector of the
# longer side is computed. This is exact, not an approximation: nothing above τ is left out, and the
# error of σ is that of an eigenvalue of G, about ``ε σ_max² / σ``, which `leading` keeps below
# ``1e-10 σ_max`` by taking the singular value decomposition itself where τ is tiny.

_TINY = 1e-6  # of ‖M‖: thresholds below it are lost in the rounding of the Gram matrix
_LARGE = 192  # sides from which on computing some eigenvectors beats computing all


@dataclass(frozen=True, eq=False)
class Leading:
    """The singular values of a matrix above a threshold, with the vectors of one side.

    Attributes
    ----------
    values : array (rank,)
        Singular values, all above the threshold.
    vectors : array (side, rank)
        Singular vectors: of the rows where ``is_left``, else of the columns.
    is_left : bool
        Which side they belong to, the shorter one.
    """

    values: Array
    vectors: Array
    is_left: bool

    @property
    def rank(self) -> int:
        return len(self.values)

    @property
    def n_others(self) -> int:
        """How many singular values are not above the threshold."""
        return len(self.vectors) - self.rank

    def rest(self, M: Array) -> float:
        """Sum of the squares of those, M being the matrix decomposed: ``‖M - Q Qᵀ M‖²``."""
        if self.n_others == 0:
            return 0.0
        others = M - self.with_gains(M, self.values) if self.rank else M
        return float(np.vdot(others, others))

    def with_gains(self, M: Array, gains: Array) -> Array:
        """``Σ_k gains_k u_k v_kᵀ``, M being the matrix decomposed: ``Q diag(gains/σ) Qᵀ M``."""
        Q = self.vectors
        scaled = Q * (gains / self.values)
        return np.asarray(scaled @ (Q.T @ M) if self.is_left else (M @ scaled) @ Q.T)


def leading(M: Array, threshold: float) -> Leading:
    """The singular values above ``threshold``; LinAlgError if the iteration does not converge."""
    is_left = M.shape[0] <= M.shape[1]
    largest = float(np.abs(M).max(initial=0.0))
    # Squares of others leave the range of doubles.
    has_squares = largest == 0.0 or 1e-140 < largest < 1e140
    norm = float(np.linalg.norm(M)) if has_squares else np.inf
    if norm <= threshold:  # no singular value exceeds the Frobenius norm
        return Leading(np.zeros(0), np.zeros((min(M.shape), 0)), is_left)
    if threshold >= _TINY * norm:
        try:
            squares, vectors = _eigenpairs(M @ M.T if is_left else M.T @ M, threshold)
        except np.linalg.LinAlgError:
            pass
        else:
            values = np.sqrt(np.maximum(squares, 0.0))
            kept = values > threshold
            return Leading(values[kept], np.ascontiguousarray(vectors[:, kept]), is_left)
    # The decomposition of M itself: its small singular values are exact too.
    left, values, right = np.linalg.svd(M, full_matrices=False)
    rank = int(np.count_nonzero(values > threshold))
    vectors = left[:, :rank] if is_left else right[:rank].T
    return Leading(values[:rank], np.ascontiguousarray(vectors), is_left)


def svt(M: Array, threshold: float) -> Array:
    """``SVT_τ(M)``: every singular value less τ, or 0."""
    found = leading(M, threshold)
    if found.rank == 0:
        return np.zeros_like(M)
    return found.with_gains(M, found.values - threshold)


def _eigenpairs(gram: Array, threshold: float) -> tuple[Array, Array]:
    """Eigenpairs that hold all above ``threshold²``: those alone where the matrix is large."""
    if len(gram) < _LARGE:
        return np.linalg.eigh(gram)
    from scipy.linalg import eigh

    # A little below the threshold, so that rounding of the interval leaves nothing out.
    interval = (threshold * threshold * (1.0 - 1e-8), np.inf)
    squares, vectors = eigh(
        gram, subset_by_value=interval, driver="evr", overwrite_a=True, check_finite=False
    )
    return squares, vectors
