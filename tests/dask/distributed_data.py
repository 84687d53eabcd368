"""Small ranking data, and the same in every form in which a cluster may hold it."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

N_FEATURES = 4


class Arrays(NamedTuple):
    """Rows, labels, ids and weights in memory."""

    X: Any
    y: Any
    qid: Any
    weight: Any


def ranking(n_queries: int = 12, seed: int = 0, *, shuffled: bool = False) -> Arrays:
    """Queries of 1 to 9 rows with labels 0 to 2, their rows together unless shuffled."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(100 + rng.permutation(n_queries), rng.integers(1, 10, n_queries))
    if shuffled:
        qid = rng.permutation(qid)
    n_rows = len(qid)
    X = rng.normal(size=(n_rows, N_FEATURES))
    return Arrays(X, rng.integers(0, 3, n_rows), qid, rng.uniform(0.5, 2.0, n_rows))


def cuts(n_rows: int, n_parts: int) -> tuple[int, ...]:
    """Sizes of so many partitions of like size, queries not looked at."""
    return tuple(len(a) for a in np.array_split(np.arange(n_rows), n_parts))


def in_blocks(array: Any, n_parts: int) -> list[Any]:
    """The array in consecutive parts."""
    begins = np.cumsum([0, *cuts(array.shape[0], n_parts)])
    return [array[begin:end] for begin, end in itertools.pairwise(begins)]


def as_dask_arrays(data: Arrays, n_parts: int) -> Arrays:
    rows = cuts(len(data.y), n_parts)
    X = da.from_array(data.X, chunks=(rows, -1))
    return Arrays(X, *(da.from_array(v, chunks=(rows,)) for v in data[1:]))


def as_delayed(data: Arrays, n_parts: int) -> Arrays:
    return Arrays(*([dask.delayed(part) for part in in_blocks(v, n_parts)] for v in data))


def as_table(data: Arrays) -> Any:
    import pandas as pd

    table = pd.DataFrame(data.X, columns=[f"f{j}" for j in range(data.X.shape[1])])
    return table.assign(label=data.y, query=data.qid, u=data.weight)
