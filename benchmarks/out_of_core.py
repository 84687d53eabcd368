"""Training on a store four times the memory it may use, against the rate at which the disk reads.

A store of the shape of MSLR-WEB30K (136 float32 features, about 120 rows per query), written here
with made-up rows, is trained in a process whose address space is limited by the system
(RLIMIT_AS). Before and after, the same file is read from end to end past the system's cache
(O_DIRECT) in calls of 1, 8 and 64 MiB, the fastest of which is "the disk" below; passes read past
the cache too. Rates are those of the passes that read: Hessian products, and points with their
gradients.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from linrank.choices import PAPERS
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.io.store.store import Store
from linrank.io.store.writer import StoreWriter
from linrank.parts.passes import Passes
from report import Table, main

N_FEATURES, ROWS_OF_A_QUERY, BLOCK = 136, 120, 1_000
LIMIT = 1_500_000_000
WHOLE, QUICK = 6_000_000_000, 800_000_000  # bytes of features


def write_store(path: str, n_bytes: int) -> Store:
    """Rows with correlated features of different scales and labels that depend on ten of them."""
    rng = np.random.default_rng(0)
    n_blocks = max(1, n_bytes // (4 * N_FEATURES * ROWS_OF_A_QUERY * BLOCK))
    truth = np.zeros(N_FEATURES, dtype=np.float32)
    truth[:10] = rng.normal(size=10)
    n = BLOCK * ROWS_OF_A_QUERY
    with StoreWriter(path) as writer:
        for block in range(n_blocks):
            X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
            X[:, 10:60] += X[:, :50] * 0.5
            noisy = X @ truth + 3.0 * rng.standard_normal(n, dtype=np.float32)
            y = np.digitize(noisy, [2.0, 4.0, 6.0, 8.0]).astype(np.float64)
            qid = block * BLOCK + np.repeat(np.arange(BLOCK), ROWS_OF_A_QUERY)
            writer.append(Dataset(DenseRows(X), y, qid))
        return writer.finish()


def disk_rate(path: str) -> float:
    """Bytes per second of a sequential read of a file past the cache, in calls of the best size."""
    return max(_rate(path, size << 20) for size in (1, 8, 64))


def _rate(path: str, call: int) -> float:
    size, buffer = os.path.getsize(path), memoryview(_private(call))
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        os.preadv(file, [buffer], 0)  # the pages of the buffer are taken now
        started, done = time.perf_counter(), 0
        while done < size - size % 4096:
            done += os.preadv(file, [buffer], done) or size
        return size / (time.perf_counter() - started)
    finally:
        os.close(file)


def _private(n_bytes: int) -> mmap.mmap:
    """Aligned memory in large pages, if there are any: shared or small ones halve the rate."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, n_bytes, flags=flags)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def train(path: str, limit: int) -> dict[str, Any]:
    """In this process: a fit that keeps half of the store at most, its passes timed."""
    import linrank

    passes: list[tuple[str, int, float]] = []
    total = Passes.total

    def timed(self: Passes, task: Any, *args: Any) -> Any:
        before, started = self.n_read, time.perf_counter()
        found = total(self, task, *args)
        passes.append((task.__name__, self.n_read - before, time.perf_counter() - started))
        return found

    Passes.total = timed  # type: ignore[method-assign]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    started = time.perf_counter()
    store = Store(path)
    allowed = min(int(0.8 * limit), store.nbytes // 2 + 350_000_000)
    ranker = linrank.RankSVM(**{**PAPERS, "C": 1e-3}, memory_limit=allowed).fit(store)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": time.perf_counter() - started,
        "passes": passes,
        "peak": peak,
        "n_iter": ranker.n_iter_,
        "gap": ranker.duality_gap_ / ranker.objective_,
        "coef": ranker.coef_.tolist(),
    }


def in_process(path: str, limit: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--train", path, str(limit)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def measure(quick: bool) -> list[Table]:
    n_bytes = QUICK if quick else WHOLE
    folder = tempfile.mkdtemp(prefix="linrank-out-of-core-", dir=os.environ.get("LINRANK_SCRATCH"))
    try:
        path = str(Path(folder) / "store")
        store = write_store(path, n_bytes)
        features = str(Path(path) / "values.bin")
        os.sync()
        rates = [disk_rate(features)]
        limit = LIMIT
        found = in_process(path, limit)
        rates.append(disk_rate(features))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [_table(store, rates, found, limit)]


def _table(store: Store, rates: list[float], found: dict[str, Any], limit: int) -> Table:
    table = Table(
        f"{store.n_rows:,} rows x {store.n_features} float32, {store.nbytes / 1e9:.1f} GB in "
        f"{store.n_chunks} chunks, address space limited to {limit / 1e9:.1f} GB",
        ["what", "number", "GB/s", "share of the disk"],
    )
    disk = float(np.median(rates))
    table.add("disk, sequential, past the cache", str(len(rates)), f"{disk / 1e9:.2f}", "1")
    for name in ("curvature", "evaluate"):
        some = [(n, s) for task, n, s in found["passes"] if task == name and n > 0]
        if some:
            rate = sum(n for n, _ in some) / sum(s for _, s in some)
            row = (f"passes: {name}", str(len(some)), f"{rate / 1e9:.2f}", f"{rate / disk:.2f}")
            table.add(*row)
    every = [(n, s) for _, n, s in found["passes"] if n > 0]
    rate = sum(n for n, _ in every) / sum(s for _, s in every)
    table.add("all of them", str(len(every)), f"{rate / 1e9:.2f}", f"{rate / disk:.2f}")
    table.notes += [
        f"fit: {found['seconds']:.1f} s, {found['n_iter']} Newton steps, gap {found['gap']:.1e}·F; "
        f"peak of resident memory {found['peak'] / 1e9:.2f} GB",
        f"disk before and after: {', '.join(f'{rate / 1e9:.2f}' for rate in rates)} GB/s",
    ]
    return table


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--train":
        print(json.dumps(train(sys.argv[2], int(sys.argv[3]))))
    else:
        main(measure, __doc__)
