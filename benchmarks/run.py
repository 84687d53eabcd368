"""Run the benchmarks and print their ratios: ``run.py [names] [--quick] [--out FILE.json]``.

Each benchmark is a separate program and runs in a separate process. Results go to
results/<machine>/results.json, with the same tables as Markdown next to it; a run of some
benchmarks replaces theirs and keeps the others. Quick runs are kept only where --out says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).resolve().parent

# Programs, in the order in which they run.
SUBJECTS = (
    "race",
    "threads",
    "giant",
    "auc",
    "path",
    "bandwidth",
    "reading",
    "convert",
    "out_of_core",
    "metrics",
    "contest",
    "memory",
    "stream",
    "cluster",
    "scale",
    "startup",
    "descent",
    "flat",
    "domination",
    "domination_scaling",
    "topics",
    "factorized",
    "factorized_scaling",
    "kernels",
    "nystroem",
    "device",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(SUBJECTS))
    parser.add_argument("--quick", action="store_true", help="small sets: checks the programs only")
    parser.add_argument("--rivals", metavar="FOLDER", help="programs that you have built, for race")
    parser.add_argument("--out", metavar="FILE.json", type=Path, help="where results are kept")
    arguments = parser.parse_args()
    if arguments.rivals:
        os.environ["LINRANK_RIVALS"] = arguments.rivals
    unknown = set(arguments.names) - set(SUBJECTS)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; know {', '.join(SUBJECTS)}")
    out = arguments.out
    if out is None and not arguments.quick:
        out = HERE / "results" / label() / "results.json"
    results = json.loads(out.read_text()) if out is not None and out.exists() else {}
    failed = []
    for name in arguments.names or SUBJECTS:
        result = measure(name, arguments.quick, None if out is None else out.parent)
        if result is None:
            failed.append(name)
            continue
        results[name] = result
        if out is not None:
            keep(out, results)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def measure(name: str, is_quick: bool, pictures: Path | None) -> dict[str, Any] | None:
    """Run one program, show what it prints, and return what it measured.

    Its pictures go to that folder.
    """
    print(f"\n## {name}\n", flush=True)
    before, start = report.environment(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.json")
        arguments = ["--quick"] if is_quick else []
        done = subprocess.run(
            [sys.executable, str(HERE / f"{name}.py"), *arguments, "--json", str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        print(done.stdout, flush=True)
        if done.returncode:
            return None
        measured = json.loads(path.read_text())
        for picture in Path(folder).glob("*.svg") if pictures is not None else ():
            pictures.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, pictures)
    return {
        "environment": before,
        "quick": is_quick,
        "seconds": time.perf_counter() - start,
        "load_average_after": os.getloadavg(),
        "text": done.stdout,
        "measured": measured,
    }


def keep(out: Path, results: dict[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    out.with_suffix(".md").write_text("\n\n".join(markdown(results)) + "\n")


def markdown(results: dict[str, Any]) -> list[str]:
    """The tables; text that is no Markdown goes into a block."""
    parts = ["# Results"]
    for name in SUBJECTS:
        if name not in results:
            continue
        result = results[name]
        e = result["environment"]
        text = result["text"].strip()
        parts += [
            f"## {name}",
            f"{e['date']}, commit {e['commit']}{' (modified)' if e['modified'] else ''}, "
            f"{e['machine']}, {e['cores']} cores, {e['instruction_set']}, Python {e['python']}, "
            f"NumPy {e['versions']['numpy']}; load average {e['load_average'][0]:.2f} before, "
            f"{result['load_average_after'][0]:.2f} after; took {result['seconds']:.0f} s"
            + (" (quick: sizes reduced)" if result["quick"] else ""),
            text if text.startswith("###") else f"```\n{text}\n```",
        ]
    return parts


def label() -> str:
    """The machine as the name of a folder."""
    words = re.sub(r"[^a-z0-9]+", "-", report.cpu().lower()).strip("-")
    return f"{words}-{len(os.sched_getaffinity(0))}-cores"


if __name__ == "__main__":
    raise SystemExit(main())
