"""Measure tables and figures of the papers again: ``run.py [names] [--quick] [--list]``.

Each page goes to results/NAME.md. Real data are looked for in ``../shared/data`` next to the
repository, or where the environment variable LINRANK_DATA says.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reproduce import ROOT
from reproduce.page import RESULTS
from reproduce.paper import Paper, Script, scripts

DOCS = ROOT / "docs" / "reproduction.md"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    known = {name: (paper, script) for name, paper, script in scripts()}
    if options.list:
        _list(known)
        return 0
    unknown = set(options.names) - set(known)
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; see --list", file=sys.stderr)
        return 2
    failed = [
        name
        for name, (paper, script) in known.items()
        if _is_chosen(name, script, options) and not _run(name, paper, script, options)
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="all if none; see --list")
    parser.add_argument("--quick", action="store_true", help="small sizes: checks the scripts only")
    parser.add_argument("--timed", action="store_true", help="only those that measure time")
    parser.add_argument("--list", action="store_true", help="name the scripts and stop")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="where pages go")
    return parser


def _is_chosen(name: str, script: Script, options: argparse.Namespace) -> bool:
    if options.names and name not in options.names:
        return False
    return script.is_timed or not options.timed


def _list(known: dict[str, tuple[Paper, Script]]) -> None:
    for name, (_, script) in known.items():
        timed = ", timed" if script.is_timed else ""
        print(f"{name:22} {script.about} ({script.minutes:g} min{timed})")


def _run(name: str, paper: Paper, script: Script, options: argparse.Namespace) -> bool:
    """Measure, write and print one page; whether it went well."""
    from threadpoolctl import threadpool_limits

    import problems
    import report

    print(f"\n==> {name}", file=sys.stderr, flush=True)
    before, start = report.environment(), time.perf_counter()
    try:
        with threadpool_limits(1):  # of BLAS: one thread must mean one
            page = paper.run(script, quick=options.quick)
    except problems.Absent as absent:
        print(f"{name}: {absent}; reproduce/README.md lists the files", file=sys.stderr)
        return False
    except Exception:
        traceback.print_exc()
        return False
    origin = _origin(name, before, time.perf_counter() - start, options.quick)
    folder = options.out or (None if options.quick else RESULTS)
    if folder is not None:
        page.write(folder, name, paper.citation, origin)
    if folder == RESULTS:
        update_verdict(DOCS, name, page.verdict)
    print(page.markdown(name, paper.citation, origin), flush=True)
    return True


def update_verdict(docs: Path, name: str, verdict: str) -> None:
    """Put the verdict into the row of the documentation; the words stay as written by hand."""
    lines = docs.read_text(encoding="utf-8").splitlines()
    for k, line in enumerate(lines):
        if line.startswith(f"| `{name}` |"):
            cells = line.split(" | ")
            lines[k] = " | ".join([*cells[:2], verdict, *cells[3:]])
            if cells[2] != verdict:
                print(f"{name}: {verdict}, was {cells[2]}: see {docs}", file=sys.stderr)
    docs.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _origin(name: str, now: dict[str, Any], seconds: float, quick: bool) -> list[str]:
    command = f"again: `python reproduce/run.py {name}`"
    after = f"load average after {os.getloadavg()[0]:.2f}"
    lines = [f"{_circumstances(now, seconds)}; {after}", command]
    return ["quick run: sizes reduced, the numbers mean nothing", *lines] if quick else lines


def _circumstances(e: Any, seconds: float) -> str:
    commit = f"commit {e['commit']}{' (modified)' if e['modified'] else ''}"
    return (
        f"{e['date']}, {commit}, {e['machine']}, {e['cores']} cores, {e['instruction_set']}, "
        f"Python {e['python']}, NumPy {e['versions']['numpy']}, "
        f"scikit-learn {e['versions']['scikit-learn']}; load average {e['load_average'][0]:.2f}; "
        f"took {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
