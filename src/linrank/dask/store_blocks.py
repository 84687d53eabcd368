"""A store as partitions: every chunk is read by the worker that will hold it."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.dask.block_tasks import in_partition
from linrank.dask.tasks import delayed
from linrank.data.dataset import Dataset
from linrank.io.store.store import Store


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


def chunks_of(store: Store) -> list[Any]:
    """Return the chunks of a store, delayed; workers read them, and must see the folder."""
    # As bytes, opened inside the task: Dask unpickles arguments on the scheduler too, which need
    # not see the folder, and says nothing of the error where that fails.
    frozen = pickle.dumps(store)
    return [delayed(_read_chunk, number, frozen) for number in range(store.n_chunks)]


def _read_chunk(number: int, frozen: bytes) -> Dataset:
    try:
        with in_partition(number):
            store: Store = pickle.loads(frozen)
            data = store.read(number)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"partition {number}: {error}; all workers must see the folder of the store"
        ) from None
    queries = store.chunks[number].queries
    if data.qid is None and store.n_queries > 1:
        # Queries without ids are told apart by their numbers: else they would pass for one.
        ids = np.arange(queries.start, queries.stop)
        numbered = replace(data, qid=np.repeat(ids, np.diff(data.queries.offsets)))
        numbered.__dict__["queries"] = replace(data.queries, ids=ids)
        return numbered
    return data
