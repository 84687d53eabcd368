"""Arenas: rows of a stream in memory that is taken once and never grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.joining import as_sparse
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.errors import CheckpointError
from linrank.memory import describe_bytes
from linrank.stochastic.checkpoint import fill
from linrank.stochastic.storage import copy_into

__all__ = [
    "ROW_COST",
    "Arena",
    "CsrArena",
    "DenseArena",
    "arena_for",
    "most_of",
]

Array = NDArray[Any]
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
