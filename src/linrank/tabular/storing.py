"""A matrix stored the other way."""

from __future__ import annotations

import numpy as np

from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.memory import check_fits

__all__ = ["as_csr", "as_dense", "smaller"]


def as_csr(rows: Rows) -> CsrRows:
    """The entries that are not zero; NaN is not.

    Examples
    --------
    >>> as_csr(DenseRows(np.array([[0.0, 2.0], [3.0, 0.0]]))).columns.tolist()
    [1, 0]
    """
    if isinstance(rows, CsrRows):
        return rows
    row, column = np.nonzero(rows.values)
    sizes = np.bincount(row, minlength=rows.shape[0])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return CsrRows(rows.values[row, column], column.astype(np.int32), offsets, rows.shape[1])


def as_dense(rows: Rows) -> DenseRows:
    """All values, zeros where a sparse matrix has none."""
    if isinstance(rows, DenseRows):
        return rows
    n_rows, n_columns = rows.shape
    size = n_rows * n_columns * rows.dtype.itemsize
    check_fits(size, f"{n_rows:,} dense rows of {n_columns:,} columns", "use storage='csr'")
    values = np.zeros(rows.shape, rows.dtype)
    values[np.repeat(np.arange(n_rows), np.diff(rows.offsets)), rows.columns] = rows.values
    return DenseRows(values)


def smaller(rows: CsrRows) -> Rows:
    """The smaller of the two, as `linrank.load` does for text: entries cost 4 bytes more."""
    size, (n_rows, n_columns) = rows.dtype.itemsize, rows.shape
    dense = n_rows * n_columns * size <= len(rows.values) * (size + 4)
    return as_dense(rows) if dense else rows
