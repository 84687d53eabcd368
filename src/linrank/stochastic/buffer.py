"""Buffer: the rows of a stream that are remembered, and the pairs that new rows make with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import CsrRows, Rows
from linrank.errors import CheckpointError
from linrank.options import STREAM_SAMPLINGS
from linrank.stochastic.arena import Arena, CsrArena, DenseArena, arena_for, most_of
from linrank.stochastic.checkpoint import nested, prefixed

__all__ = ["ROWS_PER_LEVEL", "ROWS_PER_QUERY", "Buffer", "NewPairs"]

Array = NDArray[Any]
ROWS_PER_LEVEL = 256
ROWS_PER_QUERY = 4096


@dataclass(frozen=True, eq=False)
class NewPairs:
    """The pairs of a batch: those with at least one row that is new.

    Attributes
    ----------
    core : _core.PairSampler
        Draws pairs of rows of the buffer, until rows are added to it.
    n_pairs : int
        How many pairs there are, exactly.
    """

    core: Any
    n_pairs: int


class Buffer:
    """A bounded memory of a stream of rows.

    Every pair (i above j) of the stream belongs to the batch in which the later of its rows
    arrives; if nothing was forgotten in between, every pair belongs to exactly one batch.

    What is remembered: of each label of each query the youngest ``rows_per_level`` rows, so that
    a few relevant rows outlive a flood of others; of each query the youngest ``rows_per_query``;
    and when the memory is used up, the queries that were seen least recently are forgotten.

    Parameters
    ----------
    memory : int
        Bytes, all told: rows, labels, query ids and their index.
    sampling : {"pairs", "query", "roc"}
        How `NewPairs` are drawn: every pair alike; every query of the batch alike and its pairs
        alike; or as "pairs" with all rows in one query and the labels > 0 above the others.
    rows_per_level, rows_per_query : int
        See above.
    """

    def __init__(
        self,
        memory: int,
        *,
        sampling: str = "pairs",
        rows_per_level: int = ROWS_PER_LEVEL,
        rows_per_query: int = ROWS_PER_QUERY,
    ) -> None:
        if sampling not in STREAM_SAMPLINGS:
            raise ValueError(
                f"sampling must be one of {', '.join(STREAM_SAMPLINGS)} for a stream, "
                f"got {sampling!r}; the others need all data in memory"
            )
        for name, value in (("rows_per_level", rows_per_level), ("rows_per_query", rows_per_query)):
            if value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        self.memory, self.sampling = int(memory), sampling
        self.bounds = (int(rows_per_level), int(rows_per_query))
        self._index = _core.StreamIndex(*self.bounds)
        self._arena: Arena | None = None
        self.n_new_queries = 0

    @property
    def n_rows(self) -> int:
        """Rows remembered."""
        return int(self._index.n_rows)

    @property
    def n_queries(self) -> int:
        """Queries remembered."""
        return int(self._index.n_queries)

    @property
    def n_forgotten(self) -> int:
        """Rows forgotten since the beginning."""
        return int(self._index.n_forgotten)

    @property
    def rows(self) -> Rows:
        """The rows that `NewPairs` refer to; a view, until rows are added."""
        if self._arena is None:
            raise ValueError("the buffer has no rows yet")
        return self._arena.view(int(self._index.n_used))

    def parts(self, rows: Rows, most: int) -> list[slice]:
        """Cut a batch into parts of at most ``most`` rows that can be added one by one."""
        arena = self._arena_for(rows)
        most = min(most, max(1, arena.most_rows // 2))
        n = rows.shape[0]
        if isinstance(arena, DenseArena):
            return [slice(i, min(i + most, n)) for i in range(0, n, most)]
        ends, most_size = np.cumsum(arena.sizes(rows)), max(1, arena.most_size // 2)
        parts, begin = [], 0
        while begin < n:
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + most_size, side="right"))
            end = max(begin + 1, min(end, begin + most, n))
            parts.append(slice(begin, end))
            begin = end
        return parts

    def add(self, rows: Rows, labels: Array, ids: Array) -> NewPairs | None:
        """Add a batch; return the pairs that it makes, None if there are none.

        Parameters
        ----------
        rows : DenseRows or CsrRows
            float32. The storage of the first batch is kept; more columns than before are welcome.
        labels : float64 array (n_rows,)
            Finite.
        ids : int64 array (n_rows,)
            Number of the query of each row; "roc" does not look at it.
        """
        if self.sampling == "roc":
            ids, labels = np.zeros(len(labels), np.int64), (labels > 0).astype(np.float64)
        arena = self._arena_for(rows)
        sizes = self._make_room(arena, rows, ids)
        n_queries, n_used = self.n_queries, int(self._index.n_used)
        arena.append(rows, n_used)
        cells = self._index.add(ids, labels, sizes)
        self.n_new_queries += self.n_queries - n_queries
        return self._sampler(*cells)

    def _arena_for(self, rows: Rows) -> Arena:
        arena = self._arena
        wider = arena is not None and rows.shape[1] > arena.n_columns
        if wider and isinstance(arena, DenseArena) and isinstance(rows, CsrRows):
            # Sparse rows with new columns: sparse has come to be the smaller storage. Dense rows
            # and sparse copies of them would take twice the memory, so it starts from nothing.
            self._index.evict(0, 0)
            self._index.compact()
            arena = self._arena = None
        if arena is None:
            arena = self._arena = arena_for(rows, self.memory, rows.shape[1])
            self._index.reserve(arena.capacity)
        return arena

    def _make_room(self, arena: Arena, rows: Rows, ids: Array) -> Array:
        """Forget and move what is in the way of ``rows``; their sizes."""
        n, width = rows.shape
        self._index.touch(ids)  # of the queries that are here already, the batch's stay longest
        if width > arena.n_columns:
            self._widen(arena, width)
        sizes = arena.sizes(rows)
        n_entries = int(sizes.sum())
        if n > arena.most_rows or n_entries > arena.most_size:
            raise MemoryError(
                f"a batch of {n} rows and {width} columns does not fit into a buffer of "
                f"{self.memory} bytes; give it more memory, or smaller batches"
            )
        self._index.evict(arena.most_rows - n, arena.most_size - n_entries)
        if not arena.has_room(int(self._index.n_used), rows):
            arena.keep(self._index.compact())
        return sizes

    def _widen(self, arena: Arena, n_columns: int) -> None:
        """Make place for more columns. Wider rows are fewer; how many must not depend on gaps,
        which a buffer that was saved does not have."""
        capacity = arena.capacity_of(n_columns)
        self._index.evict(most_of(capacity), arena.most_size)
        if self._index.n_used > capacity:
            arena.keep(self._index.compact())
        arena.widen(n_columns, int(self._index.n_used))

    def _sampler(
        self,
        order: Array,
        winners: Array,
        winners_end: Array,
        losers: Array,
        losers_end: Array,
        query: Array,
        n_pairs: int,
    ) -> NewPairs | None:
        if n_pairs == 0:
            return None
        n_winners, n_losers = winners_end - winners, losers_end - losers
        weights = (n_winners * n_losers).astype(np.float64)
        if self.sampling == "query":
            weights /= np.bincount(query, weights)[query]
        core = _core.cell_sampler(order, winners, n_winners, losers, n_losers, weights)
        return NewPairs(core, n_pairs)

    def clear(self) -> None:
        """Begin anew; rows that are not remembered any more do not count as forgotten."""
        none, labels = np.empty(0, np.int64), np.empty(0)
        self._index = _core.StreamIndex.restore(
            *self.bounds, none, labels, none, none, self.n_forgotten
        )
        if self._arena is not None:
            self._arena.keep(none)
            self._index.reserve(self._arena.capacity)

    # ---- checkpoints ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that `restore` needs; large arrays are views, valid until rows are added."""
        if self._arena is None:
            return {"is_open": False}
        arena = self._arena
        if self._index.n_used > self._index.n_rows:
            arena.keep(self._index.compact())
        ids, labels, sizes, recency, n_forgotten = self._index.state()
        return {
            "is_open": True,
            "ids": ids,
            "labels": labels,
            "sizes": sizes,
            "recency": recency,
            "n_forgotten": n_forgotten,
            "n_new_queries": self.n_new_queries,
            **prefixed("arena", arena.state(self.n_rows)),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where the buffer of the state stood; this one must have the same options."""
        if not state["is_open"]:
            return
        part = nested(state, "arena")
        n_columns, n_rows = int(part["n_columns"]), int(part["n_rows"])
        arena: Arena
        if part["storage"] == "dense":
            arena = DenseArena(self.memory, n_columns)
        else:
            arena = CsrArena(self.memory, n_columns, max(1, int(part["entries_per_row"])))
        names = ("ids", "labels", "sizes", "recency")
        ids, labels, sizes, recency = (np.ascontiguousarray(state[name]) for name in names)
        if not len(ids) == len(labels) == len(sizes) == n_rows:
            raise CheckpointError("the rows of the buffer and their labels differ in number")
        arena.restore(part)
        self._index = _core.StreamIndex.restore(
            *self.bounds, ids, labels, sizes, recency, int(state["n_forgotten"])
        )
        self._index.reserve(arena.capacity)
        self._arena = arena
        self.n_new_queries = int(state["n_new_queries"])
