"""A partition as it arrives on its worker, a block or a chunk of a store, turned into a dataset.

All checks of rows are here.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.dask.clients import delayed
from linrank.data.dataset import Dataset
from linrank.data.frames import all_column_names, as_labels, as_part_weights, column_names, is_frame
from linrank.data.queries import Queries, as_ids
from linrank.data.rows import DenseRows
from linrank.errors import DataFormatError
from linrank.io.store.store import Store

Array = NDArray[Any]
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
        if isinstance(X, Dataset):
            _refuse_twice("a Dataset", y, qid, weight)
            return X
        if isinstance(X, tuple):
            _refuse_twice(f"a tuple {_FORMS}", y, qid, weight)
            X, y, qid, weight = _unpacked(X)
        X, (y, qid, weight) = _without_columns(_matrix(X), (y, qid, weight))
        if _n_rows(X) == 0:
            return _empty(X, y, qid, weight)
        # One thread: a worker has as many tasks at a time as it has threads.
        data = Dataset.of(X, y, qid=qid, n_jobs=1)
        if weight is None:
            return data
        weighted = replace(data, weight=as_part_weights(weight, data.n_rows))
        weighted.__dict__["queries"] = data.queries
        return weighted


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
        block, _, qid, _ = _unpacked(block)
    X, (qid,) = _without_columns(_matrix(block), (qid,))
    return X, qid


def _refuse_twice(what: str, *others: Any) -> None:
    if any(other is not None for other in others):
        raise ValueError(
            f"the block is {what}, which holds labels and ids; leave y, qid and sample_weight out"
        )


def _unpacked(block: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
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
    if not is_frame(X):
        raise TypeError(
            f"{named[0]!r} names a column, but the block is a {type(X).__name__} without names; "
            "give one value per row"
        )
    known = all_column_names(X)
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
    labels = as_labels(np.empty(0) if y is None else y, 0)
    ids = None if qid is None else as_ids(qid, 0)
    if weight is not None:
        weight = as_part_weights(weight, 0)
    rows = DenseRows(np.empty((0, shape[1] if len(shape) == 2 else 0)))
    data = Dataset(rows, labels, ids, weight, column_names(X))
    data.__dict__["queries"] = Queries.of(labels, np.empty(0, np.int64) if ids is None else ids)
    return data


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
