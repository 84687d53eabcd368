"""Scores of distributed rows, computed when they are asked for.

A model that scales within queries divides by ranges over all rows of a query. Rows of a query that
is split come together for that, and their scores go back: the array keeps the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import dask.array
import numpy as np
from numpy.typing import NDArray

from linrank.dask.blocks import chunks_of, in_partition, rows_and_ids, store_of
from linrank.dask.clients import delayed
from linrank.dask.inputs import Cut, blocks_of
from linrank.dask.repair import assign, join_datasets, rows_of
from linrank.dask.summaries import Census
from linrank.data.dataset import Dataset
from linrank.data.frames import column_names
from linrank.data.queries import Queries, as_ids
from linrank.data.rows import as_rows

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
        lazy = _query_scores(shared, blocks)
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


def _query_scores(model: Any, blocks: Sequence[tuple[Any, Any]]) -> list[Any]:
    """Return the scores of blocks, not yet computed; only the ids are looked at.

    Parameters
    ----------
    model : Delayed
        Of a model that scales within queries.
    blocks : sequence of (X, qid)
        Rows and ids of the partitions, as `linrank.dask.inputs.blocks_of` gives them.
    """
    # Rows are not needed to see ids that come beside them.
    seen = [(None if _apart(qid) else X, qid) for X, qid in blocks]
    counts = dask.compute(*(delayed(_counted, k, *pair) for k, pair in enumerate(seen)))
    held = [k for k, (ids, _) in enumerate(counts) if len(ids)]
    shares = _shares([counts[k] for k in held])
    rows = {k: delayed(_grouped, k, *blocks[k]) for k in held}
    scores: list[Any] = [delayed(_none, k) for k in range(len(blocks))]
    joint = {
        t: delayed(
            _joint, held[t], model, [delayed(_piece, held[p], rows[held[p]], at) for p, at in share]
        )
        for t, share in shares.items()
    }
    for p, k in enumerate(held):
        mine = [
            (at, i, joint[t])
            for t, share in shares.items()
            for i, (q, at) in enumerate(share)
            if q == p
        ]
        scores[k] = delayed(_patched, k, model, rows[k], mine)
    return scores


def _apart(qid: Any) -> bool:
    return qid is not None and not isinstance(qid, str)


def _shares(counts: Sequence[tuple[Array, Array]]) -> dict[int, list[tuple[int, Array]]]:
    """For each partition that split queries meet in: who holds some, and which of its queries."""
    if not counts:
        return {}
    census = Census.of([ids for ids, _ in counts])
    moves = assign(census.numbers, [lengths for _, lengths in counts])
    target = np.full(len(census.ids), -1)
    target[list(moves.owner)] = list(moves.owner.values())
    shares: dict[int, list[tuple[int, Array]]] = {}
    for p, numbers in enumerate(census.numbers):
        to = target[numbers]
        for t in np.unique(to[to >= 0]).tolist():
            shares.setdefault(t, []).append((p, np.flatnonzero(to == t)))
    return shares


def _counted(number: int, block: Any, qid: Any) -> tuple[Array, Array]:
    """The ids of a block, each once, and their rows."""
    with in_partition(number):
        if block is not None:
            block, qid = rows_and_ids(block, qid)
        queries = block.queries if isinstance(block, Dataset) else _queries(qid)
        if queries.ids is None:
            return np.zeros(1, np.int64), np.diff(queries.offsets)
        return queries.ids, np.diff(queries.offsets)


def _queries(qid: Any) -> Queries:
    if qid is None:
        raise ValueError(
            "this model scales every feature within its query (scale='query'), so scoring needs "
            "qid: one query id per row"
        )
    return Queries.of(np.zeros(len(qid)), as_ids(qid, len(qid)), n_jobs=1)


def _grouped(number: int, block: Any, qid: Any) -> Dataset:
    """The rows of a block with their queries; nobody asks for the labels."""
    with in_partition(number):
        X, qid = rows_and_ids(block, qid)
        if isinstance(X, Dataset):
            return X
        rows = as_rows(X, n_jobs=1)
        ids = as_ids(qid, rows.shape[0])
        return Dataset(rows, np.zeros(rows.shape[0]), ids, None, column_names(X))


def _piece(number: int, data: Dataset, which: Array) -> Dataset:
    return rows_of(data, which)


def _joint(number: int, model: Any, pieces: list[Dataset]) -> list[Array]:
    """Scores of the queries that meet here, for each of those who hold some of their rows."""
    scores = model.predict(join_datasets(pieces), n_jobs=1)
    return np.split(scores, np.cumsum([piece.n_rows for piece in pieces])[:-1])


def _patched(number: int, model: Any, data: Dataset, shares: list[tuple[Array, int, Any]]) -> Array:
    """Scores of a partition, those of split queries replaced by what came out where they met."""
    with in_partition(number):
        scores: Array = model.predict(data, n_jobs=1)
    for which, place, found in shares:
        scores[data.queries.select(which).order] = found[place]
    return scores


def _none(number: int) -> Array:
    return np.empty(0)
