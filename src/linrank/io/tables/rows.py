"""Dense rows from the columns of record batches, written where they stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import CsrRows, DenseRows
from linrank.errors import DataFormatError
from linrank.io.tables.columns import arrow, list_sizes, missing_of, plain_numbers
from linrank.system.resources import check_fits

Array = NDArray[Any]
_FIRST_BYTES = 1 << 24  # of a matrix that grows
_GROWTH = 1.4


def float_for(types: Sequence[Any]) -> np.dtype[Any]:
    """The type of a matrix of such columns: float32 if all of them fit, else float64."""
    known = arrow().types
    narrow = (known.is_float32, known.is_float16, known.is_boolean, known.is_null)
    fits = all(any(is_kind(type) for is_kind in narrow) for type in types)
    some = any(known.is_floating(type) for type in types)
    return np.dtype(np.float32 if fits and some else np.float64)


class Matrix:
    """A row-major matrix that is written by parts, and grows if need be.

    Parameters
    ----------
    source : str
        Where the rows come from, for messages.
    n_columns : int
        Columns of the matrix.
    dtype : dtype
        float32 or float64.
    n_rows : int or None
        Rows to come, where that is known; else the matrix grows.
    """

    def __init__(
        self, source: str, n_columns: int, dtype: np.dtype[Any], n_rows: int | None
    ) -> None:
        self.source, self.n_rows = source, 0
        self._is_fixed = n_rows is not None
        self._check(n_rows or 0, n_columns, dtype)
        self.dtype, self.n_columns = dtype, n_columns
        first = max(1, _FIRST_BYTES // max(1, n_columns * dtype.itemsize))
        self._values = np.empty((first if n_rows is None else n_rows, n_columns), dtype)

    def rows(self, begin: int, n_rows: int) -> Array:
        """Return these rows, to be written; no earlier view may be in use any more."""
        end = begin + n_rows
        if end > len(self._values):
            if self._is_fixed:
                raise DataFormatError(
                    f"{self.source}: more rows than the {len(self._values):,} that it announces; "
                    "the file is damaged"
                )
            wanted = max(end, int(_GROWTH * len(self._values)))
            self._check(wanted, self.n_columns, self.dtype)
            # In place where the system can move pages: no second copy of what is there.
            self._values.resize((wanted, self.n_columns), refcheck=False)
        self.n_rows = max(self.n_rows, end)
        return self._values[begin:end]

    def finish(self) -> Array:
        """Return all rows."""
        if self._is_fixed and self.n_rows < len(self._values):
            raise DataFormatError(
                f"{self.source}: {self.n_rows:,} rows where it announces {len(self._values):,}; "
                "the file is damaged"
            )
        if self.n_rows < len(self._values):
            self._values.resize((self.n_rows, self.n_columns), refcheck=False)
        return self._values

    def _check(self, n_rows: int, n_columns: int, dtype: np.dtype[Any]) -> None:
        held = 0 if not hasattr(self, "_values") else self._values.nbytes
        check_fits(
            n_rows * n_columns * dtype.itemsize - held,
            f"{self.source}: {n_rows:,} × {n_columns:,} {dtype}",
            "read fewer columns with features=, or as float32 with dtype='float32'",
        )


class ColumnRows:
    """Rows from one column for each feature."""

    def __init__(self, matrix: Matrix, names: Sequence[str], n_threads: int) -> None:
        self.matrix, self.names, self.n_threads = matrix, tuple(names), n_threads
        self.has_missing = False
        self._n_values = 0

    def add(self, batch: Any, begin: int) -> None:
        """Write the rows of a record batch, which has some features that lie side by side."""
        held = set(batch.schema.names)
        places = [j for j, name in enumerate(self.names) if name in held]
        if not places:
            return
        parts = [plain_numbers(batch.column(self.names[j])) for j in places]
        values, bits, first = ([*part] for part in zip(*parts, strict=True))
        out = self.matrix.rows(begin, batch.num_rows)[:, places[0] : places[-1] + 1]
        self._n_values += out.size
        missing, infinite = _core.interleave_columns(
            values, bits, np.array(first, np.int64), out, self.n_threads
        )
        self.has_missing |= missing
        if infinite:
            row, column = (int(place[0]) for place in np.nonzero(np.isinf(out)))
            raise _infinite(self.matrix, begin + row, self.names[places[0] + column])

    def finish(self) -> DenseRows:
        """Return the rows."""
        rows = self.matrix.finish()
        if self._n_values != rows.size:
            raise DataFormatError(
                f"{self.matrix.source}: {self._n_values:,} values of features for "
                f"{rows.shape[0]:,} × {rows.shape[1]:,}; the file is damaged"
            )
        return DenseRows(rows)


class ListRows:
    """Rows from one column that holds a list of all features in each row."""

    def __init__(
        self, source: str, name: str, dtype: np.dtype[Any], n_rows: int | None, n_threads: int
    ) -> None:
        self.source, self.name, self.dtype = source, name, dtype
        self.n_announced, self.n_threads = n_rows, n_threads
        self.matrix: Matrix | None = None
        self.has_missing = False

    def add(self, batch: Any, begin: int) -> None:
        """Append the rows of a record batch."""
        if batch.num_rows == 0:
            return
        lists, done = batch.column(self.name), begin
        if lists.null_count:
            row = int(np.argmax(missing_of(lists)))
            raise DataFormatError(
                f"{self.source}: row {done + row} has no list in the column {self.name!r}; every "
                "row needs its features"
            )
        length = self._length(lists, done)
        if self.matrix is None:
            self.matrix = Matrix(self.source, length, self.dtype, self.n_announced)
        out = self.matrix.rows(begin, len(lists))
        values, bits, first = plain_numbers(lists.flatten())
        missing, infinite = _core.interleave_columns(
            [values], [bits], np.array([first]), out.reshape(-1, 1), self.n_threads
        )
        self.has_missing |= missing
        if infinite:
            row, place = (int(found[0]) for found in np.nonzero(np.isinf(out)))
            raise _infinite(self.matrix, done + row, f"{self.name}[{place}]")

    def _length(self, lists: Any, done: int) -> int:
        """The number of features, the same in every row."""
        sizes = list_sizes(lists)
        expected = int(sizes[0]) if self.matrix is None else self.matrix.n_columns
        if expected < 1:
            raise DataFormatError(f"{self.source}: the list of row {done} is empty")
        if (sizes != expected).any():
            row = int(np.argmax(sizes != expected))
            raise DataFormatError(
                f"{self.source}: the list of row {done + row} in the column {self.name!r} has "
                f"{sizes[row]} values, those before have {expected}; all rows have the same "
                "features"
            )
        return expected

    def finish(self) -> DenseRows:
        """Return the rows."""
        if self.matrix is None:
            return DenseRows(np.empty((0, 0), self.dtype))
        return DenseRows(self.matrix.finish())


def _infinite(matrix: Matrix, row: int, column: str) -> DataFormatError:
    hint = ", or too large for it: read with dtype='float64'" if matrix.dtype == np.float32 else ""
    return DataFormatError(
        f"{matrix.source}: the value of row {row}, column {column!r} is infinite as "
        f"{matrix.dtype}{hint}; features must be finite"
    )


_SPARSE, _DENSE = 0, 1  # the types of a vector


class VectorRows:
    """Rows from one column of structs ``{type, size, indices, values}``.

    A vector of type 0 has ``values[k]`` at ``indices[k]``, ascending, of ``size`` features; one of
    type 1 has all of its values.
    """

    def __init__(self, source: str, name: str, dtype: np.dtype[Any]) -> None:
        self.source, self.name, self.dtype = source, name, dtype
        self.n_rows, self.n_columns = 0, 0
        self.has_missing = False
        self._values: list[Array] = []
        self._columns: list[Array] = []
        self._sizes: list[Array] = []

    def add(self, batch: Any, begin: int) -> None:
        """Append the rows of a record batch."""
        if batch.num_rows == 0:
            return
        column = batch.column(self.name)
        fields = dict(zip([f.name for f in column.type], column.flatten(), strict=True))
        kinds = _integers(fields["type"])
        self._refuse(missing_of(column), lambda i: "is missing")
        self._refuse(
            (kinds != _SPARSE) & (kinds != _DENSE),
            lambda i: f"is of type {kinds[i]}; known are 0, sparse, and 1, dense",
        )
        is_sparse = kinds == _SPARSE
        n_values, values = self._lists(fields["values"], np.ones(len(kinds), bool), "values")
        n_indices, indices = self._lists(fields["indices"], is_sparse, "indices")
        self._refuse(
            is_sparse & (n_values != n_indices),
            lambda i: f"has {n_values[i]} values for {n_indices[i]} indices",
        )
        lengths = np.where(is_sparse, _integers(fields["size"]), n_values)
        if self.n_rows == 0:
            self.n_columns = n_columns = int(lengths[0])
            has_size = 1 <= n_columns <= np.iinfo(np.int32).max
            self._refuse(
                ~np.array([has_size]), lambda i: f"has {n_columns} features; at least one is needed"
            )
        self._refuse(
            lengths != self.n_columns,
            lambda i: f"has {lengths[i]} features, those before {self.n_columns}",
        )
        # Feature k of a dense vector is value k; those of sparse ones are told.
        starts = np.concatenate([[0], np.cumsum(n_values)])
        columns = np.arange(starts[-1]) - np.repeat(starts[:-1], n_values)
        columns[np.repeat(is_sparse, n_values)] = indices
        follows = np.diff(columns, prepend=-1) > 0
        follows[starts[:-1][n_values > 0]] = True  # what begins a row follows nothing
        self._refuse(
            ~follows | (columns < 0) | (columns >= self.n_columns),
            lambda k: (
                f"has the index {columns[k]}; indices increase and lie in [0, {self.n_columns})"
            ),
            starts,
        )
        self._refuse(
            np.isinf(values), lambda k: f"has a value that is infinite as {self.dtype}", starts
        )
        self.has_missing |= bool(np.isnan(values).any())
        self._values.append(values)
        self._columns.append(columns.astype(np.int32))
        self._sizes.append(n_values)
        self.n_rows += len(kinds)

    def finish(self) -> CsrRows:
        """Return the rows."""
        sizes = np.concatenate([np.zeros(1, np.int64), *self._sizes])
        return CsrRows(
            np.concatenate([np.empty(0, self.dtype), *self._values]),
            np.concatenate([np.empty(0, np.int32), *self._columns]),
            np.cumsum(sizes).astype(np.int64),
            self.n_columns,
        )

    def _lists(self, lists: Any, needed: Array, what: str) -> tuple[Array, Array]:
        """The lengths of the lists that are needed, and their elements one after the other."""
        self._refuse(needed & missing_of(lists), lambda i: f"has no {what}")
        flat = lists.filter(arrow().array(needed)).flatten()
        is_index = what == "indices"
        with np.errstate(over="ignore"):  # infinite, and refused as such
            numbers = plain_numbers(flat)[0].astype(np.int64 if is_index else self.dtype)
        numbers[missing_of(flat)] = -1 if is_index else np.nan
        return np.where(needed, list_sizes(lists), 0), numbers

    def _refuse(self, bad: Array, what: Callable[[int], str], starts: Array | None = None) -> None:
        """Raise for the first that is bad of the rows, or of the entries of rows at ``starts``."""
        if bad.any():
            i = int(np.argmax(bad))
            row = i if starts is None else int(np.searchsorted(starts, i, "right")) - 1
            raise DataFormatError(
                f"{self.source}: the vector of row {self.n_rows + row} in the column "
                f"{self.name!r} {what(i)}"
            )


def _integers(column: Any) -> Array:
    """Integers, -1 where there is none."""
    integers = plain_numbers(column)[0].astype(np.int64)
    integers[missing_of(column)] = -1
    return integers
