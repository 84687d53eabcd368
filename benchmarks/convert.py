"""Text to a store: MB/s by threads and by order of the rows, against reading it and copying it.

The text is the training part of the MSLR sample repeated, with new query ids each time (or,
without the real data, generated rows of the same shape); it is in the page cache. `load` reads the
same file into memory, the copy writes it again as it is, and both end on the disk as a store does:
the time until the system has it there counts. Peak memory is that of a process that converts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import problems
import report
from linrank import convert, load

LIMIT = "256MiB"
TARGET = 300.0  # MB/s on two threads

CHILD = """
import sys, threading
from linrank import convert

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

convert  # imported now
import linrank.io.store.grouping
before, peak, done = anonymous(), [0], threading.Event()
def sample():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())
thread = threading.Thread(target=sample)
thread.start()
convert(sys.argv[1], sys.argv[2], memory_limit=sys.argv[3])
done.set()
thread.join()
print(peak[0] - before)
"""


def rows() -> list[tuple[str, str, str]]:
    """(label, query, features) of the rows of the MSLR sample, or of rows like them."""
    try:
        lines = problems.text_of("mslr_sample/train.txt.xz").decode().splitlines()
        return [(label, query[4:], x) for label, query, x in (line.split(" ", 2) for line in lines)]
    except problems.Absent:
        rng = np.random.default_rng(0)
        x = np.where(rng.random((9000, 136)) < 0.5, rng.integers(0, 99, (9000, 136)), 0.0)
        x[:, ::3] = rng.lognormal(1.0, 2.0, x[:, ::3].shape)
        texts = (" ".join(f"{j}:{v:.8g}" for j, v in enumerate(row, 1)) for row in x.tolist())
        return [(f"{i * 7 % 5}", f"{i // 110}", text) for i, text in enumerate(texts)]


def write_text(path: Path, megabytes: float, shuffled: bool) -> None:
    """Repeat the rows; shuffled, the rows of a query are all over a block of about 100 MB."""
    known, n_bytes, repeat = rows(), 0, 0
    rng, held = np.random.default_rng(0), []
    with path.open("w") as file:
        while n_bytes < megabytes * 1e6:
            held += [f"{y} qid:{q}{repeat:04d} {x}\n" for y, q, x in known]
            repeat += 1
            if not shuffled or repeat % 10 == 0 or n_bytes + 1e8 > megabytes * 1e6:
                order = rng.permutation(len(held)).tolist() if shuffled else range(len(held))
                n_bytes += file.write("".join(held[i] for i in order))
                held = []


def copy(source: Path, target: Path) -> None:
    """Copy the file and force it to the disk."""
    shutil.copyfile(source, target)
    descriptor = os.open(target, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def time_calls(call: Callable[[], object], repeat: int) -> tuple[list[float], list[float]]:
    """(wall-clock seconds, processor seconds) of each call."""
    wall, processors = [], []
    for _ in range(repeat):
        begin, before = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - begin)
        processors.append(time.process_time() - before)
    return wall, processors


def peak_bytes(source: Path, target: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(source), str(target), LIMIT],
        stdout=subprocess.PIPE,
        check=True,
    )
    shutil.rmtree(target)
    return int(done.stdout)


def measure(is_quick: bool) -> list[report.Table]:
    megabytes, repeat = (30, 1) if is_quick else (600, 5)
    columns = ["what", "threads", "MB/s (median, range)", "MB/s of processor time", "note"]
    table = report.Table(f"Text to a store within {LIMIT}, about {megabytes} MB of text", columns)
    with tempfile.TemporaryDirectory() as name:
        for shuffled in (False, True):
            source, target = Path(name, f"text{shuffled:d}"), Path(name, "out")
            write_text(source, megabytes, shuffled)
            measure_file(table, source, target, "shuffled" if shuffled else "together", repeat)
            source.unlink()
    table.notes.append(
        "MB are of text. Load builds the matrix in memory and writes nothing; copies and stores "
        "are forced to the disk. Peak: anonymous memory beyond what the process had before."
    )
    return [table]


def measure_file(table: report.Table, source: Path, target: Path, order: str, repeat: int) -> None:
    size = source.stat().st_size / 1e6

    def add(what: str, threads: Any, call: Callable[[], object], note: str = "") -> None:
        wall, processors = time_calls(call, repeat)
        rates, used = [size / t for t in wall], size / float(np.median(processors))
        shown = note
        if what.startswith("convert") and threads == 2 and order == "together":
            shown = report.ratio(float(np.median(rates)) / TARGET, 1.0) + f" of {TARGET:g} MB/s"
        table.add(f"{what}, {order}", threads, report.spread(rates), used, shown)

    add("copy", 1, lambda: copy(source, target))
    target.unlink()
    for threads in (1, 2):
        add("load", threads, lambda n=threads: load(source, n_jobs=n))
    for threads in (1, 2):
        add(
            "convert",
            threads,
            lambda n=threads: convert(source, target, memory_limit=LIMIT, n_jobs=n, overwrite=True),
        )
    shutil.rmtree(target)
    table.add(f"peak, {order}", 2, "", "", f"{peak_bytes(source, target) / 1e6:.0f} MB")


if __name__ == "__main__":
    report.main(measure, __doc__)
