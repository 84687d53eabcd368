"""ColumnTallies: what rows hold, column by column, next to ranges that they are expected in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.rows import CsrRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows

__all__ = ["ColumnTallies"]

Array = Any
_BLOCK_BYTES = 1 << 23  # of rows that are looked at at a time


@dataclass(eq=False)
class ColumnTallies:
    """Missing values, mean, range, and what lies outside of a given range, of every column.

    Attributes
    ----------
    n_rows : int
        Rows.
    n_missing, n_outside : int64 array (n_columns,)
        Values that are NaN; values below ``floor`` or above ``ceiling``.
    mean, low, high : float64 array (n_columns,)
        Of the values that are there; 0 where there is none.
    excess : float64 array (n_columns,)
        How far outside the worst value lies, 0 where none does.
    worst, worst_row : float64 and int64 array (n_columns,)
        That value, and its row.
    first_missing : int64 array (n_columns,)
        The first row without a value, -1 where there is none.
    """

    n_rows: int
    n_missing: NDArray[np.int64]
    n_outside: NDArray[np.int64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    excess: NDArray[np.float64]
    worst: NDArray[np.float64]
    worst_row: NDArray[np.int64]
    first_missing: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, floor: Array, ceiling: Array) -> ColumnTallies:
        """Count the values of all rows, in one pass; what CSR leaves out is 0.

        Examples
        --------
        >>> from linrank.data.rows import DenseRows
        >>> rows = DenseRows(np.array([[1.0, np.nan], [9.0, 2.0]]))
        >>> found = ColumnTallies.of(rows, np.zeros(2), np.full(2, 5.0))
        >>> found.n_missing, found.n_outside, found.worst[0], found.worst_row[0]
        (array([0, 1]), array([1, 0]), np.float64(9.0), np.int64(1))
        """
        n_rows, n_columns = rows.shape
        found = cls(
            n_rows,
            n_missing=np.zeros(n_columns, np.int64),
            n_outside=np.zeros(n_columns, np.int64),
            mean=np.zeros(n_columns),
            low=np.full(n_columns, np.inf),
            high=np.full(n_columns, -np.inf),
            excess=np.zeros(n_columns),
            worst=np.zeros(n_columns),
            worst_row=np.full(n_columns, -1, np.int64),
            first_missing=np.full(n_columns, -1, np.int64),
        )
        if isinstance(rows, CsrRows):
            found._add_sparse(rows, floor, ceiling)
        else:
            step = max(1, _BLOCK_BYTES // max(1, 8 * n_columns))
            for begin in range(0, n_rows, step):
                found._add_dense(rows.values[begin : begin + step], begin, floor, ceiling)
        n_present = n_rows - found.n_missing
        found.mean /= np.maximum(n_present, 1)
        for edge in (found.low, found.high):
            edge[n_present == 0] = 0.0
        return found

    def _add_dense(self, values: Array, begin: int, floor: Array, ceiling: Array) -> None:
        x = values.astype(np.float64)
        absent = np.isnan(x)
        if absent.any():
            n_absent = absent.sum(axis=0)
            new = (self.first_missing < 0) & (n_absent > 0)
            self.first_missing[new] = begin + absent[:, new].argmax(axis=0)
            self.n_missing += n_absent
        self.mean += np.where(absent, 0.0, x).sum(axis=0)
        np.minimum(self.low, np.where(absent, np.inf, x).min(axis=0), out=self.low)
        np.maximum(self.high, np.where(absent, -np.inf, x).max(axis=0), out=self.high)
        excess = np.where(absent, 0.0, np.maximum(x - ceiling, floor - x))
        self.n_outside += (excess > 0.0).sum(axis=0)
        row = excess.argmax(axis=0)
        column = np.arange(x.shape[1])
        self._keep_worst(column, excess[row, column], x[row, column], begin + row)

    def _add_sparse(self, rows: CsrRows, floor: Array, ceiling: Array) -> None:
        n_columns = rows.shape[1]
        x, column = rows.values.astype(np.float64), rows.columns
        row = np.repeat(np.arange(self.n_rows), np.diff(rows.offsets))
        absent = np.isnan(x)
        self.n_missing += np.bincount(column[absent], minlength=n_columns)
        # Backwards, so that the first row is what is left.
        self.first_missing[column[absent][::-1]] = row[absent][::-1]
        x, column, row = x[~absent], column[~absent], row[~absent]
        self.mean += np.bincount(column, x, n_columns)
        np.minimum.at(self.low, column, x)
        np.maximum.at(self.high, column, x)
        excess = np.maximum(x - ceiling[column], floor[column] - x)
        out = np.flatnonzero(excess > 0.0)
        self.n_outside += np.bincount(column[out], minlength=n_columns)
        out = out[np.argsort(excess[out], kind="stable")]  # the worst is written last
        self.excess[column[out]], self.worst[column[out]] = excess[out], x[out]
        self.worst_row[column[out]] = row[out]
        n_zeros = self.n_rows - self.n_missing - np.bincount(column, minlength=n_columns)
        self._add_zeros(n_zeros, floor, ceiling)

    def _add_zeros(self, n_zeros: Array, floor: Array, ceiling: Array) -> None:
        """The zeros that CSR leaves out; their rows are not known."""
        has = n_zeros > 0
        self.low[has] = np.minimum(self.low[has], 0.0)
        self.high[has] = np.maximum(self.high[has], 0.0)
        excess = np.where(has, np.maximum(-ceiling, floor), 0.0)
        self.n_outside += np.where(excess > 0.0, n_zeros, 0)
        columns = np.arange(len(n_zeros))
        self._keep_worst(columns, excess, np.zeros(len(columns)), np.full(len(columns), -1))

    def _keep_worst(self, columns: Array, excess: Array, value: Array, row: Array) -> None:
        worse = excess > self.excess[columns]
        into = columns[worse]
        self.excess[into], self.worst[into] = excess[worse], value[worse]
        self.worst_row[into] = row[worse]
