"""Approximate kernels on many rows: accuracy against components and time, and what a product costs.

Arrival delays of nycflights13: a tenth of the rows validates, a tenth tests, the rest trains. γ, C
and the unit of the day of the year are those with the best pairwise accuracy on the validation rows
in fits of few rows and components, the C of the linear RankSVM in fits of all rows. LightGBM gets
the ranks of the labels, which did best of its losses for one list. All on one thread.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

import problems
from linrank import evaluate
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows, Rows, as_rows
from linrank.kernels.approximation import (
    ApproximateResult,
    MappedRows,
    NystroemMap,
    Room,
    train_approximate,
)
from linrank.kernels.functions import Kernel
from linrank.ranksvm.train import train
from report import Table, main

GAMMAS = (0.01, 0.03, 0.1)
UNITS = (1.0, 1 / 3, 1 / 10)  # of a day: at γ = 0.01, days that are 7 units apart are alike
COSTS = (0.1, 1.0, 10.0)  # C, the mean loss of a pair times the rows
ROUNDS = (30, 100, 300, 1000)  # trees of LightGBM
LIMIT = 10**9  # bytes, of streamed features
clock = time.process_time


def measure(quick: bool) -> list[Table]:
    tables = []
    try:
        tables.append(accuracy(quick))
    except problems.Absent as absent:
        print(f"nycflights skipped: {absent}")
    return [*tables, products(quick)]


# ---- accuracy -----------------------------------------------------------------------------------


class Flights:
    """The rows, split, with the day of the year in a given unit."""

    def __init__(self, quick: bool) -> None:
        data = problems.load("nycflights")
        order = np.random.default_rng(0).permutation(data.n_rows)
        order = order[:20_000] if quick else order
        n = len(order) // 10
        self.parts = {"test": order[:n], "validate": order[n : 2 * n], "train": order[2 * n :]}
        self.X, self.y = sparse.csc_array(data.X, dtype=np.float64), data.y
        scale = np.ones(data.n_features)
        scale[:3] = [1.0 / self.X[:, [j]].toarray().std() for j in range(3)]  # hours, distance
        self._scale = scale

    def part(self, name: str, unit: float, n_rows: int | None = None) -> Dataset:
        """Some rows of a part; ``unit`` is that of the day, in days."""
        rows = self.parts[name][:n_rows]
        scale = self._scale.copy()
        scale[3] = 366.0 / unit
        X = sparse.csr_array(self.X[rows] @ sparse.diags_array(scale)).astype(np.float32)
        return Dataset.of(X, self.y[rows])


def accuracy(quick: bool) -> Table:
    flights = Flights(quick)
    table = Table(
        "nycflights13: pairwise accuracy on held-out rows",
        ["model", "components", "accuracy", "CPU seconds of the fit", "of 1000 predictions"],
    )
    C, gamma, unit = choose_parameters(flights, *((2000, 50) if quick else (30_000, 500)))
    table.notes.append(f"kernel: γ = {gamma:g}, C = {C:g} n, a day is {1 / unit:g} units")
    test = flights.part("test", unit)
    linear(table, flights)
    data, kernel = flights.part("train", unit), Kernel("rbf", gamma=gamma)
    for m in (20, 60) if quick else (100, 300, 1000, 2000):
        start = clock()
        result = fit_kernel(data, kernel, C, m)
        taken = clock() - start
        add(table, "nystroem", m, test, taken, lambda r=result: scores(kernel, r, test.rows))
    trees(table, data, test, ROUNDS[:2] if quick else ROUNDS)
    return table


def choose_parameters(flights: Flights, n_rows: int, m: int) -> tuple[float, float, float]:
    """C, γ and the unit of the day."""

    def judged(options: tuple[float, float, float]) -> float:
        C, gamma, unit = options
        kernel = Kernel("rbf", gamma=gamma)
        result = fit_kernel(flights.part("train", unit, n_rows), kernel, C, m)
        valid = flights.part("validate", unit)
        return concordance(valid, scores(kernel, result, valid.rows))

    return max(itertools.product(COSTS, GAMMAS, UNITS), key=judged)


def fit_kernel(
    data: Dataset, kernel: Kernel, C: float, m: int, **options: Any
) -> ApproximateResult:
    return train_approximate(
        data,
        kernel=kernel,
        n_components=m,
        C=C * data.n_rows,
        query_normalization="pairs",
        n_jobs=1,
        **options,
    )


def scores(kernel: Kernel, result: ApproximateResult, rows: Rows) -> np.ndarray:
    """Those of the collapsed ranker."""
    return kernel.product(rows, result.rows, result.coef)


def linear(table: Table, flights: Flights) -> None:
    """The linear RankSVM, by the C of the best validation accuracy."""
    data, valid, test = (flights.part(name, 100.0) for name in ("train", "validate", "test"))
    fits = []
    for C in COSTS:
        start = clock()
        w = train(data, C=C * data.n_rows, query_normalization="pairs", n_jobs=1).w
        taken = clock() - start
        fits.append((concordance(valid, valid.rows.scores(w, None, 1)), taken, w))
    _, taken, w = max(fits, key=lambda fit: fit[0])
    add(table, "linear RankSVM", len(w), test, taken, lambda: test.rows.scores(w, None, 1))


def trees(table: Table, data: Dataset, test: Dataset, rounds: tuple[int, ...]) -> None:
    """LightGBM by the ranks of the labels."""
    try:
        import lightgbm
    except ImportError:
        table.notes.append("LightGBM skipped: not installed")
        return
    X, X_test = (sparse.csr_matrix(one.X) for one in (data, test))
    ranks = np.searchsorted(np.sort(data.y), data.y) / data.n_rows
    options = {"num_threads": 1, "num_leaves": 63, "learning_rate": 0.1, "verbosity": -1}
    for n in rounds:
        start = clock()
        model = lightgbm.train(options, lightgbm.Dataset(X, ranks), n)
        taken = clock() - start
        add(table, "LightGBM", f"{n} trees", test, taken, lambda m=model: m.predict(X_test))


def add(
    table: Table,
    name: str,
    size: Any,
    test: Dataset,
    taken: float,
    predict: Callable[[], np.ndarray],
) -> None:
    start = clock()
    found = predict()
    predicting = (clock() - start) / test.n_rows * 1000
    table.add(name, size, f"{concordance(test, found):.4f}", taken, predicting)


def concordance(data: Dataset, found: np.ndarray) -> float:
    name = "pairwise_accuracy"
    return float(evaluate(data.y, found, metrics=[name])[name])


# ---- products -----------------------------------------------------------------------------------


def products(quick: bool) -> Table:
    n_rows = 20_000 if quick else 1_000_000
    data, kernel = generate_rows(n_rows), Kernel("rbf", gamma=0.05)
    limit = 10_000_000 if quick else LIMIT
    table = Table(
        f"{n_rows:,} × {data.n_features} generated rows, one query: CPU seconds",
        [
            *("features", "components", "landmarks", "storing Z"),
            *("stored Zw + Zᵀr", "streamed Zw + Zᵀr", "fit, stored", "fit, streamed"),
            *("Hessian products, streamed", "objective, streamed / stored"),
        ],
        notes=[f"streamed: within {limit / 1e6:g} MB in addition to the data"],
    )
    for m in (100,) if quick else (300, 1000):
        table.add("nystroem", m, *time_fits(data, kernel, m, limit))
    return table


def generate_rows(n_rows: int, n_features: int = 20) -> Dataset:
    """Labels 0 to 9 that depend on products and sines of the features."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * X[:, 3:].sum(axis=1)
    y += rng.standard_normal(n_rows)
    return Dataset(as_rows(X), np.floor(10 * np.argsort(np.argsort(y)) / n_rows))


