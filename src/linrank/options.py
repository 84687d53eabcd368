"""The names that the options of training take, the default of each first.

Apart from all else, so that the command line can list them without loading NumPy.
"""

from __future__ import annotations

__all__ = ["LOSSES", "PAIRS", "PAIR_WEIGHTINGS", "SOLVERS"]

LOSSES = ("squared_hinge", "hinge")
PAIRS = ("all", "adjacent")
PAIR_WEIGHTINGS = ("uniform", "grade_diff", "gain_diff")
SOLVERS = ("newton", "bundle", "tron")
