"""Factorized RankSVM against its published algorithm over pairs: epochs, and f after equal seconds.

OHSUMED (fold 1, training part) and generated queries of 50 to 1,000 rows with 46 features, all
normalised by query; K = 5, C = 1. One thread, CPU seconds, in one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import problems
from factorizations import Run, long_queries, ours, theirs
from linrank.data.dataset import Dataset
from linrank.published.listed_pairs import PAIR_WORK
from linrank.ranksvm.train import train
from report import Table, main, ratio, spread

LENGTHS = (50, 150, 500, 1_000)
N_ROWS = 10_000
TARGETS = {"ohsumed": 20.0, "150 rows": 20.0, "1000 rows": 100.0}
RATES = tuple(10.0**-k for k in range(2, 9))
STARTS = (1.0, 0.1)  # of the box
TRIAL = 0.5  # seconds of each rate
LIMIT = 5.0  # of the best and its neighbours
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
    return tables


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
            *("set", "rows × features", "rows a query", "pairs", "linrank"),
            *(title for name in NAMES.values() for title in (name, f"{name} / linrank")),
        ],
        notes=[
            "the median (lowest–highest), the methods in turn",
            "as printed: Algorithm 1 in C++, ⟨β, x_i - x_j⟩ and α_ij (x_i - x_j) for every pair, "
            "by vector kernels; scores shared: t = Xβ once a query, its gradient and β_q from sums "
            "over pairs of K products",
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


if __name__ == "__main__":
    main(measure, __doc__)
