"""Batches of a fixed number of rows from SVMlight text that need not fit in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.blocks import LongLineError, TextBlocks, open_blocks
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.stochastic.arena import as_sparse, dense_is_smaller
from linrank.stochastic.query_ids import numbers_of_tokens

__all__ = ["BATCH_ROWS", "BLOCK_SIZE", "Batch", "Batches", "Columns"]

Array = NDArray[Any]
BATCH_ROWS = 8192
BLOCK_SIZE = 1 << 18  # as fast as larger ones, in a third of their memory


@dataclass
class Columns:
    """What is known of the columns of a stream; it grows as rows come, over all passes.

    Columns are feature indices as they are written: whether a feature 0 will come, nobody knows.

    Attributes
    ----------
    n_columns : int
        One more than the largest index so far.
    has_zero : bool
        Whether feature 0 has occurred.
    storage : {None, "dense", "csr"}
        How batches are stored; None before the first. Dense becomes CSR, never the reverse.
    """

    n_columns: int = 0
    has_zero: bool = False
    storage: str | None = None

    def first_feature(self, index_base: str) -> int:
        """The index that the first weight belongs to."""
        return int(index_base) if index_base != "auto" else int(not self.has_zero)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some consecutive rows of a stream."""

    rows: Rows
    labels: Array
    ids: Array
    n_bytes: int  # of the input gone through so far, as stored


