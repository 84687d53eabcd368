"""Metrics of 10^6 rows in 10^4 queries, and comparisons of ten methods on 30,000 queries.

The rivals of metrics: a Python loop over scikit-learn, and over plain NumPy, once per query and
measure; and ir_measures (its pytrec_eval provider) and ranx, which take dictionaries of
dictionaries. Loops and ir_measures are timed on a sample of the queries and extrapolated, ranx on
all. Turning arrays into dictionaries and objects is timed separately.

The rival of `linrank.compare` is a loop over scipy.stats: permutation_test and bootstrap (in
batches, to stay within memory) and ttest_rel for every method and metric. It is timed on one of the
45 pairs with a part of the resamples, and extrapolated by both numbers: each costs the same.

Processor time of one thread each, one after the other in one process.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import stats

from linrank.judging.compare import compare_evaluations
from linrank.metrics import Evaluation, evaluate
from report import Table, main, ratio, seconds, spread

Rival = Callable[[Any, Any, Any, Any], dict[str, Any]]


def problem(n_rows: int, n_queries: int) -> tuple[Any, Any, Any]:
    """(y, scores, qid): uneven queries of at least two rows, five skewed grades, some ties."""
    rng = np.random.default_rng(0)
    spare = rng.multinomial(n_rows - 2 * n_queries, rng.dirichlet(np.full(n_queries, 2.0)))
    qid = np.repeat(np.arange(n_queries), 2 + spare)
    y = rng.choice(5, n_rows, p=[0.5, 0.3, 0.13, 0.05, 0.02]).astype(float)
    return y, (y + 3 * rng.normal(size=n_rows)).round(2), qid


def time_work(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time: other work on the machine does not count; all rivals have one thread."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


# ---- loops over queries -------------------------------------------------------------------------


def loop(measures: dict[str, Callable[[Any, Any], float]], y: Any, s: Any, bounds: Any, qs: Any):
    """Each measure of each query; warnings of queries of one class are not wanted."""
    rows = [(y[bounds[q] : bounds[q + 1]], s[bounds[q] : bounds[q + 1]]) for q in qs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        took, values = time_work(
            lambda: {name: [measure(a, b) for a, b in rows] for name, measure in measures.items()}
        )
    return {"seconds": took, "conversion": 0.0, "values": values}


def scikit_learn(y: Any, s: Any, bounds: Any, queries: Any) -> dict[str, Any]:
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    measures = {
        "ndcg(gain=exponential)@10": lambda a, b: ndcg_score([2**a - 1], [b], k=10),
        "map": lambda a, b: average_precision_score(a >= 1, b),
        "auc": lambda a, b: roc_auc_score(a >= 1, b),
    }
    return loop(measures, y, s, bounds, queries)


def numpy_ndcg(y: Any, s: Any, k: int = 10) -> float:
    discount = 1 / np.log2(np.arange(2, min(k, len(y)) + 2))
    ideal = float(np.sort(y)[::-1][:k] @ discount)
    order = np.argsort(-s, kind="stable")[:k]
    return float(y[order] @ discount) / ideal if ideal else 0.0


def numpy_map(y: Any, s: Any) -> float:
    ranks = np.flatnonzero(y[np.argsort(-s, kind="stable")] >= 1) + 1
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else 0.0


def plain_numpy(y: Any, s: Any, bounds: Any, queries: Any) -> dict[str, Any]:
    measures = {"ndcg(gain=linear)@10": numpy_ndcg, "map": numpy_map}
    return loop(measures, y, s, bounds, queries)


# ---- libraries that take dictionaries -----------------------------------------------------------


def tables(y: Any, s: Any, bounds: Any, queries: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """{query: {document: number}} of judgments and scores; ids that sort as the rows do."""
    qrels: dict[str, Any] = {}
    run: dict[str, Any] = {}
    for q in queries:
        names = [f"d{row:08d}" for row in range(bounds[q], bounds[q + 1])]
        rows = slice(bounds[q], bounds[q + 1])
        qrels[str(q)] = dict(zip(names, y[rows].astype(int).tolist(), strict=True))
        run[str(q)] = dict(zip(names, s[rows].tolist(), strict=True))
    return qrels, run


def ir_measures(y: Any, s: Any, bounds: Any, queries: Any) -> dict[str, Any]:
    import ir_measures as library

    conversion, (qrels, run) = time_work(lambda: tables(y, s, bounds, queries))
    measures = [library.parse_measure(name) for name in ("nDCG@10", "AP", "RR")]
    took, found = time_work(lambda: list(library.pytrec_eval.iter_calc(measures, qrels, run)))
    names = dict(zip(map(str, measures), ("ndcg(gain=linear)@10", "map", "mrr"), strict=True))
    by_name: dict[str, dict[str, float]] = {name: {} for name in names.values()}
    for one in found:
        by_name[names[str(one.measure)]][one.query_id] = one.value
    values = {name: [of[str(q)] for q in queries] for name, of in by_name.items()}
    return {"seconds": took, "conversion": conversion, "values": values}


def ranx(y: Any, s: Any, bounds: Any, queries: Any) -> dict[str, Any]:
    """Without comparison by query: ranx breaks ties in another order."""
    import ranx as library

    names = ["ndcg@10", "map", "mrr"]
    everything = range(len(bounds) - 1)
    small = tables(y, s, bounds, everything[:20])
    warm = library.Qrels(small[0]), library.Run(small[1])
    library.evaluate(*warm, names)  # compiles
    conversion, pair = time_work(
        lambda: [
            kind(table)
            for kind, table in zip(
                (library.Qrels, library.Run), tables(y, s, bounds, everything), strict=True
            )
        ]
    )
    took, _ = time_work(lambda: library.evaluate(*pair, names))
    share = len(queries) / len(everything)
    return {"seconds": share * took, "conversion": share * conversion, "values": {}}


# (rival, package, measures of linrank for the same work, convention)
RIVALS: dict[str, tuple[Rival, str, list[str], str]] = {
    "scikit-learn loop": (
        scikit_learn, "sklearn", ["ndcg(gain=exponential)@10", "map", "auc"], "sklearn",
    ),
    "NumPy loop": (plain_numpy, "numpy", ["ndcg(gain=linear)@10", "map"], "linrank"),
    "ir_measures": (
        ir_measures, "ir_measures", ["ndcg(gain=linear)@10", "map", "mrr"], "trec_eval",
    ),
    "ranx": (ranx, "ranx", ["ndcg(gain=linear)@10", "map", "mrr"], "linrank"),
}  # fmt: skip


def measure(quick: bool) -> list[Table]:
    sizes = (100_000, 1_000, 100) if quick else (1_000_000, 10_000, 1_000)
    return [against_rivals(*sizes), comparisons(quick)]


def against_rivals(n_rows: int, n_queries: int, n_sampled: int) -> Table:
    y, s, qid = problem(n_rows, n_queries)
    bounds = np.searchsorted(qid, np.arange(n_queries + 1))
    chosen = np.sort(np.random.default_rng(1).choice(n_queries, n_sampled, replace=False))
    table = Table(
        f"Metrics of {n_rows:,} rows in {n_queries:,} queries, processor seconds, one thread",
        [
            *("rival", "version", "metrics", "its seconds", "of them for objects"),
            *("linrank, ms", "ratio without objects", "ratio", "largest difference"),
        ],
        notes=[f"loops and ir_measures: {n_sampled:,} queries, extrapolated by their number"],
    )
    for name, (rival, package, metrics, convention) in RIVALS.items():
        if importlib.util.find_spec(package) is None:
            table.notes.append(f"{name} skipped: not installed")
            continue
        run = partial(evaluate, y, s, qid=qid, metrics=metrics, convention=convention)
        ours = [time_work(partial(run, n_jobs=1))[0] for _ in range(5)]
        theirs = rival(y, s, bounds, chosen)
        result = run()
        difference = [
            float(np.nanmax(np.abs(result.per_query[metric][chosen] - np.array(values))))
            for metric, values in theirs["values"].items()
        ]
        scale = n_queries / n_sampled
        work, objects = scale * theirs["seconds"], scale * theirs["conversion"]
        middle = statistics.median(ours)
        table.add(
            *(name, version({"sklearn": "scikit-learn"}.get(package, package))),
            *(", ".join(metrics), work + objects, objects, spread(ours, 1e-3)),
            *(ratio(work / middle), ratio((work + objects) / middle)),
            f"{max(difference):.1e}" if difference else "",
        )
    return table


# ---- linrank.compare --------------------------------------------------------

METRICS = ["ndcg@1", "ndcg@10", "map", "mrr", "pairwise_accuracy"]
N_METHODS, N_RESAMPLES, BATCH = 10, 10_000, 50


def noisy_methods(n_queries: int) -> dict[str, Evaluation]:
    """Ten methods that see the labels through nearly the same noise."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), rng.integers(5, 20, n_queries))
    y = rng.integers(0, 5, len(qid)).astype(float)
    return {
        f"method {i}": evaluate(
            y, y + (3.0 + 0.02 * i) * rng.normal(size=len(y)), qid=qid, metrics=METRICS
        )
        for i in range(N_METHODS)
    }


