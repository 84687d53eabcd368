"""The tables and figures of five papers, measured again by the programs of ``benchmarks/``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The benchmarks are programs that import one another by their bare names.
if str(ROOT / "benchmarks") not in sys.path:
    sys.path.append(str(ROOT / "benchmarks"))
