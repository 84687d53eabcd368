"""The fused Hessian product against the read bandwidth of the machine, in the same run.

The product needs the matrix once; its bytes by the time of a product are set against the fastest
plain read that NumPy and BLAS manage on the same matrix with as many threads.
"""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import problems
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import train
from report import Table, main, seconds, spread

SETS = ("b", "c", "y20")


def measure(quick: bool) -> list[Table]:
    table = Table(
        "Fused Hessian product against the read peak, GB/s of the float32 matrix",
        ["set", "matrix, MB", "threads", "product, ms", "product", "read peak", "share"],
        notes=["read peak: the best of sum, dot and matrix-vector product; target on b: 60 %"],
    )
    for name in SETS:
        data = problems.load(name, 0.05 if quick else 1.0)
        w = train(data, tol=1e-2).w
        for n_threads in (1, 2):
            _add(table, name, data, w, n_threads)
    return [table]


def _add(table: Table, name: str, data: Any, w: Any, n_threads: int) -> None:
    nbytes = data.rows.nbytes
    times, peak = [], 0.0
    for _ in range(3):  # in turn, so that a slow moment hits both
        times += _product_times(data, w, n_threads)
        peak = max(peak, nbytes / read_time(data.rows.values, n_threads))
    rate = nbytes / statistics.median(times)
    table.add(
        name, round(nbytes / 1e6), n_threads, spread(times, 1e-3),
        f"{rate / 1e9:.1f}", f"{peak / 1e9:.1f}", f"{100 * rate / peak:.0f} %",
    )  # fmt: skip


def _product_times(data: Any, w: Any, n_threads: int) -> list[float]:
    loss = SquaredHinge(Pairs(data.queries), n_threads)
    point = Sum(Ridge(), Risk(data.rows, loss, 1.0)).at(w)
    v = np.random.default_rng(0).standard_normal(data.n_features)
    point.hvp(v)  # sorts the scores, once for all products at this point
    return seconds(lambda: point.hvp(v), 7)


def read_time(X: Any, n_threads: int) -> float:
    """The shortest time in which one of three plain reads passes over the rows."""
    parts = np.array_split(X, n_threads)
    ones = np.ones(X.shape[1], dtype=X.dtype)
    reads = (
        lambda part: part.sum(),
        lambda part: np.dot(part.reshape(-1), part.reshape(-1)),
        lambda part: part @ ones,
    )
    with ThreadPoolExecutor(n_threads) as pool:
        return min(min(seconds(lambda r=r: list(pool.map(r, parts)), 3)) for r in reads)


if __name__ == "__main__":
    main(measure, __doc__)
