"""Rows: how a matrix is stored, as views that the core reads without a copy."""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from linrank import _core
from linrank.data import frames
from linrank.data.frames import read_only
from linrank.system.device import is_on_device
from linrank.system.resources import cached_property, check_fits, resolve

Array = frames.Array


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """What is known of the columns of some rows; what CSR leaves out counts as 0.

    Moments and ranges are over the rows of positive weight, counts over all rows. A missing value
    (NaN) has no part in moments and ranges.

    Attributes
    ----------
    weight : float
        Total weight ``W = Σ u_i`` of the rows; their number where rows have no weights.
    n_rows : int
        Number of rows.
    mean : float64 array (n_columns,)
        ``Σ u x / W``; 0 where W is 0.
    variance : float64 array (n_columns,)
        ``Σ u (x - mean)² / W``; 0 where W is 0.
    low, high : float64 array (n_columns,)
        Least and largest value; ``inf`` and ``-inf`` where W is 0.
    n_nonzero : int64 array (n_columns,)
        Values other than 0.
    """

    weight: float
    n_rows: int
    mean: Array
    variance: Array
    low: Array
    high: Array
    n_nonzero: Array

    @property
    def n_columns(self) -> int:
        return len(self.mean)

    @classmethod
    def empty(cls, n_columns: int) -> ColumnStatistics:
        """The statistics of no row: merging them changes nothing."""
        zeros, infinity = np.zeros(n_columns), np.full(n_columns, np.inf)
        return cls(0.0, 0, zeros, zeros, infinity, -infinity, np.zeros(n_columns, np.int64))

    @classmethod
    def of(cls, rows: Rows, weight: Array | None = None, n_threads: int = 1) -> ColumnStatistics:
        """The statistics of a block of rows; the same bits on any number of threads.

        Parameters
        ----------
        rows : DenseRows or CsrRows
            A block of rows; no row at all is allowed.
        weight : float64 array (n_rows,) or None
            A row of weight 2 counts as two rows, one of weight 0 as none.
        n_threads : int
            Threads of the pass over the rows.

        Examples
        --------
        >>> from linrank.data.rows import DenseRows
        >>> found = ColumnStatistics.of(DenseRows(np.array([[0.0, 1.0], [4.0, 1.0]])))
        >>> print(found.weight, found.mean, found.variance, found.low, found.high, found.n_nonzero)
        2.0 [2. 1.] [4. 0.] [0. 1.] [4. 1.] [1 2]
        """
        return Scan.of(rows, weight, n_threads).statistics

    def of_first(self, n_columns: int) -> ColumnStatistics:
        """The statistics of the first columns only."""
        return self.of_columns(slice(n_columns))

    def of_columns(self, columns: slice | Array) -> ColumnStatistics:
        """The statistics of some columns."""
        return self._map(lambda values: values[columns])

    def mask(self, kept: Array) -> ColumnStatistics:
        """The statistics of some columns, 0 in the place of the others."""
        return self._map(lambda values: np.where(kept, values, 0))

    def widen(self, n_columns: int) -> ColumnStatistics:
        """The same rows with more columns, in which all of them are 0."""
        n_new = n_columns - self.n_columns
        if n_new < 0:
            raise ValueError(f"n_columns must be at least {self.n_columns}, got {n_columns}")
        # Without weight no value counts, not even these.
        edge = 0.0 if self.weight > 0.0 else np.inf

        def append(values: Array, value: float) -> Array:
            return np.append(values, np.full(n_new, value, values.dtype))

        return replace(
            self,
            mean=append(self.mean, 0.0),
            variance=append(self.variance, 0.0),
            low=append(self.low, edge),
            high=append(self.high, -edge),
            n_nonzero=append(self.n_nonzero, 0),
        )

    def _map(self, change: Callable[[Array], Array]) -> ColumnStatistics:
        """The same rows, every array of numbers by column changed alike."""
        columns = (self.mean, self.variance, self.low, self.high, self.n_nonzero)
        return ColumnStatistics(self.weight, self.n_rows, *map(change, columns))

    def __add__(self, other: ColumnStatistics) -> ColumnStatistics:
        """The statistics of the rows of both; the order of merging decides the last bits."""
        if self.n_columns != other.n_columns:
            raise ValueError(
                f"statistics of {self.n_columns} columns do not merge with those of "
                f"{other.n_columns}; all blocks of a data set need the same columns"
            )
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0.0 else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            shift = other.mean - self.mean
            mean = self.mean + share * shift
            # var = ((1 - s) var_a + s var_b) + s (1 - s) δ², s = W_b / W: the formula above over W.
            variance = (1.0 - share) * self.variance + share * other.variance
            variance += share * (1.0 - share) * shift * shift
        return ColumnStatistics(
            weight,
            self.n_rows + other.n_rows,
            mean,
            variance,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.n_nonzero + other.n_nonzero,
        )


