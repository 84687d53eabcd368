"""Measures of distributed scores: each query where it lies, the means here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from linrank.dask.blocks import in_partition
from linrank.dask.clients import Watch, client_of, delayed, results_of
from linrank.dask.inputs import cut_of, is_distributed, vector_blocks
from linrank.dask.partitions import Partitions, assembled
from linrank.data.dataset import Dataset
from linrank.data.frames import as_labels
from linrank.data.queries import Queries, as_ids
from linrank.data.rows import DenseRows
from linrank.metrics.conventions import Convention
from linrank.metrics.conventions import convention as named_convention
from linrank.metrics.counted import Counts
from linrank.metrics.evaluate import (
    DEFAULT_METRICS,
    as_scores,
    check_gains,
    evaluate_queries,
    measures_of,
)
from linrank.metrics.evaluation import Evaluation
from linrank.metrics.measures import ERR, Measure

Array = NDArray[Any]


def evaluate(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    metrics: str | Measure | Iterable[str | Measure] = DEFAULT_METRICS,
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
    cut = cut_of(y, "y") if is_distributed(y) or not is_distributed(scores) else None
    cut = cut or cut_of(scores, "scores")
    watch = Watch(client_of(client), patience)
    vectors = [vector_blocks(v, n, cut) for v, n in ((y, "y"), (scores, "scores"), (qid, "qid"))]
    lazy = [
        delayed(_judged, number, *block, measures, chosen)
        for number, block in enumerate(zip(*vectors, strict=True))
    ]
    with assembled(watch, lazy, "repair") as found:
        concrete = _with_highest_grade(measures, max(s.high for s in found.summaries))
        futures = [
            watch.client.submit(_evaluated, s.number, future, concrete, chosen, pure=False)
            for s, future in zip(found.summaries, found.futures, strict=True)
        ]
        parts = results_of(watch, futures, [s.number for s in found.summaries])
    return _whole(found, parts, measures, concrete, chosen, has_ids=qid is not None)


def _judged(
    number: int, y: Any, scores: Any, qid: Any, measures: list[Measure], chosen: Convention
) -> Dataset:
    """Labels and scores of a block, the scores as its only feature: so they move like any rows."""
    with in_partition(number):
        labels = as_labels(y)
        values = as_scores(scores, len(labels), chosen)
        ids = np.zeros(len(labels), np.int64) if qid is None else as_ids(qid, len(labels))
        if len(labels):
            check_gains(measures, labels, chosen)
        data = Dataset(DenseRows(values[:, None]), labels, ids)
        data.__dict__["queries"] = Queries.of(labels, ids, n_jobs=1)
        return data


def _with_highest_grade(measures: Sequence[Measure], high: float) -> list[Measure]:
    """ERR needs the highest label of all partitions, which none of them knows."""
    y_max = max(0.0, high)
    return [
        replace(m, y_max=y_max) if isinstance(m, ERR) and m.y_max is None else m for m in measures
    ]


def _evaluated(
    number: int, data: Dataset, measures: list[Measure], chosen: Convention
) -> Evaluation:
    with in_partition(number):
        scores = np.ascontiguousarray(data.X[:, 0])
        return evaluate_queries(
            data.queries, data.labels, scores, metrics=measures, convention=chosen, n_jobs=1
        )


def _whole(
    found: Partitions,
    parts: Sequence[Evaluation],
    measures: Sequence[Measure],
    concrete: Sequence[Measure],
    chosen: Convention,
    *,
    has_ids: bool,
) -> Evaluation:
    """One evaluation, its queries numbered as in memory and its means taken in that order."""
    at = np.concatenate(found.query_numbers)

    def in_order(values: Sequence[Array]) -> Array:
        every = np.concatenate(list(values))
        ordered = np.empty_like(every)
        ordered[at] = every
        return ordered

    def counted(name: str) -> Any:
        several = [getattr(part, name) for part in parts]
        if several[0] is None:
            return None
        kind = type(several[0])
        return kind(**{n: in_order([getattr(c, n) for c in several]) for n in vars(several[0])})

    counts = Counts(*map(counted, ("pairs", "dominating", "dominated")))
    means: dict[str, float] = {}
    per_query: dict[str, Array] = {}
    for measure, asked in zip(measures, concrete, strict=True):
        values = in_order([part.per_query[str(asked)] for part in parts])
        share = counts.measure(measure, chosen)
        mean, values = (_mean(values), values) if share is None else share
        means[str(measure)], per_query[str(measure)] = mean, values
    ids = found.query_ids if has_ids else None
    return Evaluation(
        means, per_query, ids, chosen, counts.pairs, counts.dominating, counts.dominated
    )


def _mean(values: Array) -> float:
    """Mean of what is not NaN, with the bits of the core: Neumaier's sum, in order.

    ``s_k = s_{k-1} + v_k``, and what each addition loses, ``(a - s_k) + b`` with a the larger and b
    the smaller of the two in magnitude, is summed beside it. NumPy accumulates one by one.
    """
    taken = values[~np.isnan(values)]
    if len(taken) == 0:
        return float("nan")
    sums = np.add.accumulate(taken)
    before = np.concatenate([[0.0], sums[:-1]])
    larger = np.abs(before) >= np.abs(taken)
    lost = np.where(larger, (before - sums) + taken, (taken - sums) + before)
    return float((sums[-1] + np.add.accumulate(lost)[-1]) / len(taken))
