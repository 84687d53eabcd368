"""Scores of distributed rows, computed when they are asked for."""

from __future__ import annotations

from typing import Any

import dask
import dask.array
import numpy as np
from numpy.typing import NDArray

from linrank.dask.block_tasks import in_partition, rows_and_ids
from linrank.dask.inputs import Cut, blocks_of
from linrank.dask.query_scoring import query_scores
from linrank.dask.store_blocks import chunks_of, store_of
from linrank.dask.tasks import delayed
from linrank.data.dataset import Dataset

Array = NDArray[Any]


def predict(model: Any, X: Any, qid: Any = None) -> Any:
    """Return the scores of distributed rows as a dask array, in the partitions of the rows.

    Nothing runs until the result is computed, with one exception: a model that scales within
    queries (``scale="query"``) needs the rows of a query together, so the ids are looked at first.
    Rows of split queries then travel when the scores are computed; the scores go back to them.

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
        blocks = [(chunk, None) for chunk in chunks_of(store)]
        cut = Cut("X", tuple(float(c.rows.stop - c.rows.start) for c in store.chunks))
    else:
        cut, whole = blocks_of(X, None, qid, None)
        blocks = [(rows, ids) for rows, _, ids, _ in whole]
    shared = dask.delayed(model, pure=False, traverse=False)
    if store is None and model.scaling.needs_queries:
        lazy = query_scores(shared, blocks)
    else:
        lazy = [delayed(_scores, k, shared, *block) for k, block in enumerate(blocks)]
    parts = [
        dask.array.from_delayed(one, (n,), np.float64)
        for one, n in zip(lazy, cut.chunks, strict=True)
    ]
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


def _scores(number: int, model: Any, block: Any, qid: Any) -> Array:
    """The scores of a block; a worker runs it, on one thread as it has a task for each."""
    with in_partition(number):
        X, qid = rows_and_ids(block, qid)
        if not isinstance(X, Dataset) and len(getattr(X, "shape", ())) == 2 and X.shape[0] == 0:
            return np.empty(0)
        scores: Array = model.predict(X, qid=qid, n_jobs=1)
        return scores
