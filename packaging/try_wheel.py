"""Trains, scores, measures and reports with the linrank that is installed, as its first user would.

Run by `make wheel` and by cibuildwheel in an environment that has the wheel and its extras
`arrow` and `plot`, and no compiler.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = [
    "sample shop",
    "train shop/train.csv -o model.json --missing mean --valid shop/valid.csv",
    "predict shop/test.csv model.json -o scores.txt",
    "evaluate shop/test.csv scores.txt",
    "report shop/test.csv --train shop/train.csv --missing mean -o report.html",
]
LEAST_BYTES = {"model.json": 200, "scores.txt": 1000, "report.html": 10_000}


def main() -> None:
    # Nothing but Python: what asks for a compiler fails.
    environment = {"PATH": os.path.dirname(sys.executable), "CC": "/bin/false", "CXX": "/bin/false"}
    environment |= {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            print(f"$ linrank {command}", flush=True)
            subprocess.run(
                [sys.executable, "-m", "linrank", *command.split()],
                cwd=folder,
                env=environment,
                check=True,
            )
        for name, n_bytes in LEAST_BYTES.items():
            size = (Path(folder) / name).stat().st_size
            if size < n_bytes:
                sys.exit(f"{name} has {size} bytes, expected at least {n_bytes}")
    print("the wheel trains, predicts, evaluates and reports")


if __name__ == "__main__":
    main()
