"""Singular value thresholding: the singular values of a block above a threshold, and no others.

With τ the threshold and ``M = Σ_k σ_k u_k v_kᵀ``, ``SVT_τ(M) = Σ_(σ_k > τ) (σ_k - τ) u_k v_kᵀ``.
The triplets below τ are never needed. Of the smaller Gram matrix, say ``G = M Mᵀ = Q Σ² Qᵀ``, the
eigenvectors with ``σ > τ`` give ``SVT_τ(M) = Q diag(1 - τ/σ) Qᵀ M``: no singular vector of the
longer side is computed. This is exact, not an approximation: nothing above τ is left out, and the
error of σ is that of an eigenvalue of G, about ``ε σ_max² / σ``, which `leading` keeps below
``1e-10 σ_max`` by taking the singular value decomposition itself where τ is tiny.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

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
        others = M - self.weighted(M, self.values) if self.rank else M
        return float(np.vdot(others, others))

    def weighted(self, M: Array, gains: Array) -> Array:
        """``Σ_k gains_k u_k v_kᵀ``, M being the matrix decomposed: ``Q diag(gains/σ) Qᵀ M``."""
        Q = self.vectors
        scaled = Q * (gains / self.values)
        product: Array = scaled @ (Q.T @ M) if self.is_left else (M @ scaled) @ Q.T
        return product


def leading(M: Array, threshold: float) -> Leading:
    """The singular values above ``threshold``; LinAlgError if the iteration does not converge."""
    is_left = M.shape[0] <= M.shape[1]
    largest = float(np.abs(M).max(initial=0.0))
    if largest > 0.0 and not 1e-140 < largest < 1e140:  # squares would leave the range of doubles
        return _by_svd(M, threshold, is_left)
    norm = float(np.linalg.norm(M))
    if norm <= threshold:  # no singular value exceeds the Frobenius norm
        return Leading(np.zeros(0), np.zeros((min(M.shape), 0)), is_left)
    if threshold < _TINY * norm:
        return _by_svd(M, threshold, is_left)
    gram = M @ M.T if is_left else M.T @ M
    try:
        squares, vectors = _eigenpairs(gram, threshold)
    except np.linalg.LinAlgError:
        return _by_svd(M, threshold, is_left)
    values = np.sqrt(np.maximum(squares, 0.0))
    kept = values > threshold
    return Leading(values[kept], np.ascontiguousarray(vectors[:, kept]), is_left)


def svt(M: Array, threshold: float) -> Array:
    """``SVT_τ(M)``: every singular value less τ, or 0."""
    found = leading(M, threshold)
    if found.rank == 0:
        return np.zeros_like(M)
    return found.weighted(M, found.values - threshold)


def _eigenpairs(gram: Array, threshold: float) -> tuple[Array, Array]:
    """Eigenpairs that hold all above ``threshold²``: those alone where the matrix is large."""
    if len(gram) < _LARGE:
        squares, vectors = np.linalg.eigh(gram)
        return squares, vectors
    from scipy.linalg import eigh

    # A little below the threshold, so that rounding of the interval leaves nothing out.
    interval = (threshold * threshold * (1.0 - 1e-8), np.inf)
    squares, vectors = eigh(
        gram, subset_by_value=interval, driver="evr", overwrite_a=True, check_finite=False
    )
    return squares, vectors


def _by_svd(M: Array, threshold: float, is_left: bool) -> Leading:
    """The same by the decomposition of M itself, whose small singular values are exact too."""
    left, values, right = np.linalg.svd(M, full_matrices=False)
    rank = int(np.count_nonzero(values > threshold))
    vectors = left[:, :rank] if is_left else right[:rank].T
    return Leading(values[:rank], np.ascontiguousarray(vectors), is_left)