_OWN = "_linrank_indices"  # attribute of a matrix whose indices are those of rows, while they are
_BLOCK_BYTES = 1 << 22  # of rows that are looked at at a time
UNIT = 2.0**-53  # of rounding
_CLOSE = 2.0**-10  # share of themselves in which the values of a column differ that has an offset
_SPARE = 128  # roundings of what goes into a product and is made of it


def rounding_of(n_terms: int) -> float:
    """By what share of the sum of their sizes a sum of so many products may be off."""
    return (n_terms + _SPARE) * UNIT


@dataclass(frozen=True, eq=False)
class Extents:
    """How large the columns of a matrix are, and how exact that makes its products.

    With ``ρ_z`` and ``ρ_g`` the two roundings, scores ``Xw`` are off by at most ``ρ_z |x_i|·|w|``,
    and so by no more than ``ρ_z largest·|w|``, slopes ``Xᵀr`` by at most ``ρ_g norms_j ‖r‖``: a sum
    of n products is off by at most n + 1 units of rounding of the sum of their sizes.
    """

    norms: Array  # ‖x_j‖
    largest: Array  # max |x_ij|
    score_rounding: float  # ρ_z
    slope_rounding: float  # ρ_g

    def loss_error(self, size: Array, weight: float, steepness: float | None) -> float:
        """By how much the rounding of scores may change a loss of them.

        They are sums of products with vectors of sizes ``size`` in all, so that none is off by more
        than ``η = ρ_z largest·size``. A loss whose slopes have the norm ``steepness`` then changes
        by no more than ``ρ_z norms·size`` times that, and ``4 weight η²``; one with a kink, where
        that is None, by ``2 weight η``.
        """
        is_there = size > 0.0  # and what is infinite counts nothing where it is not
        eta = self.score_rounding * float(self.largest[is_there] @ size[is_there])
        if steepness is None:
            return 2.0 * weight * eta
        first = steepness * self.score_rounding * float(self.norms[is_there] @ size[is_there])
        return first + 4.0 * weight * eta * eta

    def slope_error(self, steepness: float, error: float) -> Array:
        """The rounding of ``Xᵀr`` for slopes r of norm ``steepness`` that are off by ``error``."""
        return (self.slope_rounding * steepness + error) * self.norms

    def __add__(self, other: Extents) -> Extents:
        """Of the rows of both, as parts of one sum."""
        return Extents(
            np.hypot(self.norms, other.norms),
            np.maximum(self.largest, other.largest),
            max(self.score_rounding, other.score_rounding),
            max(self.slope_rounding, other.slope_rounding) + UNIT,
        )


def entries_of(rows: Any) -> float:
    """Entries of a row, of float32 and an index of 32 bits; wider ones count more."""
    return float(rows.nbytes / (8 if rows.is_sparse else 4) / max(1, rows.shape[0]))


class Priced:
    """Rows that know what an explicit Hessian costs."""

    shape: Any

    @property
    def hessian_price(self) -> int:
        """Its cost in Hessian products; the ns per row were fitted to timings."""
        n: int = self.shape[1]
        product = 12 + (1.5 if self.is_sparse else 0.35) * entries_of(self)  # type: ignore[attr-defined]
        return max(1, round((100 + n * n / 60) / product))


