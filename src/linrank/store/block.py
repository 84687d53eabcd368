"""Blocks of whole queries on their way into a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.comments import Comments
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.data.words import Words
from linrank.store.growing import Growing
from linrank.store.layout import Layout

__all__ = ["Block", "Pending", "as_words", "ends_of"]

Array = NDArray[Any]


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