def time_fits(data: Dataset, kernel: Kernel, m: int, limit: int) -> tuple[float | int, ...]:
    """The cells of a row after its name."""
    start = clock()
    n_candidates = Room.of(limit, data.rows, m).n_candidates
    features = NystroemMap.of(kernel, data.rows, m, n_candidates)
    chosen = clock() - start
    mapped = MappedRows(data.rows, features, 0)
    streamed = pass_of(mapped)
    start = clock()
    stored = mapped.stored(slice(None), 1)
    storing = clock() - start
    of_stored = pass_of(stored)
    fits = []
    options = {"query_normalization": "pairs", "n_jobs": 1}
    start = clock()
    whole = train(replace(data, rows=stored), C=float(data.n_rows), **options)
    fits.append(chosen + storing + clock() - start)
    del stored
    start = clock()
    found = fit_kernel(data, kernel, 1.0, m, memory_limit=limit)
    fits.append(clock() - start)
    if not found.is_streamed:
        raise RuntimeError(f"{m} components fit into {limit} bytes; lower LIMIT")
    ratio = found.value / whole.value
    return chosen, storing, of_stored, streamed, *fits, found.n_hvp, f"1 + {ratio - 1:.1e}"


def pass_of(rows: DenseRows | MappedRows) -> float:
    """CPU seconds of both products."""
    n_rows, m = rows.shape
    start = clock()
    rows.scores(np.ones(m), None, 1)
    rows.gradient(np.ones(n_rows), None, 1)
    return clock() - start


if __name__ == "__main__":
    main(measure, __doc__)
