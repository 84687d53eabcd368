"""How large our objects are to dask, which sends a task to where most of its bytes lie.

Without this a dataset counts as the 56 bytes of a bare object: its rows would travel for nothing,
and a worker would never spill them.
"""

from __future__ import annotations

from typing import Any

from dask.sizeof import sizeof

from linrank.data.dataset import Dataset
from linrank.parts.chunk import Chunk
from linrank.parts.fold_recipes import SharedChunk

_BY_ROW = 32  # bytes of a chunk for each row beside its features: levels, weights, scores, order


@sizeof.register(Dataset)  # type: ignore[untyped-decorator]
def bytes_of_dataset(data: Dataset) -> int:
    """Bytes of the rows, the vectors beside them and the queries, as far as these are grouped."""
    arrays: list[Any] = [data.labels, data.qid, data.weight]
    if (queries := data.__dict__.get("queries")) is not None:
        arrays += [queries.offsets, queries.order, queries.levels, queries.n_levels, queries.ids]
    return data.rows.nbytes + sum(int(a.nbytes) for a in arrays if a is not None)


@sizeof.register(Chunk)  # type: ignore[untyped-decorator]
def bytes_of_chunk(chunk: Chunk) -> int:
    """Bytes of the rows and of what a chunk keeps by row."""
    return chunk.rows.nbytes + _BY_ROW * chunk.sizes.n_rows


@sizeof.register(SharedChunk)  # type: ignore[untyped-decorator]
def bytes_of_shared_chunk(chunk: SharedChunk) -> int:
    """What a chunk keeps by row; its rows count where the partition does."""
    return _BY_ROW * chunk.sizes.n_rows
