"""Rectangles: one dual variable for each pair, a dense matrix per query, all in one flat buffer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linrank import _core
from linrank.data.rows import Array
from linrank.pairs import Pairs
from linrank.system.resources import PickledFields, cached_property, check_fits, too_small

BUFFERS = 4  # α, the best α so far, A and what couples them: eight bytes per entry each


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
    def _weight(self) -> Array:
        """What the pairs of each query weigh."""
        weight, c = self.pairs.weight_by_query, self.pairs.query_weight
        return weight if c is None else weight * c

    @cached_property
    def query(self) -> Array:
        """The query of each block, as `Queries` numbers them: those whose pairs have a weight."""
        return np.flatnonzero((self.pairs.queries.n_levels > 1) & (self._weight > 0.0))

    @cached_property
    def core(self) -> _core.Rectangles:
        """The same for the core."""
        pairs = self.pairs
        weights = pairs.row_weight, pairs.query_weight
        return _core.rectangles(*pairs.queries.ranked, self.query, *weights, self.C)

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
        return np.asarray(values[self.offsets[k] : self.offsets[k + 1]].reshape(self.shapes[k]))

    def block(self, k: int) -> Array:
        """Block ``k`` of ``values``, a view."""
        return self.block_of(self.values, k)

    def rows(self, k: int) -> Array:
        """The rows of the data that the rows of block ``k`` stand for."""
        return self._by_row(np.asarray(self.core.upper), self.core.first_row, k)

    def columns(self, k: int) -> Array:
        """The rows of the data that the columns of block ``k`` stand for."""
        return self._by_row(np.asarray(self.core.lower), self.core.first_column, k)

    def mean_bounds(self) -> Array:
        """The mean of ``C ω_ij`` over the pairs of each block."""
        n_pairs = self.pairs.queries.pairs_per_query
        return np.asarray(self.C * self._weight[self.query] / n_pairs[self.query])

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
    """Entries of all rectangles: rows above the lowest level × rows below the highest."""
    queries = pairs.queries
    query = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    sides = (queries.levels > 0, queries.levels < queries.n_levels[query] - 1)
    above, below = (np.bincount(query[side], minlength=queries.n_queries) for side in sides)
    return int(above @ below)
