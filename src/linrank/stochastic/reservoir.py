"""Buffer: the rows of a stream that are remembered, and the pairs that new rows make with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import as_sparse
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.errors import CheckpointError
from linrank.options import STREAM_SAMPLINGS
from linrank.stochastic.checkpoint import fill, nested, prefixed
from linrank.system.resources import describe_bytes

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


ROW_COST = 128  # bytes of the index for a row that is alone in its query: the most there can be
_CHUNK = 1 << 18  # elements moved at a time: a temporary of a megabyte or two


def most_of(capacity: int) -> int:
    """How much of a capacity may be in use.

    Closing the gaps then frees a quarter of it: a row is moved three times on average, however
    small the batches.
    """
    return capacity * 3 // 4


class DenseArena:
    """Rows of float32, one after the other."""

    storage = "dense"

    def __init__(self, memory: int, n_columns: int) -> None:
        self.memory, self.n_columns, self.most_size = memory, n_columns, 0
        # Addresses for the widest rows; the system gives memory to those that are written to.
        self._flat = np.empty(memory // 4, np.float32)
        self._set_stride(n_columns)

    def _set_stride(self, stride: int) -> None:
        self.stride = stride
        self.capacity = self.memory // (4 * stride + ROW_COST)
        self.most_rows = most_of(self.capacity)

    @property
    def _table(self) -> Array:
        return self._flat[: self.capacity * self.stride].reshape(self.capacity, self.stride)

    def sizes(self, rows: Rows) -> Array:
        """The room that each row takes beside its place: none."""
        return np.zeros(rows.shape[0], np.int64)

    def has_room(self, n_used: int, rows: Rows) -> bool:
        return n_used + rows.shape[0] <= self.capacity

    def append(self, rows: Rows, at: int) -> None:
        """Copy rows to the places from ``at``; columns that they lack are 0."""
        copy_into(self._table[at : at + rows.shape[0]], rows)

    def keep(self, kept: Array) -> None:
        """Move the rows at ``kept``, which increase, to the front."""
        table, n = self._table, max(1, _CHUNK // max(self.stride, 1))
        # Row kept[i] >= i: what a chunk writes over has been moved already, or is in the chunk.
        for begin in range(0, len(kept), n):
            chunk = kept[begin : begin + n]
            table[begin : begin + len(chunk)] = table[chunk]

    def _stride_of(self, n_columns: int) -> int:
        # With room to spare, so that rows are not moved for each single new column.
        return self.stride if n_columns <= self.stride else max(n_columns, self.stride * 5 // 4)

    def capacity_of(self, n_columns: int) -> int:
        """Places for rows of so many columns."""
        return self.memory // (4 * self._stride_of(n_columns) + ROW_COST)

    def widen(self, n_columns: int, n_used: int) -> None:
        """Make place for more columns, in place; the rows in use must fit."""
        stride = self._stride_of(n_columns)
        if stride == self.stride:
            self.n_columns = n_columns
            return
        old = self._table
        self.n_columns = n_columns
        self._set_stride(stride)
        new, n = self._table, max(1, _CHUNK // stride)
        for end in range(n_used, 0, -n):  # backwards: row i moves to the right
            begin = max(0, end - n)
            chunk = old[begin:end].copy()
            new[begin:end, : chunk.shape[1]] = chunk
            new[begin:end, chunk.shape[1] :] = 0

    def view(self, n_used: int) -> Rows:
        return DenseRows(self._table[:n_used, : self.n_columns])

    def state(self, n_used: int) -> dict[str, Any]:
        """All of it; the arrays are views."""
        return {
            "storage": self.storage,
            "n_columns": self.n_columns,
            "stride": self.stride,
            "n_rows": n_used,
            "values": self._flat[: n_used * self.stride],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of an arena that was made with as much memory."""
        n_columns, stride, n = (int(state[name]) for name in ("n_columns", "stride", "n_rows"))
        if not 1 <= n_columns <= stride <= len(self._flat):
            raise CheckpointError("the buffer of the checkpoint has columns that make no sense")
        self.n_columns = n_columns
        self._set_stride(stride)
        if not 0 <= n <= self.capacity:
            raise CheckpointError("the buffer of the checkpoint does not fit into its memory")
        fill(state, "values", self._flat[: n * stride])


