"""Metrics of 10^6 rows in 10^4 queries: linrank against what evaluates them query by query.

The rivals: a Python loop over scikit-learn, and over plain NumPy, once per query and measure; and
ir_measures (its pytrec_eval provider) and ranx, which take dictionaries of dictionaries. Loops and
ir_measures are timed on a sample of the queries and extrapolated by their number, ranx on all.
Turning arrays into dictionaries and objects is timed apart; ratios are given without it and with
it. All run in one process, one after the other, on processor time, and the values are compared.
Packages that are missing are skipped.

    python benchmarks/metrics.py [--rows N] [--queries N] [--sample N] [--repeat N] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

import linrank
from linrank.metrics import evaluate

Rival = Callable[[Any, Any, Any, Any], dict[str, Any]]


def problem(n_rows: int, n_queries: int) -> tuple[Any, Any, Any]:
    """(y, scores, qid): uneven queries of at least two rows, five skewed grades, some ties."""
    rng = np.random.default_rng(0)
    spare = rng.multinomial(n_rows - 2 * n_queries, rng.dirichlet(np.full(n_queries, 2.0)))
    qid = np.repeat(np.arange(n_queries), 2 + spare)
    y = rng.choice(5, n_rows, p=[0.5, 0.3, 0.13, 0.05, 0.02]).astype(float)
    return y, (y + 3 * rng.normal(size=n_rows)).round(2), qid


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
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
        took, values = timed(
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
    """{query: {document: number}} of judgements and scores; ids that sort as the rows do."""
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

    conversion, (qrels, run) = timed(lambda: tables(y, s, bounds, queries))
    measures = [library.parse_measure(name) for name in ("nDCG@10", "AP", "RR")]
    took, found = timed(lambda: list(library.pytrec_eval.iter_calc(measures, qrels, run)))
    names = dict(zip(map(str, measures), ("ndcg(gain=linear)@10", "map", "mrr"), strict=True))
    by_name: dict[str, dict[str, float]] = {name: {} for name in names.values()}
    for one in found:
        by_name[names[str(one.measure)]][one.query_id] = one.value
    values = {name: [of[str(q)] for q in queries] for name, of in by_name.items()}
    return {"seconds": took, "conversion": conversion, "values": values}


def ranx(y: Any, s: Any, bounds: Any, queries: Any) -> dict[str, Any]:
    """Without comparison by query: ranx breaks ties by an order of its own."""
    import ranx as library

    names = ["ndcg@10", "map", "mrr"]
    everything = range(len(bounds) - 1)
    small = tables(y, s, bounds, everything[:20])
    warm = library.Qrels(small[0]), library.Run(small[1])
    library.evaluate(*warm, names)  # compiles
    conversion, pair = timed(
        lambda: [
            kind(table)
            for kind, table in zip(
                (library.Qrels, library.Run), tables(y, s, bounds, everything), strict=True
            )
        ]
    )
    took, _ = timed(lambda: library.evaluate(*pair, names))
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


def against(name: str, data: tuple[Any, ...], arguments: argparse.Namespace) -> dict[str, Any]:
    """Times of one rival and of linrank for the same measures, and how far the values differ."""
    y, s, qid, bounds, chosen = data
    rival, package, metrics, convention = RIVALS[name]
    run = partial(evaluate, y, s, qid=qid, metrics=metrics, convention=convention)
    ours = [timed(partial(run, n_jobs=1))[0] for _ in range(arguments.repeat)]
    theirs = rival(y, s, bounds, chosen)
    scale = arguments.queries / len(chosen)
    result = run()
    difference = [
        float(np.nanmax(np.abs(result.per_query[metric][chosen] - np.array(values))))
        for metric, values in theirs["values"].items()
    ]
    whole, conversion = scale * theirs["seconds"], scale * theirs["conversion"]
    own = statistics.median(ours)
    return {
        "metrics": metrics,
        "version": version({"sklearn": "scikit-learn"}.get(package, package)),
        "seconds": whole,
        "conversion_seconds": conversion,
        "linrank_seconds": ours,
        "ratio": whole / own,
        "ratio_with_conversion": (whole + conversion) / own,
        "largest_difference": max(difference, default=None),
    }


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    y, s, qid = problem(arguments.rows, arguments.queries)
    bounds = np.searchsorted(qid, np.arange(arguments.queries + 1))
    sample = min(arguments.sample, arguments.queries)
    chosen = np.sort(np.random.default_rng(1).choice(arguments.queries, sample, replace=False))
    data = (y, s, qid, bounds, chosen)
    present = [n for n, rival in RIVALS.items() if importlib.util.find_spec(rival[1]) is not None]
    return {
        "rows": arguments.rows,
        "queries": arguments.queries,
        "machine": f"{platform.machine()}, one thread",
        "versions": {"linrank": linrank.__version__},
        "sample_queries": sample,
        "rivals": {name: against(name, data, arguments) for name in present},
        "missing": [name for name in RIVALS if name not in present],
    }


def show(result: dict[str, Any]) -> None:
    print(f"{result['rows']} rows, {result['queries']} queries; {result['machine']}")
    for name, one in result["rivals"].items():
        difference = one["largest_difference"]
        agreement = "" if difference is None else f"; largest difference {difference:.1e}"
        apart = one["conversion_seconds"]
        print(f"\n{name} {one['version']}: {', '.join(one['metrics'])}{agreement}")
        print(f"  {one['seconds']:.2f} s" + (f", and {apart:.2f} s for objects" if apart else ""))
        times = one["linrank_seconds"]
        whole = f", {one['ratio_with_conversion']:.0f}x with the objects" if apart else ""
        print(
            f"  linrank: {statistics.median(times) * 1e3:.1f} ms "
            f"({min(times) * 1e3:.1f} to {max(times) * 1e3:.1f}): {one['ratio']:.0f}x{whole}"
        )
    for name in result["missing"]:
        print(f"\n{name}: not installed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=1_000, help="queries given to the loops")
    parser.add_argument("--repeat", type=int, default=5, help="runs of linrank; the median counts")
    parser.add_argument("--json", metavar="FILE", help="write the result there as well")
    arguments = parser.parse_args()
    result = compare(arguments)
    show(result)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
