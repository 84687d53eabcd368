"""The MSLR shape, 2.27M × 136 and 10^8 pairs: Factorized RankSVM to its tolerance, and RankSVM.

Every fit is a process of its own, by the defaults: seconds on the wall, objectives, and the peak of
anonymous memory by the bytes of the float32 matrix. The paper could not run the plain RankSVM
there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import problems
from memory import watch
from report import Table, main

CHILD = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import problems
method, C, n_jobs, fraction = sys.argv[2], *map(float, sys.argv[3:6])
n_jobs = int(n_jobs)
print("reading", flush=True)
data = problems.load("b", fraction)
data.queries.n_pairs
from linrank.lowrank.factorized import train_factorized
from linrank.ranksvm.train import train
print("training", flush=True)
start, cpu = time.perf_counter(), time.process_time()
if method == "factorized":
    fit = train_factorized(data, C=C, n_jobs=n_jobs, max_iter=int(sys.argv[6]) or None)
else:
    fit = train(data, C=C, loss=method, n_jobs=n_jobs)
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
print("done", flush=True)
found = {"wall": wall, "cpu": cpu, "value": fit.value, "gap": fit.gap, "n_iter": fit.n_iter}
found["stopped"] = fit.stopped
found["epoch"] = (fit.history["seconds"][-1] - fit.history["seconds"][0]) / max(1, fit.n_iter)
print(json.dumps(found), data.rows.nbytes, flush=True)
"""
# Epochs at most of the factorized at C = 1, which would take a thousand and more to rest; fewer on
# one thread, for the seconds of each: the result does not depend on threads.
MANY, FEW = 400, 50
FACTORIZED = "factorized"
# (method, C, threads). Validation prefers C·pairs of some hundreds (see letor_lowrank): 1e-6 here.
FITS = (
    *((FACTORIZED, C, 2) for C in (1e-6, 1e-3, 1.0)),
    (FACTORIZED, 1.0, 1),
    *((loss, C, 2) for C in (1e-6, 1e-3, 1.0) for loss in ("hinge", "squared_hinge")),
)


def measure(quick: bool) -> list[Table]:
    fraction = 0.02 if quick else 1.0
    data = problems.load("b", fraction)
    queries = data.queries
    table = Table(
        f"MSLR shape, {data.n_rows:,} × {data.n_features}, {queries.n_pairs:.2e} pairs",
        [
            *("method", "C", "threads", "wall s", "CPU s", "iterations", "s each", "stopped by"),
            *("objective", "gap", "peak, MB", "peak / matrix"),
        ],
        notes=[
            f"{queries.n_queries:,} queries of {data.n_rows / queries.n_queries:.0f} rows, "
            f"{shares(data.labels)}; objective: f(V) of the factorized, F(w) of the others",
            "gap: of the factorized what lies between -f(V), a lower bound of the hinge's F*, and "
            "the hinge's F(w) of its model; of the others F(w) - F* is at most that",
            f"the factorized at C = 1 is stopped after {MANY} epochs, on one thread after {FEW}: "
            "threads do not change the iterates",
            "peak: RssAnon while training, the matrix, interpreter and libraries included",
        ],
    )
    del data
    for method, C, n_jobs in FITS:
        add(table, method, C, n_jobs, fraction)
    return [table]


def shares(labels: Any) -> str:
    """``"labels 0 to 4: 61, 24, 10, 3.9, 1.6 %"``."""
    parts = ", ".join(f"{100 * (labels == y).mean():.2g}" for y in range(5))
    return f"labels 0 to 4: {parts} %"


def add(table: Table, method: str, C: float, n_jobs: int, fraction: float) -> None:
    here = str(Path(__file__).resolve().parent)
    n_iter = 0  # by the tolerance
    if (method, C) == (FACTORIZED, 1.0):
        n_iter = FEW if n_jobs == 1 else MANY
    numbers = map(str, (C, n_jobs, fraction, n_iter))
    command = [sys.executable, "-c", CHILD, here, method, *numbers]
    peaks, _, last = watch(command)
    text, size = last.rsplit(" ", 1)
    found = json.loads(text)
    table.add(
        *(method, f"{C:g}", n_jobs, f"{found['wall']:.3g}", f"{found['cpu']:.3g}", found["n_iter"]),
        *(f"{found['epoch']:.3g}", found["stopped"]),
        *(f"{found['value']:.8g}", f"{found['gap']:.4g}"),
        *(round(peaks["training"] / 1e6), f"{peaks['training'] / float(size):.3f}x"),
    )


if __name__ == "__main__":
    main(measure, __doc__)
