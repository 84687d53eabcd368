"""Batches: rows of a text on their way into a store, as arrays that can be cut, joined, sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.io.comments import Comments, Words
from linrank.io.store.layout import Layout
from linrank.io.svmlight import ReadingOptions, Survey

Array = NDArray[Any]


class TextSurvey(Survey):
    """A survey that also knows whether rows have weights and comments."""

    def __init__(self, name: str, options: ReadingOptions) -> None:
        super().__init__(name, options)
        self.has_weights = self.has_comments = False

    def add(self, piece: Any) -> None:
        """Add the next piece; raise the first fault of the file."""
        super().add(piece)
        self.has_weights |= piece.has_weight
        self.has_comments |= piece.n_comment_bytes > 0


@dataclass(frozen=True)
class Shape:
    """How rows are stored.

    Attributes
    ----------
    is_dense : bool
        A full matrix, or CSR.
    dtype : float32 or float64
        Of the values.
    base, n_columns : int
        The index of the first column; the number of columns so far. That of CSR may still grow:
        nothing that has been stored depends on it.
    has_ids, has_weights, has_comments : bool
        What rows have.
    """

    is_dense: bool
    dtype: np.dtype[Any]
    base: int
    n_columns: int
    has_ids: bool
    has_weights: bool
    has_comments: bool

    @classmethod
    def of(cls, survey: TextSurvey) -> Shape:
        """The shape for what has been seen."""
        base, n_columns = survey.columns()
        return cls(
            survey.is_dense(n_columns),
            survey.options.dtype,
            base,
            n_columns,
            bool(survey.has_query),
            survey.has_weights,
            survey.has_comments,
        )

    def admits(self, survey: TextSurvey) -> bool:
        """Whether it still holds for all that has been seen by now."""
        base, n_columns = survey.columns()
        return (
            base == self.base
            and (n_columns <= self.n_columns or not self.is_dense)
            and survey.has_weights <= self.has_weights
            and survey.has_comments <= self.has_comments
        )

    def row_bytes(self) -> int:
        """Bytes of the features of a row: all of a dense one, at least of a sparse one."""
        return self.n_columns * self.dtype.itemsize if self.is_dense else 8


class Growing:
    """A vector; memory is kept when it is emptied."""

    def __init__(self, dtype: Any, capacity: int = 0) -> None:
        self._memory, self._size = np.empty(capacity, dtype), 0

    def __len__(self) -> int:
        return self._size

    def extend(self, values: Array) -> None:
        """Append a copy of the values."""
        end = self._size + len(values)
        if end > len(self._memory):
            grown = np.empty(max(end, self._size + self._size // 2), self._memory.dtype)
            grown[: self._size] = self._memory[: self._size]
            self._memory = grown
        self._memory[self._size : end] = values
        self._size = end

    def view(self) -> Array:
        """What was appended, valid until the next change."""
        return self._memory[: self._size]

    def clear(self) -> None:
        """Forget the values."""
        self._size = 0


@dataclass(frozen=True, eq=False)
class Block:
    """Whole queries, one after the other.

    Attributes
    ----------
    rows : DenseRows or CsrRows
    labels : float64 array (n_rows,)
    weight : float64 array (n_rows,) or None
    sizes : int64 array (n_queries,)
        Rows of each query.
    ids : int64 array (n_queries,), Words or None
    comments : Comments or None
    """

    rows: Rows
    labels: Array
    weight: Array | None
    sizes: Array
    ids: Array | Words | None
    comments: Comments | None

    @property
    def n_queries(self) -> int:
        return len(self.sizes)

    @property
    def offsets(self) -> Array:
        """Where each query begins and the last one ends, by row."""
        return ends_of(self.sizes)

    def query_bytes(self) -> Array:
        """Bytes that the features of each query take in a store, or its comments, if more.

        A chunk is put together in memory, which long comments of few features would fill.
        """
        n_bytes = self._feature_bytes()
        if self.comments is None:
            return n_bytes
        comments = np.diff(self.comments.offsets[self.offsets]) + 8 * self.sizes
        return np.asarray(np.maximum(n_bytes, comments))

    def _feature_bytes(self) -> Array:
        if isinstance(self.rows, DenseRows):
            row_bytes = self.rows.shape[1] * self.rows.dtype.itemsize
            return np.asarray(self.sizes * row_bytes)
        index = 4 if self.rows.n_columns <= 2**31 - 1 else 8
        n_entries = np.diff(self.rows.offsets[self.offsets])
        return np.asarray(n_entries * (self.rows.dtype.itemsize + index) + 8 * self.sizes)

    def take(self, first: int, last: int) -> Block:
        """The queries from first up to last, as views."""
        begin, end = int(self.sizes[:first].sum()), int(self.sizes[:last].sum())
        rows = slice(begin, end)
        ids = self.ids
        if isinstance(ids, Words):
            ids = Words(*_cut(ids.text, ids.offsets, first, last))
        elif ids is not None:
            ids = ids[first:last]
        comments = self.comments
        if comments is not None:
            comments = Comments(*_cut(comments.text, comments.offsets, begin, end))
        return Block(
            self.rows.take(rows),
            self.labels[rows],
            None if self.weight is None else self.weight[rows],
            self.sizes[first:last],
            ids,
            comments,
        )


class Pending:
    """Queries that wait until their chunk is full: copies, in memory that is used again."""

    def __init__(self, layout: Layout, chunk_bytes: int) -> None:
        self.layout, self.nbytes = layout, 0
        dense = layout.storage == "dense"
        item = layout.dtype.itemsize if dense else layout.dtype.itemsize + 4
        self._values = Growing(layout.dtype, chunk_bytes // item)
        self._columns = Growing(layout.index_dtype, 0 if dense else chunk_bytes // item)
        self._entries, self._labels = Growing(np.int64), Growing(np.float64)
        self._weight, self._sizes = Growing(np.float64), Growing(np.int64)
        self._ids: list[Array | Words] = []
        self._text, self._lengths = Growing(np.uint8), Growing(np.int64)

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, block: Block, nbytes: int) -> None:
        """Append a copy of a block that takes so many bytes."""
        rows = block.rows
        if isinstance(rows, DenseRows):
            self._values.extend(rows.values.reshape(-1))
        else:
            kept = slice(rows.offsets[0], rows.offsets[-1])
            self._values.extend(rows.values[kept])
            self._columns.extend(rows.columns[kept])
            self._entries.extend(np.diff(rows.offsets))
        self._labels.extend(block.labels)
        self._sizes.extend(block.sizes)
        if block.weight is not None:
            self._weight.extend(block.weight)
        if block.ids is not None:
            self._ids.append(_copied(block.ids))
        if block.comments is not None:
            self._text.extend(block.comments.text)
            self._lengths.extend(np.diff(block.comments.offsets))
        self.nbytes += nbytes

    def block(self) -> Block:
        """All of it as one block, valid until the next change."""
        layout, n_rows = self.layout, len(self._labels)
        if layout.storage == "dense":
            rows: Rows = DenseRows(self._values.view().reshape(n_rows, layout.n_features))
        else:
            offsets = ends_of(self._entries.view())
            rows = CsrRows(self._values.view(), self._columns.view(), offsets, layout.n_features)
        comments = None
        if layout.has_comments:
            comments = Comments(self._text.view(), ends_of(self._lengths.view()))
        return Block(
            rows,
            self._labels.view(),
            self._weight.view() if layout.has_weights else None,
            self._sizes.view(),
            _joined(self._ids) if self._ids else None,
            comments,
        )

    def clear(self) -> None:
        """Forget all queries, keep the memory."""
        for part in (self._values, self._columns, self._entries, self._labels):
            part.clear()
        for part in (self._weight, self._sizes, self._text, self._lengths):
            part.clear()
        self._ids, self.nbytes = [], 0


def ends_of(sizes: Array) -> Array:
    """0, then the sums of the first 1, 2, ... sizes, as int64."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def as_words(ids: Array | Words) -> Words:
    """Ids as text."""
    return ids if isinstance(ids, Words) else Words.of(map(str, ids.tolist()))


