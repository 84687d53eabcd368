"""Exact rankers on a CUDA device: seconds, and the bytes that they move over what the card can."""

from __future__ import annotations

import os
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linrank import Dataset, KernelRankSVM, RankSVM, RankSVMCV, evaluate, ranksvm_path
from linrank.errors import DeviceError
from linrank.ranksvm.train import Problem
from linrank.system.device import Device, device_of
from report import Table, main, ratio

PLAIN = {"scale": "none", "pair_weighting": "uniform"}  # the published objective


@dataclass
class Clock:
    """Times work on a device, from idle to idle."""

    device: Device
    table: Table
    bandwidth: float  # bytes a second, read and written

    def seconds(self, work: Callable[[], Any], repeat: int) -> tuple[float, float, Any]:
        """The first call, which compiles what is new, the median of the others, the last result."""
        taken = []
        for _ in range(repeat + 1):
            self.device.wait()
            start = time.perf_counter()
            found = work()
            self.device.wait()
            taken.append(time.perf_counter() - start)
        return taken[0], statistics.median(taken[1:]), found

    def row(
        self,
        what: str,
        goal: float | None,
        work: Callable[[], Any],
        *,
        moved: float = 0.0,
        repeat: int = 9,
        told: Callable[[Any], str] = lambda found: "",
    ) -> float:
        """Add a line to the table: work, goal and times in ms, the share of the bandwidth."""
        first, usual, found = self.seconds(work, repeat)
        met = "" if goal is None else f" ({'met' if usual <= goal else 'MISSED'})"
        asked = "" if goal is None else f"<= {1e3 * goal:g}{met}"
        share = f"{100 * moved / usual / self.bandwidth:.2g}%" if moved else ""
        self.table.add(what, asked, f"{1e3 * usual:.4g}", f"{1e3 * first:.4g}", share, told(found))
        return usual


