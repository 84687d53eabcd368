"""Steps per second of stochastic pairwise descent, against sofia-ml's loops and lower bounds.

One thread, CPU seconds, both sides of a ratio in turn and the best of several runs. Sets: a fits in
the caches, c does not, rcv1 has 75 non-zeros per row. The baseline is `rivals/sofia.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import problems
from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.stochastic.descent import Descent, Learner
from linrank.stochastic.samplers import PairSampler, pair_sampler
from report import Table, main, ratio
from rivals.sofia import ALGORITHMS, Sofia

TARGETS = {"a": 20.0, "c": 8.0, "rcv1": 2.0}
ALPHA = 1e-4
GRIDS = (8, 16)
BATCH = 4096  # pairs of a call that is repeated: few enough to stay in the caches
N_FEW = 16  # rows that stay in the first-level cache
REPEAT = 3

Run = Callable[[int], object]  # takes that many steps


def measure(quick: bool) -> list[Table]:
    seconds = 0.02 if quick else 0.5
    race = Table(
        "Million steps per second, one thread, against the loops of sofia-ml",
        [
            *("set", "algorithm", "updates", "rank loop", "query-level", "ratio", "pairs", "ratio"),
            *("roc loop", "roc", "ratio"),
        ],
        notes=[
            f"λ = {ALPHA:g}, aggressiveness of pa 1; updates: share of the steps on pairs that are",
            "the rank loop draws as query-level does; pairs is linrank's default",
        ],
    )
    floors = Table(
        "Nanoseconds per step against the floors",
        [
            *("set", "algorithm", "whole", "arithmetic", "no update", "update", "sampling"),
            "whole / (arithmetic + sampling)",
        ],
        notes=[
            f"arithmetic: steps on pairs of {N_FEW} rows, none and all of them updates, weighed by "
            "the updates of the whole; sampling: pairs drawn and thrown away",
            "target: within 2x of the sum of the floors",
        ],
    )
    grids = Table(
        "Grids of λ in one pass: nanoseconds per step and model",
        ["set", "one model", *(f"{n} models" for n in GRIDS), *(f"gain of {n}" for n in GRIDS)],
        notes=["pegasos, λ from 1e-6 to 1e-1; gain: against as many runs of one model"],
    )
    for name, target in TARGETS.items():
        data = problems.load(name, 0.02 if quick else 1.0)
        _add_race(race, name, data, seconds, target)
        _add_floors(floors, name, data, seconds)
        _add_grids(grids, name, data, seconds)
    return [race, floors, grids]


def paces(runs: Mapping[str, Run], seconds: float) -> dict[str, float]:
    """Seconds per step of each, in turn, the best of `REPEAT` runs of about that many seconds."""
    sizes = {}
    for name, run in runs.items():
        n_steps, taken = BATCH, 0.0
        while taken < seconds / 10:
            n_steps, start = 2 * n_steps, time.process_time()
            run(n_steps)
            taken = time.process_time() - start
        sizes[name] = max(BATCH, round(n_steps * seconds / taken))
    best = dict.fromkeys(runs, np.inf)
    for _ in range(REPEAT):
        for name, run in runs.items():
            start = time.process_time()
            run(sizes[name])
            best[name] = min(best[name], (time.process_time() - start) / sizes[name])
    return best


def learner(algorithm: str) -> Learner:
    return Learner(algorithm, alpha=ALPHA, aggressiveness=1.0)


def stepping(data: Dataset, sampler: PairSampler, *learners: Learner) -> Run:
    """A descent from the start: its first steps are all updates, its last ones the rule."""
    return lambda n: Descent(data.n_features, learners).run(data.rows, sampler, n)


def share_of_updates(descent: Descent) -> float:
    return float(descent.state()["scalars"][0, 8]) / descent.n_steps


# ---- against sofia-ml ---------------------------------------------------------------------------


def _add_race(table: Table, name: str, data: Dataset, seconds: float, target: float) -> None:
    rival = Sofia(data)
    samplers = {
        how: pair_sampler(data.queries, how, labels=data.labels)
        for how in ("query-level", "pairs", "roc")
    }
    for algorithm in ALGORITHMS:
        runs = {loop: _rival_run(rival, algorithm, loop) for loop in ("rank", "roc")}
        for how, sampler in samplers.items():
            runs[f"our {how}"] = stepping(data, sampler, learner(algorithm))
        pace = paces(runs, seconds)
        rates = {key: f"{1e-6 / taken:.3g}" for key, taken in pace.items()}
        table.add(
            name, algorithm, _updates(data, samplers["pairs"], algorithm, seconds),
            rates["rank"], rates["our query-level"],
            ratio(pace["rank"] / pace["our query-level"], target),
            rates["our pairs"], ratio(pace["rank"] / pace["our pairs"], target),
            rates["roc"], rates["our roc"], ratio(pace["roc"] / pace["our roc"]),
        )  # fmt: skip


def _rival_run(rival: Sofia, algorithm: str, loop: str) -> Run:
    strength = 1.0 if algorithm == "pa" else ALPHA
    return lambda n: rival.run(algorithm, strength, n, loop=loop)


def _updates(data: Dataset, sampler: PairSampler, algorithm: str, seconds: float) -> str:
    descent = Descent(data.n_features, [learner(algorithm)])
    descent.run(data.rows, sampler, round(seconds * 2e6))
    return f"{100 * share_of_updates(descent):.0f}%"


# ---- floors -------------------------------------------------------------------------------------


def _add_floors(table: Table, name: str, data: Dataset, seconds: float) -> None:
    sampler = pair_sampler(data.queries)
    random = _core.Random(0)
    for algorithm in ("pegasos", "sgd-svm", "logistic", "pa"):
        whole = Descent(data.n_features, [learner(algorithm)])
        runs = {
            "whole": lambda n, whole=whole: whole.run(data.rows, sampler, n),
            "quiet": _few_rows(data, algorithm, is_quiet=True),
            "busy": _few_rows(data, algorithm, is_quiet=False),
            "sampling": _repeat(lambda: sampler.core.draw(random, BATCH)),
        }
        pace = {key: 1e9 * taken for key, taken in paces(runs, seconds).items()}
        share = share_of_updates(whole)
        arithmetic = share * pace["busy"] + (1 - share) * pace["quiet"]
        shown = (pace["whole"], arithmetic, pace["quiet"], pace["busy"], pace["sampling"])
        if algorithm == "logistic":  # each of its steps is an update
            shown = (*shown[:2], "", *shown[3:])
        cells = [value if isinstance(value, str) else f"{value:.3g}" for value in shown]
        table.add(
            name, algorithm, *cells, ratio(pace["whole"] / (arithmetic + pace["sampling"]))
        )  # fmt: skip


def _few_rows(data: Dataset, algorithm: str, *, is_quiet: bool) -> Run:
    """Steps on pairs of a few rows, none of them an update, or all of them.

    A model that separates the rows by far is quiet. Every pair in both orders, one after the other,
    keeps it busy.
    """
    rows = data.rows.take(slice(0, N_FEW))
    rng = np.random.default_rng(0)
    winners = rng.integers(0, N_FEW // 2, BATCH)
    losers = rng.integers(N_FEW // 2, N_FEW, BATCH)
    if not is_quiet:
        winners[1::2], losers[1::2] = losers[::2].copy(), winners[::2].copy()
    descent = Descent(data.n_features, [learner(algorithm)])
    if is_quiet:
        # So late that w does not shrink any more, in a ball so large that nothing is projected.
        rule = Learner(algorithm, alpha=1e-12, first_step=1e12)
        descent.become(0, rule, _separator(rows, data.n_features))
    return _repeat(lambda: descent.step(rows, winners, losers))


def _separator(rows: DenseRows | CsrRows, n_features: int) -> np.ndarray:
    """Weights that put the first half of the rows above the others by more than the margin."""
    X = rows.to_user()
    X = np.asarray(X.toarray() if isinstance(rows, CsrRows) else X, dtype=np.float64)
    target = np.where(np.arange(N_FEW) < N_FEW // 2, 2.0, -2.0)
    return np.linalg.lstsq(X[:, :n_features], target, rcond=None)[0]


def _repeat(call: Callable[[], object]) -> Run:
    def run(n_steps: int) -> None:
        for _ in range(n_steps // BATCH):
            call()

    return run


# ---- grids --------------------------------------------------------------------------------------


def _add_grids(table: Table, name: str, data: Dataset, seconds: float) -> None:
    sampler = pair_sampler(data.queries)
    runs = {1: stepping(data, sampler, learner("pegasos"))}
    for n_models in GRIDS:
        grid = [Learner("pegasos", alpha) for alpha in np.logspace(-6, -1, n_models)]
        runs[n_models] = stepping(data, sampler, *grid)
    pace = paces({str(n): run for n, run in runs.items()}, seconds)
    each = {n: 1e9 * pace[str(n)] / n for n in runs}
    separate = _separate(data, sampler, seconds)
    table.add(
        name, f"{separate:.3g}", *(f"{each[n]:.3g}" for n in GRIDS),
        *(ratio(separate / each[n]) for n in GRIDS),
    )  # fmt: skip


def _separate(data: Dataset, sampler: PairSampler, seconds: float) -> float:
    """Nanoseconds per step of one model, in the mean over the grid."""
    grid: Any = np.logspace(-6, -1, GRIDS[0])
    runs = {str(alpha): stepping(data, sampler, Learner("pegasos", float(alpha))) for alpha in grid}
    return 1e9 * float(np.mean(list(paces(runs, seconds / 4).values())))


if __name__ == "__main__":
    main(measure, __doc__)
