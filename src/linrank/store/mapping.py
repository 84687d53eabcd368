"""A whole store as one dataset, mapped: pages are read when they are looked at."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.comments import Comments
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.store.checksum import checksum
from linrank.store.reading import ChunkReader, text_ids

__all__ = ["map_dataset"]

Array = NDArray[Any]


def map_dataset(reader: ChunkReader, source: str, verify: bool, n_threads: int) -> Dataset:
    """All chunks as one dataset, of arrays that nobody can write to.

    What serves as a place in memory (offsets, levels, columns) is always checked; with ``verify``,
    so is every byte, once, which brings them into the page cache.
    """
    layout = reader.layout
    arrays = {name: _mapped(reader, name) for name in layout.arrays}
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


def _mapped(reader: ChunkReader, name: str) -> Array:
    stored = reader.layout.arrays[name]
    n_bytes = stored.size(reader.layout.total(stored.unit))
    return reader.files.mapped(stored.file, n_bytes).view(stored.dtype)


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
