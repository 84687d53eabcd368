"""Reading: text against scikit-learn, Parquet, Arrow and CSV against the libraries that read them.

All from the page cache, in turn in one process. Memory that a virtual machine has never touched is
slow to get, whoever asks: warm it before you measure, as `warm_memory` does. Of tables, pyarrow,
pandas and polars stop at their own columns; linrank goes on to checked rows.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import linrank
from report import Table, main, ratio, spread

TEXT_FEATURES, TABLE_FEATURES = 46, 136
TEXT_RATE = 60.0  # times scikit-learn's, on two threads
PARQUET_RATE = 0.85  # of pyarrow's own
RIVAL_MB = 12  # of text; scikit-learn reads about 10 MB/s

# Reads a file and prints the peak of its anonymous memory, sampled every 2 ms by a thread.
CHILD = """
import sys, threading, time
from linrank.io.load import load

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024

peak, done = [0], threading.Event()
def sample():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

before = anonymous()
thread = threading.Thread(target=sample)
thread.start()
data = load(sys.argv[1] if sys.argv[1] != "-" else sys.stdin.buffer)
done.set()
thread.join()
comments = data.comments.text.nbytes + data.comments.offsets.nbytes
kept = data.rows.nbytes + data.labels.nbytes + data.qid.nbytes + comments
print(before, peak[0], data.rows.nbytes, kept)
"""


def measure(quick: bool) -> list[Table]:
    warm_memory((100 if quick else 3_000) << 20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            text(folder, 20 if quick else 250, 3 if quick else 7),
            memory(folder, 50 if quick else 1_000),
            tables(folder, *((20_000, 3) if quick else (2_700_000, 5))),  # Parquet: 1 GB
        ]


def warm_memory(n_bytes: int) -> None:
    """Let the system have pages at hand."""
    np.empty(n_bytes, np.uint8).fill(1)


Reader = Callable[[], Any]
Times = dict[str, list[tuple[float, float]]]


def by_turns(readers: dict[str, Reader], repeat: int) -> Times:
    """(seconds, processor seconds) of each; in turns, so that a slow moment hits all."""
    times: Times = {name: [] for name in readers}
    for turn in range(repeat + 1):
        for name, read in readers.items():
            begin, used = time.perf_counter(), time.process_time()
            kept = read()
            if turn:  # the first fills the page cache
                times[name].append((time.perf_counter() - begin, time.process_time() - used))
            del kept
    return times


# ---- text -------------------------------------------------------------------


def write_text(path: Path, megabytes: float) -> None:
    """LETOR-like rows; a block of distinct ones is repeated, with its own query ids each time."""
    rng = np.random.default_rng(0)
    values = rng.beta(0.5, 1.5, (4000, TEXT_FEATURES))
    values[rng.random(values.shape) < 1 / 3] = 0.0
    labels = rng.integers(0, 3, len(values)).tolist()
    form = " ".join(f"{j}:%.6f" for j in range(1, TEXT_FEATURES + 1))
    rows = [form % tuple(row) for row in values.tolist()]
    n_bytes = n_blocks = 0
    with path.open("wb") as file:
        while n_bytes < megabytes * 1e6:
            lines = [
                f"{label} qid:{n_blocks * 200 + i // 20} {row} #docid = GX{i:03}-{n_blocks:07}\n"
                for i, (label, row) in enumerate(zip(labels, rows, strict=True))
            ]
            n_bytes += file.write("".join(lines).encode())
            n_blocks += 1


def text(folder: Path, megabytes: float, repeat: int) -> Table:
    """LETOR-like rows: graded labels, qid, features with six decimals, a docid comment."""
    from sklearn.datasets import load_svmlight_file

    path, part = folder / "letor.txt", folder / "part.txt"
    write_text(path, megabytes)
    write_text(part, RIVAL_MB)
    size, part_size = path.stat().st_size / 1e6, part.stat().st_size / 1e6
    table = Table(
        f"SVMlight text of {size:.0f} MB, {TEXT_FEATURES} features: MB/s",
        ["reader", "threads", "MB/s", "by scikit-learn's"],
        notes=[f"scikit-learn (query_id=True) gets {part_size:.0f} MB of it"],
    )
    rivals: dict[str, Reader] = {
        "scikit-learn": lambda: load_svmlight_file(str(part), query_id=True)
    }
    theirs = [part_size / wall for wall, _ in by_turns(rivals, 3)["scikit-learn"]]
    table.add("scikit-learn", 1, spread(theirs), "1x")
    threads = sorted({1, min(2, len(os.sched_getaffinity(0)))})
    ours = by_turns({str(n): lambda n=n: linrank.load(path, n_jobs=n) for n in threads}, repeat)
    for n, taken in ours.items():
        rates = [size / wall for wall, _ in taken]
        target = TEXT_RATE if n == "2" else None
        by = statistics.median(rates) / statistics.median(theirs)
        table.add("linrank", n, spread(rates), ratio(by, target))
    return table


def memory(folder: Path, megabytes: float) -> Table:
    """Peak anonymous memory of a process that reads a file by its name and as a stream."""
    path = folder / "large.txt"
    write_text(path, megabytes)
    table = Table(
        f"Peak memory of reading {path.stat().st_size / 1e6:.0f} MB of text (RssAnon)",
        ["source", "interpreter, MB", "peak, MB", "peak / matrix", "without it / data set"],
        notes=["the data set has comments and ids in addition to the matrix"],
    )
    for way in ("file", "stream"):
        command = [sys.executable, "-c", CHILD, str(path) if way == "file" else "-"]
        with path.open("rb") as file:
            done = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True)
        before, peak, matrix, kept = map(int, done.stdout.split())
        shares = (f"{peak / matrix:.2f}x", f"{(peak - before) / kept:.2f}x")
        table.add(way, round(before / 1e6), round(peak / 1e6), *shares)
    path.unlink()
    return table


# ---- tables -----------------------------------------------------------------


def make_table(n_rows: int) -> pa.Table:
    """Label, qid and float32 features, a third of them counts, in the shape of MSLR."""
    rng = np.random.default_rng(0)
    columns = {"label": rng.integers(0, 5, n_rows), "qid": np.arange(n_rows) // 120}
    for j in range(TABLE_FEATURES):
        column = rng.normal(size=n_rows).astype(np.float32)
        columns[f"f{j}"] = np.round(4 * column) if j % 3 == 0 else column
    return pa.table(columns)


def write_table(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)  # Snappy, dictionaries: the defaults
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=65_536)
    else:
        pa.csv.write_csv(table, path)
    return path


# Reads a small table, so that all is imported and threads run, then the one that counts.
TABLE_CHILD = """
import sys, time
way, small, path = sys.argv[1:]
if way == "linrank":
    from linrank import load as read
