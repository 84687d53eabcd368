"""Differences of two methods over the same queries, judged as ``linrank.compare`` judges them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from linrank.judging import significance
from linrank.judging.significance import Terms, bootstrap_sums, fixed_point

Array = NDArray[np.float64]

SEED = 2014
CONFIDENCE = 0.95
N_RESAMPLES, N_FLIPS = 10_000, 100_000


def interval(difference: Array) -> tuple[float, float]:
    """Bootstrap interval, 95%, of the mean."""
    terms = _terms(difference)
    draws = terms.difference(bootstrap_sums(terms.columns, N_RESAMPLES, SEED), 0, 0, 1)
    return significance.interval(draws, len(difference), CONFIDENCE)


def sign_flip(difference: Array) -> float:
    """Share of sign patterns whose mean is at least as far from 0, the one at hand among them."""
    return significance.randomization_p(_terms(difference), [(0, 0, 1)], N_FLIPS, SEED)[0]


def t_test(difference: Array) -> float:
    """Two-sided p of the paired t-test; 1 where no query differs."""
    return significance.t_p(
        float(difference.mean()), *significance.influence_deviation(_terms(difference), 0, 0, 1)
    )


def _terms(difference: Array) -> Terms:
    """The differences as a method, against a baseline that has 0 for every query."""
    n = len(difference)
    columns = (fixed_point(difference, n), np.zeros(n), np.ones(n))
    return Terms(np.stack(columns, axis=1), np.array([[0], [1]]), np.array([[2], [2]]))
