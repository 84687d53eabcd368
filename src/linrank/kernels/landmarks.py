"""Rows that stand for all: a partial Cholesky factor of Q with pivots drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.kernels.matrices import KernelMatrix

__all__ = ["Landmarks"]

Array = NDArray[Any]

_BLOCK = 64  # pivots drawn at a time
_LEAST = 1e-9  # pivots below this share of k(x, x) would lose half of the digits of T⁻¹


@dataclass(frozen=True, eq=False)
class Landmarks:
    """``Q ≈ G'G``, ``G = T⁻¹ Q[rows]``, ``Q[rows, rows] = T T'``: exact in the columns of the
    landmarks.

    Attributes
    ----------
    rows : int64 array (m,)
        The landmarks.
    coordinates : float64 array (m, n)
        G: column i has those of row i in an orthonormal basis of the span of the landmarks.
    back : float64 array (m, m)
        T⁻ᵀ: from coordinates to coefficients of the landmarks.
    rest : float
        ``trace(Q - G'G)``, relative to ``trace(Q)``.
    """

    rows: Array
    coordinates: Array
    back: Array
    rest: float

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, t: Array, function: Array) -> Array:
        """Add the element of the span with coordinates ``t`` to a function, in place."""
        function[0, self.rows] += self.back @ t
        function[1] += t @ self.coordinates
        return function

    @classmethod
    def of(
        cls,
        matrix: KernelMatrix,
        m: int,
        *,
        seed: int = 0,
        enough: float = 0.0,
        least: float = _LEAST,
    ) -> Landmarks:
        """Up to ``m`` landmarks, fewer where the trace of the rest is below ``enough``.

        ``least`` is the share of the largest ``k(x, x)`` below which a pivot is no news.

        Randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2023) in blocks: rows are drawn
        with chances proportional to what of ``k(x, x)`` is left, so that outliers are taken and
        duplicates are not; of a block, those that its others make superfluous are dropped.
        """
        rng = np.random.default_rng(seed)
        n, m = matrix.n, min(m, matrix.n)
        left = matrix.diagonal.copy()
        smallest, total = least * max(float(left.max()), 0.0), float(left.sum())
        left[left <= smallest] = 0.0
        G, rows = np.empty((m, n)), np.empty(m, dtype=np.int64)
        k = 0
        while k < m and left.sum() > enough:
            drawn = _draw(left, min(_BLOCK, m - k), rng)
            if drawn.size == 0:
                break
            block = matrix.columns(drawn).T
            block -= G[:k, drawn].T @ G[:k]
            kept, triangle = _independent(block[:, drawn], smallest)
            size = len(kept)
            added = np.linalg.solve(triangle, block[kept])
            G[k : k + size], rows[k : k + size] = added, drawn[kept]
            left -= np.einsum("ij,ij->j", added, added)
            left[left < smallest] = 0.0
            left[drawn] = 0.0  # taken, or no news beside those taken
            k += size
        G, rows = G[:k], rows[:k]
        rest = float(np.maximum(left, 0.0).sum()) / total if total > 0 else 0.0
        return cls(rows, G, np.triu(np.linalg.inv(np.tril(G[:, rows].T)).T), rest)


def _draw(left: Array, size: int, rng: np.random.Generator) -> Array:
    """Different rows, by chances ``left``; fewer than ``size`` where few have any."""
    alive = np.flatnonzero(left)
    if alive.size <= size:
        return alive
    # Exponential clocks: the first to ring are a weighted draw without replacement.
    clocks = rng.exponential(size=alive.size) / left[alive]
    return np.sort(alive[np.argpartition(clocks, size)[:size]])


def _independent(block: Array, smallest: float) -> tuple[Array, Array]:
    """Rows of a small matrix with pivots above ``smallest``, and their Cholesky factor."""
    left = np.diagonal(block).copy()
    kept: list[int] = []
    L = np.zeros_like(block)
    for i in range(len(block)):
        k = len(kept)
        if left[i] <= max(smallest, 1e-6 * block[i, i]):
            continue
        column = (block[:, i] - L[:, :k] @ L[i, :k]) / np.sqrt(left[i])
        L[:, k] = column
        left -= column * column
        kept.append(i)
    index = np.array(kept, dtype=np.int64)
    return index, np.tril(L[index][:, : len(kept)])
