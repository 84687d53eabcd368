"""The tables and figures of five papers, measured again."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# They import the problems, races and tables of results of the benchmarks by their bare names.
if str(ROOT / "benchmarks") not in sys.path:
    sys.path.append(str(ROOT / "benchmarks"))
