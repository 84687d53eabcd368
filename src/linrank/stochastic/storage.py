"""Rows of a stream as dense or as CSR: which is smaller, and from one to the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows, DenseRows, Rows

__all__ = [
    "copy_into",
    "count_entries",
    "dense_is_smaller",
    "join_dense",
    "without_zeros",
]

Array = NDArray[Any]


def dense_is_smaller(n_rows: int, n_columns: int, n_entries: int) -> bool:
    """Whether rows of float32 take less memory dense than as CSR."""
    return n_rows * n_columns * 4 <= n_entries * 8


def count_entries(rows: Rows) -> int:
    """Entries that are not 0; of CSR, those that are stored."""
    return int(np.count_nonzero(rows.values)) if isinstance(rows, DenseRows) else len(rows.values)


def without_zeros(rows: CsrRows) -> CsrRows:
    """Zeros that were written down take room and change nothing."""
    kept = rows.values != 0
    if kept.all():
        return rows
    offsets = np.concatenate([[0], np.cumsum(kept)])[rows.offsets]
    return CsrRows(rows.values[kept], rows.columns[kept], offsets, rows.n_columns)


def copy_into(table: Array, rows: Rows) -> None:
    """Write rows to a dense table of as many; columns that they lack are 0."""
    n, width = rows.shape
    if isinstance(rows, DenseRows):
        table[:, :width] = rows.values
        table[:, width:] = 0
        return
    table[:] = 0
    row_of_entry = np.repeat(np.arange(n), np.diff(rows.offsets))
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    table[row_of_entry, rows.columns[first:last]] = rows.values[first:last]


def join_dense(parts: list[Rows], n_rows: int, n_columns: int) -> Rows:
    """Parts below each other as dense rows; the only part itself, if it is what is wanted."""
    if len(parts) == 1 and isinstance(parts[0], DenseRows) and parts[0].shape[1] == n_columns:
        return parts[0]
    x = np.empty((n_rows, n_columns), np.float32)
    begin = 0
    for part in parts:
        copy_into(x[begin : begin + part.shape[0]], part)
        begin += part.shape[0]
    return DenseRows(x)
