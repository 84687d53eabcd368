"""Q = K(X, X): in memory, or computed again for every product."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.data import Array, CsrRows, Rows, as_array
from linrank.kernels.functions import Kernel
from linrank.system import allowed, cached_property, describe_bytes, too_small, useful_threads
from linrank.system.device import HOST, Device

# What rounding may do, relative to the largest entry (symmetry) or eigenvalue (definiteness):
# kernels computed elsewhere in float32 are symmetric to some 1e-7 and have eigenvalues below zero
# of that size.
TOLERANCE = 1e-6

_EXACT = 500  # rows up to which all eigenvalues are computed: some 0.1 s
LANCZOS_STEPS = 60  # beyond
_BLOCK = 1 << 20  # entries that are looked at together


def check_kernel_matrix(
    Q: Any, n_threads: int = 1, *, what: str = "the kernel matrix", remedy: str = ""
) -> None:
    """Raise ValueError for a matrix that no kernel gives, and say by how much.

    Parameters
    ----------
    Q : array of shape (n, n), or KernelMatrix
        Of one that is computed for every product only the definiteness is checked.
    n_threads : int
        Of the products.
    what, remedy : str
        What the message calls it, and what it advises where it is not semidefinite.

    Raises
    ------
    ValueError
        Not square; not finite, with the first entry at fault; not symmetric, with the largest
        ``|Q_ij - Q_ji|`` and its place, where it exceeds 1e-6 of the largest entry; not positive
        semidefinite, with an eigenvalue, or a quotient ``u'Qu / u'u`` that proves one, below -1e-6
        of the largest.

    Notes
    -----
    Up to 500 rows all eigenvalues are computed. Beyond, 60 Lanczos steps from a fixed start give
    the lowest ``u'Qu / u'u`` over the space that they span, an upper bound of the lowest
    eigenvalue: what is refused is indefinite for certain, what passes may have negative
    eigenvalues that are small or isolated within the positive ones.
    """
    if not isinstance(Q, KernelMatrix):
        Q = StoredMatrix(_as_square(Q, what), n_threads)
    if isinstance(Q, StoredMatrix):
        _check_symmetric(Q.values, what)
    if isinstance(Q, StoredMatrix) and Q.n <= _EXACT:
        lowest, largest = _ends(np.linalg.eigvalsh(Q.values))
    else:
        lowest, largest = lowest_values(Q.n, Q.product)
    if lowest < -TOLERANCE * largest:
        remedy = remedy or f"add {-lowest:.3g} to its diagonal"
        raise ValueError(
            f"{what} must be positive semidefinite: it has an eigenvalue of at most {lowest:.6g}, "
            f"{lowest / largest:.3g} of the largest in size, {largest:.6g}. No vectors have such "
            f"inner products; {remedy}"
        )


def lowest_values(n: int, product: Callable[[Array], Array]) -> tuple[float, float]:
    """The lowest Ritz value of a symmetric matrix, and the largest in size, after 60 Lanczos steps.

    All vectors are kept and each new one is made orthogonal to them, twice, so that no copy of an
    eigenvalue that was found already is mistaken for another.
    """
    n_steps = min(LANCZOS_STEPS, n)
    basis = np.zeros((n_steps, n))
    diagonal, beside = np.zeros(n_steps), np.zeros(n_steps)
    start = np.random.default_rng(0).standard_normal(n)
    basis[0] = start / np.sqrt(_core.dot(start, start))
    scale = 0.0
    for k in range(n_steps):
        image = product(basis[k])
        diagonal[k] = _core.dot(basis[k], image)
        for _ in range(2):
            for vector in basis[: k + 1]:
                image = _core.add_scaled(image, -_core.dot(vector, image), vector, 1)
        size = float(np.sqrt(_core.dot(image, image)))
        scale = max(scale, size, abs(float(diagonal[k])))
        if k + 1 == n_steps or size <= 1e-14 * scale:  # the space is closed
            n_steps = k + 1
            break
        beside[k] = size
        basis[k + 1] = image / size
    band = np.diag(diagonal[:n_steps])
    band += np.diag(beside[: n_steps - 1], 1) + np.diag(beside[: n_steps - 1], -1)
    return _ends(np.linalg.eigvalsh(band))


def _ends(values: Array) -> tuple[float, float]:
    """The lowest of ascending eigenvalues, and the largest in size."""
    return float(values[0]), float(np.abs(values).max())


def _as_square(Q: Any, what: str) -> Array:
    try:
        matrix: Array = as_array(Q, what).astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be a matrix of numbers: {error}") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " × ".join(map(str, matrix.shape))
        raise ValueError(
            f"{what} must be square, one row and one column a training row, got {shape}"
        )
    return matrix


def _check_symmetric(Q: Array, what: str) -> None:
    """Raise ValueError for an entry that is not finite, or not that of the other side."""
    worst, place, largest = 0.0, (0, 0), 0.0
    step = max(1, _BLOCK // max(1, len(Q)))
    for first in range(0, len(Q), step):
        block = Q[first : first + step]
        finite = np.isfinite(block)
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            raise ValueError(
                f"{what} must be finite, got {block[i, j]} at row {first + i}, column {j}"
            )
        largest = max(largest, float(np.abs(block).max(initial=0.0)))
        difference = np.abs(block - Q[:, first : first + step].T)
        k = int(difference.argmax())
        if difference.flat[k] > worst:
            i, j = divmod(k, len(Q))
            worst, place = float(difference.flat[k]), (first + i, j)
    if worst > TOLERANCE * largest:
        i, j = place
        raise ValueError(
            f"{what} must be symmetric: entry ({i}, {j}) is {Q[i, j]:.6g} and ({j}, {i}) is "
            f"{Q[j, i]:.6g}; they differ by {worst:.3g}, most of all, where the largest entry is "
            f"{largest:.3g}. (Q + Q.T) / 2 is symmetric"
        )


class KernelMatrix(ABC):
    """Q, symmetric and positive semidefinite, by its products with vectors of the host.

    Attributes
    ----------
    place : Device or HOST
        Where it is; so are its columns.
    """

    place: Any = HOST

    @property
    @abstractmethod
    def n(self) -> int:
        """Rows, and columns."""

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """``Q_ii``, on the host."""

    @abstractmethod
    def product(self, v: Array) -> Array:
        """``Q v``."""

    @abstractmethod
    def columns(self, index: Array) -> Any:
        """Some columns, (n, n_columns)."""

    @abstractmethod
    def submatrix(self, index: Array) -> KernelMatrix:
        """The same rows and columns of it."""

    def entries(self, rows: Array, columns: Array | None) -> Array:
        """Some rows, cut to these columns if there are any, on the host."""
        found: Array = self.place.get(self.columns(rows).T)
        return found if columns is None else found[:, columns]


class StoredMatrix(KernelMatrix):
    """Q in memory.

    Parameters
    ----------
    values : float64 array of shape (n, n)
        Symmetric; products read what is on and above the diagonal. Used in place where its rows
        are contiguous.
    n_threads : int
        Of the products.
    """

    def __init__(self, values: Array, n_threads: int = 1) -> None:
        Q = np.asarray(values, dtype=np.float64)
        has_unit_stride = Q.strides[1] == Q.itemsize and Q.strides[0] > 0
        self.values = Q if has_unit_stride else np.ascontiguousarray(Q)
        self.n_threads = n_threads

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def diagonal(self) -> Array:
        return np.ascontiguousarray(self.values.diagonal())

    def product(self, v: Array) -> Array:
        """``Q v``, each pair of entries read once; the same bits for any number of threads."""
        n_threads = useful_threads(4 * self.values.size, self.n_threads)
        v = np.ascontiguousarray(v, dtype=np.float64)
        return np.asarray(_core.symmetric_product(self.values, v, n_threads))

    def columns(self, index: Array) -> Array:
        return np.ascontiguousarray(self.values[index].T)

    def submatrix(self, index: Array) -> StoredMatrix:
        return StoredMatrix(self.values[np.ix_(index, index)], self.n_threads)

    def entries(self, rows: Array, columns: Array | None) -> Array:
        found = self.values[rows]
        return found if columns is None else found[:, columns]


@dataclass(frozen=True, eq=False)
class BlockedMatrix(KernelMatrix):
    """Q computed for every product, tile by tile, each pair of rows once.

    Parameters
    ----------
    kernel, rows : Kernel, Rows
        Q is ``K(X, X)``.
    n_threads : int
        Of the products.
    block_bytes : int
        What a callable's part of the matrix may take at a time, a row of it at least; other
        kernels go tile by tile, see `bytes_needed`.
    """

    kernel: Kernel
    rows: Rows
    n_threads: int = 1
    block_bytes: int = 1 << 24

    @property
    def n(self) -> int:
        return self.rows.shape[0]

    @cached_property
    def diagonal(self) -> Array:
        return self.kernel.diagonal(self.rows, self.n_threads)

    def product(self, v: Array) -> Array:
        return self.kernel.product(
            self.rows, self.rows, v, self.n_threads, block_bytes=self.block_bytes
        )

    def columns(self, index: Array) -> Array:
        return self.kernel.matrix(self.rows, self.rows.take(index), self.n_threads)

    def submatrix(self, index: Array) -> BlockedMatrix:
        return replace(self, rows=self.rows.take(index))

    @staticmethod
    def bytes_needed(rows: Rows, n_threads: int = 1) -> int:
        """Bytes that a product takes at most, beside the rows.

        Those are the totals of 32 parts of the triangle, two thirds of n numbers each on average,
        and the tiles of each thread: up to 256 rows of either side in 0.75 MB, but 96 rows
        however wide they are. Sparse ones take 100 kB for each non-zero of the fullest row.
        """
        n, width = rows.shape
        tiles = 96 * 8 * width
        if isinstance(rows, CsrRows):
            tiles = 100_000 * int(np.diff(rows.offsets).max(initial=0))
        return 24 * 8 * n + n_threads * ((1 << 20) + tiles)


def kernel_matrix(
    kernel: Kernel,
    rows: Rows,
    *,
    memory_limit: Any = None,
    beside: int = 0,
    n_threads: int = 1,
    device: Device | None = None,
) -> KernelMatrix:
    """``Q = K(X, X)``, in memory where it fits, else computed for every product.

    Parameters
    ----------
    kernel : Kernel
        Of "precomputed" the rows are Q itself.
    rows : Rows
        Those of X.
    memory_limit : int, float or str, optional
        Bytes that Q may take, rows not counted; by default half of what is free.
    beside : int
        Bytes of a ``memory_limit`` that are meant for other things.
    n_threads : int
        Of the products.
    device : Device, optional
        Where Q is to be, in whose memory all this counts; on the host if None.

    Raises
    ------
    ValueError
        For a matrix that is not square, symmetric, finite and positive semidefinite: checked where
        the kernel does not make sure of it ("precomputed", callables, "sigmoid", and "poly" with
        ``coef0 < 0``).
    MemoryError
        Where not even the tiles fit; it says how much is needed, and what to use instead.
    """
    matrix: KernelMatrix
    limit, n = allowed(memory_limit), rows.shape[0]
    if device is not None:
        from linrank.kernels.device_kernel import DeviceMatrix  # few have one

        how: dict[str, Any] = {"memory_limit": memory_limit, "beside": beside}
        matrix = DeviceMatrix.of(kernel, rows, device, n_threads=n_threads, **how)
    elif kernel.name == "precomputed":
        return _precomputed_matrix(kernel, rows, limit, n_threads)
    # A stored product takes a quarter of the time of computing the entries again for 12 columns,
    # and less for more: Q is stored whenever it fits.
    elif limit is None or stored_bytes(kernel, n) + beside <= limit:
        matrix = StoredMatrix(kernel.matrix(rows, rows, n_threads), n_threads)
    else:
        block_bytes = _block_bytes(kernel, rows, memory_limit, limit, beside, n_threads)
        matrix = BlockedMatrix(kernel, rows, n_threads, block_bytes)
    if may_be_indefinite(kernel):
        # tanh t = t - t³/3 + ...: the cube takes off what nothing makes up for, unless the rows are
        # linearly independent or γ is so small that rounding hides it.
        remedy = {
            "sigmoid": "tanh rarely has any: use a smaller gamma, or kernel='rbf'",
            "poly": "use coef0 >= 0",
        }.get(kernel.name, "use another kernel")
        what = f"the matrix of {kernel.describe()}"
        check_kernel_matrix(matrix, n_threads, what=what, remedy=remedy)
    return matrix


def _block_bytes(
    kernel: Kernel, rows: Rows, memory_limit: Any, limit: int, beside: int, n_threads: int
) -> int:
    """What a block of a matrix may take that is too large; MemoryError where its tiles are too."""
    n = rows.shape[0]
    needed = beside + BlockedMatrix.bytes_needed(rows, n_threads)
    if may_be_indefinite(kernel):
        needed += 8 * n * (LANCZOS_STEPS + 4)
    # A callable has its matrix, and three times as much for what it computes it from: a guess.
    block = 1 if kernel.name != "callable" else 4
    tiles, full = needed + (block - 1) * 8 * n, beside + stored_bytes(kernel, n)
    if tiles > limit:
        how = "" if full <= tiles else f" even in tiles ({describe_bytes(full)} in full)"
        raise too_small(
            memory_limit,
            f"the kernel matrix of {n} rows, with what products take{how},",
            min(tiles, full),
            "train on fewer numbers with approximation='nystroem'",
        )
    return min(1 << 24, (limit - needed) // block)


def _precomputed_matrix(
    kernel: Kernel, rows: Rows, limit: int | None, n_threads: int
) -> StoredMatrix:
    """The user's own matrix, in place where it is dense and float64."""
    n = rows.shape[0]
    in_place = not isinstance(rows, CsrRows) and rows.dtype == np.float64
    if not in_place and limit is not None and 8 * n * n > limit:
        raise too_small(
            limit,
            f"a copy of the precomputed kernel matrix of {n} rows as dense float64",
            8 * n * n,
            "pass it so, and it is used in place, or give the rows themselves with "
            "approximation='nystroem'",
        )
    matrix = kernel.matrix(rows, rows)
    check_kernel_matrix(matrix, n_threads, what="a precomputed kernel matrix")
    return StoredMatrix(matrix, n_threads)


def stored_bytes(kernel: Kernel, n: int) -> int:
    """What Q of n rows takes; a callable makes it in one piece, and its own copies with it."""
    return (2 if kernel.name == "callable" else 1) * 8 * n * n


def may_be_indefinite(kernel: Kernel) -> bool:
    return kernel.name in ("callable", "sigmoid") or (kernel.name == "poly" and kernel.coef0 < 0)
