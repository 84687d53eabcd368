"""Feature scaling as part of the model, so that raw rows can be scored.

A pair loss sees differences of rows only, so the shift of a scaler cancels and its factor is all
that matters: ``x_i·D·w - x_j·D·w`` with ``D = diag(d)``. The factors ``d`` are handed to the solver
and folded into the coefficients, ``coef = d ∘ w``; the rows are neither copied nor densified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linrank import _core
from linrank.choices import SCALES
from linrank.data.dataset import Dataset
from linrank.data.frames import first_true
from linrank.data.queries import Queries
from linrank.data.rows import Array, ColumnStatistics, CsrRows, DenseRows, Rows, StreamedRows
from linrank.errors import check_one_of
from linrank.system.resources import check_fits, resolve

BY_COLUMN = ("standard", "minmax")  # kinds with a factor for each column
_BLOCK = 1 << 20  # entries that are scaled at a time


@dataclass(frozen=True, eq=False)
class Scaling:
    """How the features of a model were scaled.

    Attributes
    ----------
    kind : {"none", "standard", "minmax", "query"}
        ``standard``: ``d_j = 1 / std(x_j)``; ``minmax``: ``d_j = 1 / (max x_j - min x_j)``, both
        over all training rows and 0 for a constant feature. ``query``: every row is divided by
        the range of each feature within the row's own query, when training and when scoring.
    factors : ndarray of shape (n_features,) or None
        The factors ``d``; None for ``none`` and ``query``.
    """

    kind: str = "none"
    factors: Array | None = None

    def __post_init__(self) -> None:
        check_one_of("scale", self.kind, SCALES[1:])
        if (self.factors is not None) != (self.kind in BY_COLUMN):
            verb = "needs" if self.factors is None else "takes no"
            raise ValueError(f"scale={self.kind!r} {verb} factors")
        if self.factors is not None and not (
            np.isfinite(self.factors).all() and (self.factors >= 0.0).all()
        ):
            raise ValueError("scaling factors must be finite and >= 0")

    @classmethod
    def fit(
        cls,
        kind: str,
        rows: Rows | StreamedRows,
        *,
        weight: Array | None = None,
        n_jobs: int | None = None,
    ) -> Scaling:
        """The scaling of this kind for these rows.

        Parameters
        ----------
        kind : {"none", "standard", "minmax", "query"}
            What to compute.
        rows : DenseRows, CsrRows or StreamedRows
            The training rows; what CSR leaves out counts as 0.
        weight : ndarray of shape (n_rows,) or None
            A row of weight 2 counts as two rows, one of weight 0 as none.
        n_jobs : int or None
            Threads; see :func:`linrank.system.resources.resolve`.
        """
        if kind not in BY_COLUMN:
            return cls(kind)
        if isinstance(rows, StreamedRows):
            return cls.of_statistics(kind, rows.statistics(weight))
        return cls.of_statistics(kind, rows.scan(weight, resolve(n_jobs)).statistics)

    @classmethod
    def of_statistics(cls, kind: str, statistics: ColumnStatistics) -> Scaling:
        """The scaling of this kind for rows of which only these statistics are known.

        Equal bit for bit to `fit` where the statistics are those of one block of rows.

        Parameters
        ----------
        kind : {"none", "standard", "minmax", "query"}
            What to compute.
        statistics : ColumnStatistics
            Of the training rows; merged from those of their blocks.
        """
        if kind not in BY_COLUMN:
            return cls(kind)
        if statistics.weight <= 0.0:
            raise ValueError("there is no row of positive weight to scale by")
        low, high = statistics.low, statistics.high
        with np.errstate(over="ignore", divide="ignore"):
            width = np.sqrt(statistics.variance) if kind == "standard" else high - low
            # Constant columns are known by their exact range: the variance of one may round to
            # something else than 0.
            factors = np.where(high > low, 1.0 / width, 0.0)
        if (j := first_true(~(np.isfinite(width) & np.isfinite(factors)))) is not None:
            raise ValueError(
                f"feature {j} ranges from {low[j]:g} to {high[j]:g}, which scale={kind!r} cannot "
                "scale in double precision; rescale it before fitting"
            )
        return cls(kind, factors)

    @property
    def needs_queries(self) -> bool:
        """Whether rows can only be scored together with the rest of their query."""
        return self.kind == "query"

    def transform(self, rows: Rows, queries: Queries, *, n_jobs: int | None = None) -> Rows:
        """The rows that the solver and the scores are to see: a copy for ``query``, else `rows`."""
        if not self.needs_queries:
            return rows
        if isinstance(rows, StreamedRows):
            raise ValueError(
                "scale='query' divides rows by the ranges within their query, and these rows are "
                f"{rows.describe()}; use scale='standard' or 'minmax'"
            )
        n_threads = resolve(n_jobs)
        scaled = _core.scale_queries(rows.core, queries.offsets, queries.order, n_threads)
        entries = np.asarray(scaled)  # of the type of the rows
        if isinstance(rows, CsrRows):
            return replace(rows, values=entries)
        return DenseRows(entries.reshape(rows.shape))

    def check_indicators(self) -> None:
        """Refuse indicators of missing values where rows are divided by ranges within queries."""
        if self.needs_queries:
            raise ValueError(
                "missing='indicator' cannot be scaled within queries; use missing='mean', or "
                "another scale than 'query'"
            )

    def transformed(self, data: Dataset, *, n_jobs: int | None = None) -> Dataset:
        """The same data with the rows of `transform`."""
        if data.filling is not None and len(data.filling.columns):
            self.check_indicators()
        rows = self.transform(data.rows, data.queries, n_jobs=n_jobs)
        return data if rows is data.rows else replace(data, rows=rows)

    def applied(self, data: Dataset, *, n_jobs: int | None = None) -> Dataset:
        """The data with its rows multiplied out, for loops over single rows that know no factors.

        A copy of the values unless the kind is ``none``; refused if it does not fit the memory.
        """
        if self.kind == "none":
            return data
        queries = data.queries if self.needs_queries else None
        return replace(data, rows=self.rows(data.rows, queries, n_jobs=n_jobs))

    def rows(
        self, rows: Rows, queries: Queries | None = None, *, n_jobs: int | None = None
    ) -> Rows:
        """The rows as the scaling makes them, multiplied out; kernels and single steps need that.

        Parameters
        ----------
        rows : DenseRows or CsrRows
            Raw rows.
        queries : Queries or None
            How they are grouped; needed for the kind ``query`` only.
        n_jobs : int or None
            Threads; see :func:`linrank.system.resources.resolve`.

        Returns
        -------
        DenseRows or CsrRows
            `rows` itself for the kind ``none``, else a copy of their type, each product computed in
            double and rounded once. It is refused if it does not fit into memory.
        """
        if self.kind == "none":
            return rows
        remedy = "use scale='none' on rows that are scaled already, or float32"
        check_fits(rows.values.nbytes, f"the rows scaled by scale={self.kind!r}", remedy)
        if self.factors is None:
            if queries is None:
                raise ValueError("scale='query' divides by ranges within a query: give the queries")
            return self.transform(rows, queries, n_jobs=n_jobs)
        if rows.shape[1] != len(self.factors):
            raise ValueError(f"{len(self.factors)} scaling factors for {rows.shape[1]} features")
        with np.errstate(over="ignore"):
            scaled = _multiply(rows, self.factors)
        place = _core.first_non_finite(scaled.core, resolve(n_jobs))
        if place is not None:
            raise ValueError(
                f"scale={self.kind!r} multiplies the value at row {place[0]}, column {place[1]} by "
                f"{self.factors[place[1]]:g}, which is too large for {rows.dtype}; rescale that "
                "feature, or use float64"
            )
        return scaled

    def of_first(self, n_features: int) -> Scaling:
        """The scaling of the first features only."""
        if self.factors is None or len(self.factors) == n_features:
            return self
        return replace(self, factors=self.factors[:n_features])

    def fold(self, w: Array) -> Array:
        """Weights of the scaled features as coefficients of the raw ones, ``d ∘ w``."""
        return np.array(w, dtype=np.float64) if self.factors is None else self.factors * w

    def unfold(self, coef: Array) -> Array:
        """The inverse of :meth:`fold`; 0 for a feature that the scaling removes."""
        if self.factors is None:
            return np.array(coef, dtype=np.float64)
        kept = self.factors != 0.0
        return np.divide(coef, self.factors, out=np.zeros_like(self.factors), where=kept)


def _multiply(rows: Rows, factors: Array) -> Rows:
    """Every column times its factor; entries of sparse rows a block at a time."""
    values = np.empty(rows.values.shape, rows.dtype)
    if isinstance(rows, DenseRows):
        np.multiply(rows.values, factors, out=values, casting="same_kind")
        return DenseRows(values)
    for begin in range(0, len(values), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        by_entry = factors[rows.columns[block]]
        np.multiply(rows.values[block], by_entry, out=values[block], casting="same_kind")
    return replace(rows, values=values)
