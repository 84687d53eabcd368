"""One query of 10^7 rows and 4 features: products, points and fits, and their memory.

Labels of two levels (AUC), of 10^5, and all distinct. Memory is the peak of the resident set above
what there was before, by the bytes of the scores, 8 per row (Linux only).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import train
from report import Table, main, ratio, seconds, spread

ROWS, LEVELS = 10_000_000, (2, 100_000, None)  # None: all labels distinct
TRUTH = np.array([1.0, 0.5, -0.3, 0.1])
FIT = 1e3  # C times the number of pairs


def measure(quick: bool) -> list[Table]:
    n_rows = ROWS // 50 if quick else ROWS
    products = Table(
        f"One query of {n_rows:.0e} rows × 4: Hessian products and points",
        [
            *("levels", "product, 1 thread, ms", "2 threads", "ratio", "point, 1 thread, ms"),
            *("2 threads", "ratio", "product / reading the rows"),
        ],
        notes=["reading: X.sum() by numpy, one thread, against the product of one thread"],
    )
    fits = Table(
        f"One query of {n_rows:.0e} rows × 4: fit and peak memory by the bytes of the scores",
        [
            *("levels", "fit, 1 thread, s", "2 threads", "ratio", "Hv", "product", "point", "fit"),
        ],
        notes=[
            "memory above the data, which are 4 bytes per entry, 8 per label and 4 per level",
            f"C = {FIT:g} / number of pairs",
        ],
    )
    for n_levels in LEVELS:
        data = make(n_rows, n_levels)
        name = "distinct" if n_levels is None else n_levels
        memory = _add_products(products, name, data)
        _add_fit(fits, name, data, memory)
    return [products, fits]


def make(n_rows: int, n_levels: int | None) -> Dataset:
    """Four normal features; labels by a noisy linear score, cut into equally large levels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4), dtype=np.float32)
    y = X @ TRUTH.astype(np.float32) + rng.standard_normal(n_rows, dtype=np.float32)
    rank = np.empty(n_rows)
    rank[np.argsort(y)] = np.arange(n_rows)
    if n_levels == 2:
        rank = (y > 1.5).astype(np.float64)
    elif n_levels is not None:
        rank = np.floor(rank * (min(n_levels, n_rows) / n_rows))
    return Dataset.of(X, rank)


def _add_products(table: Table, name: Any, data: Dataset) -> tuple[float, float]:
    """Adds a row; returns the memory of a product and of a point."""
    v = np.ones(4)
    product, sweep, memory = [], [], (0.0, 0.0)
    for n_threads in (1, 2):
        loss = SquaredHinge(Pairs(data.queries), n_threads)
        risk = Sum(Ridge(), Risk(data.rows, loss, 1.0))
        sweep.append(seconds(lambda risk=risk: risk.at(TRUTH).value, 3))
        point_peak = peak(lambda risk=risk: risk.at(TRUTH).value)
        point = risk.at(TRUTH)
        point.hvp(v)
        product.append(seconds(lambda point=point: point.hvp(v), 5))
        memory = (peak(lambda point=point: point.hvp(v)), point_peak)
    read = float(np.median(seconds(lambda: data.X.sum(), 5)))
    cells = []
    for one, two in (product, sweep):
        gain = float(np.median(one) / np.median(two))
        cells += [spread(one, 1e-3), spread(two, 1e-3), ratio(gain)]
    table.add(name, *cells, ratio(float(np.median(product[0])) / read))
    return memory[0] / (8 * data.n_rows), memory[1] / (8 * data.n_rows)


def _add_fit(table: Table, name: Any, data: Dataset, memory: tuple[float, float]) -> None:
    C = FIT / data.queries.n_pairs
    one, two = (seconds(lambda n=n: train(data, C=C, n_jobs=n), 1) for n in (1, 2))
    fit = train(data, C=C)
    highest = peak(lambda: train(data, C=C)) / (8 * data.n_rows)
    table.add(
        name, one[0], two[0], ratio(one[0] / two[0]), fit.history["n_hvp"][-1],
        *(ratio(share) for share in (*memory, highest)),
    )  # fmt: skip


def peak(action: Callable[[], Any]) -> float:
    """Bytes that the resident set grows by at most; NaN if the system does not report it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = _status("VmRSS")
        action()
        return float(_status("VmHWM") - before)
    except OSError:
        return float("nan")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


if __name__ == "__main__":
    main(measure, __doc__)
