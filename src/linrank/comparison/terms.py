"""The terms of several methods and measures side by side, rounded so that their sums are exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.metrics.evaluation import Evaluation

__all__ = ["Terms", "fixed_point"]

Array = NDArray[Any]


def fixed_point(values: Array, n_terms: int) -> Array:
    """Round to multiples of a power of two so large that sums of ``n_terms`` values are exact.

    With ``step = 2^⌈log2(n·max|v|)⌉ · 2^-52`` every sum of at most n values is a multiple of
    ``step`` below ``2^53`` steps, hence a float64 without rounding. Sums then depend neither on the
    order of the terms nor on who adds them (threads, BLAS), and what is equal stays equal. The
    step is at most 1.4e-11 of the largest value for 30,000 terms, and counts are not changed as
    long as n of them stay below 2^52.

    Examples
    --------
    >>> a, b, c = fixed_point(np.array([0.1, 0.2, 0.3]), 3).tolist()
    >>> a + b + c == c + b + a, 0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1
    (True, False)
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0 or n_terms == 0:
        return values + 0.0
    # No finer than the smallest normal number: below it a step would be 0.
    step = math.ldexp(1.0, max(math.frexp(largest * n_terms)[1] - 52, -1022))
    return np.asarray(np.rint(values / step) * step)


@dataclass(frozen=True, eq=False)
class Terms:
    """Numerators and denominators by query: ``mean = Σ_q num_q / Σ_q den_q`` of each cell.

    Attributes
    ----------
    columns : float64 array (n_queries, n_columns)
        Every distinct column once: measures of all methods usually share their denominators.
    numerator, denominator : int array (n_methods, n_metrics)
        The column of each.
    """

    columns: Array
    numerator: Array
    denominator: Array

    @classmethod
    def of(cls, evaluations: Sequence[Evaluation], metrics: Sequence[str]) -> Terms:
        """Collect the terms of ``metrics``; all evaluations are of the same queries, in one order.

        The methods of one metric are rounded alike, so that their differences are exact too.
        """
        distinct: dict[bytes, int] = {}
        kept: list[Array] = []
        place = np.empty((2, len(evaluations), len(metrics)), dtype=np.int64)
        for j, metric in enumerate(metrics):
            both = zip(*(e.terms(metric) for e in evaluations), strict=True)
            for side, columns in enumerate(both):
                rounded = fixed_point(np.stack(columns), evaluations[0].n_queries)
                for i, column in enumerate(rounded):
                    place[side, i, j] = distinct.setdefault(column.tobytes(), len(kept))
                    if place[side, i, j] == len(kept):
                        kept.append(column)
        return cls(np.ascontiguousarray(np.stack(kept, axis=1)), place[0], place[1])

    @property
    def n_queries(self) -> int:
        """Number of queries, those that a measure leaves out included."""
        return int(self.columns.shape[0])

    @cached_property
    def sums(self) -> Array:
        """Σ over the queries of each column."""
        return np.asarray(self.columns.sum(axis=0))

    def pair(self, method: int, metric: int) -> tuple[Array, Array]:
        """Numerators and denominators of one cell."""
        numerator = self.columns[:, self.numerator[method, metric]]
        return numerator, self.columns[:, self.denominator[method, metric]]

    def ratio(self, sums: Array, method: int, metric: int) -> Array:
        """Means of one cell from sums (..., n_columns); NaN where no query takes part."""
        part = sums[..., self.numerator[method, metric]]
        return _ratio(part, sums[..., self.denominator[method, metric]])

    def difference(self, sums: Array, method: int, metric: int, baseline: int) -> Array:
        """Mean of the method less that of the baseline, from sums (..., n_columns).

        With one denominator the numerators are subtracted first, which is exact: differences that
        are equal stay equal.
        """
        if self.denominator[method, metric] != self.denominator[baseline, metric]:
            return self.ratio(sums, method, metric) - self.ratio(sums, baseline, metric)
        ours, theirs = self.numerator[method, metric], self.numerator[baseline, metric]
        part = sums[..., ours] - sums[..., theirs]
        return _ratio(part, sums[..., self.denominator[method, metric]])

    def judged(self, metric: int, *methods: int) -> Array:
        """Whether each query takes part in the measure of at least one of the methods."""
        taking = [self.columns[:, self.denominator[m, metric]] > 0.0 for m in methods]
        return np.asarray(np.any(taking, axis=0))


def _ratio(part: Array, total: Array) -> Array:
    ratio = np.full(np.shape(part), np.nan)
    np.divide(part, total, out=ratio, where=total > 0.0)
    return ratio