@dataclass(frozen=True, eq=False)
class Scan:
    """All that is asked of rows before training, found in one pass over them.

    Attributes
    ----------
    statistics : ColumnStatistics
        Moments, ranges and counts, of rows of the weights given.
    extents : Extents
        Sizes of the columns; not finite where a value is infinite, or its square.
    n_missing : int64 array (n_columns,)
        Values that are NaN.
    checksum : int or None
        CRC-32C of the shape and of the values, row by row; of CSR, of offsets, columns and values.
    """

    statistics: ColumnStatistics
    extents: Extents
    n_missing: Array
    checksum: int | None

    @classmethod
    def of(cls, rows: Rows, weight: Array | None, n_threads: int) -> Scan:
        """Scan the rows; the same bits on any number of threads."""
        found = _core.scan_columns(rows.core, weight, n_threads)
        n_rows = rows.shape[0]
        total = float(n_rows) if weight is None else float(weight.sum())
        rounding = map(rounding_of, _core.longest_sums(rows.core))
        moments = (found[name] for name in ("mean", "variance", "low", "high", "n_nonzero"))
        return cls(
            ColumnStatistics(total, n_rows, *moments),
            Extents(found["norms"], found["largest"], *rounding),
            found["n_missing"],
            found["checksum"],
        )


class Stored(Priced):
    """What rows in memory have in common: their products, and how exact these are."""

    core: Any
    device: ClassVar[Any] = None
    values: Array
    __dict__: dict[str, Any]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = tuple(getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]
        return type(self), arrays  # without what is cached

    def scan(self, weight: Array | None = None, n_threads: int = 1) -> Scan:
        """What a pass over the rows finds, kept for those who ask for the same weights again.

        The owner of the values may write to them, so a fit begins with `without_scan` rows.
        """
        scan: Scan | None
        known, scan = self.__dict__.get("_scan", (None, None))
        if scan is None or known is not weight:
            scan = Scan.of(self, weight, n_threads)  # type: ignore[arg-type]
            self.__dict__["_scan"] = weight, scan
        return scan

    def without_scan(self) -> Any:
        """The same rows without what a scan has found."""
        rows = copy.copy(self)  # of the arrays alone
        if "core" in self.__dict__:  # whose check of columns stands: nobody may write to these
            rows.__dict__["core"] = self.core
        return rows

    @cached_property
    def by_column(self) -> Any:
        """The same matrix by columns, a copy made on first use and kept."""
        return _core.columns(self.core, None, 1)

    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        """``X w`` by position: position t is row ``order[t]``, or row t where order is None."""
        return _core.scores(self.core, w, order, n_threads)

    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        """``Xᵀ r``, r by position."""
        return _core.gradient(self.core, r, order, n_threads)

    def extents(self, n_threads: int = 1) -> Extents:
        """How large the columns are, found once: not finite where a value is not, or its square."""
        weight, _ = self.__dict__.get("_scan", (None, None))  # any will do
        return self.scan(weight, n_threads).extents

    def is_finite(self, weight: Array | None, n_threads: int) -> bool:
        """Whether no value is NaN or infinite, by a scan of rows of these weights."""
        scan = self.scan(weight, n_threads)
        if scan.n_missing.any():
            return False
        if np.isfinite(scan.extents.norms).all():
            return True
        return _core.first_non_finite(self.core, n_threads) is None


@dataclass(frozen=True, eq=False)
class DenseRows(Stored):
    """A dense matrix: float32 or float64, unit stride inside a row, any stride between rows."""

    values: Array
    is_sparse: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        return (int(self.values.shape[0]), int(self.values.shape[1]))

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    @cached_property
    def core(self) -> Any:
        """The view that kernels take."""
        return _core.dense_rows(self.values)

    def to_user(self) -> Array:
        """Return the matrix as a NumPy array, not a copy."""
        return self.values

    def by_entry(self, by_column: Array) -> Array:
        """What ``values`` are to be combined with, from a number for each column."""
        return by_column

    def take(self, index: Array | slice) -> DenseRows:
        """Return the rows of ``index``: a view for a slice forwards, else a copy."""
        return DenseRows(_by_rows(self.values[index]))

    def describe(self) -> str:
        """Storage and size in words, as in ``dense float32, 9630 × 46``."""
        return f"dense {self.dtype}, {self.shape[0]} × {self.shape[1]}"


