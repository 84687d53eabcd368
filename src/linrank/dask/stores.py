"""A store as partitions: every chunk is read by the worker that will hold it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.dask.blocks import in_partition
from linrank.data.dataset import Dataset
from linrank.store.store import Store

__all__ = ["read_chunk", "store_of"]


def store_of(X: Any, *others: Any) -> Store | None:
    """Return the store that `X` is or names, None for anything else."""
    if isinstance(X, (str, os.PathLike)):
        X = Store(X)
    if not isinstance(X, Store):
        return None
    if any(other is not None for other in others):
        raise ValueError(
            f"the store {X.path} holds labels, ids and weights; leave y, qid and sample_weight out"
        )
    return X


def read_chunk(number: int, store: Store) -> Dataset:
    """Return a chunk of a store; it runs on a worker, which must see the folder."""
    with in_partition(number):
        data = store.read(number)
    queries = store.chunks[number].queries
    if data.qid is None and store.n_queries > 1:
        # Queries without ids are told apart by their numbers: else they would pass for one.
        ids = np.arange(queries.start, queries.stop)
        numbered = replace(data, qid=np.repeat(ids, np.diff(data.queries.offsets)))
        numbered.__dict__["queries"] = replace(data.queries, ids=ids)
        return numbered
    return data
