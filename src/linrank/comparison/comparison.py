"""The result of a comparison: one cell for each method and metric, and how they came about."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

from linrank.comparison import presentation
from linrank.comparison.corrections import Correction
from linrank.metrics.conventions import Convention
from linrank.metrics.parsing import parse

__all__ = ["Cell", "Comparison", "Family", "Test", "Verdict"]

Test = Literal["randomisation", "t", "bootstrap"]
Family = Literal["metric", "table"]
Verdict = Literal["baseline", "better", "worse", "unclear"]


@dataclass(frozen=True)
class Cell:
    """One method under one metric, beside the baseline. Undefined numbers are NaN.

    Attributes
    ----------
    mean, low, high : float
        The metric, and the bootstrap interval for it.
    difference, difference_low, difference_high : float
        Mean of the method less that of the baseline, with the interval for this difference; 0 for
        the baseline itself. Negative is better where lower is better.
    p, p_corrected : float
        Chance of a difference at least as large if the methods were alike; NaN for the baseline.
    wins, ties, losses : int
        Queries on which the method is better than the baseline, equal (to 1e-9) and worse.
    effect_size : float
        The difference in standard deviations of it over queries (Cohen's d of paired values).
    n_queries : int
        Queries that take part in the mean.
    """

    mean: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    p: float
    p_corrected: float
    wins: int
    ties: int
    losses: int
    effect_size: float
    n_queries: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods compared with a baseline over the same queries.

    ``print(comparison)`` shows it with a legend; a notebook shows it as HTML.

    Attributes
    ----------
    methods, metrics : tuple of str
        In the order given.
    baseline : str
        The method that all others are compared with.
    cells : dict of (method, metric) to Cell
    n_queries : int
        Queries in all; a metric may leave some of them out.
    test : {"randomisation", "t", "bootstrap"}
    correction : {"holm", "bonferroni", "bh"} or None
    family : {"metric", "table"}
        The p-values that were corrected together.
    confidence : float
        Of the intervals; a corrected p below ``1 - confidence`` counts as a difference.
    n_resamples, seed : int
    convention : Convention
        The choices behind the metrics.
    """

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str
    cells: dict[tuple[str, str], Cell]
    n_queries: int
    test: Test
    correction: Correction | None
    family: Family
    confidence: float
    n_resamples: int
    seed: int
    convention: Convention

    def higher_is_better(self, metric: str) -> bool:
        """Whether a larger mean of the metric is the better one."""
        return parse(metric).higher_is_better

    def verdict(self, method: str, metric: str) -> Verdict:
        """Return "better" or "worse" if the corrected p is below ``1 - confidence``."""
        if method == self.baseline:
            return "baseline"
        cell = self.cells[method, metric]
        # 1 - 0.95 is 0.050000000000000044: rounding must not make p = 0.05 pass.
        if not cell.p_corrected < round(1.0 - self.confidence, 12) or cell.difference == 0.0:
            return "unclear"
        return "better" if (cell.difference > 0.0) == self.higher_is_better(metric) else "worse"

    def to_text(self, width: int | None = None) -> str:
        """Return tables for a terminal, ``width`` columns wide: all metrics, each, a legend."""
        return presentation.text(self, width)

    def to_markdown(self) -> str:
        """Return the tables of `to_text` in GitHub's Markdown."""
        return presentation.markdown(self)

    def to_html(self) -> str:
        """Return the tables of `to_text` as a ``<div class="linrank-comparison">``, all escaped."""
        return presentation.html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; None for what is undefined."""
        return {
            "baseline": self.baseline,
            "n_queries": self.n_queries,
            "test": self.test,
            "correction": self.correction,
            "family": self.family,
            "confidence": self.confidence,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "convention": self.convention.describe(),
            "metrics": {
                metric: {
                    "higher_is_better": self.higher_is_better(metric),
                    "methods": {m: self._row(m, metric) for m in self.methods},
                }
                for metric in self.metrics
            },
        }

    def _row(self, method: str, metric: str) -> dict[str, Any]:
        values = dataclasses.asdict(self.cells[method, metric])
        plain = {name: value if math.isfinite(value) else None for name, value in values.items()}
        return {**plain, "verdict": self.verdict(method, metric)}

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return (
            f"<Comparison of {', '.join(self.methods)} on {', '.join(self.metrics)}, "
            f"{self.n_queries} queries, baseline {self.baseline}>"
        )
