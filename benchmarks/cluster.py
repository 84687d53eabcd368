"""Training on a cluster of processes: the overhead of a round, a second worker, a lost worker.

Real `distributed` workers, a process of one thread each, on this machine: bytes travel over the
loopback. Rows are made on the workers, in the shape of MSLR-WEB30K (136 float32 features, 120 rows
per query).
"""

from __future__ import annotations

import logging
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from linrank.dask.partitions import Partitions, partitions_of
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows
from linrank.parts import risk as tasks
from linrank.parts.parts import MemoryChunks
from linrank.parts.recipes import Chunk, RankRecipe
from linrank.parts.train import train_chunks
from report import Table, main, ratio, seconds, spread

ROWS_OF_A_QUERY = 120
N_FEATURES = 136
LEVELS = (0.52, 0.84, 0.97, 0.99)  # shares of the rows below each label, as in MSLR-WEB30K

PARTITIONS = (10, 100, 1000)  # MB
ROW = 4 * N_FEATURES
RECIPE = RankRecipe()
C = 1e-3
PRODUCT = "hessian_product"


def measure(quick: bool) -> list[Table]:
    overhead = Table(
        "A Hessian product on a cluster, by the one in process: ms",
        [
            *("workers", "partitions, MB", "cluster", "in process", "by in process", "added"),
            "point on the cluster",
        ],
        notes=[
            "one partition per worker, one thread per worker; in process: the same chunks, as many "
            "threads as workers"
        ],
    )
    sizes = [size / 20 if quick else size for size in PARTITIONS]
    for n_workers in (1, 2):
        with start_client(n_workers) as client:
            for size in sizes:
                _add_overhead(overhead, client, n_workers, size)
    with start_client(2) as client:
        moved = _repair(client, quick)
        lost = _lost_worker(client, quick)
    return [overhead, _two_workers(quick), moved, lost]


def _vectors() -> tuple[Any, Any]:
    w, v = np.random.default_rng(1).standard_normal((2, N_FEATURES)) / 10
    return w, v


def _add_overhead(table: Table, client: Any, n_workers: int, size: float) -> None:
    n_rows = int(size * 1e6) // ROW
    w, v = _vectors()
    data = on_workers(client, dense_block, n_workers, n_rows)
    here = in_process(dense_block, n_workers, n_rows, n_threads=n_workers)
    there_times, here_times = [], []
    with data.opened(RECIPE) as there:
        for gathering in (there, here):
            gathering.total(tasks.curvature, w, 1.0, PRODUCT, v)  # sorts the scores
        for _ in range(3):  # in turn, so that a slow moment hits both
            there_times += seconds(lambda: there.total(tasks.curvature, w, 1.0, PRODUCT, v), 5)
            here_times += seconds(lambda: here.total(tasks.curvature, w, 1.0, PRODUCT, v), 5)
        there.total(tasks.evaluate, w, 1.0, False)
        points = [seconds(lambda k=k: there.total(tasks.evaluate, k * w, 1.0, False), 1)[0]
                  for k in (2, 3, 4)]  # fmt: skip
    medians = statistics.median(there_times), statistics.median(here_times)
    table.add(
        n_workers, f"{size:g}", spread(there_times, 1e-3), spread(here_times, 1e-3),
        ratio(medians[0] / medians[1]), f"{1e3 * (medians[0] - medians[1]):.3g}",
        spread(points, 1e-3),
    )  # fmt: skip


