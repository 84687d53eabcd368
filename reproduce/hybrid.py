"""The hybrid against its parents: the exact objective for budgets of 10^2 to 10^6 steps.

Real and generated sets, text among them and two with raw, badly scaled features; λ = R²/κ with R²
the mean square of a difference and κ = 30 .. 10^6, from strong to hardly any regularization.
Geometric means of F/F* - 1, counted from 1e-5 up, over sets, κ and seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.ranksvm.train import train
from linrank.stochastic.descent import Descent, Learner, switch_plan
from linrank.stochastic.samplers import PLANNED, DrawnPairs, PairSampler, pair_sampler
from linrank.stochastic.train import ExactObjective
from report import Table, main

Array = NDArray[np.float64]

SETS: dict[str, Callable[[], Dataset]] = {
    "MQ2008": lambda: problems.load("mq"),
    "OHSUMED": lambda: problems.load("ohsumed"),
    "MSLR sample": lambda: problems.load("msn"),
    "KDD04": lambda: problems.load("bio"),
    "Reuters": lambda: problems._read("text_binary/reuters_acq_train.svm.xz"),
    "RCV1 slice": lambda: problems._read("text_binary/rcv1_small_train.svm.xz"),
    "OHSUMED, raw": lambda: problems._read(*problems.mq2008_files(1, "ohsumed_letor2")["train"]),
    "generated, raw": lambda: make_ranking(n_queries=300, n_features=46, random_state=3),
}
KAPPAS = (30.0, 1e3, 3e4, 1e6)
BUDGETS = (100, 1_000, 10_000, 100_000, 1_000_000)
SEEDS = (11, 12)
FLOOR = 1e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """A set with a λ, and the minimum there."""

    data: Dataset
    sampler: PairSampler
    square: float
    alpha: float
    objective: ExactObjective
    minimum: float

    @classmethod
    def of(cls, data: Dataset, kappa: float) -> Problem:
        sampler = pair_sampler(data.queries)
        square = DrawnPairs.of(data.rows, sampler, PLANNED, 0).mean_square()
        alpha = square / kappa
        C = 1.0 / (alpha * sampler.total_weight)
        best = train(data, C=C, loss="hinge", tol=1e-4, n_jobs=1)
        objective = ExactObjective.of(data.rows, sampler, alpha, 1)
        return cls(data, sampler, square, alpha, objective, alpha * best.value)

    def excess(self, w: Array) -> float:
        return max(self.objective(w)[0] / self.minimum - 1, FLOOR)


@dataclass(frozen=True)
class Plan:
    """Some steps by one rule, the others by another from the last iterate on."""

    n_first: int
    first: Learner
    then: Learner

    def run(self, problem: Problem, n_steps: int, average: str | None, seed: int) -> Array:
        descent = Descent(problem.data.n_features, [self.first], average, seed)
        descent.run(problem.data.rows, problem.sampler, self.n_first)
        if self.n_first < n_steps:
            descent.become(0, self.then, descent.iterate(0))
            descent.run(problem.data.rows, problem.sampler, n_steps - self.n_first)
        return descent.weights()[0]


def plans(problem: Problem, n_steps: int) -> dict[str, Plan]:
    """The parents, the hybrid, and what is left of it without its parts."""
    alpha, kappa = problem.alpha, problem.square / problem.alpha
    n_first, t0, eager = switch_plan(problem.square, alpha, n_steps)
    pa = Learner("pa", alpha, eager)
    late, whole = Learner("pegasos", alpha, 1.0, t0), Learner("pegasos", alpha, 1.0, kappa)
    return {
        "pegasos": only(Learner("pegasos", alpha), n_steps),
        "sgd-svm": only(Learner("sgd-svm", alpha), n_steps),
        "pa, C = 1/R²": only(pa, n_steps),
        "hybrid": Plan(n_first, pa, late),
        "pegasos, t₀ = κ": only(whole, n_steps),
        "pegasos, t₀ of the hybrid": only(late, n_steps),
        "hybrid with pegasos, t₀ = κ, first": Plan(n_first, whole, late),
        "hybrid with t₀ = κ": Plan(n_first, pa, whole),
    }


def only(learner: Learner, n_steps: int) -> Plan:
    return Plan(n_steps, learner, learner)


def measure(quick: bool) -> list[Table]:
    budgets, seeds = (BUDGETS[:3], SEEDS[:1]) if quick else (BUDGETS, SEEDS)
    averages = (None, "weighted")
    found: dict[tuple[str, str, float, str | None], list[list[float]]] = {}
    notes = []
    for name in list(SETS)[:2] if quick else SETS:
        try:
            data = SETS[name]()
        except problems.Absent as absent:
            notes.append(f"{name} skipped: {absent}")
            continue
        for kappa in KAPPAS:
            problem = Problem.of(data, kappa)
            jobs = [(average, seed) for average in averages for seed in seeds]
            with ThreadPoolExecutor(2) as pool:  # steps are taken outside the GIL
                done = list(pool.map(partial(_excesses, problem, budgets), jobs))
            for (average, _), by_plan in zip(jobs, done, strict=True):
                for plan, values in by_plan.items():
                    found.setdefault((name, plan, kappa, average), []).append(values)
    return [
        *(_by_budget(found, budgets, average, notes) for average in averages),
        _by(found, budgets, 1, "κ"),
        _by(found, budgets, 0, "set"),
    ]


def _excesses(
    problem: Problem, budgets: tuple[int, ...], job: tuple[str | None, int]
) -> dict[str, list[float]]:
    """Of each plan, the logarithm of its F/F* - 1 for each budget."""
    average, seed = job
    by_plan: dict[str, list[float]] = {}
    for n_steps in budgets:
        for name, plan in plans(problem, n_steps).items():
            w = plan.run(problem, n_steps, average, seed)
            by_plan.setdefault(name, []).append(float(np.log(problem.excess(w))))
    return by_plan


def _by_budget(
    found: dict[Any, Any], budgets: tuple[int, ...], average: str | None, notes: list[str]
) -> Table:
    what = "weighted average of the iterates" if average else "last iterate"
    table = Table(
        f"F/F* - 1, geometric mean over all sets, κ and seeds: {what}",
        ["plan", *(f"{n:,}" for n in budgets)],
        notes=[
            "the first three are the parents; the hybrid; then the hybrid without one of its parts",
            *notes,
        ],
    )
    for plan in dict.fromkeys(key[1] for key in found):
        values = [v for key, v in found.items() if key[1] == plan and key[3] == average]
        table.add(plan, *(float(x) for x in np.exp(np.concatenate(values).mean(axis=0))))
    return table


def _by(found: dict[Any, Any], budgets: tuple[int, ...], part: int, title: str) -> Table:
    """How many times nearer the averaged hybrid is than averaged parents, by κ or by set."""
    place = {0: 0, 1: 2}[part]
    table = Table(
        f"Times that the hybrid is nearer to F*, averaged iterates, by {title}",
        [title, "than", *(f"{n:,}" for n in budgets)],
        notes=["ratios of geometric means of F/F* - 1; below 1 the hybrid is farther"],
    )
    rivals = ("sgd-svm", "pa, C = 1/R²", "pegasos, t₀ = κ", "pegasos, t₀ of the hybrid")
    for value in dict.fromkeys(key[place] for key in found):
        means = {}
        for plan in ("hybrid", *rivals):
            chosen = [
                v
                for key, v in found.items()
                if key[place] == value and key[1] == plan and key[3] is not None
            ]
            means[plan] = np.concatenate(chosen).mean(axis=0)
        for rival in rivals:
            ratios = np.exp(means[rival] - means["hybrid"])
            shown = f"{value:g}" if title == "κ" else value
            table.add(shown, rival, *(f"{x:.3g}x" for x in ratios))
    return table


if __name__ == "__main__":
    main(measure, __doc__)