def _cut(text: Array, offsets: Array, first: int, last: int) -> tuple[Array, Array]:
    kept = offsets[first : last + 1]
    return text[kept[0] : kept[-1]], kept - kept[0]


def _copied(ids: Array | Words) -> Array | Words:
    return Words(ids.text.copy(), ids.offsets.copy()) if isinstance(ids, Words) else ids.copy()


def _joined(parts: list[Array | Words]) -> Array | Words:
    """The ids of several blocks: integers if all are, else text."""
    if not any(isinstance(part, Words) for part in parts):
        return np.concatenate(parts)  # type: ignore[arg-type]
    words = [as_words(part) for part in parts]
    lengths = np.concatenate([np.diff(part.offsets) for part in words])
    return Words(np.concatenate([part.text for part in words]), ends_of(lengths))


@dataclass(frozen=True, eq=False)
class Span:
    """Elements of different number a row: row i has ``offsets[i]`` to ``offsets[i+1]`` of each
    array, the entries of a sparse row or the bytes of a comment."""

    offsets: Array
    arrays: tuple[Array, ...]

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + sum(array.nbytes for array in self.arrays))

    def cut(self, begin: int, end: int) -> Span:
        """Rows from begin to end, as views."""
        offsets = self.offsets[begin : end + 1]
        kept = slice(offsets[0], offsets[-1])
        return Span(offsets - offsets[0], tuple(array[kept] for array in self.arrays))

    def take(self, order: Array) -> Span:
        """Copies of the rows in an order."""
        offsets = ends_of(np.diff(self.offsets)[order])
        arrays = []
        for array in self.arrays:
            taken = np.empty(offsets[-1], array.dtype)
            source, to = array.view(np.uint8), taken.view(np.uint8)
            _core.gather_spans(source, array.itemsize, self.offsets, order, to)
            arrays.append(taken)
        return Span(offsets, tuple(arrays))

    @staticmethod
    def joined(spans: Sequence[Span]) -> Span:
        """All rows, one after the other: copies."""
        offsets = ends_of(np.concatenate([np.diff(span.offsets) for span in spans]))
        arrays = zip(*(span.arrays for span in spans), strict=True)
        return Span(offsets, tuple(np.concatenate(parts) for parts in arrays))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows, whose queries are numbered by first appearance in the text.

    Attributes
    ----------
    fixed : mapping
        Arrays with one element (or row) for each row: ``number`` of its query, ``label``, and
        ``weight`` and dense ``values`` where there are any.
    spans : mapping
        ``entries`` (values and columns) of sparse rows, and ``comments``.
    """

    fixed: Mapping[str, Array]
    spans: Mapping[str, Span]

    @property
    def numbers(self) -> Array:
        """The query of each row."""
        return self.fixed["number"]

    @property
    def n_rows(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [*self.fixed.values(), *self.spans.values()]
        return sum(part.nbytes for part in parts)

    def row_bytes(self) -> Array:
        """Bytes of each row."""
        sizes = np.full(self.n_rows, sum(a.nbytes for a in self.fixed.values()) // self.n_rows)
        for span in self.spans.values():
            sizes += 8 + np.diff(span.offsets) * sum(array.itemsize for array in span.arrays)
        return sizes

    def cut(self, begin: int, end: int) -> Batch:
        """Rows from begin to end, as views."""
        fixed = {name: array[begin:end] for name, array in self.fixed.items()}
        return Batch(fixed, {name: span.cut(begin, end) for name, span in self.spans.items()})

    def take(self, order: Array) -> Batch:
        """Copies of the rows in an order."""
        fixed = {name: array[order] for name, array in self.fixed.items()}
        return Batch(fixed, {name: span.take(order) for name, span in self.spans.items()})

    @staticmethod
    def joined(batches: Sequence[Batch]) -> Batch:
        """All rows, one after the other; a single batch is not copied."""
        if len(batches) == 1:
            return batches[0]
        first = batches[0]
        fixed = {name: np.concatenate([b.fixed[name] for b in batches]) for name in first.fixed}
        spans = {name: Span.joined([b.spans[name] for b in batches]) for name in first.spans}
        return Batch(fixed, spans)

    def query_starts(self) -> Array:
        """Where the number differs from that of the row before; row 0 is the first."""
        starts = np.flatnonzero(self.numbers[1:] != self.numbers[:-1]) + 1
        return np.concatenate([[0], starts])

    def rows(self, n_columns: int) -> Rows:
        """The features."""
        if "values" in self.fixed:
            return DenseRows(self.fixed["values"])
        entries = self.spans["entries"]
        values, columns = entries.arrays
        return CsrRows(values, columns, entries.offsets, n_columns)

    def comments(self) -> Comments | None:
        """The comments, where the text has any."""
        if "comments" not in self.spans:
            return None
        span = self.spans["comments"]
        return Comments(span.arrays[0], span.offsets)


def batch_of(pieces: list[Any], numbers: Array, shape: Shape, n_threads: int) -> Batch:
    """The rows of parsed pieces, which are empty afterwards."""
    n_rows = len(numbers)
    fixed: dict[str, Array] = {"number": numbers, "label": np.empty(n_rows)}
    spans: dict[str, Span] = {}
    _core.fill_labels(pieces, fixed["label"])
    if shape.has_weights:
        fixed["weight"] = np.empty(n_rows)
        _core.fill_weights(pieces, fixed["weight"])
    if shape.has_comments:
        text = np.empty(sum(piece.n_comment_bytes for piece in pieces), np.uint8)
        offsets = np.empty(n_rows + 1, np.int64)
        _core.fill_comments(pieces, text, offsets)
        spans["comments"] = Span(offsets, (text,))
    if shape.is_dense:
        fixed["values"] = np.empty((n_rows, shape.n_columns), shape.dtype)
        _core.fill_dense(pieces, fixed["values"], shape.base, n_threads)
    else:
        spans["entries"] = _entries(pieces, n_rows, shape, n_threads)
    return Batch(fixed, spans)


def _entries(pieces: list[Any], n_rows: int, shape: Shape, n_threads: int) -> Span:
    n_entries = sum(piece.n_entries for piece in pieces)
    values, columns = np.empty(n_entries, shape.dtype), np.empty(n_entries, np.int32)
    offsets = np.empty(n_rows + 1, np.int64)
    _core.fill_csr(pieces, values, columns, offsets, shape.n_columns, shape.base, n_threads)
    return Span(offsets, (values, columns))
