"""Q = K(X, X): in memory, or computed again for every product."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import Rows
from linrank.kernels.functions import Kernel
from linrank.threads import useful_threads

__all__ = ["BlockedMatrix", "KernelMatrix", "StoredMatrix", "kernel_matrix"]

Array = NDArray[Any]


class KernelMatrix(Protocol):
    """A symmetric positive semidefinite matrix."""

    @property
    def n(self) -> int: ...
    @property
    def diagonal(self) -> Array: ...
    def product(self, v: Array) -> Array:
        """``Q v``."""

    def columns(self, index: Array) -> Array:
        """``Q[:, index]``."""

    def submatrix(self, index: Array) -> KernelMatrix:
        """``Q[index][:, index]``."""


class StoredMatrix:
    """Q in memory."""

    def __init__(self, values: Array, n_threads: int = 1) -> None:
        self.values = values
        self.n_threads = n_threads

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def diagonal(self) -> Array:
        return np.ascontiguousarray(self.values.diagonal(), dtype=np.float64)

    def product(self, v: Array) -> Array:
        """``Q v``, each pair of entries read once."""
        n_threads = useful_threads(4 * self.values.size, self.n_threads)
        v = np.ascontiguousarray(v, dtype=np.float64)
        product: Array = _core.symmetric_product(self.values, v, n_threads)
        return product

    def columns(self, index: Array) -> Array:
        return np.ascontiguousarray(self.values[index].T)

    def submatrix(self, index: Array) -> StoredMatrix:
        return StoredMatrix(self.values[np.ix_(index, index)], self.n_threads)


class BlockedMatrix:
    """Q computed tile by tile for every product."""

    def __init__(self, kernel: Kernel, rows: Rows, n_threads: int = 1) -> None:
        self.kernel = kernel
        self.rows = rows
        self.n_threads = n_threads

    @property
    def n(self) -> int:
        return self.rows.shape[0]

    @property
    def diagonal(self) -> Array:
        return self.kernel.diagonal(self.rows)

    def product(self, v: Array) -> Array:
        return self.kernel.product(self.rows, self.rows, v, self.n_threads)

    def columns(self, index: Array) -> Array:
        return self.kernel.matrix(self.rows, self.rows.take(index), self.n_threads)

    def submatrix(self, index: Array) -> BlockedMatrix:
        return BlockedMatrix(self.kernel, self.rows.take(index), self.n_threads)


def kernel_matrix(
    kernel: Kernel, rows: Rows, *, memory_limit: int | None = None, n_threads: int = 1
) -> StoredMatrix | BlockedMatrix:
    """``K(X, X)``, stored where it fits into ``memory_limit`` bytes."""
    if kernel.name == "precomputed":
        return StoredMatrix(kernel.matrix(rows, rows), n_threads)
    n = rows.shape[0]
    if memory_limit is None or 8 * n * n <= memory_limit:
        return StoredMatrix(kernel.matrix(rows, rows, n_threads), n_threads)
    return BlockedMatrix(kernel, rows, n_threads)
