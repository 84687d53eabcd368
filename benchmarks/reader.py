"""Reading SVMlight text: MB/s of linrank and of scikit-learn on the same file, and peak memory.

The text is LETOR-like: graded labels, qid, 46 features of which a third are zero, the others with
six decimals, and a docid comment. Both readers are timed in this process, from the page cache;
scikit-learn gets a part of the file if the file is large, and MB/s are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import linrank
from linrank.io.load import load
from report import seconds

N_FEATURES = 46
RIVAL_MB = 12  # scikit-learn reads about 10 MB/s

# Reads a file and prints the peak of its own anonymous memory, sampled every 2 ms by a thread.
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


def write_text(path: Path, megabytes: float) -> None:
    """LETOR-like rows; a block of distinct ones is repeated, with its own query ids each time."""
    rng = np.random.default_rng(0)
    values = rng.beta(0.5, 1.5, (4000, N_FEATURES))
    values[rng.random(values.shape) < 1 / 3] = 0.0
    labels = rng.integers(0, 3, len(values)).tolist()
    form = " ".join(f"{j}:%.6f" for j in range(1, N_FEATURES + 1))
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


def compare(folder: Path, megabytes: float, repeat: int) -> dict[str, Any]:
    """MB/s of both, by number of threads; ``ratio`` is of medians."""
    from sklearn import __version__ as version
    from sklearn.datasets import load_svmlight_file

    path, part = folder / "letor.txt", folder / "part.txt"
    write_text(path, megabytes)
    write_text(part, min(megabytes, RIVAL_MB))
    size, part_size = path.stat().st_size / 1e6, part.stat().st_size / 1e6
    rival = [
        part_size / t
        for t in seconds(lambda: load_svmlight_file(str(part), query_id=True), min(repeat, 3))
    ]
    threads = sorted({1, min(2, len(os.sched_getaffinity(0)))})
    ours = {
        n: [size / t for t in seconds(lambda n=n: load(path, n_jobs=n), repeat)] for n in threads
    }
    middle = statistics.median(rival)
    return {
        "text_mb": size,
        "scikit_learn_text_mb": part_size,
        "scikit_learn": version,
        "scikit_learn_mb_per_s": rival,
        "linrank_mb_per_s": {str(n): rates for n, rates in ours.items()},
        "ratio": {str(n): statistics.median(rates) / middle for n, rates in ours.items()},
    }


def memory(folder: Path, megabytes: float) -> dict[str, Any]:
    """Peak anonymous memory of a process that reads a file by its name and as a stream."""
    path = folder / "large.txt"
    write_text(path, megabytes)
    result: dict[str, Any] = {"text_mb": path.stat().st_size / 1e6}
    for way in ("file", "stream"):
        source = str(path) if way == "file" else "-"
        with path.open("rb") as file:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, source],
                stdin=file,
                stdout=subprocess.PIPE,
                check=True,
            )
        before, peak, matrix, kept = map(int, done.stdout.split())
        result[way] = {
            "before_mb": before / 1e6,
            "peak_mb": peak / 1e6,
            "matrix_mb": matrix / 1e6,
            "data_set_mb": kept / 1e6,
            "peak_over_matrix": peak / matrix,
            "peak_over_data_set": (peak - before) / kept,
        }
    return result


def describe(result: dict[str, Any]) -> str:
    rival = statistics.median(result["scikit_learn_mb_per_s"])
    lines = [
        f"LETOR text of {result['text_mb']:.0f} MB, {N_FEATURES} features",
        f"scikit-learn {result['scikit_learn']} (query_id=True): {rival:.1f} MB/s",
    ]
    for n, rates in result["linrank_mb_per_s"].items():
        lines.append(
            f"linrank, {n} thread(s): {statistics.median(rates):.0f} MB/s "
            f"({min(rates):.0f}–{max(rates):.0f}): {result['ratio'][n]:.0f}x scikit-learn"
        )
    for way in ("file", "stream"):
        m = result["memory"][way]
        lines.append(
            f"peak RssAnon of reading {result['memory']['text_mb']:.0f} MB ({way}): "
            f"{m['peak_mb']:.0f} MB, of which {m['before_mb']:.0f} MB interpreter, "
            f"= {m['peak_over_matrix']:.2f}x the {m['matrix_mb']:.0f} MB matrix; without it "
            f"{m['peak_over_data_set']:.2f}x the data set (comments and ids included)"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=float, default=250, help="size of the timed text")
    parser.add_argument("--memory-mb", type=float, default=1000, help="size of the text for memory")
    parser.add_argument("--repeat", type=int, default=7, help="runs of linrank; the median counts")
    parser.add_argument("--quick", action="store_true", help="small sizes: checks the program only")
    parser.add_argument("--json", metavar="FILE", help="write the result there as well")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.mb, arguments.memory_mb, arguments.repeat = 20, 50, 3
    with tempfile.TemporaryDirectory() as name:
        result = compare(Path(name), arguments.mb, arguments.repeat)
        result["memory"] = memory(Path(name), arguments.memory_mb)
    result["machine"] = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    result["linrank"] = linrank.__version__
    result["load_average"] = os.getloadavg()
    print(describe(result))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
