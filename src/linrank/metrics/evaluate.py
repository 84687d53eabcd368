"""Evaluation of scores: from arrays to the core and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.frames import Array, as_array, as_labels, as_vector, as_weights, check_finite
from linrank.data.queries import UNSAID, Queries, warn_of_one_query
from linrank.metrics.conventions import Convention
from linrank.metrics.conventions import convention as named_convention
from linrank.metrics.evaluation import Counts, Evaluation
from linrank.metrics.measures import (
    ERR,
    NDCG,
    CustomMeasure,
    MeanNDCG,
    Measure,
    Metric,
    TruncatedMeasure,
    parse,
    valid_forms,
)
from linrank.system.device import is_on_device
from linrank.system.resources import resolve

DEFAULT_METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "mean_ndcg", "map", "mrr", "pairwise_accuracy")
_PARALLEL_ROWS = 20_000  # below this the work takes about a millisecond: no threads
_LONG_LIST = 1001  # rows: engines return no more, and judges see fewer


def evaluate(
    y: Any,
    scores: Any,
    *,
    qid: Any = UNSAID,
    group: Any = None,
    metrics: Metric | Iterable[Metric] = DEFAULT_METRICS,
    convention: str | Convention = "linrank",
    docid: Any = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the means of ranking measures over queries.

    Rows are ranked inside each query by descending score.

    Scores that lie on a CUDA device (CuPy, torch, anything with DLPack) are ranked there, and only
    the values by query come back. The host downloads them where that is impossible: for measures of
    pairs (``auc``, ``kendall_tau``, ``pairwise_accuracy`` and so on) and of rows, for metrics of
    yours, for ties broken by ``docid`` or by label, and where a query has more than 8,192 rows.

    Parameters
    ----------
    y : array (n_rows,) or Dataset
        Labels, finite; higher is better. A data set has query ids of its own, and remembers its
        queries, also on a device: pass it where many models score the same rows.
    scores : array (n_rows,)
        Scores, not NaN; higher is better.
    qid : array (n_rows,), optional
        Query of each row, of any hashable type and in any order. None: all rows are one query. So
        they are if it is left out; measures of the top of a list, such as NDCG, then warn where
        the labels of more than 1,000 rows look graded. Measures of pairs, such as AUC, do not.
    group : integers (n_queries,), optional
        Sizes of consecutive queries, instead of ``qid``.
    metrics : names, measures or functions
        ``ndcg[@k]``, ``mean_ndcg``, ``map[@k]``, ``p@k``, ``recall@k``, ``success@k``, ``mrr[@k]``,
        ``err[@k]``, ``rbp[@k]``, ``pairwise_accuracy``, ``auc``, ``concordance_index``,
        ``kendall_tau``, ``gamma``, ``somers_d``, ``all_pairs_error``, ``domination_error``,
        ``dominated_error``, with options as in ``p(rel=2)@5``. A function
        ``f(y, scores) -> float`` of the labels and scores of one query is a metric as well, of
        which higher is better, averaged over the queries for which it is not NaN; an error is
        passed as ``linrank.metrics.CustomMeasure(f, higher_is_better=False)``.
    convention : str or Convention
        ``linrank``, ``letor``, ``mslr``, ``trec_eval``, ``sklearn``, ``lightgbm`` or ``xgboost``:
        who comes first among equal scores, what a query without relevant rows counts, and so on.
    docid : array (n_rows,), optional
        Document ids, which break ties under ``trec_eval``. Without them the row number is the id,
        so that the later row comes first. A data set may have ids of its own.
    n_jobs : int, optional
        Threads; None uses all cores. Results do not depend on it.

    Examples
    --------
    >>> result = evaluate([2, 0, 1, 0, 1], [3, 2, 1, 5, 4], qid=["a", "a", "a", "b", "b"],
    ...                   metrics=["ndcg@2", "mrr"])
    >>> {name: round(mean, 4) for name, mean in result.items()}
    {'ndcg@2': 0.7286, 'mrr': 0.75}
    >>> result.per_query["mrr"]
    array([1. , 0.5])
    """
    is_unsaid, qid = qid is UNSAID and group is None, None if qid is UNSAID else qid
    if isinstance(y, Dataset):
        for name, given in (("qid", qid), ("group", group)):
            if given is not None:
                raise ValueError(f"{name} is part of the data set; leave it out")
        labels, queries, is_unsaid = y.labels, y.queries, is_unsaid and y.qid is None
        if docid is None and named_convention(convention).ties == "docid":
            docid = y.all_docids
    else:
        labels = as_labels(y)
        if len(labels) == 0:
            raise ValueError("y is empty: there is nothing to evaluate")
        queries = Queries.of(labels, qid=qid, group=group, n_jobs=n_jobs)
    measures = measures_of(metrics)
    if is_unsaid and any(isinstance(m, TruncatedMeasure | MeanNDCG) for m in measures):
        levels = int(queries.n_levels[0])
        warn_of_one_query("evaluate", labels, len(labels), levels, fewest=_LONG_LIST)
    return evaluate_queries(
        queries, labels, scores, metrics=measures, convention=convention, docid=docid, n_jobs=n_jobs
    )