def _two_workers(quick: bool) -> Table:
    """The whole of MSLR-WEB30K's shape on one and on two workers."""
    n_blocks, n_rows = 16, 7_200 if quick else 235_680
    table = Table(
        f"Two workers against one: {n_blocks * n_rows:,} rows x {N_FEATURES}, "
        f"{n_blocks * n_rows * ROW / 1e6:.0f} MB in {n_blocks} partitions",
        ["what", "one worker, s", "two workers, s", "ratio", "two threads by one, in process"],
        notes=["a worker is a process of one thread; fit: sizes, sample, all rounds, tol = 1e-6"],
    )
    found = {}
    for n_workers in (1, 2):
        with start_client(n_workers) as client:
            data = on_workers(client, dense_block, n_blocks, n_rows)
            parts = data
            capacity = parts.capacity
            with parts.opened(RECIPE) as chunks:
                chunks.each(tasks.sizes)  # until they are made
                found[n_workers] = [_fit(chunks, capacity) for _ in range(2 if quick else 3)]
    here = in_process(dense_block, n_blocks, n_rows, n_threads=1)
    threads = {}
    for n_threads in (1, 2):
        here.n_threads = n_threads
        threads[n_threads] = [_fit(here, capacity) for _ in range(2 if quick else 3)]
    for k, name in enumerate(("fit", "its products", "its points", "sample and start")):
        one, two = ([times[k] for times in found[n]] for n in (1, 2))
        times = statistics.median(one) / statistics.median(two)
        inside = [statistics.median(times[k] for times in threads[n]) for n in (1, 2)]
        goal = ratio(times, 1.6 if name == "fit" else None)
        table.add(name, spread(one), spread(two), goal, ratio(inside[0] / inside[1]))
    n_rounds = found[1][0][4]
    table.notes.append(f"{n_rounds} rounds per fit; the start is found at the client")
    return table


def _fit(chunks: Any, capacity: int) -> tuple[float, float, float, float, int]:
    """Seconds of a fit, of its products, of its points and of its start; rounds."""
    timed = TimedGathering(chunks)
    started = time.perf_counter()
    train_chunks(timed, RECIPE, C=C, tol=1e-6, n_threads=2, capacity=capacity)
    whole = time.perf_counter() - started
    points = sum(timed.seconds("evaluate")) + sum(timed.seconds("hessian"))
    products = sum(timed.seconds("product"))
    return whole, products, points, whole - products - points, len(timed.rounds)


def shuffled_block(number: int, n_rows: int, share: float) -> tuple[Any, Any, Any]:
    """A block a share of whose rows belongs to queries of the next one."""
    X, y, qid = dense_block(number, n_rows)
    moved = np.random.default_rng(number).random(n_rows) < share
    return X, y, np.where(moved, qid + 10**8, qid)


def _repair(client: Any, quick: bool) -> Table:
    """What it costs to make split queries whole."""
    n_blocks, n_rows = 8, 9_600 if quick else 120_000
    table = Table(
        f"Queries split over partitions: {n_blocks} partitions of {n_rows * ROW / 1e6:.0f} MB",
        ["rows in the wrong partition", "rows moved", "partitions, s", "beyond whole queries, s"],
    )
    base = 0.0
    for share in (0.0, 0.01, 0.5):
        task = dask.delayed(shuffled_block, pure=False)
        blocks = [task(number, n_rows, share) for number in range(n_blocks)]
        blocks = client.compute(blocks)
        _ready(blocks)
        started = time.perf_counter()
        data = partitions_of(blocks, client=client)
        spent = time.perf_counter() - started
        base = base or spent
        added = f"{spent - base:.3g}" if share else ""
        table.add(f"{share:.0%}", f"{data.repair.n_rows:,}", f"{spent:.3g}", added)
    table.notes.append("partitions: checks, summaries and moves, the blocks being on the workers")
    return table


def _ready(futures: Any) -> None:
    from distributed import wait

    wait(futures)


def _lost_worker(client: Any, quick: bool) -> Table:
    """SIGKILL in the middle of a round: how long the round then takes."""
    n_blocks, n_rows = 8, 9_600 if quick else 120_000
    table = Table(
        f"A worker killed in a round: {n_blocks} partitions of {n_rows * ROW / 1e6:.0f} MB",
        ["round", "seconds", "same bits"],
        notes=[
            "its partitions, made from nothing here, are made again; one of two workers is lost"
        ],
    )
    w, v = _vectors()
    data = on_workers(client, dense_block, n_blocks, n_rows)
    with data.opened(RECIPE) as chunks:
        before = chunks.total(tasks.curvature, w, 1.0, PRODUCT, v)
        plain = seconds(lambda: chunks.total(tasks.curvature, w, 1.0, PRODUCT, v), 5)
        table.add("whole", statistics.median(plain), True)
        victim, pid = min(client.run(os.getpid).items())
        killed: list[float] = []

        def kill() -> None:
            killed.append(time.perf_counter())
            os.kill(pid, signal.SIGKILL)

        threading.Timer(0.5 * statistics.median(plain), kill).start()
        while not killed or victim in (chunks._placement or ()):
            found = chunks.total(tasks.curvature, w, 1.0, PRODUCT, v)
        took = time.perf_counter() - killed[0]
        table.add("from the kill to the end", took, bool(np.array_equal(before, found)))
        again = seconds(lambda: chunks.total(tasks.curvature, w, 1.0, PRODUCT, v), 5)
        table.add("afterwards", statistics.median(again), True)
    return table


