"""Scores of distributed rows, computed when they are asked for."""

from __future__ import annotations

from typing import Any

import dask
import dask.array
import numpy as np
from numpy.typing import NDArray

from linrank.dask.assignment import split_queries
from linrank.dask.blocks import block_matrix, in_partition, unpacked, without_columns
from linrank.dask.inputs import Cut, blocks_of
from linrank.dask.partitions import delayed
from linrank.dask.repair import refuse_split
from linrank.dask.stores import read_chunk, store_of
from linrank.dask.summaries import Census
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries, as_ids

__all__ = ["predict"]

Array = NDArray[Any]


def predict(model: Any, X: Any, qid: Any = None) -> Any:
    """Return the scores of distributed rows as a dask array, in the partitions of the rows.

    Nothing runs until the result is computed, with one exception: a model that scales within
    queries (``scale="query"``) needs the rows of a query together, so the ids are looked at, and
    an error says if a query is split.

    Parameters
    ----------
    model : LinearModel or KernelModel
        It goes to each worker once.
    X : dask array or dataframe, list of delayed blocks or of futures, Store or its path
        Raw rows; see `linrank.dask.inputs.blocks_of`.
    qid : dask array or series, list of blocks, array, or name of a column of X
        Query of each row; only models that scale within queries look at it.

    Returns
    -------
    dask array of float64, shape (n_rows,)
        Its chunks are the partitions of `X`; their sizes are known where those of `X` are.
    """
    if (store := store_of(X, qid)) is not None:
        blocks = [(delayed(read_chunk, k, store), None) for k in range(store.n_chunks)]
        cut = Cut("X", tuple(float(c.rows.stop - c.rows.start) for c in store.chunks))
    else:
        cut, whole = blocks_of(X, None, qid, None)
        blocks = [(rows, ids) for rows, _, ids, _ in whole]
        if model.scaling.needs_queries:
            _check_whole(blocks)
    shared = dask.delayed(model, pure=False, traverse=False)
    parts = [
        dask.array.from_delayed(delayed(_scores, k, shared, *block), (n,), np.float64)
        for k, (n, block) in enumerate(zip(cut.chunks, blocks, strict=True))
    ]
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


def _scores(number: int, model: Any, block: Any, qid: Any) -> Array:
    """The scores of a block; a worker runs it, on one thread as it has a task for each."""
    with in_partition(number):
        X, qid = _rows_and_ids(block, qid)
        if not isinstance(X, Dataset) and len(getattr(X, "shape", ())) == 2 and X.shape[0] == 0:
            return np.empty(0)
        scores: Array = model.predict(X, qid=qid, n_jobs=1)
        return scores


def _rows_and_ids(block: Any, qid: Any) -> tuple[Any, Any]:
    """The rows of a block, which may hold labels and ids too, and its ids."""
    if isinstance(block, Dataset):
        return block, None
    if isinstance(block, tuple):
        block, _, qid, _ = unpacked(block)
    X, (qid,) = without_columns(block_matrix(block), (qid,))
    return X, qid


def _check_whole(blocks: list[tuple[Any, Any]]) -> None:
    """Refuse split queries where the scores of their rows depend on each other."""
    ids = dask.compute(*(delayed(_distinct, k, *block) for k, block in enumerate(blocks)))
    held = [k for k, a in enumerate(ids) if len(a)]
    if not held:
        return
    census = Census.of([ids[k] for k in held])
    split = split_queries(census.numbers)
    if len(split):
        remedy = "bring them together, as ddf.shuffle(on='qid') does"
        refuse_split(census.ids, census.numbers, split, held, remedy)


def _distinct(number: int, block: Any, qid: Any) -> Array:
    """The ids of a block, each once."""
    with in_partition(number):
        X, qid = _rows_and_ids(block, qid)
        if isinstance(X, Dataset):
            qid = X.qid
        if qid is None:
            raise ValueError(
                "this model scales every feature within its query (scale='query'), so scoring "
                "needs qid: one query id per row"
            )
        ids = as_ids(qid, len(qid))
        found = Queries.of(np.zeros(len(ids)), ids, n_jobs=1).ids
        return ids[:0] if found is None else found
