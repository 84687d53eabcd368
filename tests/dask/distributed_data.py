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
    """Rows, labels, ids and weights, in memory or not; methods hold them in another form."""

    X: Any
    y: Any = None
    qid: Any = None
    weight: Any = None

    def fit(self, ranker: Any, **options: Any) -> Any:
        """The ranker, fitted to the data wherever they are."""
        return ranker.fit(self.X, self.y, qid=self.qid, sample_weight=self.weight, **options)

    def arrays(self, n_parts: int) -> Arrays:
        rows = cuts(len(self.y), n_parts)
        X = da.from_array(self.X, chunks=(rows, -1))
        return Arrays(X, *(v if v is None else da.from_array(v, chunks=(rows,)) for v in self[1:]))

    def sparse(self, n_parts: int) -> Arrays:
        lazy = self.arrays(n_parts)
        return lazy._replace(X=lazy.X.map_blocks(sparse.csr_array))

    def column_chunks(self, n_parts: int) -> Arrays:
        lazy = self.arrays(n_parts)
        return lazy._replace(X=lazy.X.rechunk({1: 3}))

    def unknown_chunks(self, n_parts: int) -> Arrays:
        lazy = self.arrays(n_parts)
        every = lazy.y > -1
        return Arrays(*(v[every] for v in lazy))

    def delayed(self, n_parts: int) -> Arrays:
        return Arrays(*([dask.delayed(part) for part in in_blocks(v, n_parts)] for v in self))

    def tuples(self, n_parts: int) -> Arrays:
        return Arrays([dask.delayed(b) for b in zip(*self.delayed(n_parts), strict=True)])

    def table(self) -> Any:
        import pandas as pd

        table = pd.DataFrame(self.X, columns=FEATURES)
        return table.assign(label=self.y, query=self.qid, u=self.weight)

    def dataframe(self, n_parts: int) -> Arrays:
        import dask.dataframe as dd

        table = dd.from_pandas(self.table(), npartitions=n_parts, sort=False)
        return Arrays(table, "label", "query", "u")

    def series(self, n_parts: int, n_others: int | None = None) -> Arrays:
        """Columns of a dataframe, those of the rows cut in another way."""
        table, other = (self.dataframe(n).X for n in (n_parts, n_others or n_parts))
        return Arrays(table[FEATURES], other["label"], other["query"], other["u"])


def ranking(n_queries: int = 12, seed: int = 0, *, shuffled: bool = False) -> Arrays:
    """Queries of 1 to 9 rows with labels 0 to 2, their rows together unless shuffled."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(100 + rng.permutation(n_queries), rng.integers(1, 10, n_queries))
    if shuffled:
        qid = rng.permutation(qid)
    n_rows = len(qid)
    X = rng.normal(size=(n_rows, N_FEATURES))
    return Arrays(X, rng.integers(0, 3, n_rows), qid, rng.uniform(0.5, 2.0, n_rows))


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


# Those of which X is the features alone, and others.
PLAIN_FORMS = {
    "arrays": Arrays.arrays,
    "sparse arrays": Arrays.sparse,
    "column chunks": Arrays.column_chunks,
    "sparse column chunks": lambda data, n: data.arrays(n)._replace(
        X=data.column_chunks(n).X.map_blocks(sparse.csr_array)
    ),
    "other chunks": lambda data, n: Arrays(
        data.arrays(n).X, *(v.rechunk(5) for v in data.arrays(n)[1:])
    ),
    "unknown chunks": Arrays.unknown_chunks,
    "columns of one": lambda data, n: Arrays(
        data.arrays(n).X, *(v[:, None] for v in data.arrays(n)[1:])
    ),
    "vectors in memory": lambda data, n: data._replace(X=data.arrays(n).X),
    "delayed": Arrays.delayed,
    "tuples": Arrays.tuples,
    "series": Arrays.series,
    "series of other partitions": lambda data, n: data.series(n, 5),
    "values of a dataframe": lambda data, n: Arrays(
        *(v if v.ndim == 1 else v.values for v in data.series(n))
    ),
}
FORMS = {
    **PLAIN_FORMS,
    "dataframe": Arrays.dataframe,
    "tables": lambda data, n: Arrays(
        [dask.delayed(part) for part in in_blocks(data.table(), n)], "label", "query", "u"
    ),
}
