"""The constants of the cost model of `costs.py`, and its predictions against fits of two sizes.

Constants are measured one by one, on blocks that are not those of the fits. The fits are then
predicted from the constants and from their numbers of rounds, and timed. docs/scale.md shows both:
`scale_page.py` writes its tables from the results of this program and of `cluster.py`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from distributed import wait

from cluster import (
    N_FEATURES,
    ROWS_OF_A_QUERY,
    TimedGathering,
    chunk_of,
    dense_block,
    on_workers,
    sparse_block,
    start_client,
)
from costs import Cluster, Constants, Data, Rounds, predict, predict_passes
from linrank.dask.clients import Watch
from linrank.dask.rounds import DaskChunks
from linrank.data.dataset import Dataset
from linrank.io.store.store import Store
from linrank.io.store.writer import StoreWriter
from linrank.losses.base import SquaredHinge
from linrank.pairs import Pairs
from linrank.parts import risk as tasks
from linrank.parts.parts import MemoryChunks
from linrank.parts.passes import Passes, sample_capacity
from linrank.parts.recipes import RankRecipe
from linrank.parts.risk import ChunkedProblem, sizes_of
from linrank.parts.train import train_chunks
from linrank.ranksvm.train import plan
from linrank.system.reading import Plan
from out_of_core import disk_rate
from report import Table, main, seconds

RECIPE = RankRecipe()
TEXT = 1_000_000, 100  # features, non-zeros per row
C = 1e-3


def measure(quick: bool) -> list[Table]:
    table = Table("Constants of the cost model", ["constant", "value", "unit"])
    found: dict[str, float] = {}

    def note(name: str, value: float, unit: str) -> None:
        found[name] = float(f"{value:.3g}")
        table.add(name, f"{value:.3g}", unit)

    size = 0.05 if quick else 1.0
    _rounds(note, quick)
    _bytes(note, quick)
    _work(note, size)
    _sparse_work(note, size)
    folder = tempfile.mkdtemp(prefix="linrank-scale-", dir=os.environ.get("LINRANK_SCRATCH"))
    try:
        _time_reading(note, Path(folder), size)
        _at_client(note, size)
        constants = Constants(**{name: found[name] for name in Constants.names()})
        checks = _checks(constants, Path(folder), size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [table, checks]


# ---- constants -------------------------------------------------------------------------------


def do_nothing(chunk: Any, n: int, v: Any = None, n_threads: int = 1) -> Any:
    """A task that takes a vector and returns one, and does no work."""
    return np.zeros(n)


def _rounds(note: Callable[[str, float, str], None], quick: bool) -> None:
    """Rounds on one worker and on several: more processes than cores, hence an upper bound."""
    most = 4 if quick else 8
    times = {}
    for n_workers in (1, most):
        with start_client(n_workers) as client:
            addresses = list(client.scheduler_info()["workers"])
            held = [client.submit(float, k, workers=[a], pure=False) for k, a in
                    enumerate(addresses)]  # fmt: skip
            chunks = DaskChunks(Watch(client), held)
            chunks.total(do_nothing, N_FEATURES)
            times[n_workers] = statistics.median(
                seconds(lambda chunks=chunks: chunks.total(do_nothing, N_FEATURES), 100)
            )
    note("round", times[1], "s per round")
    note("task", max(0.0, times[most] - times[1]) / (most - 1), "s per task")


def _bytes(note: Callable[[str, float, str], None], quick: bool) -> None:
    """Vectors of two lengths: what the longer one takes beyond the shorter, by byte."""
    small, large = (1 << 17, 1 << 19) if quick else (1 << 18, 1 << 22)
    n_bytes = 8 * (large - small)
    with start_client(2) as client:
        here, there = client.scheduler_info()["workers"]
        chunks = DaskChunks(Watch(client), [client.submit(float, 0, workers=[here], pure=False)])

        def times(call: Callable[[int], object]) -> float:
            one, two = (statistics.median(seconds(lambda n=n: call(n), 9)) for n in (small, large))
            return max(0.0, two - one) / n_bytes

        note("sent", times(lambda n: chunks.total(do_nothing, 1, np.zeros(n))), "s per byte")
        note("reply", times(lambda n: chunks.total(do_nothing, n)), "s per byte")
        note("fetched", _time_fetch(client, here, there, small, large), "s per byte")


def _time_fetch(client: Any, here: str, there: str, small: int, large: int) -> float:
    """A byte from one worker to another; every array travels once."""
    times = {}
    for n in (small, large):
        made = [client.submit(np.zeros, n, workers=[here], pure=False) for _ in range(9)]
        wait(made)
        times[n] = statistics.median(
            seconds(lambda made=made: client.submit(
                len, made.pop(), workers=[there], pure=False).result(), 9)
        )  # fmt: skip
    return max(0.0, times[large] - times[small]) / (8 * (large - small))


def _work(note: Callable[[str, float, str], None], size: float) -> None:
    """Rows of two widths: what a row takes, and what an entry of it."""
    dense = {k: chunk_of(dense_block(90, _rows(size * 600_000), k)) for k in (34, N_FEATURES)}
    for kind in ("product", "point"):
        _note_rate(note, kind, dense)
    wide = dense[N_FEATURES]
    w = _vector(N_FEATURES)
    wide.at(w, 1.0, 1)
    spent = min(seconds(lambda: tasks.hessian(wide, w, 1.0), 2))
    note("hessian", spent / (wide.sizes.n_rows * N_FEATURES**2), "s per row and squared feature")
    both = []
    for n_threads in (1, 2):
        wide.state = None  # it knows the number of threads
        wide.at(w, 1.0, n_threads)
        both.append(statistics.median(seconds(lambda: product(wide, w), 9)))
    note("crowding", min(2.0, max(1.0, 2.0 * both[1] / both[0])), "times")


def _sparse_work(note: Callable[[str, float, str], None], size: float) -> None:
    n, k = TEXT
    few, w = chunk_of(sparse_block(91, ROWS_OF_A_QUERY, n, k)), _vector(n)
    few.at(w, 1.0, 1)
    spent = statistics.median(seconds(lambda: product(few, w), 9))
    note("feature", spent / n, "s per feature and chunk")
    sparse = {
        entries: chunk_of(sparse_block(90, _rows(size * 500_000), n, entries))
        for entries in (k // 4, k)
    }
    for kind in ("product", "point"):
        _note_rate(note, kind, sparse, "sparse_", spent)


def _note_rate(
    note: Callable[[str, float, str], None],
    kind: str,
    chunks: dict[int, Any],
    storage: str = "",
    fixed: float = 0.0,
) -> None:
    """Rows and entries, of times less what a chunk takes whatever its rows."""
    by_row = {}
    for entries, chunk in chunks.items():
        w = _vector(chunk.sizes.n_features)
        if kind == "product":
            chunk.at(w, 1.0, 1)
            times = seconds(lambda c=chunk, w=w: product(c, w), 7)
        else:
            factors = iter(range(2, 7))
            times = seconds(lambda c=chunk, w=w, f=factors: tasks.evaluate(c, next(f) * w, 1.0), 5)
        by_row[entries] = max(0.0, statistics.median(times) - fixed) / chunk.sizes.n_rows
    (few, short), (many, long) = by_row.items()
    entry = max(0.0, long - short) / (many - few)
    note(f"{storage}{kind}_row", max(0.0, long - entry * many), "s per row")
    note(f"{storage}{kind}_entry", entry, "s per entry")


def _time_reading(note: Callable[[str, float, str], None], folder: Path, size: float) -> None:
    """The disk past the cache; chunks from the cache, checked once, and made ready."""
    store = _store(folder / "constants", _rows(size * 1_200_000))
    os.sync()
    values = str(folder / "constants" / "values.bin")
    note("disk", 1.0 / statistics.median(disk_rate(values) for _ in range(3)), "s per byte")
    n_bytes = sum(chunk.nbytes for chunk in store.chunks)
    spent = seconds(lambda: [RECIPE.chunk(store.read(i)) for i in range(store.n_chunks)], 3)
    note("loaded", statistics.median(spent) / n_bytes, "s per byte")
    shutil.rmtree(folder / "constants")


def _at_client(note: Callable[[str, float, str], None], size: float) -> None:
    """The start from a sample; the sweep of one giant query."""
    chunks = MemoryChunks(
        [chunk_of(dense_block(90 + i, _rows(size * 400_000))) for i in range(2)], 2
    )
    sizes = sizes_of(chunks)
    problem = ChunkedProblem(chunks, RECIPE, sizes, C, n_threads=2)
    spent = statistics.median(seconds(lambda: plan(problem, None), 3))
    note("sample", spent / (problem.n_rows // 20), "s per row of the sample")
    n_rows = int(size * 4_000_000)
    rng = np.random.default_rng(3)
    data = Dataset.of(np.zeros((n_rows, 1), np.float32), rng.integers(0, 5, n_rows).astype(float))
    loss = SquaredHinge(Pairs(data.queries), 2)
    z, u = rng.standard_normal((2, n_rows))
    spent = statistics.median(seconds(lambda: loss.at(z).gradient, 3))
    note("sweep_point", spent / n_rows, "s per row")
    point = loss.at(z)
    spent = statistics.median(seconds(lambda: loss.curvature(point, u), 3))
    note("sweep_product", spent / n_rows, "s per row")


def product(chunk: Any, w: Any) -> Any:
    """A Hessian product at ``w``, and of it."""
    return tasks.curvature(chunk, w, 1.0, "hessian_product", w)


def _vector(n: int) -> Any:
    return np.random.default_rng(1).standard_normal(n) / 10


def _rows(n: float) -> int:
    """About n rows, in whole queries."""
    return max(1, int(n) // ROWS_OF_A_QUERY) * ROWS_OF_A_QUERY


def _store(path: Path, n_rows: int, chunk_rows: int = 120_000) -> Store:
    with StoreWriter(str(path)) as writer:
        for number, begin in enumerate(range(0, n_rows, chunk_rows)):
            n = min(chunk_rows, n_rows - begin)
            X, y, qid = dense_block(number, n)
            writer.append(Dataset.of(X, y, qid=qid))
        return writer.finish()


# ---- predictions -----------------------------------------------------------------------------


def _checks(constants: Constants, folder: Path, size: float) -> Table:
    """Fits of two sizes of each regime."""
    table = Table(
        "Predictions and measurements",
        [
            *("regime", "rows", "features", "entries", "workers", "partitions", "sample"),
            *("points", "Hessians", "products", "measured, s", "predicted, s", "ratio"),
        ],
        notes=["two workers of one thread; out of core: two threads, no features kept"],
    )
    with start_client(2) as client:
        for n_rows, n_blocks in ((20_000, 8), (100_000, 16)):
            block = dense_block, n_blocks, _rows(size * n_rows)
            _check_cluster(table, constants, client, N_FEATURES, N_FEATURES, *block)
        n, k = TEXT
        n = n if size == 1.0 else n // 10
        for n_rows, n_blocks in ((20_000, 4), (40_000, 8)):
            block = sparse_block, n_blocks, _rows(size * n_rows), n, k
            _check_cluster(table, constants, client, n, k, *block)
    for n_rows in (1_200_000, 3_600_000):
        _check_passes(table, constants, folder, _rows(size * n_rows))
    return table


def _check_cluster(
    table: Table, c: Constants, client: Any, n: int, entries: int, *block: Any
) -> None:
    data = on_workers(client, *block)
    parts = data
    with parts.opened(RECIPE) as chunks:
        chunks.each(tasks.sizes)  # until they are made
        rounds, spent = _time_fit(TimedGathering(chunks), data.n_rows, parts.capacity)
    shape = Data(data.n_rows, n, entries, n > entries)
    cluster = Cluster(2, 1, len(data.futures), is_shared=True)
    _add(
        table, "cluster", shape, cluster, rounds, spent, predict(shape, cluster, rounds, c).seconds
    )


def _time_fit(timed: TimedGathering, n_rows: int, capacity: int) -> tuple[Rounds, float]:
    """Rounds of a fit, and its seconds."""
    started = time.perf_counter()
    train_chunks(timed, RECIPE, C=C, n_threads=2, capacity=capacity)
    spent = time.perf_counter() - started
    sample = min(n_rows // 20, capacity) if timed.count("draw") else 0
    products = timed.count("product") + timed.count("diagonal")
    return Rounds(timed.count("evaluate"), timed.count("hessian"), products, sample), spent


def _check_passes(table: Table, c: Constants, folder: Path, n_rows: int) -> None:
    store = _store(folder / "check", n_rows)
    os.sync()
    capacity = sample_capacity(store)
    plan = Plan(n_buffers=3, n_states=store.n_chunks, n_kept=0)
    with Passes(store, RECIPE, plan, n_threads=2) as passes:
        rounds, spent = _time_fit(TimedGathering(passes), n_rows, capacity)
    shutil.rmtree(folder / "check")
    shape = Data(n_rows, N_FEATURES, N_FEATURES)
    cluster = Cluster(1, 2, store.n_chunks)
    least = 2 * 80 * n_rows / 0.75  # the state, and no features
    predicted, _ = predict_passes(shape, 2, least, rounds, c)
    _add(table, "out of core", shape, cluster, rounds, spent, predicted.seconds)


def _add(
    table: Table, regime: str, shape: Data, cluster: Cluster, rounds: Rounds, spent: float,
    predicted: float,
) -> None:  # fmt: skip
    table.add(
        regime, int(shape.n_rows), shape.n_features, shape.entries, cluster.n_workers,
        cluster.n_chunks, rounds.sample, rounds.points, rounds.hessians, rounds.products,
        f"{spent:.3g}", f"{predicted:.3g}", f"{spent / predicted:.2f}",
    )  # fmt: skip


if __name__ == "__main__":
    main(measure, __doc__)
