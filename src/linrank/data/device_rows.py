"""Rows on a CUDA device: products for losses that are there too, and for those of the host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from linrank.data.rows import (
    Array,
    ColumnStatistics,
    CsrRows,
    DenseRows,
    Extents,
    Rows,
    Scan,
    StreamedRows,
    rounding_of,
)
from linrank.system.device import Device, DeviceArray, as_device_array, device_of
from linrank.system.resources import cached_property

_THREADS = 256
_WARP = 32
_HELD = 4096  # weights that a block keeps in shared memory
_PIECE = 2048  # entries of a column that one warp adds up
_TAKEN = 28  # bytes beside its value while an entry is copied
_SCANNED = ("weight", "mean", "spread", "low", "high", "square", "largest", "nonzero", "missing")


def on_device(rows: Any, device: Device) -> DeviceRows:
    """Rows of the host, copied to a device and kept with them; or rows that are there already."""
    if isinstance(rows, DeviceRows):
        if rows.device is not device:
            raise ValueError(f"device={device!r}, but the rows are {rows.describe()}")
        return rows

    def copied() -> DeviceRows:
        device.check_fits(rows.nbytes, f"rows {rows.describe()}")
        values = device.put(rows.values)
        if not isinstance(rows, CsrRows):
            return DeviceDenseRows(device, values)
        structure = device.put(rows.columns), device.put(rows.offsets)
        return DeviceCsrRows(device, values, *structure, rows.n_columns)

    return device.once(rows, copied)


def rows_of_device_array(X: Any) -> DeviceRows:
    """A matrix that lies on a device as rows, in place where its type and layout allow."""
    if isinstance(X, DeviceRows):
        return X
    xp = device_of("cuda").xp
    if type(X).__module__.startswith("cupyx.scipy.sparse"):
        csr = X.tocsr()
        csr.sum_duplicates()
        device, values = as_device_array(csr.data)
        values = _as_float(device, values)
        offsets = device.put(csr.indptr, np.int64)
        return DeviceCsrRows(
            device, values, device.put(csr.indices, np.int32), offsets, csr.shape[1]
        )
    device, values = as_device_array(X)
    if values.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {values.ndim}D array instead (shape {values.shape}); a matrix "
            "has a row for each item"
        )
    for size, what in zip(values.shape, ("sample", "feature"), strict=True):
        if size < 1:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={values.shape}) "
                "while a minimum of 1 is required."
            )
    values = _as_float(device, values)
    if (
        values.strides[1] != values.itemsize
        or values.strides[0] % values.itemsize
        or values.strides[0] < 0
    ):
        with device.current():
            values = xp.ascontiguousarray(values)
    return DeviceDenseRows(device, values)


def _as_float(device: Device, values: DeviceArray) -> DeviceArray:
    """Values of float32 or float64: float16 becomes float32, integers and booleans float64."""
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind not in "fiub":
        raise ValueError(f"X must be a matrix of real numbers, got the type {values.dtype}")
    with device.current():
        return values.astype(np.float32 if values.dtype == np.float16 else np.float64)


class DeviceRows(StreamedRows):
    """Rows on a device; to losses of the host they are rows that are elsewhere."""

    device: Device
    values: DeviceArray
    offsets: DeviceArray  # of CSR
    hessian_price = 12  # by columns, as many products; a Cholesky factor is made on the host

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.values.dtype)

    @property
    def capacity(self) -> int:
        return self.shape[0]

    @property
    def type(self) -> str:
        return "f32" if self.dtype == np.float32 else "f64"

    def _launch(
        self, name: str, grid: Any, *arguments: Any, block: int = _THREADS, shared: int = 0
    ) -> None:
        self.device.launch("rows", name, grid, block, *arguments, shared=shared)

    # ---- products with vectors of the host -------------------------------------------------------

    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        return self.device.get(self.score(w, self._positions(order)))

    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        return self.add(self.device.put(r), self._positions(order))

    def _positions(self, order: Array | None) -> DeviceArray | None:
        return None if order is None else self.device.put(order, np.int32)

    def score_matrix(self, coefs: Array, n_threads: int) -> Iterator[DeviceArray]:
        """The scores of one model after the other, on the device: a matrix might not fit there."""
        return (self.score(coef, None) for coef in coefs)

    # ---- products with vectors of the device -----------------------------------------------------

    @abstractmethod
    def take(self, index: Array | slice) -> DeviceRows:
        """Some of the rows, on the device too."""

    def _check_copy(self, n_bytes: int, n_rows: int) -> None:
        self.device.check_fits(n_bytes, f"a copy of {n_rows:,} of the rows {self.describe()}")

    @abstractmethod
    def score(self, w: Array, order: DeviceArray | None) -> DeviceArray:
        """``X w`` by position."""

    @abstractmethod
    def add(self, r: DeviceArray, order: DeviceArray | None) -> Array:
        """``Xᵀ r``, r by position, on the host."""

    @abstractmethod
    def diagonal(self, queries: Any, degree: DeviceArray, curvature: float) -> Array:
        """An estimate of the diagonal of ``Xᵀ∇²L X`` from the weight of each row's pairs.

        As that of the core: each query counts as if all its rows were compared with each other.
        """

    @abstractmethod
    def turn(self, order: DeviceArray | None, n: int, begin: int, end: int) -> DeviceArray:
        """The columns [begin, end) of n positions in double, one after the other."""

    # ---- what is known of the columns ------------------------------------------------------------

    def scan(self, weight: Array | None = None, n_threads: int = 1) -> Scan:
        """What a pass over the rows finds, but for a checksum; kept for who asks again."""
        known, scan = self.__dict__.get("_scan", (None, None))
        if scan is None or known is not weight:
            scan = self._measure(weight)
            self.__dict__["_scan"] = weight, scan
        found: Scan = scan
        return found

    @abstractmethod
    def _measure(self, weight: Array | None) -> Scan:
        """The same, measured."""

    @abstractmethod
    def without_scan(self) -> DeviceRows:
        """The same rows without what a scan has found."""

    def statistics(self, weight: Array | None) -> ColumnStatistics:
        return self.scan(weight).statistics

    def extents(self, n_threads: int = 1) -> Extents:
        known, _ = self.__dict__.get("_scan", (None, None))
        return self.scan(known).extents

    def is_finite(self, weight: Array | None, n_threads: int) -> bool:
        """Whether no value is NaN or infinite."""
        scan = self.scan(weight)
        return bool(not scan.n_missing.any() and np.isfinite(scan.extents.largest).all())

    def first_bad_row(self) -> tuple[int, Rows]:
        """The first row with a value that is NaN or infinite, and its number; or row 0."""
        xp = self.device.xp
        with self.device.current():
            entry = int(xp.argmin(xp.isfinite(self.values).ravel()))
        row = entry // self.shape[1]
        if self.is_sparse:
            row = int(np.searchsorted(self.device.get(self.offsets), entry, side="right")) - 1
        return row, self.stored(slice(row, row + 1), 1)


class DeviceDenseRows(DeviceRows):
    """A dense matrix of float32 or float64, unit stride inside a row."""

    def __init__(self, device: Device, values: DeviceArray) -> None:
        self.device = device
        self.values = values
        size = values.dtype.itemsize
        self._stride = int(values.strides[0]) // size if values.shape[0] > 1 else values.shape[1]
        pack = 16 // size
        self.is_wide = int(self._stride % pack == 0 and values.data.ptr % 16 == 0)
        self.packs = -(-values.shape[1] // (pack if self.is_wide else 1))

    def to_user(self) -> DeviceArray:
        return self.values

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self.values.shape[0]), int(self.values.shape[1]))

    def describe(self) -> str:
        return f"dense {self.dtype}, {self.shape[0]} × {self.shape[1]}, on {self.device!r}"

    def given(self, order: DeviceArray | None) -> tuple[Any, ...]:
        return self.values, self._stride, self.shape[1], order

    def _n(self, order: DeviceArray | None) -> int:
        return self.shape[0] if order is None else len(order)

    def score(self, w: Array, order: DeviceArray | None) -> DeviceArray:
        n, n_columns = self._n(order), self.shape[1]
        z = self.device.empty(n)
        holds = int(n_columns <= _HELD)
        grid = min(2 * self.device.n_blocks, -(-n * 8 // _THREADS))
        given = n, self.is_wide, holds, self.device.put(w), z
        self._launch(
            f"score_{self.type}", grid, *self.given(order), *given, shared=8 * n_columns * holds
        )
        return z

    def add(self, r: DeviceArray, order: DeviceArray | None) -> Array:
        n, n_columns = self._n(order), self.shape[1]
        n_parts = max(1, min(self.device.n_blocks, n // 16))
        parts = self.device.empty((n_parts, n_columns))
        grid = n_parts, -(-self.packs // _THREADS)
        self._launch(
            f"add_{self.type}",
            grid,
            *self.given(order),
            n,
            self.is_wide,
            r,
            parts,
            shared=_THREADS * 32,
        )
        return self.sum_parts(parts)

    def sum_parts(self, parts: DeviceArray, factor: float = 1.0) -> Array:
        """The sum of vectors by column, on the host."""
        n_parts, n_columns = parts.shape
        out = self.device.empty(n_columns)
        given = n_parts, n_columns, factor, parts, out
        self._launch("sum_parts", -(-n_columns // _WARP), *given, block=_WARP * _WARP)
        return self.device.get(out)

    def diagonal(self, queries: Any, degree: DeviceArray, curvature: float) -> Array:
        chunks, degrees = queries.chunks(self.device.n_blocks), queries.sums(degree)
        parts = self.device.empty((len(chunks) - 1, self.shape[1]))
        given = chunks, queries.offsets, degree, degrees, parts
        self._launch(f"diagonal_{self.type}", len(chunks) - 1, *self.given(queries.order), *given)
        return np.maximum(self.sum_parts(parts, curvature), 0.0)

    def turn(self, order: DeviceArray | None, n: int, begin: int, end: int) -> DeviceArray:
        out = self.device.empty((end - begin, n))
        grid = -(-n // _THREADS), end - begin
        self._launch(f"turn_{self.type}", grid, *self.given(order), n, begin, out)
        return out

    def stored(self, index: Array | slice, n_threads: int) -> DenseRows:
        return DenseRows(self.device.get(self.take(index).values))

    def take(self, index: Array | slice) -> DeviceDenseRows:
        kept: Any = index
        if not isinstance(index, slice):
            kept = np.flatnonzero(index) if index.dtype == bool else index
            self._check_copy(len(kept) * self.shape[1] * self.dtype.itemsize, len(kept))
            kept = self.device.put(kept)
        with self.device.current():
            return DeviceDenseRows(self.device, self.device.xp.ascontiguousarray(self.values[kept]))

    def without_scan(self) -> DeviceDenseRows:
        return DeviceDenseRows(self.device, self.values)

    def less(self, by_column: Array) -> DeviceDenseRows:
        """The rows less a number for each column."""
        with self.device.current():
            return DeviceDenseRows(
                self.device, self.values - self.device.put(by_column, self.dtype)
            )

    def _measure(self, weight: Array | None) -> Scan:
        n, n_columns = self.shape
        n_parts = max(1, min(2 * self.device.n_blocks, n // 64))
        found = self.device.empty((n_parts, len(_SCANNED), n_columns))
        given = None if weight is None else self.device.put(weight)
        self._launch(f"scan_{self.type}", n_parts, *self.given(None), n, given, found)
        merged = self.device.empty((-(-n_parts // _WARP), *found.shape[1:]))
        grid = -(-n_columns // _THREADS), len(merged)
        self._launch("merge_scans", grid, n_parts, n_columns, found, merged)
        parts = dict(zip(_SCANNED, np.swapaxes(self.device.get(merged), 0, 1), strict=True))
        total = float(n) if weight is None else float(weight.sum())
        longest = n_columns, -(-n // self.device.n_blocks) + self.device.n_blocks + 16
        return _scan_of(parts, None, n, total, longest)


class DeviceCsrRows(DeviceRows):
    """A sparse matrix by rows, and, from the first use on, by columns."""

    is_sparse: ClassVar[bool] = True

    def __init__(
        self,
        device: Device,
        values: DeviceArray,
        columns: DeviceArray,
        offsets: DeviceArray,
        n_columns: int,
    ) -> None:
        self.device = device
        self.values = values
        self.columns = columns
        self.offsets = offsets
        self.n_columns = n_columns

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.offsets) - 1, self.n_columns)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.columns.nbytes + self.offsets.nbytes)

    def describe(self) -> str:
        share = 100.0 * len(self.values) / max(1, self.shape[0] * self.shape[1])
        return (
            f"CSR {self.dtype}, {self.shape[0]} × {self.shape[1]}, {share:.2g} % non-zero, "
            f"on {self.device!r}"
        )

    def given(self, order: DeviceArray | None) -> tuple[Any, ...]:
        return self.values, self.columns, self.offsets, order

    @cached_property
    def _by_column(self) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray, Array]:
        """By column: the place of each entry in CSR and its row; pieces, first of each column."""
        device, xp = self.device, self.device.xp
        offsets, columns = device.get(self.offsets), device.get(self.columns)
        with device.current():
            entry = xp.argsort(self.columns, kind="stable").astype(np.int64)
            rows = device.put(np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(offsets)))
            rows = rows[entry]
        counts = np.bincount(columns, minlength=self.n_columns)
        pieces_of = -(-counts // _PIECE)
        first = np.concatenate([[0], np.cumsum(pieces_of)]).astype(np.int64)
        starts = np.repeat(np.cumsum(counts) - counts, pieces_of)
        starts += _PIECE * (np.arange(first[-1]) - np.repeat(first[:-1], pieces_of))
        pieces = np.append(starts, len(columns)).astype(np.int64)
        return entry, rows, device.put(pieces), device.put(first), first

    def _pieces(self, name: str, *arguments: Any, by_warp: bool, factor: float = 1.0) -> Array:
        """The sums over the pieces that a kernel finds, added up by column."""
        entry, rows, pieces, first, _ = self._by_column
        n_pieces = len(pieces) - 1
        parts, out = self.device.zeros(max(1, n_pieces)), self.device.empty(self.n_columns)
        grid = -(-n_pieces * (_WARP if by_warp else 1) // _THREADS)
        given = self.values, entry, rows, pieces, n_pieces, *arguments, parts
        self._launch(f"{name}_{self.type}", grid, *given)
        self._launch(
            "sum_pieces", -(-self.n_columns // _THREADS), first, self.n_columns, factor, parts, out
        )
        return self.device.get(out)

    def _by_row(self, by_position: DeviceArray, order: DeviceArray | None) -> DeviceArray:
        """Numbers by row from those by position; 0 for rows without one."""
        if order is None:
            return by_position
        found = self.device.zeros(self.shape[0], by_position.dtype)
        with self.device.current():
            found[order] = by_position
        return found

    def score(self, w: Array, order: DeviceArray | None) -> DeviceArray:
        n = self.shape[0] if order is None else len(order)
        z = self.device.empty(n)
        grid = min(16 * self.device.n_blocks, -(-n * _WARP // _THREADS))
        self._launch(f"score_csr_{self.type}", grid, *self.given(order), n, self.device.put(w), z)
        return z

    def add(self, r: DeviceArray, order: DeviceArray | None) -> Array:
        return self._pieces("add_columns", self._by_row(r, order), by_warp=True)

    def diagonal(self, queries: Any, degree: DeviceArray, curvature: float) -> Array:
        degrees = queries.sums(degree)
        given = (
            self._by_row(degree, queries.order),
            self._by_row(queries.query, queries.order),
            degrees,
        )
        return np.maximum(
            self._pieces("diagonal_columns", *given, by_warp=False, factor=curvature), 0.0
        )

    def turn(self, order: DeviceArray | None, n: int, begin: int, end: int) -> DeviceArray:
        out = self.device.zeros((end - begin, n))
        self._launch(
            f"turn_csr_{self.type}",
            -(-n * _WARP // _THREADS),
            *self.given(order),
            n,
            begin,
            end,
            out,
        )
        return out

    def stored(self, index: Array | slice, n_threads: int) -> Rows:
        taken = self.take(index)
        values, columns, offsets = map(
            self.device.get, (taken.values, taken.columns, taken.offsets)
        )
        return CsrRows(values, columns, offsets, self.n_columns)

    def take(self, index: Array | slice) -> DeviceCsrRows:
        device, xp = self.device, self.device.xp
        kept = device.put(np.arange(self.shape[0])[index])
        with device.current():
            begins = self.offsets[kept]
            ends = xp.cumsum(self.offsets[kept + 1] - begins)
            offsets = xp.concatenate([xp.zeros(1, np.int64), ends])
            n_entries = int(offsets[-1])
            self._check_copy(n_entries * (self.dtype.itemsize + _TAKEN), len(kept))
            entry = xp.arange(n_entries)
            row = xp.searchsorted(ends, entry, side="right")
            entry += (begins - offsets[:-1])[row]
            values, columns = self.values[entry], self.columns[entry]
        return DeviceCsrRows(device, values, columns, offsets, self.n_columns)

    def without_scan(self) -> DeviceCsrRows:
        rows = DeviceCsrRows(self.device, self.values, self.columns, self.offsets, self.n_columns)
        if "_by_column" in self.__dict__:  # nobody may write to the structure
            rows.__dict__["_by_column"] = self._by_column
        return rows

    def _measure(self, weight: Array | None) -> Scan:
        entry, rows, pieces, _, first = self._by_column
        n_pieces, n = len(pieces) - 1, self.shape[0]
        found = self.device.empty((len(_SCANNED), max(1, n_pieces)))
        given = None if weight is None else self.device.put(weight)
        grid = -(-n_pieces // _THREADS)
        self._launch(
            f"scan_columns_{self.type}",
            grid,
            self.values,
            entry,
            rows,
            pieces,
            n_pieces,
            given,
            found,
        )
        parts = dict(zip(_SCANNED, self.device.get(found), strict=True))
        total = float(n) if weight is None else float(weight.sum())
        longest_row = int(np.diff(self.device.get(self.offsets)).max(initial=0))
        longest = longest_row, _PIECE + int(np.diff(first).max(initial=0))
        return _scan_of(parts, first, n, total, longest)


def _scan_of(
    parts: dict[str, Array],
    first: Array | None,
    n_rows: int,
    total: float,
    longest: tuple[int, int],
) -> Scan:
    """What parts have found, put together column by column.

    Parameters
    ----------
    parts : dict of arrays
        Moments: by block of rows and column, or by piece of a column.
    first : int64 array (n_columns + 1,) or None
        The first piece of each column; None of blocks.
    n_rows, total : int, float
        The rows, and their weight: what pieces lack of it has zeros.
    longest : (int, int)
        Additions one after the other behind a score, and behind a slope.
    """
    if first is None:
        fold: Any = lambda ufunc, x, start: ufunc.reduce(x, axis=0)  # noqa: E731
        spread_out: Any = lambda x: x  # noqa: E731
    else:
        held = np.flatnonzero(np.diff(first))

        def fold(ufunc: Any, x: Array, start: float) -> Array:
            found = np.full(len(first) - 1, start)
            found[held] = ufunc.reduceat(x, first[held]) if held.size else 0.0
            return found

        def spread_out(x: Array) -> Array:
            return np.repeat(x, np.diff(first))

    def added(x: Array) -> Array:
        return np.asarray(fold(np.add, x, 0.0))

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weight = added(parts["weight"])
        absent = np.maximum(total - weight, 0.0) if first is not None else np.zeros_like(weight)
        whole = weight + absent
        mean = np.where(whole > 0.0, added(parts["weight"] * parts["mean"]) / whole, 0.0)
        away = parts["mean"] - spread_out(mean)
        spread = added(parts["spread"] + parts["weight"] * away * away) + absent * mean * mean
        variance = np.where(whole > 0.0, spread / whole, 0.0)
        low, high = fold(np.minimum, parts["low"], np.inf), fold(np.maximum, parts["high"], -np.inf)
        zero = np.where(absent > 0.0, 0.0, np.nan)
        norms = np.sqrt(added(parts["square"]))
    rounding = (rounding_of(n_terms) for n_terms in longest)
    return Scan(
        ColumnStatistics(
            total,
            n_rows,
            mean,
            variance,
            np.fmin(low, zero),
            np.fmax(high, zero),
            added(parts["nonzero"]).astype(np.int64),
        ),
        Extents(norms, np.asarray(fold(np.maximum, parts["largest"], 0.0)), *rounding),
        added(parts["missing"]).astype(np.int64),
        None,
    )
