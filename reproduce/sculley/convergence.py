"""The exact objective against the number of steps: Figure 2 of Sculley (2009), on real data.

λ is that of the exact RankSVM (hinge) with the best MAP on the validation part, as in the paper;
then, for a harder problem, 1e-4. Objectives are sums over all pairs of a part, not samples.
The logistic learner is left out: it minimizes another objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from curves import draw
from linrank.data.dataset import Dataset
from linrank.metrics import evaluate
from linrank.ranksvm.train import train
from linrank.stochastic.samplers import PairSampler, pair_sampler
from linrank.stochastic.train import ExactObjective
from report import Table
from reproduce.sculley.descents import COMPARED, half_decades, weights_at

Array = NDArray[np.float64]
Curves = dict[tuple[str, int], dict[str, list[float]]]  # by algorithm and seed, then by part

FOLDS: dict[str, Callable[[int, str], Dataset]] = {
    "MQ2008": problems.mq2008,
    "OHSUMED": problems.ohsumed,
}
GRID = 10.0 ** np.arange(-6.0, 0.1, 0.5)  # of λ
SMALL = 1e-4
SEEDS = (1, 2, 3)
VERDICTS = ("within 1% from", "best median", "median at the end")


@dataclass(frozen=True, eq=False)
class Setting:
    """The parts of a fold, a λ, and the weights that are optimal for the training part."""

    data: Dataset
    sampler: PairSampler
    alpha: float
    objectives: dict[str, ExactObjective]
    optimum: Array

    @classmethod
    def of(cls, parts: dict[str, Dataset], alpha: float) -> Setting:
        samplers = {part: pair_sampler(parts[part].queries) for part in ("train", "test")}
        objectives = {
            part: ExactObjective.of(parts[part].rows, sampler, alpha, 1)
            for part, sampler in samplers.items()
        }
        data, sampler = parts["train"], samplers["train"]
        return cls(data, sampler, alpha, objectives, optimum(data, alpha, tol=1e-7))

    def curve(self, name: str, steps: list[int], seed: int) -> dict[str, list[float]]:
        """The objective of each part after each number of steps."""
        values: dict[str, list[float]] = {part: [] for part in self.objectives}
        for w in weights_at(self.data, self.sampler, name, self.alpha, steps, seed):
            for part, objective in self.objectives.items():
                values[part].append(objective(w)[0])
        return values

    def curves(self, steps: list[int], seeds: tuple[int, ...]) -> Curves:
        """Of all algorithms and seeds, two at a time: steps are taken outside the GIL."""
        jobs = [(name, seed) for seed in seeds for name in COMPARED]
        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda job: self.curve(job[0], steps, job[1]), jobs))
        return dict(zip(jobs, done, strict=True))


def optimum(data: Dataset, alpha: float, tol: float) -> Array:
    C = 1.0 / (alpha * data.queries.n_pairs)
    return np.asarray(train(data, C=C, loss="hinge", tol=tol, n_jobs=1).w)


def choose_alpha(parts: dict[str, Dataset]) -> float:
    """The λ of the exact RankSVM with the best MAP on the validation part."""
    vali, found = parts["vali"], []
    for alpha in GRID:
        scores = vali.X @ optimum(parts["train"], alpha, tol=1e-3)
        measured = evaluate(vali.y, scores, qid=vali.qid, metrics=["map"], convention="letor")
        found.append((measured["map"], float(alpha)))
    return max(found)[1]


def measure(quick: bool, folds: Mapping[str, Callable[[int, str], Dataset]] = FOLDS) -> list[Table]:
    n_decades, seeds = (5, SEEDS[:1]) if quick else (8, SEEDS)
    tables: list[Table] = []
    panels: dict[str, Any] = {}
    for name, make in folds.items():
        try:
            parts = {part: make(1, part) for part in ("train", "vali", "test")}
        except problems.Absent as absent:
            tables.append(Table(f"{name} skipped", ["reason"], [[str(absent)]]))
            continue
        for alpha, n in ((choose_alpha(parts), n_decades), (SMALL, min(n_decades, 7))):
            setting, steps = Setting.of(parts, alpha), half_decades(2, n)
            curves = setting.curves(steps, seeds)
            for part in setting.objectives:
                title = f"{name} fold 1, {part}, λ = {alpha:.3g}"
                table, panels[title] = _show(title, part, setting, steps, curves)
                tables.append(table)
    if panels:
        tables[-1].pictures["convergence"] = draw(
            panels, n_columns=2, label="objective", is_gap=True, against="steps"
        )
    return tables


def _show(
    title: str, part: str, setting: Setting, steps: list[int], curves: Curves
) -> tuple[Table, dict[str, Any]]:
    """A row for each algorithm, and its line in the picture."""
    best = setting.objectives[part](setting.optimum)[0]
    seeds = sorted({seed for _, seed in curves})
    decades = steps[::2]
    origin = "the minimum" if part == "train" else "of the weights optimal in training"
    table = Table(
        f"{title}: F/F* - 1 in % after so many steps",
        ["algorithm", *(f"10^{len(str(n)) - 1}" for n in decades), *VERDICTS],
        notes=[
            f"median (lowest–highest) of {len(seeds)} seeds; F* = {best:.6g}, {origin}; "
            "within 1%: all seeds, from there to the end",
            "hybrid: each number of steps is a separate run, planned for it",
        ],
    )
    lines: dict[str, Any] = {}
    for name in COMPARED:
        values = np.array([curves[name, seed][part] for seed in seeds])
        excess = 100 * (values / best - 1)
        table.add(
            name, *(_cell(excess[:, i]) for i in range(0, len(steps), 2)), *_ends(excess, steps)
        )
        lines[name] = list(zip(map(float, steps), np.median(values, axis=0), strict=True))
    lines["optimum"] = [(float(steps[0]), best), (float(steps[-1]), best)]
    return table, lines


def _cell(values: Array) -> str:
    return f"{np.median(values):.3g} ({values.min():.3g}–{values.max():.3g})"


def _ends(excess: Array, steps: list[int]) -> tuple[str, str, str]:
    outside = np.flatnonzero(excess.max(axis=0) > 1.0)
    first = int(outside[-1]) + 1 if len(outside) else 0
    start = f"{steps[first]:.0e}" if first < len(steps) else "never"
    median = np.median(excess, axis=0)
    k = int(np.argmin(median))
    return start, f"{median[k]:.3g} at {steps[k]:.0e}", f"{median[-1]:.3g}"
