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
_SMALLEST = 1e-9  # share of the largest k(x, x) below which a pivot is no news, but rounding


@dataclass(frozen=True, eq=False)
class Landmarks:
    """``Q ≈ G G'`` with ``G = Q[:, rows] T⁻ᵀ`` and ``Q[rows, rows] = T T'``: exact in the columns
    of the landmarks.

    Attributes
    ----------
    rows : int64 array (m,)
        The landmarks.
    features : float64 array (n, m)
        G: coordinates of the rows in an orthonormal basis of the span of the landmarks.
    back : float64 array (m, m)
        T⁻ᵀ: from coordinates to coefficients of the landmarks.
    rest : float
        ``trace(Q - GG')``, relative to ``trace(Q)``.
    """

    rows: Array
    features: Array
    back: Array
    rest: float

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, matrix: KernelMatrix, m: int, *, seed: int = 0, enough: float = 0.0) -> Landmarks:
        """Up to ``m`` landmarks, fewer where the rest is below ``enough`` or all rounding.

        Randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2023) in blocks: rows are drawn
        with chances proportional to what of ``k(x, x)`` is left, so that outliers are taken and
        duplicates are not; of a block, those that its others make superfluous are dropped.
        """
        rng = np.random.default_rng(seed)
        n, m = matrix.n, min(m, matrix.n)
        left = matrix.diagonal.copy()
        smallest, total = _SMALLEST * max(float(left.max()), 0.0), float(left.sum())
        G, rows = np.empty((n, m)), np.empty(m, dtype=np.int64)
        k = 0
        while k < m and left.sum() > enough * total:
            left[left < smallest] = 0.0
            drawn = _draw(left, min(_BLOCK, m - k), rng)
            if drawn.size == 0:
                break
            columns = matrix.columns(drawn)
            columns -= G[:, :k] @ G[drawn, :k].T
            kept, triangle = _independent(columns[drawn], smallest)
            drawn, columns = drawn[kept], columns[:, kept]
            size = len(drawn)
            G[:, k : k + size] = np.linalg.solve(triangle, columns.T).T
            rows[k : k + size] = drawn
            left -= np.einsum("ij,ij->i", G[:, k : k + size], G[:, k : k + size])
            left[drawn] = 0.0
            k += size
        G, rows = np.ascontiguousarray(G[:, :k]), rows[:k]
        rest = float(np.maximum(left, 0.0).sum()) / total if total > 0 else 0.0
        return cls(rows, G, np.triu(np.linalg.inv(np.tril(G[rows])).T), rest)


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
