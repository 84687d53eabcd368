"""linrank.compare of ten methods by five metrics on 30,000 queries, against a loop over SciPy.

The loop calls scipy.stats once for every method and metric: permutation_test and bootstrap (in
batches, to stay within memory) and ttest_rel. It is timed on one of the 45 pairs with a part of the
resamples, and extrapolated by both numbers: each costs the same. Processor time, one thread each.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import stats

from linrank.judging.compare import compare_evaluations
from linrank.metrics import Evaluation, evaluate
from report import Table, main, seconds, spread

METRICS = ["ndcg@1", "ndcg@10", "map", "mrr", "pairwise_accuracy"]
N_METHODS, N_RESAMPLES, BATCH = 10, 10_000, 50


def problem(n_queries: int) -> dict[str, Evaluation]:
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


def loop(a: Any, b: Any, n_resamples: int) -> tuple[float, float]:
    """p by the t-test and by permutation, after a bootstrap interval, of one pair."""
    options = {"n_resamples": n_resamples, "batch": BATCH, "vectorized": True, "random_state": 0}
    stats.bootstrap((a, b), difference, paired=True, method="percentile", **options)
    found = stats.permutation_test((a, b), difference, permutation_type="samples", **options)
    return float(stats.ttest_rel(b, a).pvalue), float(found.pvalue)


def measure(quick: bool) -> list[Table]:
    n_queries, repeat, sampled = (3_000, 1, 50) if quick else (30_000, 3, 100)
    evaluations = problem(n_queries)
    table = Table(
        f"{N_METHODS} methods, {len(METRICS)} metrics, {n_queries:,} queries, {N_RESAMPLES:,} "
        "resamples: intervals, tests, corrections",
        ["library", "seconds of processor time", "ratio"],
    )
    run = lambda: compare_evaluations(evaluations, n_resamples=N_RESAMPLES, n_jobs=1)  # noqa: E731
    run()  # SciPy's functions are loaded on first use
    ours = seconds(run, repeat, time.process_time)
    a, b = (evaluations[f"method {i}"].per_query["ndcg@10"] for i in (0, 1))
    theirs = seconds(lambda: loop(a, b, sampled), repeat, time.process_time)
    whole = np.multiply(theirs, (N_METHODS - 1) * len(METRICS) * N_RESAMPLES / sampled)
    table.add("linrank.compare", spread(ours), "1")
    table.add("loop over scipy.stats", spread(whole), f"{np.median(whole) / np.median(ours):.0f}x")
    t, _ = loop(a, b, sampled)
    both = {n: evaluations[n] for n in ("method 0", "method 1")}
    mine = compare_evaluations(both, test="t", n_resamples=10).cells["method 1", "ndcg@10"].p
    table.notes += [
        f"the loop on one pair with {sampled} resamples, extrapolated to 45 pairs with all",
        f"p of the paired t-test of that pair: {mine:.6g}, by SciPy {t:.6g}",
    ]
    return [table]


if __name__ == "__main__":
    main(measure, __doc__)
