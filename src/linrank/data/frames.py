"""Tables of pandas, polars and pyarrow, read column by column without loading those libraries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.system.device import is_on_device, to_host

Array = NDArray[Any]
Names = Sequence[str] | None  # of columns, where there are any
LONGEST_NAME = 1 << 16  # characters of the name of a feature
_BLOCK_ROWS = 4096
_BLOCK_COLUMNS = 16  # a group of float32 columns fills whole cache lines of the result


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a two-dimensional table of pandas, polars or pyarrow."""
    if _library(X) == "polars" and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a polars LazyFrame; call .collect() first")
    return _library(X) is not None and type(X).__name__ in ("DataFrame", "Table", "RecordBatch")


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a table, if there are any and all of them are strings."""
    if not is_frame(X):
        return None
    names = tuple(all_column_names(X))
    return names if names and all(isinstance(name, str) for name in names) else None


def all_column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a table, of whatever type they are."""
    return list(X.column_names if _library(X) == "pyarrow" else X.columns)


def feature_name(names: Names, j: int, base: Any = None, *, alone: bool = True) -> str:
    """What a feature is called wherever it is shown: its name, or ``feature 7``, its number.

    The number is that in the file, whose first feature has the number ``base``; of a matrix, which
    has None, that of the column, from 0. Where "feature" is said already, it is not ``alone``.

    Examples
    --------
    >>> feature_name(["bm25", "age"], 1), feature_name(None, 1), feature_name(None, 1, 1)
    ('age', 'feature 1', 'feature 2')
    """
    if names is not None and j < len(names):
        return str(names[j])
    number = j + (base or 0)
    return f"feature {number}" if alone else str(number)


