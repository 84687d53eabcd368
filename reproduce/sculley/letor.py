"""MAP on five folds of LETOR sets, stochastic descent against exact RankSVM: Figure 1 of Sculley.

LETOR's protocol: three fifths train, one chooses the parameter, one tests, in every fold. 100,000
steps, the parameters of an algorithm side by side in one pass. A query is tested in one fold, so
its average precision by two methods is a pair; not significant is not the same as equivalent, and
the interval of the mean difference says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

import problems
from linrank.data.dataset import Dataset
from linrank.metrics import evaluate
from linrank.ranksvm.train import train
from linrank.stochastic.descent import Descent, Learner
from linrank.stochastic.samplers import pair_sampler
from linrank.stochastic.train import descend
from report import Table
from reproduce.paired import interval, sign_flip, t_test

Array = NDArray[np.float64]
Parts = dict[str, Dataset]

N_STEPS = 100_000
SEEDS = (1, 2, 3, 4, 5)
GRID = tuple(10.0 ** np.arange(-5.0, 1.1, 0.5))  # of λ
AGGRESSIVENESS = tuple(10.0 ** np.arange(-6.0, 0.1, 0.5))  # of pa
MARGIN = 0.01  # of MAP: an interval within it shows that nothing worth having is lost
SETS: dict[str, Callable[[int, str], Dataset]] = {
    "MQ2008": problems.mq2008,
    "OHSUMED": problems.ohsumed,
}
BASELINE = "RankSVM, hinge"


def measure(quick: bool, sets: Mapping[str, Callable[[int, str], Dataset]] = SETS) -> list[Table]:
    seeds = SEEDS[:1] if quick else SEEDS
    return each_set(sets, quick, lambda name, folds: compare(name, folds, seeds))


def each_set(
    sets: Mapping[str, Callable[[int, str], Dataset]],
    quick: bool,
    compare: Callable[[str, Sequence[Parts]], Table],
) -> list[Table]:
    """A table of each set, given by fold and part; one that says so for each that is absent."""
    tables = []
    for name, make in sets.items():
        try:
            folds = [
                {part: make(fold, part) for part in ("train", "vali", "test")}
                for fold in range(1, 2 if quick else 6)
            ]
        except problems.Absent as absent:
            tables.append(Table(f"{name} skipped", ["reason"], [[str(absent)]]))
            continue
        tables.append(compare(name, folds))
    return tables


def compare(name: str, folds: Sequence[Parts], seeds: Sequence[int]) -> Table:
    table = Table(
        f"{name}: MAP of {len(folds)} folds, {N_STEPS:,} steps, against {BASELINE}",
        [
            *("method", "MAP", "of the seeds", "difference", "95% interval", "d"),
            *("p, t test", "p, signs", "p, Wilcoxon", "verdict", "chosen"),
        ],
        notes=[
            f"by query, the mean of {len(seeds)} seeds where there are any; d: mean difference by "
            "its deviation; interval: bootstrap over queries; signs: 100,000 random flips",
            f"equivalent: the interval lies within ±{MARGIN}; open: it holds 0 and leaves ±{MARGIN}"
            "; p is not corrected for the number of comparisons",
            "chosen: the parameters (λ, of pa its aggressiveness, of the squared hinge C by the "
            "number of pairs) by MAP on the validation parts",
        ],
    )
    exact = {
        BASELINE: [outcome(parts, *path(parts["train"], "hinge")) for parts in folds],
        "RankSVM, squared hinge": [
            outcome(parts, *path(parts["train"], "squared_hinge")) for parts in folds
        ],
    }
    base = np.concatenate([one.by_query for one in exact[BASELINE]])
    for method, found in exact.items():
        _add(table, method, [found], base)
    for method, fit in DESCENTS.items():
        runs = [
            [outcome(parts, *fit(parts["train"], 100 * seed + k)) for k, parts in enumerate(folds)]
            for seed in seeds
        ]
        _add(table, method, runs, base)
    return table


@dataclass(frozen=True)
class Outcome:
    """Average precision of the test queries, and the parameter with the best validation MAP."""

    chosen: float
    by_query: Array


def outcome(parts: Parts, weights: Array, parameters: Sequence[float]) -> Outcome:
    scores = [average_precision(parts["vali"], w).mean() for w in weights]
    best = int(np.argmax(scores))
    return Outcome(parameters[best], average_precision(parts["test"], weights[best]))


def average_precision(data: Dataset, w: Array) -> Array:
    measured = evaluate(data.y, data.X @ w, qid=data.qid, metrics=["map"], convention="letor")
    return np.asarray(measured.per_query["map"])


def path(data: Dataset, loss: str) -> tuple[Array, Sequence[float]]:
    """The optima for all λ, from the largest on."""
    weights: list[Array] = []
    grid = GRID[::-1]
    for alpha in grid:
        start = weights[-1] if weights else None
        C = 1.0 / (alpha * data.queries.n_pairs)
        weights.append(train(data, C=C, loss=loss, tol=1e-3, w0=start, n_jobs=1).w)
    return np.array(weights), grid


def grid_of(
    algorithm: str, average: str | None = None
) -> Callable[[Dataset, int], tuple[Array, Sequence[float]]]:
    """Fits of all parameters of an algorithm in one pass over the same pairs."""
    parameters: Sequence[float] = AGGRESSIVENESS if algorithm == "pa" else GRID
    learners = [Learner(algorithm, alpha=value, aggressiveness=value) for value in parameters]
    if algorithm == "romma":
        parameters, learners = (np.nan,), learners[:1]

    def fit(data: Dataset, seed: int) -> tuple[Array, Sequence[float]]:
        descent = Descent(data.n_features, learners, average, seed)
        descent.run(data.rows, pair_sampler(data.queries), N_STEPS)
        return descent.weights(), parameters

    return fit


def hybrids(data: Dataset, seed: int) -> tuple[Array, Sequence[float]]:
    """Each λ with its own switch."""
    fits = [
        descend(data, algorithm="hybrid", alpha=a, n_steps=N_STEPS, average="weighted", seed=seed).w
        for a in GRID
    ]
    return np.array(fits), GRID


DESCENTS = {
    "pegasos": grid_of("pegasos"),
    "sgd-svm": grid_of("sgd-svm"),
    "pa": grid_of("pa"),
    "romma": grid_of("romma"),
    "logistic": grid_of("logistic"),
    "pegasos, averaged": grid_of("pegasos", "weighted"),
    "pa, averaged": grid_of("pa", "uniform"),
    "hybrid, averaged": hybrids,
}


def _add(table: Table, method: str, runs: list[list[Outcome]], base: Array) -> None:
    by_seed = np.array([np.concatenate([one.by_query for one in folds]) for folds in runs])
    by_query = by_seed.mean(axis=0)
    maps = by_seed.mean(axis=1)
    spread = f"{maps.min():.4f}–{maps.max():.4f}" if len(runs) > 1 else ""
    picked = [np.log10(one.chosen) for folds in runs for one in folds]
    chosen = f"10^{np.median(picked):.1f} ({min(picked):.1f}..{max(picked):.1f})"
    chosen = "" if np.isnan(picked).any() else chosen
    difference = by_query - base
    if not difference.any():
        table.add(method, f"{by_query.mean():.4f}", spread, *[""] * 7, chosen)
        return
    low, high = interval(difference)
    tests = (t_test(difference), sign_flip(difference), wilcoxon(difference).pvalue)
    table.add(
        method,
        f"{by_query.mean():.4f}",
        spread,
        f"{difference.mean():+.4f}",
        f"{low:+.4f} .. {high:+.4f}",
        f"{difference.mean() / difference.std(ddof=1):+.2f}",
        *(f"{p:.2g}" for p in tests),
        verdict(low, high),
        chosen,
    )


def verdict(low: float, high: float) -> str:
    if low > -MARGIN and high < MARGIN:
        return "equivalent"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "open"
