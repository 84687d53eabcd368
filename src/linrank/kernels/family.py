"""The matrices ``K(X, X)`` of a kernel with one γ after the other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import DenseRows, Rows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import StoredMatrix, kernel_matrix

__all__ = ["KernelFamily"]

Array = NDArray[Any]

_BLOCK = 256  # rows of a matrix that a thread turns at a time


class KernelFamily:
    """``K(X, X)`` for every γ, from what does not depend on γ where that is kept.

    An rbf kernel is a function of ``γ‖a - b‖²``, "poly" is one of ``γ a·b``. With ``keeps`` the
    squared distances, or the products, are computed once and stay, as large as one matrix; a
    matrix is then one pass over them. Without, each is computed from the rows, as those are that
    have to be checked: "sigmoid", and "poly" with ``coef0 < 0``.
    """

    def __init__(
        self, kernel: Kernel, rows: Rows, *, keeps: bool = False, n_threads: int = 1
    ) -> None:
        self.kernel, self.rows, self.n_threads = kernel, rows, n_threads
        is_sure = kernel.name == "rbf" or (kernel.name == "poly" and kernel.coef0 >= 0.0)
        self._keeps = keeps and is_sure
        self._base: Array | None = None

    def matrix(self, gamma: float) -> StoredMatrix:
        """``K(X, X)`` for this γ, in memory."""
        kernel = replace(self.kernel, gamma=gamma)
        if not self._keeps:
            room = 16 * self.rows.shape[0] ** 2  # that there is some has been seen to
            whole = kernel_matrix(kernel, self.rows, memory_limit=room, n_threads=self.n_threads)
            assert isinstance(whole, StoredMatrix)
            return whole
        if self._base is None:
            self._base = _base(kernel, self.rows, self.n_threads)
        values, base = np.empty_like(self._base), self._base
        turn = _turn(kernel)
        _by_blocks(lambda block: turn(base[block], values[block]), len(base), self.n_threads)
        return StoredMatrix(values, self.n_threads)


def _base(kernel: Kernel, rows: Rows, n_threads: int) -> Array:
    """``‖a - b‖²`` of all pairs of rows for "rbf", else ``a·b``."""
    if kernel.name != "rbf":
        return Kernel("linear").matrix(rows, rows, n_threads)
    if isinstance(rows, DenseRows):
        # ‖a‖² - 2a·b + ‖b‖² loses the digits that the norms have in common: distances do not see
        # the mean, and without it the norms are as small as they can be.
        values = rows.values.astype(np.float64)
        rows = DenseRows(values - values.mean(axis=0))
    squares = Kernel("linear").matrix(rows, rows, n_threads)
    norms = squares.diagonal().copy()

    def finish(block: slice) -> None:
        part = squares[block]
        part *= -2.0
        part += norms[block, np.newaxis] + norms  # in this order the matrix stays symmetric
        np.maximum(part, 0.0, out=part)

    _by_blocks(finish, len(squares), n_threads)
    np.fill_diagonal(squares, 0.0)
    return squares


def _by_blocks(work: Callable[[slice], None], n: int, n_threads: int) -> None:
    """``work`` on all rows, a block at a time; NumPy releases the lock."""
    blocks = [slice(i, i + _BLOCK) for i in range(0, n, _BLOCK)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, blocks))


def _turn(kernel: Kernel) -> Callable[[Array, Array], None]:
    """The function of a block of the base that gives the kernel, into a second block."""

    def rbf(squares: Array, out: Array) -> None:
        np.multiply(squares, -kernel.gamma, out=out)
        np.exp(out, out=out)

    def poly(products: Array, out: Array) -> None:
        np.multiply(products, kernel.gamma, out=out)
        out += kernel.coef0
        np.power(out, kernel.degree, out=out)

    return {"rbf": rbf, "poly": poly}[kernel.name]
