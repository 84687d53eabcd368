"""Peak anonymous memory of reading and training the MSLR shape from a text file.

A child process reads and trains; its RssAnon (file pages not counted) is sampled meanwhile. The
peak, interpreter and libraries included, is set against the bytes of the float32 matrix.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import problems
import shapes
from report import Table, main

TARGET = 1.35
CHILD = """
import sys
from linrank.io.load import load
from linrank.ranksvm.train import train
print("reading", flush=True)
data = load(sys.argv[1])
print("training", flush=True)
fit = train(data)
print("done", data.rows.nbytes, fit.value, fit.converged, flush=True)
"""


def measure(quick: bool) -> list[Table]:
    fraction = 0.02 if quick else 1.0
    path = write_text(fraction)
    peaks, took, last = watch([sys.executable, "-c", CHILD, str(path)])
    matrix, value, converged = last.split()[1:]
    size = float(matrix)
    table = Table(
        "Peak RssAnon while reading and training the MSLR shape from text",
        ["phase", "seconds", "peak, MB", "peak / float32 matrix"],
        notes=[
            f"{path.stat().st_size / 1e6:.0f} MB of text, matrix {size / 1e6:.0f} MB, default fit "
            f"(F = {float(value):.8g}, converged: {converged})",
            "sampled every 2 ms; the interpreter and its libraries are part of the peak",
        ],
    )
    for phase in ("starting", "reading", "training"):
        table.add(phase, took[phase], round(peaks[phase] / 1e6), f"{peaks[phase] / size:.3f}x")
    share = max(peaks.values()) / size
    verdict = "met" if share <= TARGET else "MISSED"
    table.notes.append(f"peak {share:.3f}x the matrix; target <= {TARGET}x: {verdict}")
    return [table]


def write_text(fraction: float) -> Path:
    """The set ``b`` as LETOR text, six digits per value; kept for the next run."""
    data = problems.load("b", fraction)
    path = shapes.CACHE / f"b-{fraction:g}.txt"
    marker = path.with_suffix(".rows")
    if marker.exists() and marker.read_text() == str(data.n_rows):
        return path
    pieces = np.array_split(np.arange(data.n_rows), 64)
    jobs = [(data.X[i[0] : i[-1] + 1], data.y[i], data.qid[i]) for i in pieces if len(i)]
    with ProcessPoolExecutor(2) as pool, path.open("wb") as file:
        for text in pool.map(_lines, jobs):
            file.write(text)
    marker.write_text(str(data.n_rows))
    return path


def _lines(job: tuple[np.ndarray, np.ndarray, np.ndarray]) -> bytes:
    X, y, qid = job
    form = "%d qid:%d " + " ".join(f"{j + 1}:%.6g" for j in range(X.shape[1])) + "\n"
    rows = zip(y.tolist(), qid.tolist(), X, strict=True)
    return "".join(form % (label, q, *row.tolist()) for label, q, row in rows).encode()


def watch(command: list[str]) -> tuple[dict[str, int], dict[str, float], str]:
    """Peak RssAnon in bytes and seconds of each phase that the child names; its last line."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    phase, last = ["starting"], [""]
    peaks = {"starting": 0, "reading": 0, "training": 0}
    began = {"starting": time.perf_counter()}

    def follow() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            last[0] = line
            phase[0] = line.split()[0]
            began[phase[0]] = time.perf_counter()

    follower = threading.Thread(target=follow)
    follower.start()
    while child.poll() is None:
        now = phase[0]
        if now in peaks:
            peaks[now] = max(peaks[now], anonymous_bytes(child.pid))
        time.sleep(0.002)
    follower.join()
    if child.returncode:
        raise RuntimeError(f"the child failed with status {child.returncode}")
    marks = list(began.items())
    took = {name: marks[i + 1][1] - start for i, (name, start) in enumerate(marks[:-1])}
    return peaks, took, last[0]


def anonymous_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
    return 1024 * int(kilobytes[0]) if kilobytes else 0


if __name__ == "__main__":
    main(measure, __doc__)
