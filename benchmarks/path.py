"""A path of 26 values of C against one cold fit at C = 1, both to a certified gap of 1e-4·F.

One thread, one process, in turn. The cold fit is `train` without a start, ended by its callback at
the same certificate; `train` with its defaults ends earlier, on an estimate, and is
shown for comparison.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import problems
from linrank.data.dataset import Dataset
from linrank.losses.base import SquaredHinge
from linrank.ranksvm.path import GRID, train_path
from linrank.ranksvm.train import train
from linrank.solvers.result import Result
from report import Table, main, spread

GAP = 1e-4  # certified, relative to F
MOST = 6.0  # cold fits that a path may cost
SETS = {"a": True, "c": True, "mq": True, "msn": False, "bio": False}  # whether MOST is asked


def measure(quick: bool) -> list[Table]:
    fraction = 0.02 if quick else 1.0
    table = Table(
        f"{len(GRID)} values of C, 2^-10 to 2^14, against one fit at C = 1: seconds, one thread",
        [
            *("set", "rows × features", "cold fit", "path", "path / cold fit"),
            *("path / default fit", "cold: sweeps, Hv", "path: sweeps, Hv", "largest gap / F"),
        ],
        notes=[
            f"cold fit and path end at a certified gap of {GAP:g}·F, the default fit earlier",
            "sweeps: evaluations of the loss on all rows; Hv: Hessian products on all rows",
        ],
    )
    for name, is_asked in SETS.items():
        try:
            data = problems.load(name, fraction)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        asked = is_asked and (fraction == 1.0 or name in problems.REAL)
        table.add(*_compare(name, data, MOST if asked else None))
    return [table, by_value(fraction)]


def _compare(name: str, data: Dataset, most: float | None) -> list[Any]:
    data.queries.n_pairs  # noqa: B018  (counted once, before the clock starts)
    cold, path, default = [], [], []
    for _ in range(5 if data.n_rows > 200_000 else 15):  # in turn: a slow minute hits all
        cold.append(_seconds(lambda: fit_certified(data)))
        path.append(_seconds(lambda: whole_path(data)))
        default.append(_seconds(lambda: train(data, n_jobs=1)))
    with count_calls(data) as cold_counts:
        fit_certified(data)
    with count_calls(data) as path_counts:
        results = whole_path(data)
    unit = statistics.median(path)
    return [
        name,
        f"{data.n_rows} × {data.n_features}",
        spread(cold),
        spread(path),
        at_most(unit / statistics.median(cold), most),
        f"{unit / statistics.median(default):.3g}x",
        f"{cold_counts['sweeps']}, {cold_counts['products']}",
        f"{path_counts['sweeps']}, {path_counts['products']}",
        max(result.gap / result.value for result in results),
    ]


def by_value(fraction: float) -> Table:
    """What each C costs, on all sets."""
    table = Table(
        "Newton steps + Hessian products of each value of the path",
        ["set", *(f"2^{np.log2(C):.0f}" for C in GRID)],
    )
    for name in SETS:
        try:
            data = problems.load(name, fraction)
        except problems.Absent:
            continue
        table.add(name, *(f"{result.n_iter}+{result.n_hvp}" for result in whole_path(data)))
    return table


def fit_certified(data: Dataset) -> Result:
    """One cold fit at C = 1 until its gap is certified."""
    return train(
        data, tol=1e-12, n_jobs=1, callback=lambda state: state["gap"] <= GAP * state["objective"]
    )


def whole_path(data: Dataset) -> list[Result]:
    return list(train_path(data, GRID, tol=GAP, n_jobs=1))


def at_most(times: float, most: float | None) -> str:
    """``"4.8x (<= 6x: met)"``."""
    shown = f"{times:.3g}x"
    if most is None:
        return shown
    return f"{shown} (<= {most:g}x: {'met' if times <= most else 'MISSED'})"


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@contextmanager
def count_calls(data: Dataset) -> Iterator[dict[str, int]]:
    """Counts what is asked of the loss on all rows; samples are left out."""
    counts = {"sweeps": 0, "products": 0}
    at, product = SquaredHinge.at, SquaredHinge.hessian_product

    def counted_at(self: Any, z: Any, near: Any = None) -> Any:
        counts["sweeps"] += self.queries.n_rows == data.n_rows
        return at(self, z, near)

    def counted_product(self: Any, rows: Any, point: Any, v: Any) -> Any:
        counts["products"] += self.queries.n_rows == data.n_rows
        return product(self, rows, point, v)

    SquaredHinge.at, SquaredHinge.hessian_product = counted_at, counted_product
    try:
        yield counts
    finally:
        SquaredHinge.at, SquaredHinge.hessian_product = at, product


if __name__ == "__main__":
    main(measure, __doc__)
