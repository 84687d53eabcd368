"""Wall time of the whole command ``linrank train`` on MQ2008 fold 1, and what it consists of."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import problems
from report import Table, main, seconds, spread

TARGET = 0.35


def measure(quick: bool) -> list[Table]:
    table = Table(
        "linrank train on MQ2008 fold 1 (plain text, 9,630 rows), whole process",
        ["process", "seconds", "share of the command"],
        notes=[
            f"processes one after the other; load average {os.getloadavg()[0]:.2f} at the start"
        ],
    )
    with TemporaryDirectory() as folder:
        data, model = Path(folder, "train.txt"), str(Path(folder, "model.json"))
        data.write_bytes(problems.text_of(*problems.mq2008_files(1)["train"]))
        command = [sys.executable, "-m", "linrank", "train", str(data), model]
        processes = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "python -c 'import numpy'": [sys.executable, "-c", "import numpy"],
            "linrank --version": [sys.executable, "-m", "linrank", "--version"],
            "linrank train, one thread": [*command, "-j", "1", "-q"],
            "linrank train": [*command, "-q"],
        }
        times: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(5 if quick else 21):  # in turn, so that a slow moment hits all
            for name, process in processes.items():
                times[name] += seconds(lambda p=process: _call(p), 1)
        whole = statistics.median(times["linrank train"])
        for name, taken in times.items():
            table.add(name, spread(taken), f"{100 * statistics.median(taken) / whole:.0f}%")
        table.notes.append(f"target < {TARGET} s: {'met' if whole < TARGET else 'MISSED'}")
        inside = json.loads(_call([*command, "-q", "--json"]))["seconds"]
        table.notes.append(
            "inside the command: "
            + ", ".join(f"{key} {value:.3f} s" for key, value in inside.items())
        )
    return [table]


def _call(process: list[str]) -> str:
    done = subprocess.run(process, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(process)} failed: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(measure, __doc__)
