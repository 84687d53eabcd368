"""A whole store as one dataset, of bytes that nobody else can change.

The files of the store are not mapped: the process would end if one became shorter, and train on
whatever somebody writes into one. What fits into half of the memory that is free is read; for more,
a copy without a name is mapped, which a file system that can share blocks makes without copying.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.comments import Comments
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.durable import FULL_DISK
from linrank.memory import available, describe_bytes
from linrank.store.checksum import checksum
from linrank.store.reading import ChunkReader, text_ids

__all__ = ["whole_dataset"]

Array = NDArray[Any]


def whole_dataset(reader: ChunkReader, source: str, verify: bool, n_threads: int) -> Dataset:
    """All chunks as one dataset, of arrays that nobody can write to.

    What serves as a place in memory (offsets, levels, columns) is always checked; with ``verify``,
    so is every byte, once.
    """
    layout = reader.layout
    arrays = _arrays(reader, source, n_threads)
    if verify:
        _check_sums(reader, arrays, n_threads)
    rows = _rows(reader, arrays, verify)
    reader.check_labels(arrays["labels"], None)
    if layout.has_weights:
        reader.check_weight(arrays["weights"], None)
    queries = _queries(reader, arrays)
    comments = None
    if layout.has_comments:
        offsets = arrays["comment_offsets"]
        reader.check_offsets("comment_offsets", None, offsets, layout.total("comment_bytes"))
        comments = Comments(arrays["comment_text"], offsets)
    qid = None if queries.ids is None else np.repeat(queries.ids, np.diff(queries.offsets))
    names, base = reader.manifest.feature_names, reader.manifest.index_base
    weight = arrays.get("weights")
    data = Dataset(rows, arrays["labels"], qid, weight, names, comments, source, base)
    data.__dict__["queries"] = queries
    return data


def _arrays(reader: ChunkReader, source: str, n_threads: int) -> dict[str, Array]:
    layout, free = reader.layout, available()
    sizes = {a.file: a.size(layout.total(a.unit)) for a in layout.arrays.values()}
    n_bytes = sum(sizes.values())
    if free is None or n_bytes <= free // 2:
        found = reader.files.read_all(sizes, n_threads)
    else:
        try:
            found = {name: reader.files.copied(name, size) for name, size in sizes.items()}
        except OSError as error:
            if error.errno not in FULL_DISK:
                raise
            raise MemoryError(
                f"{source}: takes {describe_bytes(n_bytes)}, more than half of the "
                f"{describe_bytes(free)} of memory that are free, and there is no room on the disk "
                f"for a copy that could be mapped ({os.strerror(error.errno)}); train within a "
                "memory_limit, or free some room"
            ) from None
    return {name: found[a.file].view(a.dtype) for name, a in layout.arrays.items()}


def _check_sums(reader: ChunkReader, arrays: dict[str, Array], n_threads: int) -> None:
    """Sum all that was not summed yet, a chunk a task."""

    def check(i: int) -> None:
        for name, array in arrays.items():
            if not reader.is_sound(name, i):
                begin, n_bytes = reader.layout.place(name, i)
                data = array.view(np.uint8)[begin : begin + n_bytes]
                reader.check_sum(name, i, checksum(data))

    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(check, i) for i in range(reader.layout.n_chunks)]:
            done.result()


def _rows(reader: ChunkReader, arrays: dict[str, Array], thoroughly: bool) -> Rows:
    n_features = reader.layout.n_features
    if reader.layout.storage == "dense":
        rows: Rows = DenseRows(arrays["values"].reshape(-1, n_features))
    else:
        offsets = arrays["row_offsets"]
        reader.check_offsets("row_offsets", None, offsets, reader.layout.total("n_entries"))
        rows = CsrRows(arrays["values"], arrays["columns"], offsets, n_features)
    reader.check_rows(rows, None, thoroughly)
    return rows


def _queries(reader: ChunkReader, arrays: dict[str, Array]) -> Queries:
    layout, offsets = reader.layout, arrays["query_offsets"]
    reader.check_offsets("query_offsets", None, offsets, layout.total("n_rows"))
    ids = arrays.get("ids")
    if layout.ids == "text":
        ends = arrays["id_offsets"]
        reader.check_offsets("id_offsets", None, ends, layout.total("id_bytes"))
        ids = text_ids(arrays["id_text"], ends)
    queries = Queries(offsets, None, arrays["levels"], arrays["n_levels"], ids)
    reader.check_queries(queries, None)
    return queries
