"""ColumnStatistics: weight, moments, range and non-zeros of every column, block by block.

The statistics of two blocks of rows merge into those of both (Chan, Golub and LeVeque): with total
weights ``W_a, W_b``, means ``m_a, m_b`` and ``δ = m_b - m_a``, per column,

    W = W_a + W_b,   m = m_a + δ W_b / W,   M = M_a + M_b + δ² W_a W_b / W,

where ``M = Σ u (x - m)²`` is the variance times the weight. No sum of squares around 0 appears, so
a large offset costs no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linrank import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """What is known of the columns of some rows; what CSR leaves out counts as 0.

    Moments and ranges are over the rows of positive weight, counts over all rows.

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
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_nonzero: NDArray[np.int64]

    @property
    def n_columns(self) -> int:
        return len(self.mean)

    @property
    def m2(self) -> NDArray[np.float64]:
        """``M = Σ u (x - mean)²`` of each column."""
        return self.weight * self.variance

    @classmethod
    def empty(cls, n_columns: int) -> ColumnStatistics:
        """The statistics of no row: merging them changes nothing."""
        zeros, infinity = np.zeros(n_columns), np.full(n_columns, np.inf)
        return cls(0.0, 0, zeros, zeros, infinity, -infinity, np.zeros(n_columns, np.int64))

    @classmethod
    def of(
        cls, rows: Rows, weight: NDArray[np.float64] | None = None, n_threads: int = 1
    ) -> ColumnStatistics:
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
        n_rows, n_columns = rows.shape
        total = float(n_rows) if weight is None else float(weight.sum())
        if total <= 0.0:
            mean, variance, low, high = (getattr(cls.empty(n_columns), name) for name in _MOMENTS)
        else:
            mean, variance, low, high = _core.summarise_columns(rows.core, weight, n_threads)
        counts = _core.count_nonzero(rows.core, n_threads)
        return cls(total, n_rows, mean, variance, low, high, counts)

    def of_first(self, n_columns: int) -> ColumnStatistics:
        """The statistics of the first columns only."""
        if n_columns == self.n_columns:
            return self
        first = slice(n_columns)
        return ColumnStatistics(
            self.weight,
            self.n_rows,
            self.mean[first],
            self.variance[first],
            self.low[first],
            self.high[first],
            self.n_nonzero[first],
        )

    def masked(self, kept: NDArray[np.bool_]) -> ColumnStatistics:
        """The statistics of some columns, 0 in the place of the others."""
        return ColumnStatistics(
            self.weight,
            self.n_rows,
            np.where(kept, self.mean, 0.0),
            np.where(kept, self.variance, 0.0),
            np.where(kept, self.low, 0.0),
            np.where(kept, self.high, 0.0),
            np.where(kept, self.n_nonzero, 0),
        )

    def widened(self, n_columns: int) -> ColumnStatistics:
        """The same rows with more columns, in which all of them are 0."""
        n_new = n_columns - self.n_columns
        if n_new < 0:
            raise ValueError(f"n_columns must be at least {self.n_columns}, got {n_columns}")
        zeros = np.zeros(n_new)
        # Without weight no value counts, not even these.
        edge = zeros if self.weight > 0.0 else np.full(n_new, np.inf)
        return ColumnStatistics(
            self.weight,
            self.n_rows,
            np.concatenate([self.mean, zeros]),
            np.concatenate([self.variance, zeros]),
            np.concatenate([self.low, edge]),
            np.concatenate([self.high, -edge]),
            np.concatenate([self.n_nonzero, zeros.astype(np.int64)]),
        )

    def merged(self, other: ColumnStatistics) -> ColumnStatistics:
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

    def __add__(self, other: ColumnStatistics) -> ColumnStatistics:
        return self.merged(other)


_MOMENTS = ("mean", "variance", "low", "high")
