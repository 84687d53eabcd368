"""Batches of a fixed number of rows from SVMlight text that need not fit in memory."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import join_sparse
from linrank.data.queries import as_ids
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.errors import DataFormatError
from linrank.io.blocks import LONGEST_LINE, LongLineError, TextBlocks, open_blocks
from linrank.stochastic.reservoir import count_entries, dense_is_smaller, join_dense, without_zeros
from linrank.system.resources import cached_property

Array = NDArray[Any]

Numbers = NDArray[np.int64]
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,18}")


def numbers_of_ids(qid: Any, n_rows: int) -> Numbers:
    """Return one number for each id: integers are themselves, anything else is hashed.

    A table of all ids would grow with the stream, and Python's own hash changes from process to
    process, so a checkpoint could not go on. Two ids of a buffer of a million queries share a
    number with a probability of 3·10⁻⁸; they would then count as one query.

    Parameters
    ----------
    qid : array (n_rows,) of any hashable type, or None
        None: all rows are of one query.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> numbers = numbers_of_ids(["a", "b", "a"], 3)
    >>> print(numbers_of_ids([7, 9, 7], 3), numbers == numbers[0])
    [7 9 7] [ True False  True]
    """
    if qid is None:
        return np.zeros(n_rows, np.int64)
    ids = as_ids(qid, n_rows)
    if ids.dtype.kind in "biu":
        return np.ascontiguousarray(ids).astype(np.int64, copy=False)
    heads = np.arange(n_rows)
    if ids.dtype.kind in "USf":  # a run of one id is hashed once
        heads = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])[:n_rows])
    numbers = np.array([_number(id_, row) for id_, row in _listed(ids, heads)], dtype=np.int64)
    return np.repeat(numbers, np.diff(np.append(heads, n_rows)))


def _listed(ids: NDArray[Any], rows: NDArray[Any]) -> Iterable[tuple[Hashable, int]]:
    return zip(ids[rows].tolist(), rows.tolist(), strict=True)


def _number(id_: Hashable, row: int) -> int:
    if id_ is None or id_ != id_ or type(id_).__name__ in ("NAType", "NaTType"):
        raise ValueError(f"qid of row {row} is missing; every row belongs to a query")
    if isinstance(id_, float) and id_.is_integer():
        id_ = int(id_)
    if isinstance(id_, (int, np.integer)) and -(2**63) <= id_ < 2**63:
        return int(id_)
    if isinstance(id_, bytes):
        return _hash(b"bytes " + id_)
    return _hash(f"{type(id_).__name__} {id_!r}".encode("utf-8", "surrogatepass"))


def numbers_of_tokens(tokens: list[bytes]) -> Numbers:
    """The same for ids as they are written in a file: integers are themselves."""
    return np.array([_number_of_token(token) for token in tokens], dtype=np.int64)


def _number_of_token(token: bytes) -> int:
    if _INTEGER.fullmatch(token) and -(2**63) <= int(token) < 2**63:
        return int(token)
    return _hash(b"token " + token)


def _hash(text: bytes) -> int:
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


BATCH_ROWS = 8192
BLOCK_SIZE = 1 << 18  # as fast as larger ones, in a third of their memory


@dataclass(frozen=True)
class Layout:
    """How a stream is read; all of it has an influence on the result or on the memory.

    Attributes
    ----------
    index_base : {"auto", "0", "1"}
        "1" makes a feature 0 an error.
    batch_rows, batch_entries : int
        A batch has so many rows, or fewer if the next row would bring it above so many features
        that are not 0: rows of any length are read in bounded memory.
    most_columns : int
        An index beyond it is refused before anything is allocated for it.
    longest_line : int
        Bytes.
    remedy : str
        What to do about an index or a line that is too large.
    """

    index_base: str = "auto"
    batch_rows: int = BATCH_ROWS
    batch_entries: int = 1 << 22
    most_columns: int = int(_core.MAX_FEATURE) + 1
    longest_line: int = LONGEST_LINE
    remedy: str = "renumber the features"


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
    layout : Layout
        How the text is read.
    block_size : int
        Bytes to read at a time; no influence on the batches.
    """

    def __init__(
        self,
        source: Any,
        columns: Columns,
        layout: Layout | None = None,
        *,
        block_size: int = BLOCK_SIZE,
    ) -> None:
        self.columns, self._layout = columns, layout or Layout()
        self._text: TextBlocks = open_blocks(
            source, block_size, longest_line=self._layout.longest_line
        )
        self._parser = _core.TextParser32(
            int(self._layout.index_base == "1"), int(_core.MAX_FEATURE)
        )
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
            raise DataFormatError(
                f"{self.name}:{self.n_lines + 1}: {block.what}; {self._layout.remedy}"
            )
        if isinstance(block, DataFormatError):
            raise block
        piece = self._parser.parse(block)
        mixed = None if self._has_query is None else piece.query_fault(self._has_query)
        if (fault := mixed or piece.fault) is not None:
            line, column, message = fault
            raise DataFormatError(f"{self.name}:{self.n_lines + line}:{column}: {message}")
        if piece.highest >= self._layout.most_columns:
            line, column = piece.highest_place
            raise DataFormatError(
                f"{self.name}:{self.n_lines + line}:{column}: feature index {piece.highest:,} asks "
                f"for more weights than the {self._layout.most_columns:,} that there is memory "
                f"for; {self._layout.remedy}"
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
        return without_zeros(CsrRows(values, columns, offsets, width))

    # ---- parts to batches -----------------------------------------------------------------------

    def _next_size(self, waiting: deque[_Part], *, is_end: bool) -> int:
        """Rows of the next batch; 0 if it may go on with rows that are still to come."""
        n_rows = n_entries = 0
        most_rows, most_entries = self._layout.batch_rows, self._layout.batch_entries
        for part in waiting:
            fitting = int(np.searchsorted(part.ends, most_entries - n_entries, side="right"))
            n = min(fitting, most_rows - n_rows)
            if n < part.n_rows:
                return max(1, n_rows + n)  # a row beyond the bound is a batch of its own
            n_rows += n
            n_entries += int(part.ends[-1])
        return n_rows if is_end or n_rows == most_rows else 0

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
            n_entries = sum(map(count_entries, parts))
            # What was dense stays so until it takes twice the memory of CSR: no storage for a whim.
            slack = 1 if known.storage is None else 2
            is_dense = dense_is_smaller(n_rows, known.n_columns, slack * n_entries)
            known.storage = "dense" if is_dense else "csr"
        if known.storage == "csr":
            return join_sparse(parts, known.n_columns)
        return join_dense(parts, n_rows, known.n_columns)


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