# ---- clusters of processes on this machine, and blocks of rows made on them ----


@contextmanager
def start_client(n_workers: int, n_threads: int = 1) -> Iterator[Client]:
    """A client with that many worker processes."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            memory_limit=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        client.run(_warm)
        yield client


def _warm() -> None:
    """Import on the worker what its first task would."""


def dense_block(number: int, n_rows: int, n_features: int = N_FEATURES) -> tuple[Any, Any, Any]:
    """Rows, labels and query ids of partition ``number``, in the shape of MSLR-WEB30K."""
    rng = np.random.default_rng([5, number])
    X = rng.random((n_rows, n_features), dtype=np.float32)
    truth = np.random.default_rng(0).standard_normal(n_features).astype(np.float32)
    noisy = X @ truth + 4.0 * rng.standard_normal(n_rows, dtype=np.float32)
    return X, _labels(noisy), _ids(number, n_rows)


def sparse_block(
    number: int, n_rows: int, n_features: int, entries: int
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The same, sparse: non-zeros per row, frequent columns first, like the words of texts."""
    rng = np.random.default_rng([6, number])
    place = (np.arange(entries) + rng.random((n_rows, entries), dtype=np.float32)) / entries
    columns = ((n_features - entries) * place**3).astype(np.int32) + np.arange(entries, dtype="i4")
    values = rng.random((n_rows, entries), dtype=np.float32)
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    truth = np.random.default_rng(0).standard_normal(n_features)
    noisy = (values * truth[columns]).sum(axis=1) + rng.standard_normal(n_rows)
    offsets = np.arange(n_rows + 1, dtype=np.int64) * entries
    rows = CsrRows(values.ravel(), columns.ravel(), offsets, n_features)
    return rows.to_user(), _labels(noisy), _ids(number, n_rows)


def _labels(noisy: Any) -> Any:
    return np.digitize(noisy, np.quantile(noisy[:20_000], LEVELS)).astype(np.float64)


def _ids(number: int, n_rows: int) -> Any:
    return number * 10**8 + np.arange(n_rows) // ROWS_OF_A_QUERY


def on_workers(client: Client, block: Any, n_blocks: int, *size: int) -> Partitions:
    """Partitions made on the workers by ``block(number, *size)``."""
    task = dask.delayed(block, pure=False)
    return partitions_of([task(number, *size) for number in range(n_blocks)], client=client)


def in_process(block: Any, n_blocks: int, *size: int, n_threads: int = 1) -> MemoryChunks:
    """The same chunks here."""
    return MemoryChunks([chunk_of(block(i, *size)) for i in range(n_blocks)], n_threads)


def chunk_of(made: Sequence[Any]) -> Chunk:
    X, y, qid = made
    return RankRecipe().chunk(Dataset.of(X, y, qid=qid))


class TimedGathering:
    """A gathering whose rounds are timed: ``rounds`` are (kind, seconds)."""

    def __init__(self, gathering: Any) -> None:
        self.gathering = gathering
        self.rounds: list[tuple[str, float]] = []

    @property
    def n_chunks(self) -> int:
        return int(self.gathering.n_chunks)

    def total(self, task: Any, *args: Any) -> Any:
        with_hessian = any(a is True for a in args)
        kind = "hessian" if with_hessian else str(task.__name__)
        if kind == "curvature":
            kind = args[2].removeprefix("hessian_")
        return self._timed(kind, lambda: self.gathering.total(task, *args))

    def each(self, task: Any, *args: Any, **own: Any) -> Any:
        return self._timed(str(task.__name__), lambda: self.gathering.each(task, *args, **own))

    def _timed(self, kind: str, call: Any) -> Any:
        started = time.perf_counter()
        found = call()
        self.rounds.append((kind, time.perf_counter() - started))
        return found

    def count(self, kind: str) -> int:
        return sum(name == kind for name, _ in self.rounds)

    def seconds(self, kind: str) -> list[float]:
        return [spent for name, spent in self.rounds if name == kind]


if __name__ == "__main__":
    main(measure, __doc__)
