"""Nyström features: rows by their kernel with some of them, the landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import Rows
from linrank.kernels.functions import Kernel
from linrank.kernels.landmarks import Landmarks
from linrank.kernels.matrices import BlockedMatrix, may_be_indefinite
from linrank.kernels.matrix_checks import check_kernel_matrix

__all__ = ["NystroemMap"]

Array = NDArray[Any]

_LEAST = 1e-12  # pivot, of the largest k(x, x): T⁻¹ then costs six of sixteen digits
_COLUMNS = 128  # features that are computed together
_CHECKED = 500  # rows of which a kernel that may be none is tried


@dataclass(frozen=True, eq=False)
class NystroemMap:
    """``z(x) = T⁻¹ k(landmarks, x)`` with ``K(landmarks, landmarks) = T T'``.

    ``z(a)·z(b)`` is ``k(a, b)`` where one of the two is a landmark, and for others what is left of
    it in the span of the landmarks. A ranker ``w·z(x)`` is ``Σ c_k k(x_k, x)`` with ``c = T⁻ᵀw``:
    a product with all rows needs their kernel with the landmarks, but not their features.

    Attributes
    ----------
    kernel : Kernel
        k.
    rows : DenseRows or CsrRows
        The landmarks.
    inverse : float64 array (m, m)
        ``T⁻¹``, lower triangular.
    support : int64 array (m,)
        The landmarks by number of row.
    """

    kernel: Kernel
    rows: Rows
    inverse: Array
    support: Array

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: Rows,
        n_components: int,
        n_candidates: int,
        *,
        seed: int = 0,
        n_threads: int = 1,
    ) -> NystroemMap:
        """Landmarks drawn from these rows: fewer than ``n_components`` where rows are alike.

        By randomly pivoted Cholesky on ``n_candidates`` rows, drawn uniformly: a pivot that its
        predecessors explain up to rounding is no landmark, so that T needs no lift.
        """
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.choice(rows.shape[0], n_candidates, replace=False, shuffle=False))
        if may_be_indefinite(kernel):
            some = rows.take(drawn[:: 1 + n_candidates // _CHECKED])  # from all over the data
            what = f"{kernel.describe()} of {some.shape[0]} rows"
            check_kernel_matrix(kernel.matrix(some, some, n_threads), n_threads, what=what)
        candidates = BlockedMatrix(kernel, rows.take(drawn), n_threads)
        landmarks = Landmarks.of(
            candidates, n_components, seed=int(rng.integers(2**63)), least=_LEAST
        )
        if len(landmarks) == 0:
            raise ValueError(
                f"{kernel.describe()} is 0 of all {n_candidates} rows that landmarks are chosen "
                "from: there is nothing to rank by; check that not all features are 0"
            )
        support = drawn[landmarks.rows]
        return cls(kernel, rows.take(support), np.ascontiguousarray(landmarks.back.T), support)

    @property
    def n_components(self) -> int:
        return len(self.support)

    def features(self, block: Rows, out: Array) -> None:
        """``z`` of a block of rows, into float32 ``out``."""
        K = self.kernel.matrix(block, self.rows)
        for begin in range(0, self.n_components, _COLUMNS):
            end = begin + _COLUMNS  # of T⁻¹ only what is not zero
            out[:, begin:end] = K[:, :end] @ self.inverse[begin:end, :end].T

    def scores(self, block: Rows, w: Array) -> Array:
        """``z(x)·w`` of a block of rows."""
        return self.kernel.product(block, self.rows, self.coef(w))

    def gradient(self, block: Rows, r: Array) -> Array:
        """``Σ r_i z(x_i)`` over a block of rows."""
        by_landmark: Array = self.inverse @ self.kernel.product(self.rows, block, r)
        return by_landmark

    def coef(self, w: Array) -> Array:
        """``c = T⁻ᵀw``."""
        coef: Array = w @ self.inverse
        return coef
