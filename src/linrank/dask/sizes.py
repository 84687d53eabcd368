"""How large our objects are to dask, which sends a task to where most of its bytes lie.

Without this a dataset counts as the 56 bytes of a bare object: its rows would travel for nothing,
and a worker would never spill them.
"""

from __future__ import annotations

from typing import Any

from dask.sizeof import sizeof

from linrank.data.dataset import Dataset

__all__ = ["bytes_of_dataset"]


@sizeof.register(Dataset)  # type: ignore[untyped-decorator]
def bytes_of_dataset(data: Dataset) -> int:
    """Bytes of the rows, the vectors beside them and the queries, as far as these are grouped."""
    arrays: list[Any] = [data.labels, data.qid, data.weight]
    if (queries := data.__dict__.get("queries")) is not None:
        arrays += [queries.offsets, queries.order, queries.levels, queries.n_levels, queries.ids]
    return data.rows.nbytes + sum(int(a.nbytes) for a in arrays if a is not None)
