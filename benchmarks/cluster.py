"""Training on a cluster of processes: what a round adds, a second worker brings, a loss costs.

Real `distributed` workers, a process of one thread each, on this machine: bytes travel over the
loopback. Rows are made on the workers, in the shape of MSLR-WEB30K (136 float32 features, 120 rows
a query).
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from typing import Any

import dask
import numpy as np

from clusters import N_FEATURES, Timed, dense_block, in_process, on_workers, running
from linrank.dask.partitions import partitions_of
from linrank.parts import risk as tasks
from linrank.parts.recipes import RankRecipe
from linrank.parts.train import train_rank_chunks
from report import Table, main, ratio, seconds, spread

PARTITIONS = (10, 100, 1000)  # MB
ROW = 4 * N_FEATURES
RECIPE = RankRecipe()
C = 1e-3


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
        with running(n_workers) as client:
            for size in sizes:
                _add_overhead(overhead, client, n_workers, size)
    with running(2) as client:
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
            gathering.total(tasks.product, w, 1.0, v)  # sorts the scores, and measures the result
        for _ in range(3):  # in turn, so that a slow moment hits both
            there_times += seconds(lambda: there.total(tasks.product, w, 1.0, v), 5)
            here_times += seconds(lambda: here.total(tasks.product, w, 1.0, v), 5)
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
        with running(n_workers) as client:
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
    timed = Timed(chunks)
    started = time.perf_counter()
    train_rank_chunks(timed, RECIPE, C=C, tol=1e-6, n_threads=2, capacity=capacity)
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
    """SIGKILL in the middle of a round: what the round then takes."""
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
        before = chunks.total(tasks.product, w, 1.0, v)
        plain = seconds(lambda: chunks.total(tasks.product, w, 1.0, v), 5)
        table.add("whole", statistics.median(plain), True)
        victim, pid = min(client.run(os.getpid).items())
        killed: list[float] = []

        def kill() -> None:
            killed.append(time.perf_counter())
            os.kill(pid, signal.SIGKILL)

        threading.Timer(0.5 * statistics.median(plain), kill).start()
        while not killed or victim in (chunks._placement or ()):
            found = chunks.total(tasks.product, w, 1.0, v)
        took = time.perf_counter() - killed[0]
        table.add("from the kill to the end", took, bool(np.array_equal(before, found)))
        again = seconds(lambda: chunks.total(tasks.product, w, 1.0, v), 5)
        table.add("afterwards", statistics.median(again), True)
    return table


if __name__ == "__main__":
    main(measure, __doc__)
