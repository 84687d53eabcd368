"""Q = K(X, X) on a device: in its memory as far as it fits, the rest computed for every product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank.data.device_rows import DeviceRows, on_device
from linrank.data.rows import Array, Rows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import KernelMatrix, StoredMatrix, kernel_matrix, stored_bytes
from linrank.system.device import Device, DeviceArray
from linrank.system.resources import describe_bytes, too_small

_KINDS = {"rbf": 0, "poly": 1, "sigmoid": 2, "linear": 3}  # enum KernelKind of core/cuda/kernels.cu
_THREADS = 256
_TILE = 64  # rows of either side that a block takes
_MOST_BLOCKS = 65535  # that a grid has in y
_COLUMNS = 1024  # features that are turned at a time
_VALUE = 32  # features whose sum takes as long as an exponential
_WORK = 1 << 37  # features of entries that are computed at a time: some 20 ms
_PIECE = 1 << 30  # entries of Q that are multiplied at a time
_BLOCK_BYTES = 1 << 28  # of rows that are scored at a time


def turn_rows(rows: Rows | DeviceRows, device: Device, index: Array | None = None) -> DeviceArray:
    """Rows as the kernels read them: in double and dense, one feature after the other."""
    there = on_device(rows, device)
    order = None if index is None else device.put(index, np.int32)
    n_rows, n_columns = rows.shape
    n = n_rows if index is None else len(index)
    out = device.empty((n_columns, n))
    with device.current():
        for begin in range(0, n_columns, _COLUMNS):
            end = min(begin + _COLUMNS, n_columns)
            out[begin:end] = there.turn(order, n, begin, end)
    return out


@dataclass(frozen=True, eq=False)
class DeviceKernel:
    """A kernel of rows on a device, which come as `turn_rows` makes them."""

    kernel: Kernel
    device: Device

    def matrix(self, A: DeviceArray, B: DeviceArray) -> DeviceArray:
        """``K(A, B)``; ``k(a, b)`` and ``k(b, a)`` are the same bits."""
        out = self.device.empty((A.shape[1], B.shape[1]))
        for part in self._parts(A, B):
            grid = -(-B.shape[1] // _TILE), -(-(part.stop - part.start) // _TILE)
            self._launch("kernel_matrix", grid, A[:, part], B, out[part])
        return out

    def product(self, A: DeviceArray, B: DeviceArray, v: DeviceArray) -> Array:
        """``K(A, B) v`` on the host; the matrix is never there."""
        device, found = self.device, np.empty(A.shape[1])
        for part in self._parts(A, B):
            n = part.stop - part.start
            n_tiles, most = -(-n // _TILE), -(-B.shape[1] // _TILE)
            n_parts = max(1, min(most, -(-8 * device.n_blocks // n_tiles)))
            parts, total = device.empty((n_parts, n)), device.empty(n)
            self._launch("kernel_product", (n_tiles, n_parts), A[:, part], B, v, parts)
            device.launch("rows", "sum_parts", -(-n // 32), _THREADS, n_parts, n, 1.0, parts, total)
            found[part] = device.get(total)
        return found

    def _launch(self, name: str, grid: Any, A: DeviceArray, B: DeviceArray, *others: Any) -> None:
        k = self.kernel
        function = _KINDS[k.name], k.degree, float(k.gamma), float(k.coef0)
        sides = (one for X in (A, B) for one in (X, X.strides[0] // X.itemsize, X.shape[1]))
        given = *function, A.shape[0], *sides, *others
        self.device.launch("kernels", name, grid, _THREADS, *given)

    def _parts(self, A: DeviceArray, B: DeviceArray) -> Iterator[slice]:
        """Rows of A that one launch takes, whole tiles; each has ended before the next begins."""
        (n_columns, n), most = A.shape, _MOST_BLOCKS * _TILE
        step = _WORK // ((n_columns + _VALUE) * max(1, B.shape[1]))
        step = max(_TILE, min(step, most) // _TILE * _TILE)
        for begin in range(0, n, step):
            if begin:
                self.device.wait()
            yield slice(begin, min(begin + step, n))


class DeviceMatrix(KernelMatrix):
    """Q on a device.

    Parameters
    ----------
    device : Device
        Where it is.
    values : device array (n_stored, n)
        The first rows of Q.
    diagonal : float64 array (n,)
        ``k(x, x)``, on the host.
    kernel, rows : DeviceKernel, device array (n_features, n)
        What the other rows are computed from; None where all of Q is given.
    """

    def __init__(
        self,
        device: Device,
        values: DeviceArray,
        diagonal: Array,
        kernel: DeviceKernel | None = None,
        rows: DeviceArray = None,
    ) -> None:
        self.place, self.values, self._diagonal = device, values, diagonal
        self.kernel, self.rows = kernel, rows

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: Rows,
        device: Device,
        *,
        memory_limit: int | float | str | None = None,
        beside: int = 0,
        n_threads: int = 1,
    ) -> DeviceMatrix:
        """``K(X, X)``, as much of it in memory as fits; parameters as of `kernel_matrix`."""
        n, n_columns = rows.shape
        is_given = kernel.core is None  # by the user, or a function of Python
        turned = rows.nbytes + 8 * n * (n_columns + min(n_columns, _COLUMNS) + 64)
        needed = beside + (8 * n * n if is_given else turned)
        limit = device.limit(memory_limit)
        if needed > limit:
            what = "their matrix" if is_given else f"{n_columns} features, dense and in double"
            raise MemoryError(
                f"a kernel of {n} rows takes {describe_bytes(needed)} on {device!r}, {what}, where "
                f"{describe_bytes(limit)} are free or allowed by memory_limit; train on fewer "
                "rows, or with device='cpu'"
            )
        if is_given:
            host = kernel_matrix(kernel, rows, n_threads=n_threads)
            if not isinstance(host, StoredMatrix):
                what = f"the matrix of a function of {n} rows"
                raise too_small(None, what, stored_bytes(kernel, n), "train on fewer rows")
            return cls(device, _mirrored(device, device.put(host.values)), host.diagonal)
        there, X = DeviceKernel(kernel, device), turn_rows(rows, device)
        room = min(limit - needed, device.limit(None) - beside)
        n_stored = max(0, min(n, room // (8 * n)))
        values = there.matrix(X[:, :n_stored], X)
        matrix = cls(device, values, kernel.diagonal(rows, n_threads), there, X)
        kernel.check_finite(matrix.product(np.ones(n)))  # which all entries have a part in
        return matrix

    @property
    def n(self) -> int:
        return len(self._diagonal)

    @property
    def diagonal(self) -> Array:
        return self._diagonal

    def product(self, v: Array) -> Array:
        device, n_stored = self.place, len(self.values)
        there, found = device.put(v), np.empty(self.n)
        step = max(1, _PIECE // self.n)
        for begin in range(0, n_stored, step):
            part = slice(begin, min(begin + step, n_stored))
            found[part] = device.get(device.product(self.values[part], there))
        if self.kernel is not None and n_stored < self.n:
            rest = self.rows[:, n_stored:]
            found[n_stored:] = self.kernel.product(rest, self.rows, there)
        return found

    def columns(self, index: Array) -> DeviceArray:
        with self.place.current():
            if self.kernel is None:
                return self.values[index].T
            return self.kernel.matrix(self.place.put(self.rows[:, index]), self.rows).T

    def submatrix(self, index: Array) -> DeviceMatrix:
        """Stored if the whole is."""
        device, n = self.place, len(index)
        n_stored = n if len(self.values) == self.n else 0
        values, step = device.empty((n_stored, n)), max(1, _PIECE // (8 * self.n))
        with device.current():
            for begin in range(0, n_stored, step):
                part = slice(begin, begin + step)
                values[part] = self.values[index[part]][:, index]
            rows = None if self.rows is None else device.put(self.rows[:, index])
        return DeviceMatrix(device, values, self.diagonal[index], self.kernel, rows)


def _mirrored(device: Device, Q: DeviceArray) -> DeviceArray:
    """What is above the diagonal copied to below it: of what is given, the host reads no more."""
    xp, step = device.xp, max(1, _PIECE // (8 * len(Q)))
    with device.current():
        for begin in range(0, len(Q), step):
            part = slice(begin, begin + step)
            square = xp.triu(Q[part, part])
            Q[part, part] = square + xp.triu(square, 1).T
            Q[part, :begin] = Q[:begin, part].T
    return Q


def score_rows(
    kernel: Kernel, rows: DeviceRows, support: Rows, coef: Array, factors: Array | None
) -> Array:
    """``K(X D, support) coef`` on the host, for rows on a device that D = diag(factors) scales."""
    device, there = rows.device, DeviceKernel(kernel, rows.device)
    (n, n_columns), dtype = rows.shape, rows.dtype
    B, v = turn_rows(support, device), device.put(coef)
    scores, step = np.empty(n), max(1, _BLOCK_BYTES // (8 * n_columns * _TILE)) * _TILE
    for begin in range(0, n, step):
        part = np.arange(begin, min(begin + step, n))
        A = turn_rows(rows, device, part)
        if factors is not None:
            with device.current():
                A = (A * device.put(factors)[:, None]).astype(dtype).astype(np.float64)
        if not device.is_finite(A):
            raise ValueError(
                f"Input X has NaN or infinity in rows {begin} to {part[-1]}, as they are scaled; "
                "linrank needs finite values: drop such rows or fill them in"
            )
        scores[part] = there.product(A, B, v)
    kernel.check_finite(scores)
    return scores