def check_names(names: Sequence[str]) -> None:
    """Raise ValueError for names of features that no file can hold, or no table show."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        halves = (any("\ud800" <= c <= "\udfff" for c in name) for name in names)
        j = list(halves).index(True)
        raise ValueError(
            f"the name of feature {j}, {names[j][:80]!r}, is not valid Unicode: it has half of a "
            "surrogate pair; rename it"
        ) from None
    if max(map(len, names), default=0) > LONGEST_NAME:
        j = next(j for j, name in enumerate(names) if len(name) > LONGEST_NAME)
        raise ValueError(
            f"the name of feature {j}, {names[j][:80]!r}..., has {len(names[j])} characters; the "
            f"most is {LONGEST_NAME}: rename it"
        )


def sparse_part(X: Any) -> Any | None:
    """Return the scipy.sparse matrix of a pandas table of sparse columns, or None."""
    if _library(X) != "pandas" or X.shape[1] == 0:
        return None
    if not all(type(dtype).__name__ == "SparseDtype" for dtype in X.dtypes):
        return None
    return X.sparse.to_coo()


def read_column(column: Any) -> Any:
    """Return a column of a table as a NumPy array; anything else as it is."""
    library = _library(column)
    if library is None or is_frame(column):
        return column
    if library == "pandas":
        return _read_pandas(column)
    # Chunks of Arrow are joined by a copy; an array of its own may be looked at in place.
    is_array = library == "pyarrow" and not hasattr(column, "chunks")
    return np.asarray(column.to_numpy(zero_copy_only=False) if is_array else column.to_numpy())


def as_array(values: Any, what: str) -> Array:
    """Return what a user gives as a NumPy array; ``what`` names it in errors.

    All that is no matrix of features enters here. What is under a mask is no value, so a masked
    array that hides any is refused; one on a device is copied.
    """
    if is_on_device(values):
        return to_host(values)
    ma = sys.modules.get("numpy.ma")  # not loaded: nothing is masked
    if ma is not None and ma.isMaskedArray(values) and ma.getmaskarray(values).any():
        raise ValueError(f"{what} is a masked array with masked values; fill or drop them first")
    return np.asarray(read_column(values))


def to_matrix(X: Any, what: str = "X") -> Array:
    """Return the numbers of a table: in place if it is one row-major block, else a copy.

    ``what`` names it in errors.
    """
    columns = _columns(X)
    n_rows = int(X.shape[0] if hasattr(X, "shape") else X.num_rows)
    names = [str(name) for name in all_column_names(X)]
    if not columns:
        return np.empty((n_rows, 0))
    no_rows = X.iloc[:0] if _library(X) == "pandas" else X.slice(0, 0)  # has types at no cost
    kinds = [read_column(column).dtype for column in _columns(no_rows)]
    for kind, name in zip(kinds, names, strict=True):
        _check_kind(kind, f"column {name!r} of {what}")
    if _library(X) == "pandas" and _is_row_major(columns, kinds):
        return as_float(X.to_numpy(), what)
    dtype = _float_for(*kinds)
    matrix = np.empty((n_rows, len(columns)), dtype=dtype)
    for begin in range(0, len(columns), _BLOCK_COLUMNS):
        group = slice(begin, begin + _BLOCK_COLUMNS)
        _fill(
            matrix[:, group],
            [
                as_float(read_column(column), f"column {name!r} of {what}")
                for column, name in zip(columns[group], names[group], strict=True)
            ],
        )
    return matrix


def as_float(a: Array, what: str) -> Array:
    """Return ``a`` as float32 or float64; ``what`` names it in errors."""
    _check_kind(a.dtype, what)
    if a.dtype in (np.float32, np.float64):
        return a
    if a.dtype.kind != "O":
        with np.errstate(over="ignore"):  # beyond float64: infinity, which is refused by name
            return a.astype(_float_for(a.dtype))
    try:
        return a.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} is not numeric: {error}") from None


def _library(X: Any) -> str | None:
    """The table library of ``X``, by the name of its module: nothing is imported."""
    library = type(X).__module__.partition(".")[0]
    return library if library in ("pandas", "polars", "pyarrow") else None


def _columns(X: Any) -> list[Any]:
    """The columns of a table, for `read_column`."""
    if _library(X) == "pandas":
        return [X.iloc[:, j] for j in range(X.shape[1])]
    return list(X.get_columns() if _library(X) == "polars" else X.columns)


def _read_pandas(column: Any) -> Array:
    """Nullable and arrow-backed types name their NumPy type; a missing value becomes NaN."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    dtype = getattr(column.dtype, "numpy_dtype", None)
    if dtype is None or dtype.kind not in "biuf":
        return np.asarray(column)
    if dtype.kind != "f" and bool(column.isna().any()):
        dtype = np.dtype(np.float64)
    missing = {"na_value": np.nan} if dtype.kind == "f" else {}
    return np.asarray(column.to_numpy(dtype=dtype, **missing))


def _is_row_major(columns: Sequence[Any], kinds: Sequence[np.dtype[Any]]) -> bool:
    """Whether the columns of a pandas table are those of one C-ordered array."""
    if len(set(kinds)) > 1 or kinds[0].kind != "f" or len(columns) < 2:
        return False
    read = (_read_pandas(columns[j]) for j in (0, 1, -1))
    start = [a.__array_interface__["data"][0] for a in read]
    size = kinds[0].itemsize
    return bool(start[1] - start[0] == size and start[2] - start[0] == size * (len(columns) - 1))


def _fill(out: Array, columns: Sequence[Array]) -> None:
    for begin in range(0, len(out), _BLOCK_ROWS):
        block = slice(begin, begin + _BLOCK_ROWS)
        for j, column in enumerate(columns):
            out[block, j] = column[block]