def evaluate_queries(
    queries: Queries,
    labels: Array,
    scores: Any,
    *,
    metrics: Metric | Iterable[Metric] = DEFAULT_METRICS,
    convention: str | Convention = "linrank",
    docid: Any = None,
    n_ranked: Array | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """`evaluate` for rows that are grouped already; ``labels`` are float64, finite, by row.

    Of each query, ``n_ranked`` positions from the first on are on its list; those behind were not
    retrieved: they count among the rows to be found, below all others. None: all are on it.
    """
    chosen = named_convention(convention)
    measures = measures_of(metrics)
    if is_on_device(scores) and n_ranked is None:
        from linrank.metrics.device_measures import evaluate_there  # few have a device

        found = evaluate_there(queries, labels, scores, measures, chosen, docid, n_jobs)
        if found is not None:
            return found
    scores = as_scores(scores, len(labels), chosen)
    check_gains(measures, labels, chosen)
    kernels = [m for m in measures if m.kernel]
    y_max = max(0.0, float(labels.max()))  # of ERR, unless it names one
    counted = {m.counts for m in measures}
    values, of_kernels, pairs, rows = _core.evaluate_queries(
        labels,
        scores,
        *queries.arrays,
        _document_keys(docid, len(labels)) if chosen.ties == "docid" else None,
        n_ranked,
        [_core.Measure(**choices_of(m, chosen, y_max)) for m in kernels],
        chosen.ties,
        "pairs" in counted,
        not counted.isdisjoint(("dominating", "dominated")),
        _threads(n_jobs, len(labels)),
    )
    by_query = values.reshape(len(kernels), queries.n_queries)
    result = {m: (float(of_kernels[i]), by_query[i]) for i, m in enumerate(kernels)}
    counts = Counts.of(pairs, rows)
    for measure in measures:
        if (share := counts.measure(measure, chosen)) is not None:
            result[measure] = share
        elif isinstance(measure, CustomMeasure):
            if n_ranked is not None:
                raise ValueError(f"{measure} is a metric of yours, which runs are not judged by")
            order = np.arange(len(labels)) if queries.order is None else queries.order
            each = np.split(order, queries.offsets[1:-1])
            own = np.array([_value(measure, labels, scores, rows) for rows in each])
            result[measure] = mean_of(own), own
    means = {str(m): result[m][0] for m in measures}
    per_query = {str(m): result[m][1] for m in measures}
    return Evaluation(means, per_query, queries.ids, chosen, **vars(counts))


def rank_within_queries(
    scores: Any, qid: Any = None, *, group: Any = None, n_jobs: int | None = None
) -> Array:
    """Return the rank of each row in its query: 1 for the highest score, ties in input order.

    Examples
    --------
    >>> rank_within_queries([0.1, 0.5, 0.3, 0.3], qid=[7, 7, 9, 9]).tolist()
    [2, 1, 1, 2]
    """
    values = as_scores(scores, None, named_convention("linrank"))
    queries = Queries.of(np.zeros(len(values)), qid=qid, group=group, n_jobs=n_jobs)
    threads = _threads(n_jobs, len(values))
    return _core.ranks_within_queries(values, queries.offsets, queries.order, threads)


def _threads(n_jobs: int | None, n_rows: int) -> int:
    n_threads = resolve(n_jobs)
    return n_threads if n_rows >= _PARALLEL_ROWS else 1


def measures_of(metrics: Metric | Iterable[Metric]) -> list[Measure]:
    """The measures in the order given, each once."""
    if isinstance(metrics, (str, Measure)) or callable(metrics):
        metrics = [metrics]
    measures = list(dict.fromkeys(parse(m) for m in metrics))
    names = [str(m) for m in measures]
    for twice in (name for name in names if names.count(name) > 1):
        raise ValueError(
            f"two metrics are called {twice!r}; name them by CustomMeasure(function, label='...')"
        )
    if not measures:
        raise ValueError(f"metrics is empty; name at least one of {', '.join(valid_forms())}")
    return measures


def _value(measure: CustomMeasure, labels: Array, scores: Array, rows: Array) -> float:
    """What a measure of the user's says of one query."""
    value = measure.function(labels[rows], scores[rows])
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"the metric {measure} returned {value!r} for the query of row {rows[0]}; it must be "
            "a number"
        ) from None


