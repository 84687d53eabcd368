"""Small ranking data, and the same in every form in which a cluster may hold it."""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from scipy import sparse

N_FEATURES = 4
FEATURES = [f"f{j}" for j in range(N_FEATURES)]


class Arrays(NamedTuple):
    """Rows, labels, ids and weights, in memory or not."""

    X: Any
    y: Any = None
    qid: Any = None
    weight: Any = None


def ranking(n_queries: int = 12, seed: int = 0, *, shuffled: bool = False) -> Arrays:
    """Queries of 1 to 9 rows with labels 0 to 2, their rows together unless shuffled."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(100 + rng.permutation(n_queries), rng.integers(1, 10, n_queries))
    if shuffled:
        qid = rng.permutation(qid)
    n_rows = len(qid)
    X = rng.normal(size=(n_rows, N_FEATURES))
    return Arrays(X, rng.integers(0, 3, n_rows), qid, rng.uniform(0.5, 2.0, n_rows))


def fit(ranker: Any, data: Arrays, **options: Any) -> Any:
    """The ranker, fitted to the data wherever they are."""
    return ranker.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight, **options)


def assert_forgotten(client: Any, n_kept: int = 0) -> None:
    """The client holds nothing more, though the traceback of an error may still be there."""

    def n_held() -> int:
        return max(len(client.futures), sum(map(len, client.has_what().values())))

    until = time.monotonic() + 10.0
    while n_held() != n_kept and time.monotonic() < until:
        time.sleep(0.01)  # they are released on the loop of the client
    assert n_held() == n_kept


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
    return Arrays(X, *(v if v is None else da.from_array(v, chunks=(rows,)) for v in data[1:]))


def as_delayed(data: Arrays, n_parts: int) -> Arrays:
    return Arrays(*([dask.delayed(part) for part in in_blocks(v, n_parts)] for v in data))


def as_tuples(data: Arrays, n_parts: int) -> Arrays:
    return Arrays([dask.delayed(b) for b in zip(*as_delayed(data, n_parts), strict=True)])


def as_table(data: Arrays) -> Any:
    import pandas as pd

    table = pd.DataFrame(data.X, columns=FEATURES)
    return table.assign(label=data.y, query=data.qid, u=data.weight)


def as_dataframe(data: Arrays, n_parts: int) -> Arrays:
    import dask.dataframe as dd

    table = dd.from_pandas(as_table(data), npartitions=n_parts, sort=False)
    return Arrays(table, "label", "query", "u")


def as_series(data: Arrays, n_parts: int, n_others: int | None = None) -> Arrays:
    """Columns of a dataframe, those of the rows cut in another way."""
    table, other = (as_dataframe(data, n).X for n in (n_parts, n_others or n_parts))
    return Arrays(table[FEATURES], other["label"], other["query"], other["u"])


def as_sparse(data: Arrays, n_parts: int) -> Arrays:
    lazy = as_dask_arrays(data, n_parts)
    return lazy._replace(X=lazy.X.map_blocks(sparse.csr_array))


def as_column_chunks(data: Arrays, n_parts: int) -> Arrays:
    lazy = as_dask_arrays(data, n_parts)
    return lazy._replace(X=lazy.X.rechunk({1: 3}))


def as_unknown_chunks(data: Arrays, n_parts: int) -> Arrays:
    lazy = as_dask_arrays(data, n_parts)
    every = lazy.y > -1
    return Arrays(*(v[every] for v in lazy))


# Those of which X is the features alone, and others.
PLAIN_FORMS = {
    "arrays": as_dask_arrays,
    "sparse arrays": as_sparse,
    "column chunks": as_column_chunks,
    "sparse column chunks": lambda data, n: Arrays(
        as_column_chunks(data, n).X.map_blocks(sparse.csr_array), *as_dask_arrays(data, n)[1:]
    ),
    "other chunks": lambda data, n: Arrays(
        as_dask_arrays(data, n).X, *(v.rechunk(5) for v in as_dask_arrays(data, n)[1:])
    ),
    "unknown chunks": as_unknown_chunks,
    "columns of one": lambda data, n: Arrays(
        as_dask_arrays(data, n).X, *(v[:, None] for v in as_dask_arrays(data, n)[1:])
    ),
    "vectors in memory": lambda data, n: data._replace(X=as_dask_arrays(data, n).X),
    "delayed": as_delayed,
    "tuples": as_tuples,
    "series": as_series,
    "series of other partitions": lambda data, n: as_series(data, n, 5),
    "values of a dataframe": lambda data, n: Arrays(
        *(v if v.ndim == 1 else v.values for v in as_series(data, n))
    ),
}
FORMS = {
    **PLAIN_FORMS,
    "dataframe": as_dataframe,
    "tables": lambda data, n: Arrays(
        [dask.delayed(part) for part in in_blocks(as_table(data), n)], "label", "query", "u"
    ),
}
