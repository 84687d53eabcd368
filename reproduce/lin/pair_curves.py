"""Accuracy against the number of pairs, by how they are chosen: Figure 3 of Lin et al. (2013).

Closest, pruned (half closest, half random) and random pairs on halves of bodyfat, housing and mpg,
linear; C is chosen for each number of pairs on a quarter of the training half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

import problems
from linrank import pairs
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from report import Table
from reproduce.lin.agreement import Figure, in_processes
from reproduce.lin.halves import Choose, Linear, accuracy, every_pair, split, tune

Array = NDArray[Any]

SETS = ("bodyfat", "housing", "mpg")
ROUNDS = 20
MULTIPLES = (0.25, 0.5, 1, 2, 4, 8, 16)  # of S, the number of 1-closest pairs
KINDS = ("closest", "pruned", "random")


def choice(kind: str, multiple: float, seed: int) -> Choose:
    """So many times S pairs, at most all."""

    def choose(y: Array) -> Preferences | None:
        n = max(2, round(multiple * len(pairs.closest(y))))
        if n >= Queries.of(y).n_pairs:
            return None
        if kind == "pruned":
            return pairs.pruned(y, None, n - n // 2, n // 2, seed=seed)
        return (pairs.closest if kind == "closest" else pairs.random)(y, None, n, seed=seed)

    return choose


def accuracy_of(name: str, kind: str, multiple: float, round_: int) -> tuple[float, int]:
    """Test accuracy (%) of a round, and the pairs of its training half."""
    half = split(name, round_)
    choose = every_pair if kind == "all" else choice(kind, multiple, round_)
    listed = choose(half.y)
    n_pairs = Queries.of(half.y).n_pairs if listed is None else len(listed)
    return tune(Linear(half, choose, "hinge"), half, accuracy).accuracy, n_pairs


def measure(quick: bool) -> list[Table]:
    sets, rounds = (SETS[2:], range(2)) if quick else (SETS, range(ROUNDS))
    try:
        for name in sets:
            split(name, 0)
    except problems.Absent as absent:
        return [Table("Figure 3 skipped", ["reason"], [[str(absent)]])]
    cases = [(kind, m) for kind in KINDS for m in MULTIPLES] + [("all", 0.0)]
    jobs = [(name, kind, m, k) for name in sets for kind, m in cases for k in rounds]
    found = dict(zip(jobs, in_processes(accuracy_of, jobs), strict=True))
    return [of_set(name, found, rounds) for name in sets]


def of_set(name: str, found: dict[Any, tuple[float, int]], rounds: range) -> Table:
    table = Table(
        f"Figure 3: {name}, linear, hinge: test accuracy (%) by number of pairs",
        ["pairs / S", "pairs", *KINDS],
        notes=[f"{len(rounds)} halves; ± standard error of the mean"],
    )
    whole = Figure.of([found[name, "all", 0.0, k][0] for k in rounds])
    curves: dict[str, list[list[float]]] = {kind: [[], [], []] for kind in KINDS}
    for multiple in MULTIPLES:
        cells = []
        for kind in KINDS:
            runs = [found[name, kind, multiple, k] for k in rounds]
            one = Figure.of([value for value, _ in runs])
            n_pairs = float(np.mean([n for _, n in runs]))
            for part, value in zip(curves[kind], (n_pairs, one.mean, one.error), strict=True):
                part.append(value)
            cells.append(one.to_text())
        table.add(multiple, f"{n_pairs:.0f}", *cells)
    table.notes.append(f"all pairs: {whole.to_text()}")
    figure = Picture(figsize=(6.5, 4.0), layout="constrained")
    ax = figure.subplots()
    for mark, (kind, curve) in zip("osD", curves.items(), strict=True):
        ax.errorbar(*curve, marker=mark, markersize=4, capsize=2, label=kind)
    ax.axhline(whole.mean, color="#666666", linestyle="--", label="all pairs")
    ax.set(xscale="log", xlabel="pairs", ylabel="pairwise accuracy (%)", title=name)
    ax.legend(frameon=False)
    table.pictures[f"pair_accuracy_{name}"] = figure
    return table