def _float_for(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The narrower of float32 and float64 that holds all of ``dtypes``; float64 for integers."""
    numeric = [np.dtype(np.float64) if dtype.kind == "O" else dtype for dtype in dtypes]
    common = np.result_type(*numeric)
    if common.kind == "f" and common.itemsize <= 4:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def _check_kind(dtype: np.dtype[Any], what: str) -> None:
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} has dtype {dtype}")
    if dtype.kind not in "biufO":
        remedy = "leave it out, or convert it to numbers" if "column" in what else "give numbers"
        raise ValueError(f"{what} has dtype {dtype}, which is not numeric; {remedy}")


_EXACT = 2**53  # integers up to here are float64 numbers, each by itself


def as_labels(y: Any, n_rows: int | None = None) -> Array:
    """Return labels as a finite float64 vector (of ``n_rows`` elements, if given)."""
    if y is None:
        raise ValueError("linrank requires y to be passed, but the target y is None")
    given = as_array(y, "y")
    labels = as_vector(given, "y", n_rows)
    check_finite(labels, "y")
    check_apart(given, "y")
    return labels


def check_apart(labels: Array, what: str) -> None:
    """Refuse integers that differ and would be one label in float64, which pairs are made by."""
    if labels.dtype.kind == "O":
        labels = np.array([v for v in labels.flat if isinstance(v, int)], dtype=object)
    elif labels.dtype.kind not in "iu" or labels.dtype.itemsize < 8:
        return
    if labels.size == 0 or max(int(labels.max()), -int(labels.min())) <= _EXACT:
        return
    distinct = np.unique(labels)
    same = np.flatnonzero(np.diff(distinct.astype(np.float64)) == 0.0)
    if same.size:
        low, high = distinct[same[0]], distinct[same[0] + 1]
        raise ValueError(
            f"{what} holds {low} and {high}, which are the same number in float64; subtract a "
            "common number from all labels, or number them in their order"
        )


def as_weights(weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return weights as a finite float64 vector >= 0, not all zero."""
    vector = as_part_weights(weight, n_rows, name)
    if not vector.any():
        raise ValueError(f"{name} is zero everywhere; at least one weight must be > 0")
    return vector


def as_part_weights(weight: Any, n_rows: int, name: str = "sample_weight") -> Array:
    """Return the weights of a part of the rows, finite and >= 0; all of them may be zero."""
    vector = as_vector(weight, name, n_rows)
    check_finite(vector, name)
    if (i := first_true(vector < 0)) is not None:
        raise ValueError(f"{name} must be >= 0, got {vector[i]} at row {i}")
    return vector


def read_only(a: Array) -> Array:
    """``a``, or a view of it that cannot be written to."""
    if a.flags.writeable:
        a = a.view()
        a.flags.writeable = False
    return a


def as_vector(values: Any, name: str, n_rows: int | None = None, like: str = "X") -> Array:
    """Return one number per row as a float64 vector, as long as ``like`` with its ``n_rows``."""
    a = as_array(values, name)
    if a.ndim == 2 and a.shape[1] == 1:
        a = a[:, 0]
    if a.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {a.shape} instead")
    if n_rows is not None and len(a) != n_rows:
        raise ValueError(
            f"inconsistent lengths: {like} has {n_rows} rows but {name} has {len(a)} elements"
        )
    return np.ascontiguousarray(as_float(a, name), dtype=np.float64)


def check_finite(vector: Array, name: str) -> None:
    """Refuse NaN and infinity; name the first place."""
    # A NaN is the least and the greatest of its vector: no vector of flags.
    if vector.size == 0 or (np.isfinite(vector.min()) and np.isfinite(vector.max())):
        return
    i = int(np.argmin(np.isfinite(vector)))
    what = "NaN" if np.isnan(vector[i]) else "infinity (inf)"
    raise ValueError(f"Input {name} contains {what} at row {i}")


def first_true(flags: Array) -> int | None:
    """Where the first True is; None if there is none."""
    return int(np.argmax(flags)) if flags.any() else None


def check_each(a: Array, is_good: Array, what: str, must: str, first: int = 0) -> None:
    """Raise ValueError about the first number that is not good; ``first`` is what it counts from.

    ``what`` says of what the numbers are, and ``must`` what they must be.
    """
    if (i := first_true(~is_good)) is not None:
        raise ValueError(f"{what} {i + first} is {a[i]:.10g}; {must}")