@dataclass(frozen=True, eq=False)
class CsrRows(Stored):
    """A sparse matrix by rows: row i has ``values[k]`` in column ``columns[k]``, k from
    ``offsets[i]`` to ``offsets[i+1]``. Columns increase strictly within a row, in 32 bits each.

    The core checks columns and offsets once and then trusts them, so nobody else may write to them:
    `as_rows` copies those of its caller, and both are shown as read-only.
    """

    values: Array
    columns: Array
    offsets: Array
    n_columns: int
    is_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", read_only(narrow_columns(self.columns)))
        object.__setattr__(self, "offsets", read_only(self.offsets))

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.offsets) - 1, self.n_columns)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.columns.nbytes + self.offsets.nbytes)

    @cached_property
    def core(self) -> Any:
        """The view that kernels take; building it checks offsets and columns."""
        return _core.csr_rows(self.values, self.columns, self.offsets, self.n_columns)

    def to_user(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` that shares values and columns.

        The columns are read-only, and known again where the matrix comes back.
        """
        from scipy.sparse import csr_array

        # The constructor may convert the indices to the narrowest type, a copy; attributes do not.
        # SciPy wants one type for both index arrays, so the short one (offsets) gives way.
        fits = len(self.values) <= np.iinfo(np.int32).max
        columns = self.columns if fits else self.columns.astype(np.int64)
        matrix: Any = csr_array(self.shape, dtype=self.dtype)
        matrix.data, matrix.indices = self.values, columns
        setattr(matrix, _OWN, columns)
        matrix.indptr = self.offsets.astype(columns.dtype, copy=False)
        return matrix

    def by_entry(self, by_column: Array) -> Array:
        """What ``values`` are to be combined with, from a number for each column."""
        return by_column[self.columns]

    def take(self, index: Array | slice) -> CsrRows:
        """Return the rows of ``index``: views for a slice of step 1, else copies."""
        offsets, values, columns = take_spans(self.offsets, index, self.values, self.columns)
        return CsrRows(values, columns, offsets, self.n_columns)

    def describe(self) -> str:
        """Storage, size and density in words, as in ``CSR float32, 1000 × 50, 4.1 % non-zero``."""
        n_rows, n_columns = self.shape
        share = 100.0 * len(self.values) / max(1, n_rows * n_columns)
        return f"CSR {self.dtype}, {n_rows} × {n_columns}, {share:.2g} % non-zero"


Rows = DenseRows | CsrRows


def narrow_columns(columns: Array) -> Array:
    """The columns of entries in 32 bits, a copy where they have more."""
    narrow = columns.astype(np.int32, copy=False)
    if narrow is not columns and not np.array_equal(narrow, columns):
        raise ValueError(
            "a column index is out of range: rows have at most 2,147,483,647 columns, 0 to "
            f"{2**31 - 2:,}; hash features into fewer"
        )
    return narrow


def join_offsets(parts: Sequence[Array]) -> Array:
    """Offsets of consecutive parts, each from 0, as offsets of the whole."""
    sizes = [np.diff(part) for part in parts]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def take_spans(offsets: Array, index: Any, *arrays: Array) -> tuple[Array, ...]:
    """Offsets and elements of some rows, where row i has ``offsets[i]`` to ``offsets[i+1]`` of
    each array; views for a slice of step 1, else copies.

    Examples
    --------
    >>> take_spans(np.array([0, 2, 3]), [1, 0], np.array([7, 8, 9]))
    (array([0, 1, 3]), array([9, 7, 8]))
    """
    n_rows = len(offsets) - 1
    if isinstance(index, slice):
        start, stop, step = index.indices(n_rows)
        if step == 1:
            kept = offsets[start : max(start, stop) + 1]
            return kept - kept[0], *(array[kept[0] : kept[-1]] for array in arrays)
    rows = np.ascontiguousarray(np.arange(n_rows)[index])
    ends = np.concatenate([[0], np.cumsum(offsets[rows + 1] - offsets[rows])])
    places, found = np.ascontiguousarray(offsets, np.int64), []
    for array in arrays:
        taken = np.empty(int(ends[-1]), array.dtype)
        source = np.ascontiguousarray(array).view(np.uint8)
        _core.gather_spans(source, array.itemsize, places, rows, taken.view(np.uint8))
        found.append(taken)
    return ends, *found


def as_rows(X: Any, *, n_jobs: int | None = None, check: str = "finite") -> Rows:
    """Return a matrix as rows, checked, without a copy where its layout allows.

    Parameters
    ----------
    X : array, scipy.sparse matrix or array, pandas, polars or pyarrow table
        2-D, real, finite, at least one row and one column. float32 and float64 stay what they
        are; float16 becomes float32, integers and booleans become float64. C-ordered arrays and
        the values of canonical CSR are used in place, its indices copied: were they written to
        later, by a callback or another thread, the core would read and write out of bounds.
        Anything else is copied once.
    n_jobs : int, optional
        Threads of the check for NaN and infinity; None uses all cores.
    check : {"finite", "missing", "later"}
        ``"missing"`` lets NaN pass, ``"later"`` everything: the caller looks at what comes of it.

    Raises
    ------
    TypeError, ValueError
        With the row and the column of the first value at fault, where there is one.
    """
    if isinstance(X, (DenseRows, CsrRows)):
        return X
    if is_on_device(X) or isinstance(X, StreamedRows):
        from linrank.data.device_rows import rows_of_device_array  # few have a device

        found: Any = rows_of_device_array(X)
        return found
    sparse = sys.modules.get("scipy.sparse")  # not loaded: X cannot be one of its matrices
    if sparse is not None and sparse.issparse(X):
        rows: Rows = _from_sparse(X)
    elif frames.is_frame(X):
        coo = frames.sparse_part(X)
        rows = DenseRows(_by_rows(frames.to_matrix(X))) if coo is None else _from_sparse(coo)
    else:
        rows = DenseRows(_by_rows(_from_array(X)))
    _check_size(rows)
    rows = _canonical(rows, resolve(n_jobs))
    if check != "later":
        check_values(rows, frames.column_names(X), missing=check == "missing", n_jobs=n_jobs)
    return rows


def without_offsets(rows: Rows) -> Rows:
    """The rows less what is common to all values of a column, where that is most of them.

    Pairs of rows see no offset, but products do: of a time stamp, or an id, its size drowns what
    differs from row to row. Less a value of the column, which is exact where values are so close,
    nothing of it is left. Only columns whose values agree in three digits or more count, and of
    those that are the same everywhere only ones that dwarf the others: the rest are as good as they
    are, and the same rows come back without a copy.

    Examples
    --------
    >>> rows = DenseRows(np.array([[1e9 + 1, 1.0], [1e9 + 3, 5.0], [1e9 + 2, 0.0]]))
    >>> without_offsets(rows).to_user().tolist()
    [[0.0, 1.0], [2.0, 5.0], [1.0, 0.0]]
    """
    n_rows, n_columns = rows.shape
    if isinstance(rows, CsrRows) and len(rows.values) < n_rows:
        return rows  # no column is full
    some: Any = rows.take(np.array([0, n_rows // 2, n_rows - 1])).to_user()
    sample = np.asarray(some.toarray() if rows.is_sparse else some, dtype=np.float64)
    offset, close = sample[0], _CLOSE * np.abs(sample[0])
    is_close = (offset != 0.0) & (np.abs(sample - offset).max(axis=0) <= close)
    columns = np.flatnonzero(is_close)
    if columns.size == 0:
        return rows
    found = Scan.of(rows, None, 1).statistics
    spread = found.high[columns] - found.low[columns]
    others = float(np.abs(sample[:, ~is_close]).max(initial=1.0))
    dwarfs = np.abs(offset[columns]) > others / _CLOSE
    is_offset = (spread <= close[columns]) & ((spread > 0.0) | dwarfs)
    columns = columns[is_offset]
    if columns.size == 0:
        return rows
    remedy = "subtract what is common to all values of a column before fitting"
    check_fits(rows.values.nbytes, f"the rows less the offsets of {columns.size} columns", remedy)
    by_column = np.zeros(n_columns, rows.dtype)
    by_column[columns] = offset[columns]
    return replace(rows, values=rows.values - rows.by_entry(by_column))


def narrow_rows(columns: _core.Columns, features: Array) -> Rows:
    """Some columns of a matrix, ascending, as rows by position: a copy."""
    found: Any = columns.take(features)
    if isinstance(found, tuple):
        values, indices, offsets = found
        return CsrRows(values, indices, offsets, len(features))
    return DenseRows(found.reshape(columns.n_rows, len(features)))


def resized(rows: Rows, n_columns: int) -> Rows:
    """Rows of so many columns: others cut off, or zeros appended; copied only where they must be.

    Examples
    --------
    >>> resized(DenseRows(np.array([[1.0, 2.0]])), 3).to_user()
    array([[1., 2., 0.]])
    """
    n_rows, n_before = rows.shape
    if n_columns == n_before:
        return rows
    if isinstance(rows, DenseRows):
        if n_columns < n_before:
            return DenseRows(rows.values[:, :n_columns])
        remedy = "read them as CSR (storage='csr')"
        n_bytes = n_rows * n_columns * rows.dtype.itemsize
        check_fits(n_bytes, f"{n_rows} dense rows of {n_columns} columns", remedy)
        values = np.zeros((n_rows, n_columns), rows.dtype)
        values[:, :n_before] = rows.values
        return DenseRows(values)
    if n_columns > n_before:
        return CsrRows(rows.values, rows.columns, rows.offsets, n_columns)
    kept = rows.columns < n_columns
    offsets = np.concatenate([[0], np.cumsum(kept)])[rows.offsets]
    return CsrRows(rows.values[kept], rows.columns[kept], offsets, n_columns)


def _from_array(X: Any) -> Array:
    """A 2-D float32 or float64 array of anything that NumPy can read."""
    if isinstance(X, np.matrix):
        raise TypeError(
            "np.matrix is not supported. Please convert to a numpy array with np.asarray."
        )
    if X is None or isinstance(X, (str, bytes, dict, set)):
        raise TypeError(f"X must be a 2-D array or table of numbers, got {type(X).__name__}")
    if hasattr(X, "rows") and hasattr(X, "labels"):
        raise TypeError("X is a Dataset; pass its parts: data.X, data.y, qid=data.qid")
    if hasattr(X, "read_rows") and hasattr(X, "dataset"):
        raise TypeError(
            "X is a Store, which is taken by some fit only; read it by data = store.dataset(), "
            "and pass data.X, data.y, qid=data.qid"
        )
    a = frames.as_array(X, "X")
    if a.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {a.ndim}D array instead (shape {a.shape}). Reshape your data: "
            "X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single row."
        )
    return frames.as_float(a, "X")


def _by_rows(a: Array) -> Array:
    """``a``, or a C-ordered copy if the core cannot walk it: rows apart by a whole positive number
    of elements, unit stride inside a row, aligned."""
    size = a.itemsize
    walkable = (
        (a.shape[1] <= 1 or a.strides[1] == size)
        and (a.shape[0] <= 1 or (a.strides[0] >= 0 and a.strides[0] % size == 0))
        and a.flags.aligned
    )
    if walkable:
        return a
    return np.array(a, order="C")


def _from_sparse(X: Any) -> CsrRows:
    """CSR rows of a SciPy matrix: its own values where it is CSR of float32 or float64."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse array of shape {X.shape}")
    csr = X.tocsr()  # X itself if it is CSR
    offsets = np.array(csr.indptr, dtype=np.int64)
    n_entries = int(offsets[-1])
    indices: Array = csr.indices
    known: Array | None = getattr(X, _OWN, None)
    is_ours = csr is not X or (known is indices and not indices.flags.writeable)
    columns = narrow_columns(indices[:n_entries])
    return CsrRows(
        np.ascontiguousarray(frames.as_float(csr.data[:n_entries], "X")),
        (np.ascontiguousarray if is_ours or columns.base is None else np.array)(columns),
        offsets,
        int(csr.shape[1]),
    )


def _canonical(rows: Rows, n_threads: int) -> Rows:
    """Rows whose columns increase: a copy, sorted and with duplicates summed, if they do not."""
    if isinstance(rows, DenseRows) or _core.columns_increase(rows.core, n_threads):
        return rows
    copy = rows.to_user().copy()
    copy.has_canonical_format = False
    copy.sum_duplicates()
    return _from_sparse(copy)


def _check_size(rows: Rows) -> None:
    for size, what in zip(rows.shape, ("sample", "feature"), strict=True):
        if size < 1:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={rows.shape}) "
                "while a minimum of 1 is required."
            )


def check_values(
    rows: Any, names: frames.Names = None, *, missing: bool = False, n_jobs: int | None = None
) -> None:
    """Refuse infinite values, and missing ones (NaN) unless they may be; name the first place."""
    first = 0
    if rows.device is not None:  # the row at fault is enough
        first, rows = rows.first_bad_row()
    place = _core.first_non_finite(rows.core, resolve(n_jobs))
    infinity = None if place is None else first_place(rows, np.isinf)
    if place is None or (missing and infinity is None):
        return
    what, remedy = "infinity (inf)", "drop such rows or fill them in"
    if place != infinity and not missing:
        what = "NaN"
        remedy += ", or say what missing values mean: missing='zero', 'mean' or 'indicator'"
    row, column = infinity if missing and infinity is not None else place
    name = f" ({names[column]!r})" if names else ""
    raise ValueError(
        f"Input X contains {what} at row {first + row}, column {column}{name}; "
        f"linrank needs finite values: {remedy}"
    )


def row_blocks(rows: Rows) -> Iterator[tuple[slice, Rows]]:
    """(slice, rows of it) one after another: dense rows by size, sparse ones at once."""
    n_rows, n_columns = rows.shape
    if isinstance(rows, CsrRows):
        yield slice(0, n_rows), rows
        return
    step = max(1, _BLOCK_BYTES // max(1, n_columns * rows.dtype.itemsize))
    for begin in range(0, n_rows, step):
        part = slice(begin, begin + step)
        yield part, DenseRows(rows.values[part])


def first_place(rows: Rows, is_bad: Callable[[Array], Array]) -> tuple[int, int] | None:
    """(row, column) of the first value that is bad."""
    for part, block in row_blocks(rows):
        bad = is_bad(block.values)
        if not bad.any():
            continue
        entry = int(np.argmax(bad))
        if isinstance(block, DenseRows):
            row, column = divmod(entry, rows.shape[1])
        else:
            row = int(np.searchsorted(block.offsets, entry, side="right")) - 1
            column = int(block.columns[entry])
        return part.start + row, column
    return None


def add_to(y: Array, factor: float, x: Array, n_threads: int = 1) -> None:
    """``y += factor·x``, of what `dot` takes."""
    if y.ndim == 1:
        _core.add_to(y, factor, x, n_threads)
    else:
        y += factor * x


def dot(a: Array, b: Array, n_threads: int = 1) -> float:
    """``a·b`` of two vectors of weights, or ``a'Qb`` of two functions in the space of a kernel.

    A function is an array (2, n): its coefficients, and its values ``Q·coefficients`` at the rows.
    Sums, multiples and this product are all that the solvers ask of either.
    """
    if a.ndim == 1:
        return _core.dot(a, b, n_threads)
    product = _core.dot(a[0], b[1])
    # Where Q is singular, ‖a‖² may round to less than 0; what is no number stays none.
    return 0.0 if a is b and product < 0.0 else product


class StreamedRows(Priced, ABC):
    """A matrix by its two products, and by the few rows at a time that may be stored."""

    is_sparse: ClassVar[bool] = False
    device: Any = None  # where the rows are in the memory of one

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Rows that there is memory for at a time."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """What the matrix would take."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def core(self) -> Any:
        """There is none: the kernels of the core read whole matrices."""
        raise TypeError(f"rows {self.describe()} have no view for the core")

    def to_user(self) -> Any:
        """Not to be had either."""
        raise TypeError(f"rows {self.describe()} are no array")

    @abstractmethod
    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        """``X w`` by position, as of stored rows."""

    @abstractmethod
    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        """``Xᵀ r``, r by position, as of stored rows."""

    @abstractmethod
    def extents(self, n_threads: int = 1) -> Extents:
        """How large the columns are, and how exact products, as of stored rows."""

    @property
    def has_matrix(self) -> bool:
        """Whether a Hessian of all features, from a sample of the rows, is worth its size."""
        return True

    @abstractmethod
    def stored(self, index: Array | slice, n_threads: int) -> Rows:
        """Some of the rows in memory, `capacity` at most."""

    def take(self, index: Array | slice) -> Rows | StreamedRows:
        """Some of the rows, as of stored rows: in memory, or left where all of them are."""
        return self.stored(index, 1)

    def score_matrix(self, coefs: Array, n_threads: int) -> Any:
        """``(n_models, n_rows)``: the scores of several models, one after the other."""
        return np.array([self.scores(coef, None, n_threads) for coef in coefs])

    def statistics(self, weight: Array | None) -> ColumnStatistics:
        """The moments of the columns, of rows of these weights."""
        raise TypeError(f"rows {self.describe()} have no statistics of their columns")

    def describe(self) -> str:
        """Storage and size in words."""
        return f"computed by blocks, {self.dtype}, {self.shape[0]} × {self.shape[1]}"


Design = Rows | StreamedRows  # what training takes
