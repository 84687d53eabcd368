"""Scores of distributed rows, computed when they are asked for, and the measures of scores.

A model that scales within queries divides by ranges over all rows of a query. Rows of a query that
is split come together for that, and their scores go back: the array keeps the order of the rows.
Measures are computed for each query where it lies, their means here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import dask
import dask.array
import numpy as np
from distributed import Client

from linrank.dask import inputs
from linrank.dask.clients import Watch, client_of, delay_task, map_tasks, results_of
from linrank.dask.partitions import assemble, number_queries
from linrank.dask.repair import assign, join_parts, rows_of
from linrank.data import Dataset, Queries, as_ids, as_labels, column_names, keep_queries
from linrank.data.rows import Array, DenseRows, as_rows
from linrank.metrics.conventions import Convention
from linrank.metrics.conventions import convention as named_convention
from linrank.metrics.evaluate import (
    DEFAULT_METRICS,
    as_scores,
    check_gains,
    evaluate_queries,
    mean_of,
    measures_of,
)
from linrank.metrics.evaluation import Counts, Evaluation
from linrank.metrics.measures import ERR, Measure, Metric
from linrank.models.linear import queries_of


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
    if (store := inputs.store_of(X, qid)) is not None:
        blocks = [(chunk, None) for chunk in inputs.chunks_of(store)]
        cut = inputs.Cut("X", tuple(float(c.rows.stop - c.rows.start) for c in store.chunks))
    else:
        cut, whole = inputs.blocks_of(X, None, qid, None)
        blocks = [(rows, ids) for rows, _, ids, _ in whole]
    shared = dask.delayed(model, pure=False, traverse=False)
    if store is None and model.scaling.needs_queries:
        lazy = _query_scores(shared, blocks)
    else:
        lazy = [delay_task(_scores, k, shared, *block) for k, block in enumerate(blocks)]
    parts = [
        dask.array.from_delayed(one, (n,), np.float64)
        for one, n in zip(lazy, cut.chunks, strict=True)
    ]
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


def _scores(number: int, model: Any, block: Any, qid: Any) -> Array:
    """The scores of a block; a worker runs it, on one thread as it has a task for each."""
    with inputs.in_partition(number):
        X, qid = inputs.rows_and_ids(block, qid)
        if not isinstance(X, Dataset) and len(getattr(X, "shape", ())) == 2 and X.shape[0] == 0:
            return np.empty(0)
        return model.predict(X, qid=qid, n_jobs=1)


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
    seen = [(X if qid is None or isinstance(qid, str) else None, qid) for X, qid in blocks]
    counts = dask.compute(*(delay_task(_count_rows, k, *pair) for k, pair in enumerate(seen)))
    held = [k for k, (ids, _) in enumerate(counts) if len(ids)]
    rows = {k: delay_task(_group_rows, k, *blocks[k]) for k in held}
    pieces: dict[int, dict[int, Array]] = {}  # where queries meet -> who holds some -> which ones
    if held:
        numbers = number_queries([counts[k][0] for k in held])[1]
        moves = assign(numbers, [counts[k][1] for k in held])
        for (p, t), which in moves.shares.items():
            pieces.setdefault(held[t], {})[held[p]] = which
    part = dask.delayed(rows_of, pure=False)
    joint = {
        t: delay_task(_score_joint, t, model, [part(rows[k], at) for k, at in share.items()])
        for t, share in pieces.items()
    }
    scores: list[Any] = [dask.delayed(np.empty, pure=False)(0) for _ in blocks]
    for k in held:
        mine = [
            (share[k], list(share).index(k), joint[t]) for t, share in pieces.items() if k in share
        ]
        scores[k] = delay_task(_patch_scores, k, model, rows[k], mine)
    return scores


def _count_rows(number: int, block: Any, qid: Any) -> tuple[Array, Array]:
    """The ids of a block, each once, and their rows."""
    with inputs.in_partition(number):
        if block is not None:
            block, qid = inputs.rows_and_ids(block, qid)
        queries = queries_of(block, 0 if qid is None else len(qid), qid)
        ids = np.zeros(1, np.int64) if queries.ids is None else queries.ids
        return ids, np.diff(queries.offsets)


def _group_rows(number: int, block: Any, qid: Any) -> Dataset:
    """The rows of a block with their queries; nobody asks for the labels."""
    with inputs.in_partition(number):
        X, qid = inputs.rows_and_ids(block, qid)
        if isinstance(X, Dataset):
            return X
        rows = as_rows(X, n_jobs=1)
        ids = as_ids(qid, rows.shape[0])
        return Dataset(rows, np.zeros(rows.shape[0]), ids, None, column_names(X))


def _score_joint(number: int, model: Any, pieces: list[Dataset]) -> list[Array]:
    """Scores of the queries that meet here, for each of those who hold some of their rows."""
    scores = model.predict(join_parts(pieces), n_jobs=1)
    return np.split(scores, np.cumsum([piece.n_rows for piece in pieces])[:-1])


def _patch_scores(
    number: int, model: Any, data: Dataset, shares: list[tuple[Array, int, Any]]
) -> Array:
    """Scores of a partition, those of split queries replaced by what came out where they met."""
    with inputs.in_partition(number):
        scores: Array = model.predict(data, n_jobs=1)
    for which, place, found in shares:
        scores[data.queries.select(which).order] = found[place]
    return scores


# ---- measures ------------------------------------------------------------------------------------
def evaluate(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    metrics: Metric | Iterable[Metric] = DEFAULT_METRICS,
    convention: str | Convention = "linrank",
    client: Client | None = None,
    patience: float = 60.0,
) -> Evaluation:
    """Return the means of ranking measures over queries, as `linrank.evaluate` does.

    Measures are computed where the rows are; queries that are split over partitions are made whole
    first, for which only their labels, scores and ids travel. The result is that of
    `linrank.evaluate` on the partitions one after the other, to the last bit.

    Parameters
    ----------
    y, scores : dask array or series, list of delayed blocks or of futures, or array
        Labels, and scores as `predict` returns them; one of the two is distributed, and says where
        the partitions end.
    qid : the same, optional
        Query of each row. Without it all rows are one query, and come together in one partition.
    metrics, convention
        See `linrank.evaluate`.
    client : distributed.Client, optional
        None takes the one in force.
    patience : float
        Seconds for which no worker may be there, or the scheduler silent.
    """
    measures, chosen = measures_of(metrics), named_convention(convention)
    is_by_y = inputs.is_distributed(y) or not inputs.is_distributed(scores)
    cut = inputs.cut_of(y, "y") if is_by_y else inputs.cut_of(scores, "scores")
    watch = Watch(client_of(client), patience)
    given = {"y": y, "scores": scores, "qid": qid}
    vectors = [inputs.vector_blocks(v, name, cut) for name, v in given.items()]
    lazy = [
        delay_task(_label_block, number, *block, measures, chosen)
        for number, block in enumerate(zip(*vectors, strict=True))
    ]
    with assemble(watch, lazy, "repair") as found:
        # ERR needs the highest label of all partitions, which none of them knows.
        y_max = max(0.0, *(s.high for s in found.summaries))
        concrete = [
            replace(m, y_max=y_max) if isinstance(m, ERR) and m.y_max is None else m
            for m in measures
        ]
        numbers = [s.number for s in found.summaries]
        common = {"measures": concrete, "chosen": chosen}
        futures = map_tasks(
            watch.client, "measures", _evaluate_block, numbers, found.futures, **common
        )
        parts = results_of(watch, futures, numbers)
    # Queries numbered as in memory: means are taken in that order.
    order = np.argsort(np.concatenate(found.query_numbers))
    counts = Counts.joined([part.counts for part in parts]).take(order)
    means: dict[str, float] = {}
    per_query: dict[str, Array] = {}
    for measure, asked in zip(measures, concrete, strict=True):
        values = np.concatenate([part.per_query[str(asked)] for part in parts])[order]
        mean, values = counts.measure(measure, chosen) or (mean_of(values), values)
        means[str(measure)], per_query[str(measure)] = mean, values
    ids = None if qid is None else found.query_ids
    return Evaluation(means, per_query, ids, chosen, **vars(counts))


def _label_block(
    number: int, y: Any, scores: Any, qid: Any, measures: list[Measure], chosen: Convention
) -> Dataset:
    """Labels and scores of a block, the scores as its only feature: so they move like any rows."""
    with inputs.in_partition(number):
        labels = as_labels(y)
        values = as_scores(scores, len(labels), chosen)
        ids = np.zeros(len(labels), np.int64) if qid is None else as_ids(qid, len(labels))
        if len(labels):
            check_gains(measures, labels, chosen)
        data = Dataset(DenseRows(values[:, None]), labels, ids)
        return keep_queries(data, Queries.of(labels, ids, n_jobs=1))


def _evaluate_block(
    number: int, data: Dataset, measures: list[Measure], chosen: Convention
) -> Evaluation:
    with inputs.in_partition(number):
        scores = np.ascontiguousarray(data.X[:, 0])
        return evaluate_queries(
            data.queries, data.labels, scores, metrics=measures, convention=chosen, n_jobs=1
        )
