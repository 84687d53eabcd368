"""Stochastic descent on 10^4 to 10^7 rows: neither the time of its steps nor its accuracy depends
on the number of rows.

The rows of a smaller set are the first ones of the largest, all rows one query or 100 rows
per query. Building the index, which reads the labels and not the features, is linear and shown
separately. One thread, CPU seconds; accuracy is that of the pairs of other rows, the same for all
sizes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import curves
from linrank import evaluate
from linrank.data.queries import Queries
from linrank.data.rows import DenseRows
from linrank.stochastic.descent import Descent, Learner
from linrank.stochastic.samplers import PairSampler, pair_sampler
from report import Table, main, ratio

N_FEATURES, ROWS_PER_QUERY, N_LEVELS = 20, 100, 5
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
STEPS = (100_000, 1_000_000)
RULE = Learner("pegasos", alpha=1e-3)
N_TEST = 20_000
SEEDS = range(5)


@dataclass(frozen=True)
class Rows:
    """Features, labels, and the query of each row where there are many."""

    X: Any
    y: Any

    def first(self, n_rows: int) -> Rows:
        return Rows(self.X[:n_rows], self.y[:n_rows])

    def queries(self, is_one: bool) -> Queries:
        n_rows = len(self.y)
        group = None if is_one else np.full(n_rows // ROWS_PER_QUERY, ROWS_PER_QUERY)
        return Queries.of(self.y, group=group, n_jobs=1)


def measure(quick: bool) -> list[Table]:
    sizes = (1_000, 10_000) if quick else SIZES
    steps = tuple(n // 20 for n in STEPS) if quick else STEPS
    table = Table(
        f"Pegasos on rows × {N_FEATURES}: seconds, and share of held-out pairs in the right order",
        [
            *("queries", "rows", "index, s"),
            *(cell for n in steps for cell in (f"{n:.0e} steps, s", "by the smallest", "accuracy")),
        ],
        notes=[
            f"λ = {RULE.alpha:g}; the shortest time and the mean accuracy of {len(SEEDS)} seeds",
            "index: of labels, once for all steps; beyond the caches a step waits for its two rows",
        ],
    )
    truth = np.random.default_rng(1).standard_normal(N_FEATURES)
    test = make_rows(np.random.default_rng(2), N_TEST, truth)
    rows = make_rows(np.random.default_rng(3), sizes[-1], truth)
    for is_one in (True, False):
        smallest: dict[int, float] = {}
        for size in sizes:
            _add(table, rows.first(size), test, is_one, steps, smallest)
    ceiling = accuracy(test, truth)
    table.notes.append(f"accuracy of the weights that the labels were made with: {ceiling:.4f}")
    table.pictures["flat"] = picture(table, sizes, steps)
    return [table]


def make_rows(rng: np.random.Generator, n_rows: int, truth: Any) -> Rows:
    """Normal features; a noisy linear score, cut into levels each 0.4 times as frequent."""
    X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    utility = X @ truth.astype(np.float32)
    utility += np.float32(np.linalg.norm(truth)) * rng.standard_normal(n_rows, dtype=np.float32)
    shares = 0.4 ** np.arange(N_LEVELS)
    cuts = np.quantile(utility[:100_000], np.cumsum(shares / shares.sum())[:-1])
    return Rows(X, np.searchsorted(cuts, utility).astype(np.float64))


def _add(
    table: Table, rows: Rows, test: Rows, is_one: bool, steps: Any, smallest: dict[int, float]
) -> None:
    start = time.process_time()
    sampler = pair_sampler(rows.queries(is_one))
    index = time.process_time() - start
    cells: list[Any] = []
    for n_steps in steps:
        taken, found = train_seeds(DenseRows(rows.X), sampler, n_steps)
        first = smallest.setdefault(n_steps, taken)
        right = np.mean([accuracy(test, w) for w in found])
        cells += [f"{taken:.3g}", ratio(taken / first), f"{right:.4f}"]
    table.add("one" if is_one else "many", len(rows.y), f"{index:.3g}", *cells)


def train_seeds(rows: DenseRows, sampler: PairSampler, n_steps: int) -> tuple[float, list[Any]]:
    """Shortest CPU seconds of the steps, and the weights of all seeds."""
    best, found = np.inf, []
    for seed in SEEDS:
        descent = Descent(N_FEATURES, [RULE], seed=seed)
        start = time.process_time()
        descent.run(rows, sampler, n_steps)
        best = min(best, time.process_time() - start)
        found.append(descent.weights()[0])
    return float(best), found


def accuracy(test: Rows, w: Any) -> float:
    found = evaluate(test.y, test.X @ w, metrics=["pairwise_accuracy"])
    return float(found["pairwise_accuracy"])


def picture(table: Table, sizes: Any, steps: Any) -> Figure:
    """Seconds and accuracy against rows, both axes of the first logarithmic."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, n_steps in enumerate(steps):
        for style, queries in zip(curves.STYLES, ("one", "many"), strict=False):
            lines = [row for row in table.rows if row[0] == queries]
            looks = {"color": curves.COLORS[i], "ls": style, "marker": ".", "lw": 1}
            label = f"{n_steps:.0e} steps, {queries} quer{'y' if queries == 'one' else 'ies'}"
            left.plot(sizes, [float(line[3 + 3 * i]) for line in lines], label=label, **looks)
            right.plot(sizes, [float(line[5 + 3 * i]) for line in lines], **looks)
    left.plot(
        sizes, [float(row[2]) for row in table.rows if row[0] == "one"],
        color=curves.COLORS[-1], lw=1, label="index, one query",
    )  # fmt: skip
    left.set(xscale="log", yscale="log", xlabel="rows", ylabel="CPU seconds")
    right.set(xscale="log", xlabel="rows", ylabel="held-out pairwise accuracy", ylim=(0.5, 1))
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure


if __name__ == "__main__":
    main(measure, __doc__)