class Batches:
    """Iterates over the batches of a text; their rows do not depend on how the text arrives.

    Parameters
    ----------
    source : path, "-" or binary file object
        gzip, bzip2, xz and Zstandard are told by their first bytes.
    columns : Columns
        Brought up to date with each batch.
    batch_rows, batch_entries : int
        A batch has so many rows, or fewer if the next row would bring it above so many features
        that are not 0: rows of any length are read in bounded memory.
    index_base : {"auto", "0", "1"}
        "1" makes a feature 0 an error.
    most_columns : int
        An index beyond it is refused before anything is allocated for it.
    remedy : str
        What to do about such an index, or a line that is too long.
    longest_line : int
        Bytes.
    """

    def __init__(
        self,
        source: Any,
        columns: Columns,
        *,
        batch_rows: int = BATCH_ROWS,
        batch_entries: int = 1 << 22,
        index_base: str = "auto",
        most_columns: int = int(_core.MAX_FEATURE) + 1,
        remedy: str = "renumber the features",
        longest_line: int = 64 << 20,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self._text: TextBlocks = open_blocks(source, block_size, longest_line=longest_line)
        self._parser = _core.TextParser32(int(index_base == "1"), int(_core.MAX_FEATURE))
        self._most_columns, self._remedy = most_columns, remedy
        self._batch_rows, self._batch_entries = batch_rows, batch_entries
        self.columns = columns
        self.n_lines = self.n_rows = 0
        self._has_query: bool | None = None

    @property
    def name(self) -> str:
        """The input in messages."""
        return self._text.name

    @property
    def size(self) -> int | None:
        """Bytes of the input as stored; None if nobody knows."""
        return self._text.size

    def __iter__(self) -> Iterator[Batch]:
        """The batches; `DataFormatError` at the first fault, behind the batches before it."""
        waiting: deque[_Part] = deque()
        n_bytes = 0
        for block, n_bytes in self._text.blocks:
            part = self._part(self._parse(block))
            if part is None:
                continue
            waiting.append(part)
            while n := self._next_size(waiting, is_end=False):
                yield self._batch(waiting, n, n_bytes)
        while n := self._next_size(waiting, is_end=True):
            yield self._batch(waiting, n, n_bytes)
        if self.n_rows == 0:
            what = "no line with data" if self.n_lines else "empty"
            raise DataFormatError(f"{self.name}: {what}; expected lines 'label qid:id index:value'")

    # ---- text to parts --------------------------------------------------------------------------

    def _parse(self, block: Any) -> Any:
        if isinstance(block, LongLineError):
            raise DataFormatError(f"{self.name}:{self.n_lines + 1}: {block}; {self._remedy}")
        if isinstance(block, DataFormatError):
            raise block
        piece = self._parser.parse(block)
        mixed = None if self._has_query is None else piece.query_fault(self._has_query)
        if (fault := mixed or piece.fault) is not None:
            line, column, message = fault
            raise DataFormatError(f"{self.name}:{self.n_lines + line}:{column}: {message}")
        if piece.highest >= self._most_columns:
            line, column = piece.highest_place
            raise DataFormatError(
                f"{self.name}:{self.n_lines + line}:{column}: feature index {piece.highest:,} asks "
                f"for more weights than the {self._most_columns:,} that there is memory for; "
                f"{self._remedy}"
            )
        if piece.has_weight:
            raise DataFormatError(
                f"{self.name}: a line from {self.n_lines + 1} to {self.n_lines + piece.n_lines} "
                "has a weight, 'label:weight'; a stream takes none: remove them, or train in memory"
            )
        return piece

    def _part(self, piece: Any) -> _Part | None:
        self.n_lines += piece.n_lines
        n = piece.n_rows
        if n == 0:
            return None
        self._has_query = piece.has_query
        ids, labels = np.zeros(n, np.int64), np.empty(n)
        if piece.has_query and not _core.fill_integer_queries([piece], ids):
            tokens = _core.fill_query_codes([piece], ids)
            ids = numbers_of_tokens(tokens)[ids]
        _core.fill_labels([piece], labels)
        self.columns.has_zero |= piece.lowest == 0
        return _Part(self._rows(piece), labels, ids)

    def _rows(self, piece: Any) -> Rows:
        width = self.columns.n_columns
        if self.columns.storage == "dense" and piece.highest < width:
            x = np.empty((piece.n_rows, width), np.float32)
            _core.fill_dense([piece], x, 0, 1)
            return DenseRows(x)
        n_entries, width = piece.n_entries, max(width, piece.highest + 1)
        values, columns = np.empty(n_entries, np.float32), np.empty(n_entries, np.int32)
        offsets = np.empty(piece.n_rows + 1, np.int64)
        _core.fill_csr([piece], values, columns, offsets, width, 0, 1)
        return _without_zeros(CsrRows(values, columns, offsets, width))

    # ---- parts to batches -----------------------------------------------------------------------

    def _next_size(self, waiting: deque[_Part], *, is_end: bool) -> int:
        """Rows of the next batch; 0 if it may go on with rows that are still to come."""
        n_rows = n_entries = 0
        for part in waiting:
            room = self._batch_entries - n_entries
            n = min(int(np.searchsorted(part.ends, room, side="right")), self._batch_rows - n_rows)
            if n < part.n_rows:
                return max(1, n_rows + n)  # a row beyond the bound is a batch of its own
            n_rows += n
            n_entries += int(part.ends[-1])
        return n_rows if is_end or n_rows == self._batch_rows else 0

    def _batch(self, waiting: deque[_Part], n: int, n_bytes: int) -> Batch:
        """The first ``n`` rows that wait. All that is decided here depends on them alone, not on
        the blocks that they came in."""
        taken: list[_Part] = []
        while n > 0:
            part = waiting.popleft()
            if part.n_rows > n:
                waiting.appendleft(part.cut(slice(n, part.n_rows)))
                part = part.cut(slice(0, n))
            taken.append(part)
            n -= part.n_rows
        labels = np.concatenate([part.labels for part in taken])
        ids = np.concatenate([part.ids for part in taken])
        self.n_rows += len(labels)
        return Batch(self._joined([part.rows for part in taken]), labels, ids, n_bytes)

    def _joined(self, parts: list[Rows]) -> Rows:
        known = self.columns
        highest = max(
            (int(p.columns.max()) for p in parts if isinstance(p, CsrRows) and len(p.columns)),
            default=-1,
        )
        grown = highest >= known.n_columns
        known.n_columns = max(known.n_columns, highest + 1, 1)
        n_rows = sum(part.shape[0] for part in parts)
        if known.storage is None or (known.storage == "dense" and grown):
            n_entries = sum(map(_count_entries, parts))
            # What was dense stays so until it takes twice the memory of CSR: no storage for a whim.
            slack = 1 if known.storage is None else 2
            is_dense = dense_is_smaller(n_rows, known.n_columns, slack * n_entries)
            known.storage = "dense" if is_dense else "csr"
        if known.storage == "csr":
            return _join_sparse(parts, known.n_columns)
        return _join_dense(parts, n_rows, known.n_columns)


@dataclass(frozen=True, eq=False)
class _Part:
    rows: Rows
    labels: Array
    ids: Array

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @cached_property
    def ends(self) -> Array:
        """Entries that are not 0, of the rows up to each."""
        if isinstance(self.rows, DenseRows):
            return np.cumsum(np.count_nonzero(self.rows.values, axis=1))
        ends: Array = self.rows.offsets[1:] - self.rows.offsets[0]
        return ends

    def cut(self, rows: slice) -> _Part:
        return _Part(self.rows.take(rows), self.labels[rows], self.ids[rows])


def _count_entries(rows: Rows) -> int:
    return int(np.count_nonzero(rows.values)) if isinstance(rows, DenseRows) else len(rows.values)


def _without_zeros(rows: CsrRows) -> CsrRows:
    """Zeros that were written down take room and change nothing."""
    kept = rows.values != 0
    if kept.all():
        return rows
    offsets = np.concatenate([[0], np.cumsum(kept)])[rows.offsets]
    return CsrRows(rows.values[kept], rows.columns[kept], offsets, rows.n_columns)


def _join_dense(parts: list[Rows], n_rows: int, n_columns: int) -> Rows:
    if len(parts) == 1 and isinstance(parts[0], DenseRows) and parts[0].shape[1] == n_columns:
        return parts[0]
    x = np.zeros((n_rows, n_columns), np.float32)
    begin = 0
    for part in parts:
        place = x[begin : begin + part.shape[0]]
        if isinstance(part, DenseRows):
            place[:, : part.shape[1]] = part.values
        else:
            row_of_entry = np.repeat(np.arange(part.shape[0]), np.diff(part.offsets))
            place[row_of_entry, part.columns] = part.values
        begin += part.shape[0]
    return DenseRows(x)


def _join_sparse(parts: list[Rows], n_columns: int) -> Rows:
    sparse = [part if isinstance(part, CsrRows) else as_sparse(part) for part in parts]
    starts = np.cumsum([0, *(len(part.values) for part in sparse)])
    offsets = [part.offsets[1:] + start for part, start in zip(sparse, starts[:-1], strict=True)]
    return CsrRows(
        np.concatenate([part.values for part in sparse]),
        np.concatenate([part.columns for part in sparse]),
        np.concatenate([[0], *offsets]),
        n_columns,
    )
