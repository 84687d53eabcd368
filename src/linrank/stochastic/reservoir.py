"""Buffer: the rows of a stream that are remembered, and the pairs that new rows make with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import STREAM_SAMPLINGS
from linrank.data import Array, CsrRows, DenseRows, Rows, as_dense, as_sparse
from linrank.errors import CheckpointError
from linrank.stochastic.checkpoint import fill
from linrank.system.resources import describe_bytes

ROW_COST = 128  # bytes of the index for a row that is alone in its query: the most there can be
_CHUNK = 1 << 18  # elements moved at a time: a temporary of a megabyte or two


def most_of(capacity: int) -> int:
    """How much of a capacity may be in use.

    Closing the gaps then frees a quarter of it: a row is moved three times on average, however
    small the batches.
    """
    return capacity * 3 // 4


class DenseArena:
    """Rows of float32, one after the other.

    Parameters
    ----------
    memory : int
        Bytes, index included.
    n_columns : int
        Of the rows.
    stride : int
        Places from one row to the next.
    """

    storage, most_size = "dense", 0

    def __init__(self, memory: int, n_columns: int, stride: int) -> None:
        self.n_columns, self.per_row = n_columns, stride
        self.capacity = memory // (4 * stride + ROW_COST)
        self.most_rows = most_of(self.capacity)
        # Addresses for all rows; the system gives memory to those that are written to.
        self._table = np.empty((self.capacity, stride), np.float32)

    def sizes(self, rows: Rows) -> Array:
        """The room that each row takes beside its place: none."""
        return np.zeros(rows.shape[0], np.int64)

    def has_room(self, n_used: int, rows: Rows) -> bool:
        return n_used + rows.shape[0] <= self.capacity

    def append(self, rows: Rows, at: int) -> None:
        """Copy rows to the places from ``at``; columns that they lack are 0."""
        n, width = rows.shape
        table = self._table[at : at + n]
        table[:, :width] = as_dense(rows).values
        table[:, width:] = 0

    def keep(self, kept: Array) -> None:
        """Move the rows at ``kept``, which increase, to the front."""
        table, n = self._table, max(1, _CHUNK // self.per_row)
        # Row kept[i] >= i: what a chunk writes over has been moved already, or is in the chunk.
        for begin in range(0, len(kept), n):
            chunk = kept[begin : begin + n]
            table[begin : begin + len(chunk)] = table[chunk]

    def view(self, n_used: int) -> Rows:
        return DenseRows(self._table[:n_used, : self.n_columns])

    def arrays(self, n_rows: int) -> dict[str, Array]:
        """Views of what the first rows take, to be saved or filled; as many as fit."""
        return {"values": self._table[:n_rows]}


class CsrArena:
    """Sparse rows of float32, one after the other.

    Parameters
    ----------
    memory, n_columns
        As of `DenseArena`.
    per_row : int
        Entries that a row is expected to have, which decides on the number of rows.
    """

    storage = "csr"

    def __init__(self, memory: int, n_columns: int, per_row: int) -> None:
        self.n_columns, self.per_row = n_columns, per_row
        self.capacity = memory // (8 * per_row + 8 + ROW_COST)
        n_entries = max(0, memory - self.capacity * (8 + ROW_COST)) // 8
        self._values = np.empty(n_entries, np.float32)
        self._columns = np.empty(n_entries, np.int32)
        self._offsets = np.zeros(self.capacity + 1, np.int64)
        self._n_checked = 0
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
        csr = as_sparse(rows)
        first, last = int(csr.offsets[0]), int(csr.offsets[-1])
        begin = int(self._offsets[at])
        self._values[begin : begin + last - first] = csr.values[first:last]
        self._columns[begin : begin + last - first] = csr.columns[first:last]
        places = self._offsets[at + 1 : at + csr.shape[0] + 1]
        np.add(csr.offsets[1:], begin - first, out=places)

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
        self._n_checked = len(kept)

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

    def arrays(self, n_rows: int) -> dict[str, Array]:
        """Views of what the first rows take, to be saved or filled, the offsets first."""
        offsets = self._offsets[: n_rows + 1]
        n_entries = max(0, int(offsets[-1]))
        values, columns = self._values[:n_entries], self._columns[:n_entries]
        return {"offsets": offsets, "values": values, "columns": columns}


Arena = DenseArena | CsrArena


_BOUNDS = (256, 4096)  # rows of a level of a query, and of a query
_INDEX = ("ids", "labels", "sizes", "recency", "n_forgotten")  # the state of `StreamIndex`


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

    What is remembered: of each label of each query the youngest 256 rows, so that a few relevant
    rows outlive a flood of others; of each query the youngest 4096; and when the memory is used up,
    the queries that were seen least recently are forgotten.

    Parameters
    ----------
    memory : int
        Bytes, all told: rows, labels, query ids and their index.
    sampling : {"pairs", "query", "roc"}
        How `NewPairs` are drawn: every pair alike; every query of the batch alike and its pairs
        alike; or as "pairs" with all rows in one query and the labels > 0 above the others.
    """

    def __init__(self, memory: int, sampling: str = "pairs") -> None:
        if sampling not in STREAM_SAMPLINGS:
            raise ValueError(
                f"sampling must be one of {', '.join(STREAM_SAMPLINGS)} for a stream, "
                f"got {sampling!r}; the others need all data in memory"
            )
        self.memory, self.sampling = int(memory), sampling
        self._index = _core.StreamIndex(*_BOUNDS)
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
        arena, (n, width) = self._arena_for(rows), rows.shape
        self._index.touch(ids)  # of the queries that are here already, the batch's stay longest
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
        n_queries = self.n_queries
        arena.append(rows, int(self._index.n_used))
        order, above, above_end, below, below_end, query, n_pairs = self._index.add(
            ids, labels, sizes
        )
        self.n_new_queries += self.n_queries - n_queries
        if n_pairs == 0:
            return None
        n_above, n_below = above_end - above, below_end - below
        weights = (n_above * n_below).astype(np.float64)
        if self.sampling == "query":
            weights /= np.bincount(query, weights)[query]
        return NewPairs(_core.cell_sampler(order, above, n_above, below, n_below, weights), n_pairs)

    def _arena_for(self, rows: Rows) -> Arena:
        """The arena for rows like these; with more columns it may be another one."""
        old, width = self._arena, rows.shape[1]
        if old is not None:
            most = old.per_row if isinstance(rows, DenseRows) else old.n_columns
            if isinstance(old, CsrArena) or width <= most:
                old.n_columns = max(old.n_columns, width)
                return old
        arena: Arena
        if isinstance(rows, DenseRows):  # a later one leaves columns free
            arena = DenseArena(self.memory, width, width if old is None else width + width // 4)
        else:
            per_row = -(-int(rows.offsets[-1] - rows.offsets[0]) // max(1, rows.shape[0]))
            arena = CsrArena(self.memory, width, max(1, per_row))
        if arena.most_rows < 2:
            raise MemoryError(
                f"a buffer of {describe_bytes(self.memory)} holds {arena.most_rows} rows of "
                f"{width} features; it must hold 2 at least: give it more memory"
            )
        if old is not None:
            # Of dense rows an eighth moves, at most: for a moment the memory has both. Sparse rows
            # that bring new columns come where sparse is the smaller storage: it starts from none.
            most = min(old.most_rows, arena.most_rows) // 8 if arena.storage == "dense" else 0
            self._index.evict(most, 0)
            old.keep(self._index.compact())
            arena.append(old.view(self.n_rows), 0)
        self._index.reserve(arena.capacity)
        self._arena = arena
        return arena

    def clear(self) -> None:
        """Begin anew; rows that are not remembered any more do not count as forgotten."""
        none, labels = np.empty(0, np.int64), np.empty(0)
        n_forgotten = self.n_forgotten
        self._index = _core.StreamIndex(*_BOUNDS)
        self._index.restore(none, labels, none, none, n_forgotten)
        if self._arena is not None:
            self._arena.keep(none)
            self._index.reserve(self._arena.capacity)

    # ---- checkpoints ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that `restore` needs; large arrays are views, valid until rows are added."""
        if (arena := self._arena) is None:
            return {}
        if self._index.n_used > self._index.n_rows:
            arena.keep(self._index.compact())
        return {
            "index": dict(zip(_INDEX, self._index.state(), strict=True)),
            "n_new_queries": self.n_new_queries,
            "storage": arena.storage,
            "n_columns": arena.n_columns,
            "per_row": arena.per_row,
            "arrays": arena.arrays(self.n_rows),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where the buffer of the state stood; this one must have the same options."""
        if not state:
            return
        *arrays, n_forgotten = (state["index"][name] for name in _INDEX)
        ids, labels, sizes, recency = map(np.ascontiguousarray, arrays)
        self._index = _core.StreamIndex(*_BOUNDS)
        self._index.restore(ids, labels, sizes, recency, int(n_forgotten))
        kind = DenseArena if state["storage"] == "dense" else CsrArena
        n_columns, per_row = int(state["n_columns"]), int(state["per_row"])
        most = per_row if kind is DenseArena else np.iinfo(np.int32).max
        if not (1 <= n_columns <= most and 1 <= per_row <= self.memory):
            raise CheckpointError("the buffer of the checkpoint has columns that make no sense")
        arena = kind(self.memory, n_columns, per_row)
        if self.n_rows > arena.capacity:
            raise CheckpointError("the buffer of the checkpoint does not fit into its memory")
        for name in arena.arrays(0):  # offsets come first: they say how long the others are
            fill(arena.arrays(self.n_rows)[name], state["arrays"][name])
        arena.view(self.n_rows)  # checks offsets and columns
        self._index.reserve(arena.capacity)
        self._arena = arena
        self.n_new_queries = int(state["n_new_queries"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffer, (self.memory, self.sampling), self.state()

    __setstate__ = restore
