"""Factorized and Regularized RankSVM: the objective against iterations and seconds.

Figure 4 of Xu et al. on OHSUMED, fold 1, training part, normalized by query. K = 5; γ = 10,
λ = 0.1; C = 1. One thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import curves
import problems
from linrank.data.dataset import Dataset
from linrank.losses.base import Hinge
from linrank.lowrank.factorized import train_factorized
from linrank.lowrank.regularized import train_regularized
from linrank.pairs import choose_pairs
from linrank.ranksvm.train import train
from linrank.solvers.result import Result
from report import Table

C = 1.0
N_ITER = {"factorized": 1000, "regularized": 300}
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000)


def methods() -> dict[str, Callable[..., Result]]:
    return {
        "factorized, box": partial(train_factorized, n_components=5, constraint="box"),
        "factorized, ball": partial(train_factorized, n_components=5, constraint="ball"),
        "regularized": partial(train_regularized, gamma=10.0, lam=0.1),
    }


def measure(quick: bool) -> list[Table]:
    try:
        data = problems.load("ohsumed")
    except problems.Absent as absent:
        return [Table("Objectives by iterations", [], notes=[f"ohsumed skipped: {absent}"])]
    fits = {}
    for name, method in methods().items():
        n_iter = 10 if quick else N_ITER[name.split(",")[0]]
        fits[name] = method(data, C=C, tol=1e-9, max_iter=n_iter, n_jobs=1)
    return [by_iteration(data, fits), ends(data, fits)]


def by_iteration(data: Dataset, fits: dict[str, Any]) -> Table:
    shown = [n for n in SHOWN if n <= max(fit.n_iter for fit in fits.values())]
    table = Table(
        f"Objective and seconds by iterations: OHSUMED, C = {C:g}",
        ["iteration", *(title for name in fits for title in (name, "s"))],
        notes=[
            "iterations: of the factorized epochs, passes over all queries; of the regularized "
            "steps of its splitting: Newton's method for the weights, then the singular values of "
            "every query",
            "objectives: f(V) and the reduced Ψ(α); seconds on the wall, since the start",
        ],
    )
    for n in shown:
        cells = []
        for fit in fits.values():
            there = n < len(fit.history["objective"])
            cells.append(f"{fit.history['objective'][n]:.7g}" if there else "")
            cells.append(f"{fit.history['seconds'][n]:.3g}" if there else "")
        table.add(n, *cells)
    table.pictures["lowrank-objective"] = curves.draw(
        panels(fits, "iterations"),
        n_columns=2,
        label="objective",
        is_gap=False,
        against="iterations",
    )
    table.pictures["lowrank-objective-seconds"] = curves.draw(
        panels(fits, "seconds"), n_columns=2, label="objective", is_gap=False
    )
    return table


def panels(fits: dict[str, Any], against: str) -> dict[str, dict[str, curves.Line]]:
    """One panel per objective: they are not comparable. Without the start."""
    found: dict[str, dict[str, curves.Line]] = {}
    for name, fit in fits.items():
        values = fit.history["objective"]
        at = range(len(values)) if against == "iterations" else fit.history["seconds"]
        line = curves.thin(list(zip(at, values, strict=True))[1:])
        found.setdefault(name.split(",")[0], {})[name] = line
    return found


def ends(data: Dataset, fits: dict[str, Any]) -> Table:
    hinge = train(data, C=C, loss="hinge", tol=1e-6, n_jobs=1)
    table = Table(
        "Where they end, by the optimum of the hinge RankSVM",
        [
            *("method", "iterations", "seconds", "stopped by", "objective", "gap"),
            *("-objective / F*", "F(w) / F*"),
        ],
        notes=[
            f"F* = {hinge.value:.8g} within {hinge.gap:.2g}: the hinge's; -f(V) is a lower bound "
            "of it, and F(w) the hinge's objective of the model",
            "gap: of the factorized F(w) + f(V), which does not go to 0; of the regularized a "
            "bound of the distance to the least Ψ",
        ],
    )
    for name, fit in fits.items():
        table.add(
            *(name, fit.n_iter, f"{fit.history['seconds'][-1]:.3g}", fit.stopped),
            *(f"{fit.value:.8g}", f"{fit.gap:.2g}", f"{-fit.value / hinge.value:.5g}"),
            f"{hinge_value(data, fit.w) / hinge.value:.5g}",
        )
    return table


def hinge_value(data: Dataset, w: Any) -> float:
    """``½‖w‖² + C Σ max(0, 1 - w·(x_i - x_j))`` over all pairs."""
    z = data.queries.gather(np.asarray(data.X @ w, dtype=np.float64))
    return float(0.5 * w @ w + C * Hinge(choose_pairs(data)).at(z).value)
