"""Ranges of rows, across queries and chunks: for a query that is longer than the memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.store.reading import ChunkReader

__all__ = ["read_rows"]

Array = NDArray[Any]


def read_rows(reader: ChunkReader, rows: slice, verify: bool) -> Rows:
    """The features of some consecutive rows, in memory of their own."""
    layout = reader.layout
    begin, end, step = rows.indices(layout.total("n_rows"))
    if step != 1 or end < begin:
        raise ValueError(f"rows must be a range forwards without gaps, got {rows}")
    if verify:
        starts = layout.bounds["n_rows"]
        for i in range(bisect_right(starts, begin) - 1, bisect_left(starts, end)):
            reader.check_features(i)
    if layout.storage == "dense":
        values = _range(reader, "values", begin, end)
        found: Rows = DenseRows(values.reshape(end - begin, layout.n_features))
    else:
        found = _csr_rows(reader, begin, end)
    reader.check_rows(found, None, verify)
    return found


def _csr_rows(reader: ChunkReader, begin: int, end: int) -> CsrRows:
    # The offsets have a 0 in front: those of rows begin to end lie one further.
    offsets = _range(reader, "row_offsets", begin - 1, end)
    first, last = int(offsets[0]), int(offsets[-1])
    if not 0 <= first <= last <= reader.layout.total("n_entries") or (begin == 0 and first != 0):
        raise reader.damaged("row_offsets", None, f"rows from entry {first} to {last}")
    offsets = offsets - first
    reader.check_offsets("row_offsets", None, offsets, last - first)
    values = _range(reader, "values", first, last)
    columns = _range(reader, "columns", first, last)
    return CsrRows(values, columns, offsets, reader.layout.n_features)


def _range(reader: ChunkReader, name: str, begin: int, end: int) -> Array:
    stored = reader.layout.arrays[name]
    data = reader.files.read(stored.file, *stored.place(begin, end))
    return np.asarray(data.view(stored.dtype))
