"""What users give, as one tuple (X, y, qid, sample_weight) for every partition; nothing runs.

A partition as it arrives on its worker, a block or a chunk of a store, turned into a data set; all
checks of rows are there.
"""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import dask.array
import numpy as np
from dask.delayed import Delayed
from distributed import Future

from linrank.dask.clients import delay_task
from linrank.data import Dataset, DenseRows, Queries, as_ids, frames, keep_queries
from linrank.errors import DataFormatError
from linrank.io.store.store import Store

Block = tuple[Any, Any, Any, Any]  # each delayed, a future, the name of a column, or None


@dataclass(frozen=True)
class Cut:
    """Where partitions end, as far as that is known before anything runs.

    Attributes
    ----------
    of : str
        The argument that is cut so, for errors.
    chunks : tuple of float
        Rows of each partition, NaN where that is not known.
    names : tuple of str or None
        Columns that may be named; None where only the worker can tell.
    divisions : tuple or None
        Those of the dataframe that the rows come from, if it knows them.
    """

    of: str
    chunks: tuple[float, ...]
    names: tuple[str, ...] | None = ()
    divisions: Any = None

    @property
    def n_parts(self) -> int:
        return len(self.chunks)

    @property
    def n_rows(self) -> int | None:
        """Rows of all partitions, if that is known."""
        n_rows = sum(self.chunks)
        return None if math.isnan(n_rows) else int(n_rows)


def blocks_of(X: Any, y: Any, qid: Any, sample_weight: Any) -> tuple[Cut, list[Block]]:
    """Return distributed data partition by partition, and where these end.

    Parameters
    ----------
    X : dask array, dask dataframe, or list of delayed blocks or of futures
        The rows. A block of a list is a matrix or a table, a tuple ``(X, y[, qid[, weight]])`` or
        a `linrank.Dataset`; with the last two the other arguments stay None.
    y, qid, sample_weight : dask array or series, list of blocks, array, name of a column, or None
        One element a row, in partitions of the same rows; a dask array of known chunks is cut to
        those of `X`, and so is an array in memory. Names are those of columns of `X`, which are
        then no features.
    """
    cut = cut_of(X, "X")
    if _is_array(X):
        if X.ndim != 2:
            raise ValueError(
                f"X must be a 2-D dask array, got {X.ndim} dimensions (shape {X.shape}); "
                "reshape it with X.reshape(-1, 1) for a single feature"
            )
        rows = [row.tolist() if len(row) > 1 else row[0] for row in X.to_delayed()]
    elif _is_series(X):
        raise TypeError("X is a series, one column; pass the table, as in X[['name']]")
    else:
        rows = list(X.to_delayed() if hasattr(X, "to_delayed") else X)
    vectors = [
        vector_blocks(v, what, cut)
        for v, what in ((y, "y"), (qid, "qid"), (sample_weight, "sample_weight"))
    ]
    return cut, list(zip(rows, *vectors, strict=True))


def cut_of(v: Any, what: str) -> Cut:
    """Return where the partitions of an argument end; `what` is its name."""
    if _is_array(v):
        return Cut(what, v.chunks[0])
    unknown = math.nan
    if _is_series(v) or _is_dataframe(v):
        names = tuple(str(name) for name in v.columns) if _is_dataframe(v) else ()
        divisions = v.divisions if v.known_divisions else None
        return Cut(what, (unknown,) * v.npartitions, names, divisions)
    if _is_blocks(v):
        return Cut(what, (unknown,) * len(v), None)
    if isinstance(v, (list, tuple)) and not v:
        raise TypeError(f"{what} is an empty {type(v).__name__}; give at least one delayed block")
    kind = f"{type(v).__module__}.{type(v).__qualname__}".removeprefix("builtins.")
    raise TypeError(
        f"{what} is a {kind}, which is not distributed; use what has the same name in linrank, or "
        "give a dask array, a dask dataframe, a list of delayed blocks or of futures, or a Store"
    )


def is_distributed(v: Any) -> bool:
    """Whether an argument is in partitions."""
    return _is_array(v) or _is_series(v) or _is_dataframe(v) or _is_blocks(v)


