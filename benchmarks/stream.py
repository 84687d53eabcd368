"""A generated stream of 10 GB, never stored, trained on within 200 MB of memory.

A process writes LETOR text of fresh random rows into a pipe; `linrank train --stream` reads it.
Peak memory is that which the system reports for the whole process. The model is compared, on rows
that were not in the stream, with a fit in memory on the first rows of the same stream.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import linrank
from linrank.choices import PAPERS
from report import Table, main

MEMORY = 200  # MB
PROGRAM = 50  # MB of them
N_FEATURES = 46
ROWS_PER_QUERY = 40
BLOCK = 20_000  # rows
IN_MEMORY = 200_000  # rows of the fit that the stream is compared with
DIGITS = [(np.arange(10_000) // 10 ** (3 - k) % 10 + ord("0")).astype(np.uint8) for k in range(4)]

# Not ru_maxrss of getrusage: a process inherits that of the one that has started it.
CHILD = """
import sys
from linrank.cli.main import main
status = main(sys.argv[1:])
with open("/proc/self/status") as lines:
    print(next(line.split()[1] for line in lines if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(status)
"""


def block(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(features in ten-thousandths, labels, query ids) of the rows of a block."""
    rng = np.random.default_rng([7, number])
    x = (rng.random((BLOCK, N_FEATURES), dtype=np.float32) ** 2 * 10_000).astype(np.int32)
    weights = np.random.default_rng(0).normal(size=N_FEATURES)
    utility = (x / 10_000) @ weights + rng.normal(scale=1.0, size=BLOCK)
    labels = np.digitize(utility, np.quantile(utility, [0.8, 0.95]))
    ids = 10**9 + (number * BLOCK + np.arange(BLOCK)) // ROWS_PER_QUERY
    return x, labels, ids


def text(number: int) -> bytes:
    """A block as text: all lines have one length, so that digits are put where they belong."""
    x, labels, ids = block(number)
    features = "".join(f" {j}:0.0000" for j in range(1, N_FEATURES + 1))
    template = np.frombuffer(f"0 qid:0000000000{features}\n".encode(), np.uint8)
    places = np.flatnonzero(template == ord(".")) + 1
    lines = np.tile(template, (BLOCK, 1))
    lines[:, 0] += labels.astype(np.uint8)
    for k in range(4):
        lines[:, places + k] = DIGITS[k][x]
    for k in range(10):
        lines[:, 6 + k] += (ids // 10 ** (9 - k) % 10).astype(np.uint8)
    return lines.tobytes()


def write(n_bytes: int) -> None:
    """The stream on standard output; what a child process runs."""
    n_written = number = 0
    while n_written < n_bytes:
        rest = memoryview(text(number))
        number += 1
        n_written += len(rest)
        while rest:
            rest = rest[os.write(1, rest) :]


def data_of(numbers: range) -> linrank.Dataset:
    parts = [block(number) for number in numbers]
    x, labels, ids = (np.concatenate(column) for column in zip(*parts, strict=True))
    return linrank.Dataset.of((x / 10_000).astype(np.float32), labels, qid=ids)


def accuracy(coef: np.ndarray, data: linrank.Dataset) -> float:
    names = ["pairwise_accuracy"]
    return linrank.evaluate(data.y, data.X @ coef, qid=data.qid, metrics=names)[names[0]]


def train(n_bytes: int, folder: str) -> tuple[float, float, np.ndarray, dict]:
    """(seconds, peak bytes, weights, summary) of a training run on the stream."""
    model = Path(folder) / "model.json"
    generate = [sys.executable, __file__, "--write", str(n_bytes)]
    learn = [sys.executable, "-c", CHILD, "train", "-", str(model), "--method", "sgd", "--stream"]
    learn += [
        "--memory-limit",
        str(MEMORY - PROGRAM),
        "--average",
        "-q",
        "--checkpoint",
        f"{folder}/state",
    ]
    start = time.perf_counter()
    with subprocess.Popen(generate, stdout=subprocess.PIPE) as source:
        done = subprocess.run(learn, stdin=source.stdout, stderr=subprocess.PIPE, check=True)
        source.stdout.close()
    took = time.perf_counter() - start
    trained = linrank.load_model(model)
    return took, 1024.0 * int(done.stderr.split()[-1]), trained.coef, dict(trained.training)


def measure(quick: bool) -> list[Table]:
    n_bytes = 10**8 if quick else 10**10
    with tempfile.TemporaryDirectory() as folder:
        took, peak, coef, summary = train(n_bytes, folder)
    held_out = data_of(range(10**6, 10**6 + 5))  # blocks that the stream does not reach
    known = data_of(range(IN_MEMORY // BLOCK // (10 if quick else 1)))
    exact = linrank.RankSVM(**PAPERS, loss="hinge").fit(known.X, known.y, qid=known.qid)
    table = Table(
        f"{n_bytes / 1e9:g} GB of text through a pipe, trained within {MEMORY} MB",
        ["what", "figure"],
        notes=[
            "time includes the generator, which runs at the same time",
            f"46 features, {summary}",
        ],
    )
    table.add("MB/s", n_bytes / took / 1e6)
    table.add("rows", summary["n_rows"])
    table.add("rows/s", summary["n_rows"] / took)
    table.add("steps/s", summary["n_steps"] / took)
    table.add("peak memory, MB", peak / 1e6)
    table.add("test pairwise accuracy, stream", accuracy(coef, held_out))
    table.add(f"the same, exact RankSVM on {known.n_rows:,} rows", accuracy(exact.coef_, held_out))
    verdict = "met" if peak <= MEMORY * 1e6 else "MISSED"
    table.notes.append(f"target: peak <= {MEMORY} MB: {verdict}")
    return [table]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(int(sys.argv[2]))
    else:
        main(measure, __doc__)
