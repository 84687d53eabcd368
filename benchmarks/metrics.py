"""Metrics of 10^6 rows in 10^4 queries: linrank against a Python loop over scikit-learn.

The loop calls scikit-learn once per query and measure, which is how it is used for rankings. It is
timed on a sample of the queries and extrapolated by their number; both sides run in one process,
one after the other, and the values of the sample are compared.

    python benchmarks/metrics.py [--rows N] [--queries N] [--sample N] [--repeat N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

import linrank
from linrank.metrics import evaluate
from report import seconds

MEASURES: dict[str, Callable[[Any, Any], float]] = {
    "ndcg(gain=exponential)@10": lambda y, s: ndcg_score([2**y - 1], [s], k=10),
    "map": lambda y, s: average_precision_score(y >= 1, s),
    "auc": lambda y, s: roc_auc_score(y >= 1, s),
}


def problem(n_rows: int, n_queries: int) -> tuple[Any, Any, Any]:
    """(y, scores, qid): uneven queries of at least two rows, five skewed grades, some ties."""
    rng = np.random.default_rng(0)
    spare = rng.multinomial(n_rows - 2 * n_queries, rng.dirichlet(np.full(n_queries, 2.0)))
    qid = np.repeat(np.arange(n_queries), 2 + spare)
    y = rng.choice(5, n_rows, p=[0.5, 0.3, 0.13, 0.05, 0.02]).astype(float)
    return y, (y + 3 * rng.normal(size=n_rows)).round(2), qid


def loop(y: Any, s: Any, bounds: Any, chosen: Any) -> dict[str, list[float]]:
    """scikit-learn on each chosen query; roc_auc of one class is left as it comes (NaN)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: [
                measure(y[bounds[q] : bounds[q + 1]], s[bounds[q] : bounds[q + 1]]) for q in chosen
            ]
            for name, measure in MEASURES.items()
        }


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    y, s, qid = problem(arguments.rows, arguments.queries)
    bounds = np.searchsorted(qid, np.arange(arguments.queries + 1))
    chosen = np.random.default_rng(1).choice(arguments.queries, arguments.sample, replace=False)

    run = partial(evaluate, y, s, qid=qid, metrics=list(MEASURES), convention="sklearn")
    threads = (1, len(os.sched_getaffinity(0)))
    ours = {n: seconds(partial(run, n_jobs=n), arguments.repeat) for n in threads}
    start = time.perf_counter()
    theirs = loop(y, s, bounds, chosen)
    sampled = time.perf_counter() - start

    result = run()
    difference = max(
        float(np.nanmax(np.abs(result.per_query[name][chosen] - np.array(values))))
        for name, values in theirs.items()
    )
    whole = sampled * arguments.queries / arguments.sample
    return {
        "rows": arguments.rows,
        "queries": arguments.queries,
        "metrics": list(MEASURES),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {"linrank": linrank.__version__, "scikit-learn": sklearn.__version__},
        "sample_queries": arguments.sample,
        "loop_seconds_sampled": sampled,
        "loop_seconds_extrapolated": whole,
        "linrank_seconds": {str(n): times for n, times in ours.items()},
        "ratio": {str(n): whole / statistics.median(times) for n, times in ours.items()},
        "largest_difference": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=1_000, help="queries given to the loop")
    parser.add_argument("--repeat", type=int, default=5, help="runs of linrank; the median counts")
    parser.add_argument("--json", metavar="FILE", help="write the result there as well")
    arguments = parser.parse_args()
    result = compare(arguments)
    print(f"{result['rows']} rows, {result['queries']} queries, {', '.join(result['metrics'])}")
    print(
        f"scikit-learn loop: {result['loop_seconds_extrapolated']:.2f} s, extrapolated from "
        f"{result['sample_queries']} queries; largest difference {result['largest_difference']:.1e}"
    )
    for n_jobs, ratio in result["ratio"].items():
        times = result["linrank_seconds"][n_jobs]
        print(
            f"linrank, {n_jobs} thread(s): {statistics.median(times) * 1e3:.1f} ms "
            f"({min(times) * 1e3:.1f} to {max(times) * 1e3:.1f}): {ratio:.0f}x the loop"
        )
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