elif way == "pandas":
    import pandas
    read = getattr(pandas, "read_parquet" if path.endswith("parquet") else "read_csv")
elif way == "polars":
    import polars
    read = getattr(polars, "read_parquet" if path.endswith("parquet") else "read_csv")
elif path.endswith("parquet"):
    from pyarrow.parquet import read_table as read
elif path.endswith("csv"):
    from pyarrow.csv import read_csv as read
else:
    import pyarrow
    read = lambda name: pyarrow.ipc.open_file(name).read_all()
read(small)
begin, used = time.perf_counter(), time.process_time()
kept = read(path)
print(time.perf_counter() - begin, time.process_time() - used)
"""
RIVALS = {
    ".parquet": ("pyarrow", "pandas", "polars"),
    ".arrow": ("pyarrow",),
    ".csv": ("pyarrow", "pandas", "polars"),
}


def tables(folder: Path, n_rows: int, repeat: int) -> Table:
    """Each read runs in a separate process, so that none reuses memory of the previous one."""
    table = Table(
        f"Tables of {n_rows:,} rows x {TABLE_FEATURES} float32 features into rows",
        ["file", "MB", "reader", "seconds", "processor seconds", "MB/s", "linrank's rate by it"],
        notes=["each read in a separate process, in turn, after one of a small table"],
    )
    whole, small = make_table(n_rows), make_table(1_000)
    for ending, rivals in RIVALS.items():
        part = whole.slice(0, max(1, n_rows // 10)) if ending == ".csv" else whole
        path = write_table(part, folder / f"t{ending}")
        add_file(table, path, write_table(small, folder / f"small{ending}"), rivals, repeat)
        path.unlink()
    return table


def add_file(table: Table, path: Path, small: Path, rivals: tuple[str, ...], repeat: int) -> None:
    size = path.stat().st_size / 1e6
    times: Times = {name: [] for name in ("linrank", *rivals)}
    for turn in range(repeat + 1):
        for name, taken in times.items():
            command = [sys.executable, "-c", TABLE_CHILD, name, str(small), str(path)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            wall, used = map(float, done.stdout.split())
            taken += [(wall, used)] if turn else []  # the first fills the page cache
    ours = statistics.median(wall for wall, _ in times["linrank"])
    for name, both in times.items():
        walls, used = ([pair[k] for pair in both] for k in (0, 1))
        middle = statistics.median(walls)
        target = PARQUET_RATE if name == "pyarrow" and path.suffix == ".parquet" else None
        relation = "" if name == "linrank" else ratio(middle / ours, target)
        rate = f"{size / middle:.0f}"
        table.add(path.name, round(size), name, spread(walls), spread(used), rate, relation)


if __name__ == "__main__":
    main(measure, __doc__)
