"""Factorized RankSVM against its published algorithm over pairs, and on the MSLR shape.

OHSUMED (fold 1, training part) and generated queries of 50 to 1,000 rows with 46 features, all
normalized by query; K = 5, C = 1. One thread, CPU seconds, in one run. On the MSLR shape, 2.27M x
136 and 10^8 pairs, every fit runs in a separate process, with the defaults; the paper could not
run the plain RankSVM there.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.synthetic import make_ranking
from linrank.lowrank.factorized import train_factorized
from linrank.published import PAIR_WORK, factorize_by_pairs
from linrank.ranksvm.train import train
from memory import watch
from report import Table, main, ratio, spread
from shapes import query_normalized

LENGTHS = (50, 150, 500, 1_000)
N_ROWS = 10_000
TARGETS = {"ohsumed": 20.0, "150 rows": 20.0, "1000 rows": 100.0}
RATES = tuple(10.0**-k for k in range(2, 9))
STARTS = (1.0, 0.1)  # of the box
TRIAL = 0.5  # seconds of each rate
LIMIT = 5.0  # of the best and its neighbors
Choice = tuple[float, float]  # start and learning rate
NAMES = {"by_pair": "as printed", "by_row": "scores shared"}


@dataclass(frozen=True)
class Problem:
    """A set, by name."""

    name: str
    data: Dataset


def measure(quick: bool) -> list[Table]:
    tables = [epoch_table(), value_table(), goal_table()]
    shrink = 10.0 if quick else 1.0
    for problem in sets(tables[0], int(N_ROWS / shrink)):
        pace = compare_epochs(tables[0], problem)
        compare_values(tables[1], tables[2], problem, pace, shrink)
    return [*tables, mslr(quick)]


def sets(table: Table, n_rows: int) -> Iterator[Problem]:
    try:
        yield Problem("ohsumed", problems.load("ohsumed"))
    except problems.Absent as absent:
        table.notes.append(f"ohsumed skipped: {absent}")
    for length in LENGTHS:
        yield Problem(f"{length} rows", long_queries(n_rows, length))


# ---- seconds of an epoch ----------------------------------------------------


def epoch_table() -> Table:
    return Table(
        "An epoch: a pass over all queries, milliseconds",
        [
            *("set", "rows × features", "rows per query", "pairs", "linrank"),
            *(title for name in NAMES.values() for title in (name, f"{name} / linrank")),
        ],
        notes=[
            "the median (lowest–highest), the methods in turn",
            "as printed: Algorithm 1 in C++, ⟨β, x_i - x_j⟩ and α_ij (x_i - x_j) for every pair, "
            "by vector kernels; scores shared: t = Xβ once per query, its gradient and β_q from "
            "sums over pairs of K products",
        ],
    )


def compare_epochs(table: Table, problem: Problem) -> dict[str, float]:
    """A row of the table; the middle seconds of an epoch of the published ways."""
    data = problem.data
    times: dict[str, list[float]] = {way: [] for way in ("linrank", *NAMES)}
    for _ in range(3):  # in turn
        times["linrank"] += list(ours(data, n_epochs=20).epochs)
        for way in PAIR_WORK:
            times[way] += list(theirs(data, way, 1e-12, limit=0.5, n_epochs=10).epochs)
    middle = {way: float(np.median(taken)) for way, taken in times.items()}
    cells = [spread(times["linrank"], 1e-3)]
    for way in NAMES:
        target = TARGETS.get(problem.name) if way == "by_pair" else None
        cells += [spread(times[way], 1e-3), ratio(middle[way] / middle["linrank"], target)]
    queries = data.queries
    shape = f"{data.n_rows} × {data.n_features}"
    table.add(problem.name, shape, round(data.n_rows / queries.n_queries), queries.n_pairs, *cells)
    return {way: middle[way] for way in NAMES}


# ---- f after equal seconds --------------------------------------------------


def value_table() -> Table:
    return Table(
        "-f(V)/F* after equal seconds, each way with the start and learning rate best there",
        [
            *("set", "F*", "seconds", "linrank", "epochs"),
            *(title for name in NAMES.values() for title in (name, "epochs", "start, η")),
        ],
        notes=[
            "F*: the optimum of RankSVM with the hinge, which -f never exceeds; the lowest f until "
            "then counts; seconds of linrank include what is made before the first epoch",
            f"η: powers of ten from {RATES[-1]:g} to {RATES[0]:g}, with V uniform in the whole "
            f"box, as printed, or in {STARTS[1]:g} of it: {TRIAL:g} s each, then of both starts "
            f"the best and those next to it for {LIMIT:g} s. linrank has its own start",
            "both published ways make the same iterates: those of the faster one are paced by the "
            "seconds of an epoch above",
        ],
    )


def goal_table() -> Table:
    return Table(
        "Seconds until the f that the published algorithm, scores shared, has at the end",
        [
            *("set", "-f/F*", "linrank", "epochs"),
            *(title for name in NAMES.values() for title in (name, f"{name} / linrank")),
        ],
        notes=[f">: not there within {LIMIT:g} s; the ratio is then a lower bound"],
    )


def compare_values(
    values: Table, goals: Table, problem: Problem, pace: dict[str, float], shrink: float
) -> None:
    limit, name = LIMIT / shrink, problem.name
    optimum = train(problem.data, loss="hinge", C=1.0, tol=1e-4, n_jobs=1).value
    best = ours(problem.data, limit=limit).run()
    runs = published_runs(problem.data, limit, TRIAL / shrink)
    paced = {way: {key: run.paced(pace[way]) for key, run in runs.items()} for way in PAIR_WORK}
    for seconds in (0.02 * limit, 0.2 * limit, limit):
        cells: list[object] = [f"{-best.at(seconds) / optimum:.5g}", best.epochs_at(seconds)]
        for way in NAMES:
            key, run = lowest(paced[way], seconds)
            if run.epochs_at(seconds):
                cells += [f"{-run.at(seconds) / optimum:.5g}", run.epochs_at(seconds)]
                cells.append("{:g}, {:.0e}".format(*key))
            else:
                cells += ["", 0, ""]
        values.add(name, f"{optimum:.6g}", f"{seconds:g}", *cells)
    add_goal(goals, name, best, paced, limit, optimum)


def published_runs(data: Dataset, limit: float, trial: float) -> dict[Choice, Run]:
    """The iterates from each start, of the rate best for it and of the rates next to that."""
    runs = {}
    for start in STARTS:
        tried = [theirs(data, "by_row", rate, start, trial).run().at(np.inf) for rate in RATES]
        at = int(np.argmin(tried))
        for rate in RATES[max(0, at - 1) : at + 2]:
            runs[start, rate] = theirs(data, "by_row", rate, start, limit).run()
    return runs


def lowest(runs: dict[Choice, Run], seconds: float) -> tuple[Choice, Run]:
    choice = min(runs, key=lambda choice: runs[choice].at(seconds))
    return choice, runs[choice]


def add_goal(
    table: Table,
    name: str,
    best: Run,
    paced: dict[str, dict[Choice, Run]],
    limit: float,
    optimum: float,
) -> None:
    goal = lowest(paced["by_row"], limit)[1].at(limit)
    mine = best.until(goal)
    if np.isfinite(mine):
        shown = [f"{mine:.3g}", best.epochs_at(mine)]
    else:
        mine = min(limit, float(best.seconds[-1]))
        shown = [f"> {mine:.3g} (-f/F* = {-best.at(np.inf) / optimum:.5g})", int(best.n_iter[-1])]
    cells = []
    for way in NAMES:
        taken = min(run.until(goal) for run in paced[way].values())
        more = "" if taken <= limit else "> "
        taken = min(taken, limit)
        cells += [f"{more}{taken:.3g}", (">= " if more else "") + ratio(taken / mine)]
    table.add(name, f"{-goal / optimum:.5g}", *shown, *cells)


# ---- runs and clocks -----------------------------------------------------------

Array = NDArray[Any]

K = 5


@dataclass
class Clock:
    """A callback that notes f and the CPU and wall seconds after every epoch, until a limit."""

    limit: float = np.inf
    n_iter: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = (time.process_time(), time.perf_counter())

    def __call__(self, state: dict[str, Any]) -> bool:
        self.n_iter.append(int(state["n_iter"]))
        self.objective.append(float(state["objective"]))
        self.seconds.append(time.process_time() - self.start[0])
        self.wall.append(time.perf_counter() - self.start[1])
        return self.seconds[-1] > self.limit

    @property
    def epochs(self) -> Array:
        """CPU seconds between two calls: what is made before the first is left out."""
        return np.diff(self.seconds)

    @property
    def wall_epochs(self) -> Array:
        return np.diff(self.wall)

    def run(self) -> Run:
        return Run(np.array(self.n_iter), np.array(self.objective), np.array(self.seconds))


@dataclass(frozen=True)
class Run:
    """f after so many epochs and seconds."""

    n_iter: Array
    objective: Array
    seconds: Array

    def at(self, seconds: float) -> float:
        """The lowest f until then; infinite before there is any."""
        done = self.objective[self.seconds <= seconds]
        return float(done.min()) if len(done) else np.inf

    def epochs_at(self, seconds: float) -> int:
        done = self.n_iter[self.seconds <= seconds]
        return int(done[-1]) if len(done) else 0

    def until(self, value: float) -> float:
        """Seconds until ``f <= value``; infinite if never."""
        there = np.flatnonzero(self.objective <= value)
        return float(self.seconds[there[0]]) if len(there) else np.inf

    def paced(self, seconds: float) -> Run:
        """The same iterates at so many seconds per epoch."""
        return Run(self.n_iter, self.objective, seconds * self.n_iter)


def ours(data: Dataset, limit: float = np.inf, n_epochs: int = 10**6, **options: Any) -> Clock:
    """Epochs of linrank's trainer on one thread, until no step brings anything, or a limit."""
    options = {"n_components": K, "C": 1.0, **options}
    clock = Clock(limit)
    train_factorized(data, tol=1e-12, max_iter=n_epochs, n_jobs=1, callback=clock, **options)
    return clock