class CsrArena:
    """Sparse rows of float32, one after the other."""

    storage = "csr"

    def __init__(self, memory: int, n_columns: int, entries_per_row: int) -> None:
        self.n_columns = n_columns
        self.entries_per_row = entries_per_row
        self.capacity = memory // (8 * entries_per_row + 8 + ROW_COST)
        n_entries = max(0, memory - self.capacity * (8 + ROW_COST)) // 8
        self._values = np.empty(n_entries, np.float32)
        self._columns = np.empty(n_entries, np.int32)
        self._offsets = np.zeros(self.capacity + 1, np.int64)
        self.n_used = self._n_checked = 0
        self.most_rows, self.most_size = most_of(self.capacity), most_of(n_entries)

    def sizes(self, rows: Rows) -> Array:
        """The entries of each row."""
        if isinstance(rows, DenseRows):
            return np.asarray(np.count_nonzero(rows.values, axis=1), np.int64)
        return np.diff(rows.offsets)

    def has_room(self, n_used: int, rows: Rows) -> bool:
        n_entries = int(self._offsets[n_used]) + int(self.sizes(rows).sum())
        return n_used + rows.shape[0] <= self.capacity and n_entries <= len(self._values)

    def append(self, rows: Rows, at: int) -> None:
        """Copy rows to the places from ``at``."""
        csr = as_sparse(rows) if isinstance(rows, DenseRows) else rows
        first, last = int(csr.offsets[0]), int(csr.offsets[-1])
        begin = int(self._offsets[at])
        self._values[begin : begin + last - first] = csr.values[first:last]
        self._columns[begin : begin + last - first] = csr.columns[first:last]
        places = self._offsets[at + 1 : at + csr.shape[0] + 1]
        np.add(csr.offsets[1:], begin - first, out=places)
        self.n_used = at + csr.shape[0]

    def keep(self, kept: Array) -> None:
        """Move the rows at ``kept``, which increase, to the front."""
        begins, sizes = self._offsets[kept], self._offsets[kept + 1] - self._offsets[kept]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        row = 0
        while row < len(kept):
            # Whole rows of about _CHUNK entries; a longer one goes alone.
            end = int(np.searchsorted(offsets, offsets[row] + _CHUNK, side="right")) - 1
            end = max(end, row + 1)
            part = slice(int(offsets[row]), int(offsets[end]))
            shift = np.repeat(begins[row:end] - offsets[row:end], sizes[row:end])
            entries = np.arange(part.start, part.stop) + shift
            self._values[part] = self._values[entries]
            self._columns[part] = self._columns[entries]
            row = end
        self._offsets[: len(offsets)] = offsets
        self.n_used = self._n_checked = len(kept)

    def capacity_of(self, n_columns: int) -> int:
        """Places for rows, whatever their columns."""
        return self.capacity

    def widen(self, n_columns: int, n_used: int) -> None:
        """Allow more columns."""
        self.n_columns = n_columns

    def view(self, n_used: int) -> Rows:
        n_entries = int(self._offsets[n_used])
        values, columns = self._values[:n_entries], self._columns[:n_entries]
        rows = CsrRows(values, columns, self._offsets[: n_used + 1], self.n_columns)
        # The rows of earlier views have been checked: a batch of one row costs one row.
        vars(rows)["core"] = _core.csr_rows(
            values, columns, rows.offsets, self.n_columns, min(self._n_checked, n_used)
        )
        self._n_checked = n_used
        return rows

    def state(self, n_used: int) -> dict[str, Any]:
        """All of it; the arrays are views."""
        n_entries = int(self._offsets[n_used])
        return {
            "storage": self.storage,
            "n_columns": self.n_columns,
            "entries_per_row": self.entries_per_row,
            "n_rows": n_used,
            "n_entries": n_entries,
            "values": self._values[:n_entries],
            "columns": self._columns[:n_entries],
            "offsets": self._offsets[: n_used + 1],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state of an arena that was made with as much memory."""
        n, n_entries = int(state["n_rows"]), int(state["n_entries"])
        if not (0 <= n <= self.capacity and 0 <= n_entries <= len(self._values)):
            raise CheckpointError("the buffer of the checkpoint does not fit into its memory")
        fill(state, "values", self._values[:n_entries])
        fill(state, "columns", self._columns[:n_entries])
        fill(state, "offsets", self._offsets[: n + 1])
        if self._offsets[0] != 0 or self._offsets[n] != n_entries:
            raise CheckpointError("the rows of the buffer do not match their entries")
        self.n_used, self._n_checked = n, 0
        self.view(n)  # checks offsets and columns


Arena = DenseArena | CsrArena


def arena_for(rows: Rows, memory: int, n_columns: int) -> Arena:
    """An arena of the storage of ``rows``; MemoryError if it would not hold even a few."""
    arena: Arena
    if isinstance(rows, DenseRows):
        arena = DenseArena(memory, n_columns)
    else:
        per_row = -(-int(rows.offsets[-1] - rows.offsets[0]) // max(1, rows.shape[0]))
        arena = CsrArena(memory, n_columns, max(1, per_row))
    if arena.most_rows < 2:
        raise MemoryError(
            f"a buffer of {describe_bytes(memory)} holds {arena.most_rows} rows of "
            f"{n_columns} features; it must hold 2 at least: give it more memory"
        )
    return arena


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