def measure(quick: bool) -> list[Table]:
    table = Table(
        "Work on one CUDA device, wall ms",
        ["work", "goal", "median", "first call", "of the bandwidth", "found"],
        notes=[
            "rows are generated on the card, float32 unless said otherwise",
            "the first call compiles the kernels where no cache has them, and groups the queries",
            "bytes are those that the work cannot do without, over those that a copy moves",
        ],
    )
    try:
        device = device_of("cuda")
    except DeviceError as absent:
        table.notes.append(f"skipped: {absent}")
        return [table]
    size = 50 if quick else 1
    clock = Clock(device, table, copied_bytes(device, (1 << 30) // size))
    table.notes.append(f"a copy moves {clock.bandwidth / 1e12:.2f} TB/s, read and written")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a C at the end of a grid
        for part in (documents, wide, one_query, words, kernel):
            part(clock, size)
            device.xp.get_default_memory_pool().free_all_blocks()
    return [table]


def copied_bytes(device: Device, n_bytes: int) -> float:
    """Bytes a second, read and written, of a copy on the card."""
    source = device.zeros(n_bytes // 8)
    target = source.copy()
    best = np.inf
    for _ in range(9):
        device.wait()
        start = time.perf_counter()
        for _ in range(8):
            target[:] = source
        device.wait()
        best = min(best, (time.perf_counter() - start) / 8)
    return 2 * source.nbytes / best


# ---- the sets -----------------------------------------------------------------------------------


def drawn(device: Device, n_rows: int, n_features: int, noise: float) -> tuple[Any, Any]:
    """Normal rows on the device, and a noisy linear score of each."""
    xp = device.xp
    xp.random.seed(0)
    X = xp.random.standard_normal((n_rows, n_features), dtype=np.float32)
    w = xp.random.standard_normal(n_features, dtype=np.float32)
    z = X @ w
    return X, z + noise * xp.random.standard_normal(n_rows, dtype=np.float32)


def graded(clock: Clock, n_queries: int, n_features: int, mean_size: float) -> Dataset:
    """Uneven queries of rows on the device, five grades of which the lowest is common."""
    rng = np.random.default_rng(0)
    sizes = np.clip(rng.gamma(3.5, mean_size / 3.5, n_queries).astype(int), 1, 1251)
    X, z = drawn(clock.device, int(sizes.sum()), n_features, 0.7 * n_features**0.5)
    z = clock.device.get(z)
    y = np.digitize(z, np.quantile(z, [0.52, 0.84, 0.97, 0.99])).astype(float)
    return Dataset.of(X, y, qid=np.repeat(np.arange(n_queries), sizes))


def ending(ranker: Any) -> str:
    """How a fit ended."""
    gap = ranker.duality_gap_ / ranker.objective_
    return f"F = {ranker.objective_:.10g}, certified {gap:.1e}, {ranker.n_iter_} steps"


def products(clock: Clock, data: Dataset, goals: tuple[float | None, float | None]) -> None:
    """A point of the objective, value and gradient, and a product with its Hessian."""
    n = data.n_features
    objective = Problem.of(data, 1.0).objective()
    w = clock.device.get(drawn(clock.device, 1, n, 0.0)[0])[0].astype(float) / n
    nbytes = data.rows.nbytes

    def point() -> Any:
        found = objective.at(w)
        return found.value, found.gradient

    clock.row("point", goals[0], point, moved=2 * nbytes)
    here = objective.at(w)
    here.hvp(w)
    clock.row("Hessian product", goals[1], lambda: here.hvp(w), moved=2 * nbytes)


# ---- the work -----------------------------------------------------------------------------------


def documents(clock: Clock, size: int) -> None:
    """The shape of MSLR-WEB30K."""
    data = graded(clock, 18_935 // size, 136, 120.0)
    what, nbytes = f"{data.n_rows:,} × {data.n_features}", data.rows.nbytes

    def fit(X: Any = data.rows, **options: Any) -> RankSVM:
        return RankSVM(1.0, **PLAIN, **options).fit(X, data.y, qid=data.qid)

    whole = RankSVM(1.0, **PLAIN)
    clock.row(f"fit of {what}", 6e-3, lambda: whole.fit(data), moved=2 * nbytes, told=ending)
    tight = RankSVM(1.0, tol=1e-6, **PLAIN)
    clock.row("the same, tol=1e-6", None, lambda: tight.fit(data), told=ending)
    hinge = RankSVM(1.0, loss="hinge", **PLAIN)
    clock.row("the same, hinge", None, lambda: hinge.fit(data), repeat=3, told=ending)
    products(clock, data, (0.8e-3, 0.5e-3))
    clock.row("fit(X, y, qid=qid) of CuPy arrays", None, lambda: fit(data.X), told=ending)
    host = clock.device.get(data.X)
    there = clock.row(
        "the same of NumPy arrays", 0.12, lambda: fit(host, device="cuda"), repeat=3, told=ending
    )
    start = time.perf_counter()
    here = fit(host)
    on_host = time.perf_counter() - start
    clock.table.notes.append(
        f"the same fit on {os.cpu_count()} threads of the host: {on_host:.3g} s, "
        f"{ending(here)}; {ratio(on_host / there)} the time with the upload"
    )
    unit = 1.0 / data.queries.n_pairs
    Cs = unit * data.n_rows * 2.0 ** np.arange(-13, 13)
    path = {"Cs": Cs, "scale": "none", "pair_weighting": "uniform"}

    def gap(found: Any) -> str:
        return f"largest certified gap {np.max(found.gaps / found.objectives):.1e}"

    def follow() -> Any:
        return ranksvm_path(data.X, data.y, qid=data.qid, **path)

    clock.row("path of 26 C", 0.08, follow, repeat=3, told=gap)
    search = RankSVMCV(cv=5, **path)
    clock.row(
        "five folds, 130 models",
        0.6,
        lambda: search.fit(data),
        repeat=3,
        told=lambda s: f"C = {s.C_:g}",
    )
    scores = whole.predict(data)
    clock.row("predict", None, lambda: whole.predict(data), moved=nbytes)
    clock.row("NDCG@10", 2e-3, lambda: evaluate(data, scores, metrics="ndcg@10"))


def wide(clock: Clock, size: int) -> None:
    """The shape of the Yahoo! challenge."""
    data = graded(clock, 19_944 // size, 519, 23.7)
    ranker = RankSVM(1.0, **PLAIN)
    what = f"fit of {data.n_rows:,} × {data.n_features}"
    clock.row(what, 15e-3, lambda: ranker.fit(data), moved=2 * data.rows.nbytes, told=ending)
    products(clock, data, (None, None))


def one_query(clock: Clock, size: int) -> None:
    """One query of distinct labels."""
    X, z = drawn(clock.device, 10**7 // size, 46, 5.0)
    data = Dataset.of(X, clock.device.get(z).astype(float), qid=np.zeros(len(X), int))
    ranker = RankSVM(1.0 / data.n_rows, **PLAIN)
    what = f"fit of one query of {data.n_rows:,} × {data.n_features}"
    clock.row(what, 0.5, lambda: ranker.fit(data), moved=2 * data.rows.nbytes, told=ending)
    products(clock, data, (None, 10e-3))


def words(clock: Clock, size: int) -> None:
    """Sparse rows of as many features, one query, against two threads of the host."""
    n, rng = 10**6 // size, np.random.default_rng(0)
    columns = (n * rng.random((n, 50)) ** 3).astype(np.int32)  # some are frequent
    values = rng.random((n, 50), dtype=np.float32)
    X = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, 50 * n + 1, 50)), (n, n))
    X.sum_duplicates()
    y = (X @ rng.normal(size=n) + rng.normal(size=n) > 2.0).astype(float)
    host = Dataset.of(X, y, qid=np.zeros(n, int))
    there = Dataset.of(X, y, qid=np.zeros(n, int), device="cuda")
    C = n / host.queries.n_pairs
    ranker, alone = RankSVM(C, **PLAIN), RankSVM(C, n_jobs=2, **PLAIN)
    what = f"fit of {n:,} × {n:,}, {X.nnz:,} non-zeros"
    usual = clock.row(what, None, lambda: ranker.fit(there), repeat=3, told=ending)
    start = time.perf_counter()
    alone.fit(host)
    taken = time.perf_counter() - start
    clock.table.add("two threads of the host", "", f"{1e3 * taken:.4g}", "", "", ending(alone))
    clock.table.notes.append(f"sparse rows against two threads: {ratio(taken / usual, 20.0)}")


def kernel(clock: Clock, size: int) -> None:
    """An exact fit with a kernel, 10⁹ pairs."""
    n = 50_000 // size
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y = np.digitize(np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=n), [0.0]).astype(float)
    ranker = KernelRankSVM(C=1.0 / n, gamma=0.05, tol=1e-3, device="cuda")
    what = f"RBF kernel, {n:,} rows, tol=1e-3"
    qid = np.zeros(n, int)
    clock.row(what, 10.0, lambda: ranker.fit(X, y, qid=qid), repeat=1, told=ending)


if __name__ == "__main__":
    main(measure, __doc__)