def vector_blocks(v: Any, what: str, cut: Cut) -> list[Any]:
    """Return one number or id per row as blocks of the given partitions.

    Parameters
    ----------
    v : dask array or series, list of blocks, array, str, or None
        See `blocks_of`.
    what : str
        Its name, for errors.
    cut : Cut
        The partitions.
    """
    if v is None or isinstance(v, str):
        _check_name(v, what, cut)
        return [v] * cut.n_parts
    if _is_array(v):
        return _array_blocks(v, what, cut)
    if _is_series(v):
        theirs = cut.divisions  # None where the dataframe does not know them
        if theirs and v.known_divisions and v.npartitions != cut.n_parts:
            v = v.repartition(divisions=theirs)
        return _same_number(list(v.to_delayed()), what, cut)
    if _is_blocks(v):
        return _same_number(list(v), what, cut)
    if _is_dataframe(v) or frames.is_frame(v):
        raise TypeError(f"{what} is a table; pass one column of it, as in X[{what!r}]")
    return _local_blocks(v, what, cut)


def _is_array(v: Any) -> bool:
    return isinstance(v, dask.array.Array)


def _is_blocks(v: Any) -> bool:
    return isinstance(v, (list, tuple)) and len(v) > 0 and isinstance(v[0], (Delayed, Future))


def _is_dataframe(v: Any) -> bool:
    return _dataframe_type(v) == "DataFrame"


def _is_series(v: Any) -> bool:
    return _dataframe_type(v) in ("Series", "Index")


def _dataframe_type(v: Any) -> str | None:
    """Told by the module: dask.dataframe needs pandas, which need not be installed."""
    kind = type(v)
    inside = kind.__module__.startswith("dask.dataframe") and hasattr(v, "to_delayed")
    return kind.__name__ if inside else None


def _check_name(v: Any, what: str, cut: Cut) -> None:
    if v is None or cut.names is None or v in cut.names:
        return
    if not cut.names:
        raise TypeError(
            f"{what}={v!r} names a column, but {cut.of} is an array; give one value per row"
        )
    raise ValueError(f"{what}={v!r} is no column of {cut.of}; there are {', '.join(cut.names)}")


def _array_blocks(v: Any, what: str, cut: Cut) -> list[Any]:
    if v.ndim == 2 and v.shape[1] == 1:
        v = v[:, 0]
    if v.ndim != 1:
        raise ValueError(f"{what} must be 1-D, one element per row; got shape {v.shape}")
    if cut.n_rows is not None and cut_of(v, what).n_rows is not None:
        _check_rows(v.shape[0], what, cut)
        return list(v.rechunk((tuple(int(n) for n in cut.chunks),)).to_delayed())
    return _same_number(list(v.to_delayed()), what, cut)


def _local_blocks(v: Any, what: str, cut: Cut) -> list[Any]:
    """An array in memory, cut where the partitions are."""
    if not hasattr(v, "__len__"):
        raise TypeError(f"{what} must hold one element per row, got {type(v).__name__}")
    if cut.n_rows is None:
        raise TypeError(
            f"{what} is a {type(v).__name__} in memory but the number of rows in each partition of "
            f"{cut.of} is not known; give {what} in partitions too, or as the name of a column, or "
            f"call {cut.of}.compute_chunk_sizes()"
        )
    _check_rows(len(v), what, cut)
    array = as_ids(v, len(v)) if what == "qid" else frames.as_array(v, what)
    return np.split(array, np.cumsum([int(n) for n in cut.chunks])[:-1])


def _same_number(blocks: list[Any], what: str, cut: Cut) -> list[Any]:
    if len(blocks) != cut.n_parts:
        raise ValueError(
            f"{cut.of} has {cut.n_parts} partitions but {what} has {len(blocks)}, and where their "
            "rows meet is not known; give both in the same partitions, or call "
            "compute_chunk_sizes() on both dask arrays"
        )
    return blocks


def _check_rows(n_rows: int, what: str, cut: Cut) -> None:
    if n_rows != cut.n_rows:
        raise ValueError(f"{cut.of} has {cut.n_rows} rows but {what} has {n_rows}")


# ---- on the workers ------------------------------------------------------------------------------
_FORMS = "(X, y), (X, y, qid) or (X, y, qid, sample_weight)"
_RAISED_AS_THEY_ARE = (DataFormatError, TypeError, ValueError)


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Let errors about data begin with the partition that they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        # Subclasses such as UnicodeDecodeError take other arguments than a message.
        kind = type(error) if type(error) in _RAISED_AS_THEY_ARE else ValueError
        raise kind(f"partition {number}: {error}") from None


