"""Reading tables: Parquet, Arrow and CSV into rows, against the libraries that read them.

The table has MSLR's shape: label, qid and 136 float32 features. Each reader is timed from the page
cache, by turns in one process; pyarrow, pandas and polars stop at their own table of columns,
linrank goes on to checked rows.
"""

from __future__ import annotations

import statistics
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
import report

N_FEATURES = 136
RATE = 0.5  # of pyarrow's own, at least


def make_table(n_rows: int) -> pa.Table:
    """Features of seven distinct-value patterns: counts, shares, scores, as in MSLR-WEB10K."""
    rng = np.random.default_rng(0)
    columns = {"label": rng.integers(0, 5, n_rows), "qid": np.arange(n_rows) // 120}
    for j in range(N_FEATURES):
        column = rng.normal(size=n_rows).astype(np.float32)
        columns[f"f{j}"] = np.round(4 * column) if j % 3 == 0 else column
    return pa.table(columns)


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)  # Snappy, dictionaries: the defaults
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=65_536)
    else:
        pa.csv.write_csv(table, path)
    return path


Times = dict[str, list[tuple[float, float]]]


def by_turns(readers: dict[str, Callable[[], Any]], repeat: int) -> Times:
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


def compare(
    table: report.Table, path: Path, readers: dict[str, Callable[[], Any]], repeat: int
) -> None:
    size = path.stat().st_size / 1e6
    times = by_turns({"linrank": lambda: linrank.load(path), **readers}, repeat)
    ours = statistics.median(wall for wall, _ in times["linrank"])
    for name, both in times.items():
        walls, used = ([pair[k] for pair in both] for k in (0, 1))
        middle = statistics.median(walls)
        target = RATE if name == "pyarrow" and path.suffix == ".parquet" else None
        relation = "" if name == "linrank" else report.ratio(middle / ours, target)
        rate = f"{size / middle:.0f}"
        processor = report.spread(used)
        table.add(path.name, round(size), name, report.spread(walls), processor, rate, relation)


def measure(quick: bool) -> list[report.Table]:
    n_rows, repeat = (20_000, 3) if quick else (2_700_000, 5)  # the Parquet file has 1 GB
    import pandas as pd
    import polars as pl

    result = report.Table(
        "Reading tables into rows",
        ["file", "MB", "reader", "seconds", "processor seconds", "MB/s", "linrank's rate by it"],
        notes=[f"{N_FEATURES} float32 features; the libraries stop at their own columns"],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = make_table(n_rows)
        path = write(whole, folder / "t.parquet")
        readers: dict[str, Callable[[], Any]] = {
            "pyarrow": lambda path=path: pa.parquet.read_table(path),
            "pandas": lambda path=path: pd.read_parquet(path),
            "polars": lambda path=path: pl.read_parquet(path),
        }
        compare(result, path, readers, repeat)
        path = write(whole, folder / "t.arrow")
        compare(
            result,
            path,
            {"pyarrow": lambda path=path: pa.ipc.open_file(str(path)).read_all()},
            repeat,
        )
        path = write(whole.slice(0, max(1, n_rows // 10)), folder / "t.csv")
        del whole
        readers = {
            "pyarrow": lambda path=path: pa.csv.read_csv(path),
            "pandas": lambda path=path: pd.read_csv(path),
            "polars": lambda path=path: pl.read_csv(path),
        }
        compare(result, path, readers, repeat)
    return [result]


if __name__ == "__main__":
    report.main(measure, __doc__)