def theirs(
    data: Dataset,
    work: str,
    rate: float,
    start: float = 1.0,
    limit: float = np.inf,
    n_epochs: int = 10**6,
) -> Clock:
    """Epochs of the published algorithm, C = 1; V starts uniform in ``[0, start·√(C/K)]``."""
    V0 = start * np.sqrt(1 / K) * np.random.default_rng(2019).random((data.n_rows, K))
    clock = Clock(limit)
    factorize_by_pairs(
        data, learning_rate=rate, work=work, max_iter=n_epochs, V0=V0, callback=clock
    )
    return clock


def long_queries(n_rows: int, length: int) -> Dataset:
    """Dense features as in search data, normalized by query; 3 levels."""
    n_queries = max(2, n_rows // length)
    return query_normalized(make_ranking(n_queries, length, 46, 3, random_state=2019))


def plain_rows(kind: str, n_rows: int) -> tuple[DenseRows | CsrRows, Array]:
    """Normal values, dense or ten per row among a thousand features; and what labels follow.

    Rows for measuring time: quickly made, millions of them.
    """
    rng = np.random.default_rng(2019)
    n_features, per_row = (46, 46) if kind == "dense" else (1_000, 10)
    values = rng.standard_normal((n_rows, per_row), dtype=np.float32)
    truth = rng.standard_normal(n_features, dtype=np.float32)
    utility = np.float32(np.sqrt(per_row)) * rng.standard_normal(n_rows, dtype=np.float32)
    if kind == "dense":
        return DenseRows(values), utility + values @ truth
    share = n_features // per_row  # non-zero j lies in the j-th share of the features
    columns = rng.integers(share, size=(n_rows, per_row), dtype=np.int32)
    columns += share * np.arange(per_row, dtype=np.int32)
    for j in range(per_row):
        utility += values[:, j] * truth[columns[:, j]]
    offsets = np.arange(n_rows + 1, dtype=np.int64) * per_row
    return CsrRows(values.reshape(-1), columns.reshape(-1), offsets, n_features), utility


def label_rows(rows: DenseRows | CsrRows, utility: Array, length: int, n_levels: int) -> Dataset:
    """Queries of that length; each grade is 0.4 times as frequent as the one below."""
    share = np.cumsum(0.4 ** np.arange(n_levels))
    cuts = np.quantile(utility[:100_000], share[:-1] / share[-1])
    labels = np.searchsorted(cuts, utility).astype(np.float64)
    n_rows = len(labels) // length * length
    return Dataset(rows.take(slice(n_rows)), labels[:n_rows], np.arange(n_rows) // length)


# ---- the MSLR shape --------------------------------------------------------

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


def mslr(quick: bool) -> Table:
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
        add_process(table, method, C, n_jobs, fraction)
    return table


def shares(labels: Any) -> str:
    """``"labels 0 to 4: 61, 24, 10, 3.9, 1.6%"``."""
    parts = ", ".join(f"{100 * (labels == y).mean():.2g}" for y in range(5))
    return f"labels 0 to 4: {parts}%"


def add_process(table: Table, method: str, C: float, n_jobs: int, fraction: float) -> None:
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
