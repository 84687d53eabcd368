"""Rectangles: one dual variable for each pair, a dense matrix a query, all in one flat buffer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linrank import _core
from linrank.data.rows import Array
from linrank.pairs import Pairs
from linrank.system.resources import PickledFields, cached_property, check_fits, too_small

BUFFERS = 4  # α, the best α so far, A and what couples them: eight bytes an entry each


@dataclass(frozen=True, eq=False)
class Rectangles(PickledFields):
    """``P(α)``, block by block: the dual variables of each query that has pairs.

    The rows of a block are the rows of the data above the lowest level of the query, its columns
    those below the highest, both by ascending level. The pairs of a row are then a prefix of its
    columns, of as many as lie below it; other entries are 0. With two levels all entries are pairs.

    Attributes
    ----------
    pairs : Pairs
        The pairs and their weights ω.
    C : float
        ``0 <= α_ij <= C ω_ij``.
    values : float64 array (n_entries,)
        The blocks one after the other, each row by row.
    """

    pairs: Pairs
    C: float
    values: Array = field(default_factory=lambda: np.zeros(0), repr=False)

    @cached_property
    def query(self) -> Array:
        """The query of each block, as `Queries` numbers them: those whose pairs have a weight."""
        weight = self.pairs.weight_by_query
        if self.pairs.query_weight is not None:
            weight = weight * self.pairs.query_weight
        chosen: Array = np.flatnonzero((self.pairs.queries.n_levels > 1) & (weight > 0.0))
        return chosen

    @cached_property
    def core(self) -> _core.Rectangles:
        """The same for the core."""
        pairs, queries = self.pairs, self.pairs.queries
        return _core.rectangles(
            queries.offsets,
            queries.levels,
            queries.n_levels,
            self.query,
            pairs.row_weight,
            pairs.query_weight,
            self.C,
        )

    @cached_property
    def offsets(self) -> Array:
        """Where each block begins in the buffer, and the end."""
        return np.asarray(self.core.offsets)

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of each block."""
        n_rows, n_columns = np.diff(self.core.first_row), np.diff(self.core.first_column)
        return [(int(m), int(n)) for m, n in zip(n_rows, n_columns, strict=True)]

    @property
    def n_blocks(self) -> int:
        return len(self.query)

    @property
    def n_entries(self) -> int:
        """Length of the buffer."""
        return int(self.offsets[-1])

    def block_of(self, values: Array, k: int) -> Array:
        """Block ``k`` of a buffer, a view."""
        view: Array = values[self.offsets[k] : self.offsets[k + 1]].reshape(self.shapes[k])
        return view

    def block(self, k: int) -> Array:
        """Block ``k`` of ``values``, a view."""
        return self.block_of(self.values, k)

    def rows(self, k: int) -> Array:
        """The rows of the data that the rows of block ``k`` stand for."""
        return self._by_row(np.asarray(self.core.upper), self.core.first_row, k)

    def columns(self, k: int) -> Array:
        """The rows of the data that the columns of block ``k`` stand for."""
        return self._by_row(np.asarray(self.core.lower), self.core.first_column, k)

    def n_pairs(self, k: int) -> Array:
        """Pairs of each row of block ``k``: so many columns, from the first on."""
        first = self.core.first_row
        return np.asarray(self.core.n_pairs)[first[k] : first[k + 1]]

    def bounds(self, k: int) -> Array:
        """``C ω_ij`` of block ``k``; 0 where there is no pair."""
        rows, columns = self.core.first_row, self.core.first_column
        upper = np.asarray(self.core.row_bound)[rows[k] : rows[k + 1]]
        lower = np.asarray(self.core.column_bound)[columns[k] : columns[k + 1]]
        is_pair = np.arange(len(lower)) < self.n_pairs(k)[:, np.newaxis]
        bound: Array = np.where(is_pair, np.outer(upper, lower), 0.0)
        return bound

    def mean_bounds(self) -> Array:
        """The mean of ``C ω_ij`` over the pairs of each block."""
        weight = self.pairs.weight_by_query
        if self.pairs.query_weight is not None:
            weight = weight * self.pairs.query_weight
        n_pairs = self.pairs.queries.pairs_per_query
        mean: Array = self.C * weight[self.query] / n_pairs[self.query]
        return mean

    def name(self, k: int) -> str:
        """The query of block ``k`` in words."""
        ids = self.pairs.queries.ids
        return "the only query" if ids is None else f"query {ids.tolist()[self.query[k]]!r}"

    def _by_row(self, positions: Array, first: Array, k: int) -> Array:
        order = self.pairs.queries.order
        own = positions[first[k] : first[k + 1]]
        return own if order is None else order[own]


def check_memory(pairs: Pairs, limit: int | None) -> None:
    """Raise MemoryError where the buffers of training would take more than ``limit`` bytes.

    None is what the system has left. Only counts are looked at: nothing has been allocated.
    """
    n_entries = _count_entries(pairs)
    n_bytes = 8 * BUFFERS * n_entries
    what = (
        f"RegularizedRankSVM with {BUFFERS} numbers for each of {pairs.n_pairs:,} pairs "
        f"({n_entries:,} entries of its matrices)"
    )
    remedy = (
        "use FactorizedRankSVM or RankSVM, whose memory does not grow with the pairs, or train on "
        "a sample of the rows or queries"
    )
    if limit is None:
        check_fits(n_bytes, what, remedy)
    elif n_bytes > limit:
        raise too_small(limit, what, n_bytes, remedy)


def _count_entries(pairs: Pairs) -> int:
    """Entries of all rectangles, exact: rows above the lowest level × rows below the highest."""
    queries = pairs.queries
    sizes = np.diff(queries.offsets)
    first = np.repeat(np.arange(queries.n_queries), sizes)
    lowest = np.bincount(first[queries.levels == 0], minlength=queries.n_queries)
    highest = queries.levels == np.repeat(queries.n_levels - 1, sizes)
    n_highest = np.bincount(first[highest], minlength=queries.n_queries)
    counts = zip((sizes - lowest).tolist(), (sizes - n_highest).tolist(), strict=True)
    return sum(above * below for above, below in counts)
