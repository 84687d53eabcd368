"""Comparison of rankers over the same queries: intervals, tests, corrections, one table."""

from linrank.comparison.comparing import compare, compare_evaluations
from linrank.comparison.comparison import Cell, Comparison
from linrank.comparison.corrections import corrected

__all__ = ["Cell", "Comparison", "compare", "compare_evaluations", "corrected"]
