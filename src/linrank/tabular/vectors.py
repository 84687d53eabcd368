"""Sparse rows from a column of vectors, as Spark ML writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows
from linrank.errors import DataFormatError
from linrank.tabular.buffers import list_sizes, missing_of, plain_numbers

__all__ = ["VectorRows"]

Array = NDArray[Any]
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
        kinds = self._kinds(column, fields["type"])
        is_sparse = kinds == _SPARSE
        n_values, values = self._lists(fields["values"], np.ones(len(kinds), bool), "values")
        n_indices, indices = self._lists(fields["indices"], is_sparse, "indices")
        differ = is_sparse & (n_values != n_indices)
        if differ.any():
            i = int(np.argmax(differ))
            raise self._fault(i, f"has {n_values[i]} values for {n_indices[i]} indices")
        lengths = np.where(is_sparse, _integers(fields["size"]), n_values)
        self._check_lengths(lengths)
        # Feature k of a dense vector is value k; those of sparse ones are told.
        starts = np.concatenate([[0], np.cumsum(n_values)])
        columns = np.arange(starts[-1]) - np.repeat(starts[:-1], n_values)
        columns[np.repeat(is_sparse, n_values)] = indices
        self._check_columns(columns, starts)
        self._check_values(values, starts)
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

    def _kinds(self, column: Any, types: Any) -> Array:
        kinds = _integers(types)
        known = (kinds == _SPARSE) | (kinds == _DENSE)
        if column.null_count:
            i = int(np.argmax(missing_of(column)))
            raise self._fault(i, "is missing")
        if not known.all():
            i = int(np.argmin(known))
            raise self._fault(i, f"is of type {kinds[i]}; known are 0, sparse, and 1, dense")
        return kinds

    def _lists(self, lists: Any, needed: Array, what: str) -> tuple[Array, Array]:
        """The lengths of the lists that are needed, and their elements one after the other."""
        lacking = needed & missing_of(lists)
        if lacking.any():
            raise self._fault(int(np.argmax(lacking)), f"has no {what}")
        sizes = np.where(needed, list_sizes(lists), 0)
        flat = lists.filter(_mask(needed)).flatten()
        values, bits, first = plain_numbers(flat)
        is_index = what == "indices"
        with np.errstate(over="ignore"):  # infinite, and refused as such
            numbers = values.astype(np.int64 if is_index else self.dtype)
        if bits is not None:
            valid = np.unpackbits(bits, bitorder="little")[first : first + len(numbers)]
            numbers[valid == 0] = -1 if is_index else np.nan
        return sizes, numbers

    def _check_lengths(self, lengths: Array) -> None:
        if self.n_rows == 0:
            self.n_columns = int(lengths[0])
        if self.n_columns < 1 or self.n_columns > np.iinfo(np.int32).max:
            raise self._fault(0, f"has {self.n_columns} features; at least one is needed")
        if (lengths != self.n_columns).any():
            i = int(np.argmax(lengths != self.n_columns))
            raise self._fault(i, f"has {lengths[i]} features, those before {self.n_columns}")

    def _check_columns(self, columns: Array, starts: Array) -> None:
        bad = (columns < 0) | (columns >= self.n_columns)
        bad[1:] |= np.diff(columns) <= 0
        firsts = starts[:-1][np.diff(starts) > 0]  # what begins a row follows nothing
        bad[firsts] = (columns[firsts] < 0) | (columns[firsts] >= self.n_columns)
        if bad.any():
            entry = int(np.argmax(bad))
            row = int(np.searchsorted(starts, entry, "right")) - 1
            raise self._fault(
                row,
                f"has the index {columns[entry]}; indices increase and lie in "
                f"[0, {self.n_columns})",
            )

    def _check_values(self, values: Array, starts: Array) -> None:
        infinite = np.isinf(values)
        if infinite.any():
            row = int(np.searchsorted(starts, int(np.argmax(infinite)), "right")) - 1
            raise self._fault(row, f"has a value that is infinite as {self.dtype}")
        self.has_missing |= bool(np.isnan(values).any())

    def _fault(self, row: int, what: str) -> DataFormatError:
        return DataFormatError(
            f"{self.source}: the vector of row {self.n_rows + row} in the column {self.name!r} "
            f"{what}"
        )


def _integers(column: Any) -> Array:
    """Integers, -1 where there is none."""
    integers = plain_numbers(column)[0].astype(np.int64)
    integers[missing_of(column)] = -1
    return integers


def _mask(needed: Array) -> Any:
    from linrank.tabular.columns import arrow

    return arrow().array(needed)