def difference(a: Any, b: Any, axis: int = -1) -> Any:
    return np.mean(b, axis=axis) - np.mean(a, axis=axis)


def scipy_loop(a: Any, b: Any, n_resamples: int) -> tuple[float, float]:
    """p by the t-test and by permutation, after a bootstrap interval, of one pair."""
    options = {"n_resamples": n_resamples, "batch": BATCH, "vectorized": True, "random_state": 0}
    stats.bootstrap((a, b), difference, paired=True, method="percentile", **options)
    found = stats.permutation_test((a, b), difference, permutation_type="samples", **options)
    return float(stats.ttest_rel(b, a).pvalue), float(found.pvalue)


def comparisons(quick: bool) -> Table:
    n_queries, repeat, sampled = (3_000, 1, 50) if quick else (30_000, 3, 100)
    evaluations = noisy_methods(n_queries)
    table = Table(
        f"{N_METHODS} methods, {len(METRICS)} metrics, {n_queries:,} queries, {N_RESAMPLES:,} "
        "resamples: intervals, tests, corrections",
        ["library", "seconds of processor time", "ratio"],
    )
    run = lambda: compare_evaluations(evaluations, n_resamples=N_RESAMPLES, n_jobs=1)  # noqa: E731
    run()  # SciPy's functions are loaded on first use
    ours = seconds(run, repeat, time.process_time)
    a, b = (evaluations[f"method {i}"].per_query["ndcg@10"] for i in (0, 1))
    theirs = seconds(lambda: scipy_loop(a, b, sampled), repeat, time.process_time)
    whole = np.multiply(theirs, (N_METHODS - 1) * len(METRICS) * N_RESAMPLES / sampled)
    table.add("linrank.compare", spread(ours), "1")
    table.add("loop over scipy.stats", spread(whole), f"{np.median(whole) / np.median(ours):.0f}x")
    t, _ = scipy_loop(a, b, sampled)
    both = {n: evaluations[n] for n in ("method 0", "method 1")}
    mine = compare_evaluations(both, test="t", n_resamples=10).cells["method 1", "ndcg@10"].p
    table.notes += [
        f"the loop on one pair with {sampled} resamples, extrapolated to 45 pairs with all",
        f"p of the paired t-test of that pair: {mine:.6g}, by SciPy {t:.6g}",
    ]
    return table


if __name__ == "__main__":
    main(measure, __doc__)
