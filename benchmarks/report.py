"""What every benchmark prints and keeps: tables, the machine, the versions."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from linrank.system import tables as layout

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Table:
    """Rows of cells (numbers or text) under a title; notes say what the figures mean.

    Pictures are Matplotlib figures by the name of their file, kept next to the results.
    """

    title: str
    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pictures: dict[str, Any] = field(default_factory=dict)

    def add(self, *cells: Any) -> None:
        cells = tuple(c.item() if isinstance(c, np.generic) else c for c in cells)
        self.rows.append(list(cells))
        print("  " + " · ".join(_text(cell) for cell in cells), file=sys.stderr, flush=True)

    def markdown(self) -> str:
        columns = [layout.Column(heading, "left") for heading in self.columns]
        laid_out = layout.Table(columns, self.cells(), notes=self.notes).to_markdown()
        shown = [f"\n![{name}]({name}.svg)" for name in self.pictures]
        return "\n".join([f"### {self.title}", "", laid_out, *shown])

    def cells(self) -> list[list[str]]:
        """The rows as text."""
        return [[_text(cell) for cell in row] for row in self.rows]

    def kept(self) -> dict[str, Any]:
        """What goes into the file of results."""
        names = ("title", "columns", "rows", "notes")
        return {**{name: getattr(self, name) for name in names}, "pictures": list(self.pictures)}


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "NO"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def ratio(times: float, target: float | None = None) -> str:
    """``"23x (>= 20x: met)"``."""
    shown = f"{times:.3g}x"
    if target is None:
        return shown
    return f"{shown} (>= {target:g}x: {'met' if times >= target else 'MISSED'})"


def spread(values: Sequence[float], unit: float = 1.0) -> str:
    """``"median (lowest–highest)"`` in units of ``unit``."""
    low, high = min(values) / unit, max(values) / unit
    return f"{statistics.median(values) / unit:.3g} ({low:.3g}–{high:.3g})"


def seconds(
    call: Callable[[], object], repeat: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Times of ``repeat`` calls, on the wall by default."""
    times = []
    for _ in range(repeat):
        start = clock()
        call()
        times.append(clock() - start)
    return times


def environment() -> dict[str, Any]:
    """Machine, versions, commit and load: without them a figure means nothing."""
    from linrank import _core

    names = ("linrank", "numpy", "scipy", "scikit-learn", "scikit-survival")
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_set": _core.instruction_set(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in names},
        "commit": _git("rev-parse", "--short", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "load_average": os.getloadavg(),
    }


def cpu() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _version(name: str) -> str | None:
    if name == "linrank":  # also where it runs from the source tree
        import linrank

        return linrank.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def main(measure: Callable[[bool], list[Table]], about: str | None) -> None:
    """The command line of one benchmark: ``[--quick] [--json FILE]``."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sets: checks the program only")
    parser.add_argument(
        "--json", metavar="FILE", help="write the tables there as well, pictures next to them"
    )
    arguments = parser.parse_args()
    before, start = environment(), time.perf_counter()
    with threadpool_limits(1):  # of BLAS: one thread must mean one, and two threads are ours
        tables = measure(arguments.quick)
    print("\n\n".join(table.markdown() for table in tables))
    if arguments.json:
        kept = {
            "about": (about or "").splitlines()[0],
            "quick": arguments.quick,
            "seconds": time.perf_counter() - start,
            "environment": {**before, "load_average_after": os.getloadavg()},
            "tables": [table.kept() for table in tables],
        }
        for table in tables:
            for name, figure in table.pictures.items():
                figure.savefig(
                    Path(arguments.json).with_name(f"{name}.svg"), metadata={"Date": None}
                )
        Path(arguments.json).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
