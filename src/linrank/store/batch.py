"""Batches: rows of a text on their way into a store, as arrays that can be cut, joined, sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.comments import Comments
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.store.block import ends_of
from linrank.store.shape import Shape

__all__ = ["Batch", "Span", "batch_of"]

Array = NDArray[Any]


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