def dataset_of_block(number: int, X: Any, y: Any, qid: Any, weight: Any) -> Dataset:
    """Return the block of a partition as a dataset, checked; one without rows is one of none.

    Parameters
    ----------
    number : int
        The partition, for messages.
    X : matrix, table, list of these, tuple or Dataset
        The rows; a list holds the columns in several blocks, a tuple the other arguments too.
    y, qid, weight : array, column, name of a column of X, or None
        One element a row.
    """
    with in_partition(number):
        if isinstance(X, Dataset | tuple):
            what = "a Dataset" if isinstance(X, Dataset) else f"a tuple {_FORMS}"
            if any(other is not None for other in (y, qid, weight)):
                raise ValueError(
                    f"the block is {what}, which holds labels and ids; leave y, qid and "
                    "sample_weight out"
                )
        if isinstance(X, Dataset):
            return X
        if isinstance(X, tuple):
            X, y, qid, weight = _unpack_block(X)
        X, (y, qid, weight) = _without_columns(_matrix(X), (y, qid, weight))
        if _n_rows(X) == 0:
            return _empty(X, y, qid, weight)
        # One thread: a worker has as many tasks at a time as it has threads.
        data = Dataset.of(X, y, qid=qid, n_jobs=1)
        if weight is None:
            return data
        return keep_queries(data, weight=frames.as_part_weights(weight, data.n_rows))


def _matrix(X: Any) -> Any:
    """Return the rows of a block, its columns put together where they came in several."""
    if not isinstance(X, list):
        return X
    if any(hasattr(part, "tocsr") for part in X):
        from scipy import sparse

        return sparse.hstack(X, format="csr")
    return np.concatenate(X, axis=1)


def rows_and_ids(block: Any, qid: Any) -> tuple[Any, Any]:
    """Return the rows of a block that is to be scored, which may hold labels too, and its ids."""
    if isinstance(block, Dataset):
        return block, None
    if isinstance(block, tuple):
        block, _, qid, _ = _unpack_block(block)
    X, (qid,) = _without_columns(_matrix(block), (qid,))
    return X, qid


def _unpack_block(block: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
    """Return the parts of a block, None for those that it lacks."""
    if not 2 <= len(block) <= 4:
        raise ValueError(f"the block is a tuple of {len(block)} elements; give {_FORMS}")
    X, y, qid, weight = (*block, None, None)[:4]
    return X, y, qid, weight


def _without_columns(X: Any, vectors: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return a table less the columns that are named in place of vectors, and these columns."""
    named = [v for v in vectors if isinstance(v, str)]
    if not named:
        return X, vectors
    if not frames.is_frame(X):
        raise TypeError(
            f"{named[0]!r} names a column, but the block is a {type(X).__name__} without names; "
            "give one value per row"
        )
    known = frames.all_column_names(X)
    for name in named:
        if name not in known:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(map(str, known))}")
    taken = tuple(X[v] if isinstance(v, str) else v for v in vectors)
    kept = [name for name in known if name not in named]
    return (X.select(kept) if hasattr(X, "select") else X[kept]), taken


def _n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return len(X) if shape is None else int(shape[0])


def _empty(X: Any, y: Any, qid: Any, weight: Any) -> Dataset:
    """A dataset of no rows, which `Dataset.of` refuses; a partition may well have none."""
    shape: tuple[int, ...] = getattr(X, "shape", (0,))
    labels = frames.as_labels(np.empty(0) if y is None else y, 0)
    ids = None if qid is None else as_ids(qid, 0)
    if weight is not None:
        weight = frames.as_part_weights(weight, 0)
    rows = DenseRows(np.empty((0, shape[1] if len(shape) == 2 else 0)))
    data = Dataset(rows, labels, ids, weight, frames.column_names(X))
    return keep_queries(data, Queries.of(labels, np.empty(0, np.int64) if ids is None else ids))


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
    return [delay_task(_read_chunk, number, frozen) for number in range(store.n_chunks)]


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
        qid = np.repeat(ids, np.diff(data.queries.offsets))
        return keep_queries(data, replace(data.queries, ids=ids), qid=qid)
    return data
