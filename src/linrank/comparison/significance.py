"""Tests of the difference of two methods over the same queries, and bootstrap intervals.

A method's mean is ``R = Σ_q num_q / Σ_q den_q`` and the difference ``T = R_method - R_baseline``.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.comparison.resampling import all_exchanges, exchange_sums
from linrank.comparison.terms import Terms

__all__ = ["EQUAL", "EXACT_UP_TO", "bootstrap_p", "interval", "randomisation_p", "spread", "t_p"]

Array = NDArray[Any]
EXACT_UP_TO = 16  # queries in which two methods differ; 2^15 exchanges take a millisecond
EQUAL = 1e-9  # values that differ by less are tied
_NOTHING = 1e-12  # relative to the means: below it a spread is rounding


def interval(draws: Array, n_queries: int, confidence: float) -> tuple[float, float]:
    """Return the expanded percentile interval of resampled values; NaN with fewer than 2 queries.

    The percentile interval of n values is too narrow by ``√((n-1)/n)`` and by the difference of the
    quantiles of Student's t and the normal distribution. Taking its ends at the level
    ``Φ(√(n/(n-1))·t_{n-1}(α/2))`` instead of ``α/2`` mends both (Hesterberg, 2015).
    """
    from scipy.special import stdtrit

    draws = draws[~np.isnan(draws)]
    if n_queries < 2 or len(draws) == 0:
        return float("nan"), float("nan")
    t = float(stdtrit(n_queries - 1, (1.0 - confidence) / 2.0))
    level = NormalDist().cdf(math.sqrt(n_queries / (n_queries - 1)) * t)
    low, high = np.quantile(draws, [level, 1.0 - level])
    return float(low), float(high)


def spread(terms: Terms, metric: int, method: int, baseline: int) -> tuple[float, int]:
    """Return the standard deviation over queries behind T, and the number of queries.

    ``u_q = (b_q - R_b·e_q)/ē - (a_q - R_a·d_q)/d̄`` is the influence of query q on the difference
    (numerators a, b and denominators d, e of baseline and method; bars are means over queries). For
    plain means it is the difference of the query's values, less T. NaN with fewer than 2 queries.
    """
    judged = terms.judged(metric, method, baseline)
    n = int(np.count_nonzero(judged))
    if n < 2:
        return float("nan"), n
    influence, size = np.zeros(n), 0.0
    for which, sign in ((method, 1.0), (baseline, -1.0)):
        part, total = (column[judged] for column in terms.pair(which, metric))
        if total.sum() == 0.0:
            return float("nan"), n
        ratio = part.sum() / total.sum()
        influence += sign * (part - ratio * total) / total.mean()
        size = max(size, abs(ratio))
    deviation = float(np.sqrt(np.sum(influence**2) / (n - 1)))
    # Fixed point moves a value by up to n·2^-52 of the largest.
    rounding = size * max(_NOTHING, n * 2.0**-51)
    return (deviation if deviation > rounding else 0.0), n


def t_p(difference: float, deviation: float, n_queries: int) -> float:
    """Two-sided p of the paired t-test: ``t = T·√n/deviation`` with n - 1 degrees of freedom.

    Without any spread it is 1 if the difference is mere rounding (`EQUAL`), and 0 if every query
    differs by the same.
    """
    from scipy.special import stdtr

    if math.isnan(deviation) or math.isnan(difference):
        return float("nan")
    if deviation == 0.0:
        return 1.0 if abs(difference) <= EQUAL else 0.0
    t = difference * math.sqrt(n_queries) / deviation
    return float(2.0 * stdtr(n_queries - 1, -abs(t)))


def bootstrap_p(draws: Array, difference: float, n_queries: int) -> float:
    """``(1 + #{|T* - T| >= |T|}) / (1 + N)``: how often resampling alone moves T that far.

    NaN with fewer than 2 queries: resampling a single one moves nothing.
    """
    draws = draws[~np.isnan(draws)]
    if math.isnan(difference) or n_queries < 2 or len(draws) == 0:
        return float("nan")
    far = np.abs(draws - difference) >= abs(difference) * (1.0 - _NOTHING)
    return float((1 + np.count_nonzero(far)) / (1 + len(draws)))


def randomisation_p(
    terms: Terms,
    pairs: list[tuple[int, int, int]],
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
) -> list[float]:
    """Two-sided p of the randomisation test of each (metric, method, baseline).

    If the two methods were alike, exchanging their results on any query would change nothing: p is
    the share of all 2^n ways to exchange them whose ``|T|`` is at least that observed. Queries on
    which both are equal do not matter. With at most `EXACT_UP_TO` others all ways are taken, else
    N random ones: ``p = (1 + #)/(1 + N)``, the observed way being one of them.
    """
    result = []
    sampled: dict[int, list[Array]] = {}
    for k, pair in enumerate(pairs):
        moved, weighed = _moves(terms, *pair)
        differing = (moved != 0.0) | (weighed != 0.0)
        if np.count_nonzero(differing) > EXACT_UP_TO:
            sampled[k] = [moved, weighed] if weighed.any() else [moved]
            result.append(math.nan)
        else:
            few = all_exchanges(np.stack([moved[differing], weighed[differing]], axis=1))
            result.append(_share_as_large(_differences(terms, pair, *few.T)))
    if sampled:
        stacked = np.stack([column for k in sampled for column in sampled[k]], axis=1)
        sums = iter(exchange_sums(stacked, n_resamples, seed, n_jobs).T)
        for k, columns in sampled.items():
            # The first entry is the observed way: nothing exchanged.
            own = [np.append(0.0, next(sums)) for _ in columns]
            result[k] = _share_as_large(_differences(terms, pairs[k], *own))
    return result


def _moves(terms: Terms, metric: int, method: int, baseline: int) -> tuple[Array, Array]:
    """What exchanging query q adds to the method's sums: ``a_q - b_q`` and ``d_q - e_q``."""
    ours, theirs = terms.pair(method, metric), terms.pair(baseline, metric)
    return theirs[0] - ours[0], theirs[1] - ours[1]


def _differences(
    terms: Terms, pair: tuple[int, int, int], moved: Array, weighed: Array | float = 0.0
) -> Array:
    """T after exchanges that move numerators and denominators from the baseline to the method."""
    metric, method, baseline = pair
    (b, e), (a, d) = (
        [float(column.sum()) for column in terms.pair(which, metric)]
        for which in (method, baseline)
    )
    if d == e and not np.any(weighed):
        # One division of an exact sum: equal differences stay equal.
        return np.asarray((b - a + 2.0 * moved) / d) if d > 0.0 else np.full(moved.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((b + moved) / (e + weighed) - (a - moved) / (d - weighed))


def _share_as_large(exchanged: Array) -> float:
    """Share of the differences that are at least as large as the first, the one observed."""
    size = np.abs(exchanged)
    if np.isnan(size[0]):
        return float("nan")
    size = size[~np.isnan(size)]
    return float(np.mean(size >= size[0] * (1.0 - _NOTHING)))
