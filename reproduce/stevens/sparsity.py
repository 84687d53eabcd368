"""Quality against the number of non-zero weights on real text: the table of Figure 16 of Stevens.

Domination Rank by l1, l2 and feature induction, PAMIR (passive-aggressive steps on relevant and
other rows) and RankSVM. Every parameter is chosen by average precision on the validation part,
averaged over the models of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import curves
import problems
from domination import evaluate_weights
from linrank.data.dataset import Dataset
from linrank.domination.coordinate import Descent
from linrank.domination.induction import induce
from linrank.domination.train import make_problem, train
from linrank.ranksvm.train import train as train_ranksvm
from linrank.stochastic.descent import Descent as Stochastic
from linrank.stochastic.descent import Learner
from linrank.stochastic.samplers import pair_sampler
from report import Table
from reproduce.stevens.tasks import TASKS, Parts, Task

Array = NDArray[Any]
Fits = list[tuple[str, Array]]  # parameter and weights, the same parameters for all models

SHARES = tuple(0.7 * 2.0**-k for k in range(9))  # of the l1 alpha that leaves no weight
ALPHAS = tuple(10.0**k for k in range(2, -6, -1))  # of l2
INDUCED = (1.0, 0.1, 0.01)  # alpha of the l2 penalty with feature induction
PER_ROUND, N_ROUNDS = 20, 25
AGGRESSIVENESS = tuple(10.0 ** (-k / 2) for k in range(9))
N_STEPS = 1_000_000
LAMBDAS = tuple(10.0 ** np.arange(0.0, -6.1, -0.5))  # of RankSVM: C = 1/(λ·pairs)
TOL = 1e-4
FEW = 0.02  # share of the features


def l1(data: Dataset) -> Fits:
    largest = make_problem(data, penalty="l1", alpha=1.0).largest_alpha()
    fits: Fits = []
    for share in SHARES:
        start = fits[-1][1] if fits else None
        found = train(data, penalty="l1", alpha=share * largest, w0=start, tol=TOL, n_jobs=1)
        fits.append((f"{share:.2g} of the largest", found.w))
    return fits


def l2(data: Dataset) -> Fits:
    fits: Fits = []
    for alpha in ALPHAS:
        start = fits[-1][1] if fits else None
        found = train(data, penalty="l2", alpha=alpha, w0=start, tol=TOL, n_jobs=1)
        fits.append((f"{alpha:g}", found.w))
    return fits


def induction(data: Dataset) -> Fits:
    """The model after every round; where a descent ends earlier, its last one for the rest."""
    fits: Fits = []
    for alpha in INDUCED:
        rounds: list[Array] = []

        def note(w: Array, rounds: list[Array] = rounds) -> float:
            rounds.append(w.copy())
            return 0.0

        descent = Descent(make_problem(data, penalty="l2", alpha=alpha, n_jobs=1))
        induce(
            descent,
            PER_ROUND,
            tol=TOL,
            max_iter=1000,
            validation=note,
            callback=lambda _, rounds=rounds: len(rounds) >= N_ROUNDS,
        )
        rounds = (rounds + rounds[-1:] * N_ROUNDS)[:N_ROUNDS]
        fits += [(f"alpha {alpha:g}, round {r + 1}", w) for r, w in enumerate(rounds)]
    return fits


def pamir(data: Dataset) -> Fits:
    learners = [Learner("pa", aggressiveness=value) for value in AGGRESSIVENESS]
    descent = Stochastic(data.n_features, learners, None, 1)
    descent.run(data.rows, pair_sampler(data.queries), N_STEPS)
    return [(f"{value:.2g}", w) for value, w in zip(AGGRESSIVENESS, descent.weights(), strict=True)]


def ranksvm(data: Dataset) -> Fits:
    fits: Fits = []
    for value in LAMBDAS:
        start = fits[-1][1] if fits else None
        C = 1.0 / (value * data.queries.n_pairs)
        fits.append((f"{value:.2g}", train_ranksvm(data, C=C, w0=start, tol=1e-3, n_jobs=1).w))
    return fits


METHODS: dict[str, Callable[[Dataset], Fits]] = {
    "domination, l1": l1,
    "domination, l2": l2,
    "domination, induction": induction,
    "PAMIR": pamir,
    "RankSVM": ranksvm,
}
CURVES = ("domination, l1", "domination, induction")


# ---- the tables -------------------------------------------------------------


@dataclass(frozen=True)
class Outcomes:
    """Means over the models of a task, a row for each parameter."""

    names: list[str]
    validation: Array
    test: Array
    n_nonzero: Array

    def best(self, at_most: float = np.inf) -> int:
        """The parameter with the best validation AP among those with so few weights, or -1."""
        quality = np.where(self.n_nonzero <= at_most, self.validation[:, 0], -1.0)
        return int(np.argmax(quality)) if quality.max() >= 0 else -1


def outcomes(fit: Callable[[Dataset], Fits], models: Sequence[Parts]) -> Outcomes:
    names: list[str] = []
    found = []
    for data, vali, test in models:
        fits = fit(data)
        names = [name for name, _ in fits]
        found.append(
            [
                (evaluate_weights(vali, w), evaluate_weights(test, w), np.count_nonzero(w))
                for _, w in fits
            ]
        )
    means = [
        [np.mean([one[i][k] for one in found], axis=0) for i in range(len(names))] for k in range(3)
    ]
    return Outcomes(names, *(np.array(mean) for mean in means))


def measure(quick: bool, tasks: Sequence[Callable[[bool], Task]] = TASKS) -> list[Table]:
    """Two tables of each task: its methods, and the curves of those that select features."""
    tables = []
    for make in tasks:
        try:
            task = make(quick)
        except problems.Absent as absent:
            tables.append(Table("task skipped", ["reason"], [[str(absent)]]))
            continue
        tables += compare(task)
    return tables


def compare(task: Task) -> list[Table]:
    n_features = task.n_features
    table = Table(
        f"{task.name}: test measures, {n_features:,} features",
        ["method", "AP", "P@10", "domination error", "all-pairs error", "non-zero", "share",
         "parameter"],
        notes=[
            task.about,
            "ties count as errors, in AP and P@10 as what they come to on average; queries without "
            "a relevant row are left out",
            f"PAMIR: {N_STEPS:,} steps; induction: {PER_ROUND} features a round, l2",
            f"parameters that validation chose among: l1 {len(SHARES)}, l2 {len(ALPHAS)}, "
            f"induction {len(INDUCED) * N_ROUNDS} (alpha and round), PAMIR {len(AGGRESSIVENESS)}, "
            f"RankSVM {len(LAMBDAS)}; the first three were widened after trials in which "
            "validation chose at their ends, the last two made finer after all others had been "
            "seen",
        ],
    )  # fmt: skip
    found = {name: outcomes(fit, task.models) for name, fit in METHODS.items()}
    for name, one in found.items():
        _add(table, name, one, one.best(), n_features)
    for name in CURVES:
        few = found[name].best(FEW * n_features)
        if few >= 0:
            _add(table, f"{name}, under {FEW:.0%}", found[name], few, n_features)
    _judge(table, found, n_features)
    return [table, curve(task, {name: found[name] for name in CURVES})]


def _add(table: Table, name: str, found: Outcomes, i: int, n_features: int) -> None:
    cells = (f"{value:.4f}" for value in found.test[i])
    share = found.n_nonzero[i] / n_features
    table.add(name, *cells, f"{found.n_nonzero[i]:,.0f}", f"{share:.2%}", found.names[i])


def _judge(table: Table, found: dict[str, Outcomes], n_features: int) -> None:
    """How far the sparse models are from the best of all methods."""
    best = np.max([one.test[one.best()][:2] for one in found.values()], axis=0)
    for name in CURVES:
        i = found[name].best(FEW * n_features)
        if i < 0:
            table.notes.append(f"{name}: no model with under {FEW:.0%} of the features")
            continue
        loss = best - found[name].test[i][:2]
        table.notes.append(
            f"{name}, under {FEW:.0%} of the features: AP {loss[0]:.4f}, P@10 {loss[1]:.4f} below "
            "the best of all methods"
        )


def curve(task: Task, found: dict[str, Outcomes]) -> Table:
    table = Table(
        f"{task.name}: against the number of non-zero weights",
        ["method", "parameter", "non-zero", "share", "AP", "P@10"],
        notes=["measures of the test part; induction: of the alpha that validation chose"],
    )
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for name, one in found.items():
        chosen = one.names[one.best()].split(",")[0]
        for i, parameter in enumerate(one.names):
            if name == CURVES[1] and parameter.split(",")[0] != chosen:
                continue
            n, (ap, p10) = float(one.n_nonzero[i]), one.test[i][:2]
            share = f"{n / task.n_features:.2%}"
            table.add(name, parameter, f"{n:,.0f}", share, f"{ap:.4f}", f"{p10:.4f}")
            lines.setdefault(name, []).append((n, ap, p10))
    table.pictures[f"sparsity-{task.name}"] = picture(lines)
    return table


def picture(lines: dict[str, list[tuple[float, float, float]]]) -> Figure:
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    for k, (ax, title) in enumerate(zip(figure.subplots(1, 2), ("AP", "P@10"), strict=True)):
        for color, (name, points) in zip(curves.COLORS, lines.items(), strict=False):
            shown = [(point[0], point[1 + k]) for point in points if point[0] > 0]
            ax.plot(*zip(*shown, strict=True), color=color, marker=".", lw=1, label=name)
        ax.set(xscale="log", xlabel="non-zero weights", ylabel=title)
    ax.legend(fontsize=8)
    return figure