def mean_of(values: Array) -> float:
    """Return the mean of what is not NaN, with the bits of the core: Neumaier's sum, in order.

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


def choices_of(measure: Measure, chosen: Convention, y_max: float) -> dict[str, Any]:
    """The measure with every open choice decided: what one of the core is made of."""

    def choose(option: str, default: Any) -> Any:
        given = getattr(measure, option, None)
        return default if given is None else given

    empty = choose("empty", chosen.empty)
    return {
        "kind": measure.kernel,
        "k": choose("k", 0),
        "gain": choose("gain", chosen.gain),
        "discount": choose("discount", chosen.discount),
        "relevant_from": float(choose("rel", chosen.relevant_from)),
        "y_max": float(choose("y_max", y_max)),
        "empty": np.nan if empty == "skip" else float(empty),
        "short_is_zero": chosen.short_is_zero,
        "reachable": chosen.reachable,
        "step_precision": chosen.step_precision,
        "persistence": float(choose("p", 0.8)),
    }


def as_scores(scores: Any, n_rows: int | None, chosen: Convention) -> Array:
    """Return scores as a float64 vector without NaN, rounded where the convention rounds."""
    vector = as_vector(scores, "scores", n_rows, like="y")
    if len(vector) and np.isnan(vector.min()):  # a NaN is the least: no vector of flags
        bad = np.isnan(vector)  # none, where another thread has written to them meanwhile
        where = f"row {int(np.argmax(bad))} ({int(bad.sum())} such rows)"
        raise ValueError(f"scores has nan at {where}: a NaN cannot be ranked")
    if chosen.single_precision:
        with np.errstate(over="ignore"):
            vector = vector.astype(np.float32).astype(np.float64)
    return vector


def has_gains(measures: Iterable[Measure]) -> bool:
    """Whether one of the measures is made of gains, which negative labels do not have."""
    return any(isinstance(m, (NDCG, MeanNDCG, ERR)) for m in measures)


def check_gains(
    measures: list[Measure],
    labels: Array,
    chosen: Convention,
    extent: tuple[float, float] | None = None,
) -> None:
    """Gains of negative labels would make NDCG and ERR meaningless, as would grades above y_max.

    ``extent`` are the lowest and the highest label, where they are known.
    """
    gainful = [m for m in measures if has_gains([m])]
    if not gainful:
        return
    lowest, highest = extent or (float(labels.min()), float(labels.max()))
    if not chosen.negative_is_zero and lowest < 0:
        row = int(np.argmax(labels < 0))
        raise ValueError(
            f"y has the negative label {labels[row]:g} at row {row}, whose gain in {gainful[0]} "
            "would be negative; shift the labels so that the lowest is 0, or leave that metric out"
        )
    for m in gainful:
        if isinstance(m, ERR) and m.y_max is not None and highest > m.y_max:
            row = int(np.argmax(labels))
            raise ValueError(
                f"y has {labels[row]:g} at row {row}, above the highest grade of {m}; raise y_max"
            )


def _document_keys(docid: Any, n_rows: int) -> Array | None:
    """Document ids as integers in the same order; None: the row number stands for the id."""
    if docid is None:
        return None
    ids = as_array(docid, "docid")
    if ids.ndim != 1 or len(ids) != n_rows:
        raise ValueError(f"docid must hold one id for each of the {n_rows} rows, got {ids.shape}")
    if ids.dtype == object:
        missing = np.array([i is None for i in ids])
        if missing.any():
            raise ValueError(f"docid of row {int(np.argmax(missing))} is missing; ties need it")
        ids = ids.astype(str)
    if ids.dtype == np.int64 and len(ids) and ids.min() >= 0:
        return ids  # numbers are their own order
    return np.unique(ids, return_inverse=True)[1].astype(np.int64)


# ---- concordance of censored times, and of weighted rows -----------------------------------------


@dataclass(frozen=True)
class ConcordanceResult:
    """Comparable pairs by the order of their scores.

    Attributes
    ----------
    concordant, discordant, tied : int
        Pairs in which the earlier event has the higher score, the lower one, or the same.
    tied_time : int
        Of all of these, the pairs of an event and a censored time that are equal.
    """

    concordant: int
    discordant: int
    tied: int
    tied_time: int

    @property
    def n_pairs(self) -> int:
        """Number of comparable pairs."""
        return self.concordant + self.discordant + self.tied

    @property
    def value(self) -> float:
        """``(concordant + tied/2) / n_pairs``; NaN without a comparable pair."""
        if self.n_pairs == 0:
            return float("nan")
        return (2 * self.concordant + self.tied) / (2 * self.n_pairs)

    def __float__(self) -> float:
        return self.value


def concordance_index(
    event: Any, time: Any, scores: Any, *, qid: Any = None, tied_tol: float = 1e-8
) -> ConcordanceResult:
    """Return how often the earlier of two events has the higher score (Harrell's C).

    The pair (i, j) is comparable if i had its event and j is known to have had none by then:
    ``time_j > time_i``, or ``time_j = time_i`` and j is censored. It is concordant if
    ``s_i > s_j``, and counts one half if ``|s_i - s_j| <= tied_tol``:

        ``C = (n_concordant + n_tied/2) / n_comparable``.

    The numbers are those of ``concordance_index_censored`` of scikit-survival, in O(n log n).
    Without censoring, ``concordance_index(True, y, -s)`` is the measure ``concordance_index`` of
    `evaluate`.

    Parameters
    ----------
    event : booleans (n_rows,)
        Whether the event was seen at ``time``; otherwise it came later (right censoring).
    time : array (n_rows,)
        Time of the event or of the last look, finite.
    scores : array (n_rows,)
        Risks, finite: higher means earlier. For predicted times pass their negatives.
    qid : array (n_rows,), optional
        Strata: only rows of the same one are compared, and the counts are summed.
    tied_tol : float, default=1e-8
        Scores that differ by no more are tied.

    Returns
    -------
    ConcordanceResult
        Counts, and their ratio as ``value``; also ``float(result)``.

    Examples
    --------
    >>> result = concordance_index([True, False, True], [1.0, 2.0, 3.0], [0.9, 0.1, 0.95])
    >>> result
    ConcordanceResult(concordant=1, discordant=1, tied=0, tied_time=0)
    >>> result.value
    0.5
    """
    times = as_vector(time, "time")
    if len(times) == 0:
        raise ValueError("time is empty: there is nothing to compare")
    risks = as_vector(scores, "scores", len(times), like="time")
    check_finite(times, "time")
    check_finite(risks, "scores")
    # Booleans, or 0 and 1; anything else is likely to be the times.
    seen = as_array(event, "event")
    if seen.shape != times.shape:
        raise ValueError(
            f"event must hold one boolean for each of the {len(times)} rows of time, got shape "
            f"{seen.shape}"
        )
    if seen.dtype != bool and not (seen.dtype.kind in "iuf" and np.isin(seen, (0, 1)).all()):
        raise ValueError("event must hold True (seen) or False (censored); it comes before time")
    if not (isinstance(tied_tol, (int, float)) and 0.0 <= tied_tol < float("inf")):
        raise ValueError(f"tied_tol must be a finite number >= 0, got {tied_tol!r}")
    strata = Queries.of(times, qid=qid)
    seen, times, risks = map(strata.gather, (np.ascontiguousarray(seen, bool), times, risks))
    counts = _core.censored_concordance(strata.offsets, seen, times, risks, float(tied_tol))
    return ConcordanceResult(*counts)


def weighted_pairwise_accuracy(y: Any, scores: Any, sample_weight: Any, qid: Any = None) -> float:
    """Weight of the pairs in the right order over that of all pairs; NaN if there are none.

    The pair (i, j) weighs ``u_i·u_j``, so that a weight of 2 equals repeating the row; a pair of
    equal scores is an error.

    Examples
    --------
    >>> weighted_pairwise_accuracy([2, 1, 0], [3.0, 1.0, 2.0], [1.0, 1.0, 2.0])
    0.6
    """
    labels = as_labels(y)
    weight = as_weights(sample_weight, len(labels))
    queries = Queries.of(labels, qid=qid)
    values = as_scores(scores, len(labels), named_convention("linrank"))
    right, wrong, tied = _core.weighted_concordance(
        queries.offsets, queries.levels, queries.gather(values), queries.gather(weight)
    )
    total = right + wrong + tied
    return float(right / total) if total > 0.0 else float("nan")
