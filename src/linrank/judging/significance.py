"""Tests of the difference of two methods over the same queries, and bootstrap intervals.

A method's mean is ``R = Σ_q num_q / Σ_q den_q`` and the difference ``T = R_method - R_baseline``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from linrank.data import Array
from linrank.errors import check_one_of
from linrank.metrics.evaluation import Evaluation
from linrank.system.resources import map_threads, resolve


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

    def takes_part(self, metric: int, *methods: int) -> Array:
        """Whether each query takes part in the measure of at least one of the methods."""
        taking = [self.columns[:, self.denominator[m, metric]] > 0.0 for m in methods]
        return np.asarray(np.any(taking, axis=0))


def _ratio(part: Array, total: Array) -> Array:
    nothing = np.full(np.shape(part), np.nan)
    return np.asarray(np.divide(part, total, out=nothing, where=total > 0.0))


_BLOCK = 2**20  # entries of the random matrix in a block: 8 MB; a part of the result, do not change
_BOOTSTRAP, _EXCHANGE = 0, 1


def bootstrap_sums(columns: Array, n_resamples: int, seed: int, n_jobs: int | None = None) -> Array:
    """Sums of each column over n queries drawn with replacement, (n_resamples, n_columns)."""
    n = len(columns)

    def draw(rng: np.random.Generator, counts: Array) -> None:
        for row in counts:
            row[:] = np.bincount(rng.integers(n, size=n), minlength=n)

    return _blockwise(columns, n_resamples, (seed, _BOOTSTRAP), draw, n_jobs)


def exchange_sums(columns: Array, n_resamples: int, seed: int, n_jobs: int | None = None) -> Array:
    """Sums of each column over the queries of random subsets, each query in with chance ½."""
    n = len(columns)

    def draw(rng: np.random.Generator, chosen: Array) -> None:
        bits = np.frombuffer(rng.bytes(len(chosen) * ((n + 7) // 8)), dtype=np.uint8)
        chosen[:] = np.unpackbits(bits.reshape(len(chosen), -1), axis=1, count=n)

    return _blockwise(columns, n_resamples, (seed, _EXCHANGE), draw, n_jobs)


def all_exchanges(columns: Array) -> Array:
    """Sums of each column over every subset of the queries but the first, (2^(n-1), n_columns).

    Exchanging the other queries instead of these turns the sign of a difference, so that the first
    query may stay: half of the subsets have every size of a difference.
    """
    sums = np.zeros((1, columns.shape[1]))
    for row in columns[1:]:
        sums = np.concatenate([sums, sums + row])
    return sums


def _blockwise(
    columns: Array,
    n_resamples: int,
    key: tuple[int, int],
    draw: Callable[[np.random.Generator, Array], None],
    n_jobs: int | None,
) -> Array:
    """``matrix @ columns`` for the random matrix that ``draw`` fills, by blocks of its rows."""
    size = max(1, _BLOCK // max(1, len(columns)))
    result = np.empty((n_resamples, columns.shape[1]))

    def block(k: int) -> None:
        start, stop = k * size, min((k + 1) * size, n_resamples)
        matrix = np.empty((stop - start, len(columns)))
        draw(np.random.default_rng([*key, start]), matrix)
        np.matmul(matrix, columns, out=result[start:stop])

    map_threads(-(-n_resamples // size), block, resolve(n_jobs))
    return result


Correction = Literal["holm", "bonferroni", "bh"]
CORRECTIONS = get_args(Correction)


def correct_p_values(p: ArrayLike, correction: Correction | None = "holm") -> Array:
    """Return p-values corrected for being several.

    With m values in ascending order ``p_1 <= ... <= p_m``:

    - ``"bonferroni"``: ``min(1, m·p_i)``;
    - ``"holm"``: ``max_{j<=i} min(1, (m - j + 1)·p_j)``, never larger than Bonferroni's and valid
      under the same conditions (none): below α, the chance of even one false finding is below α;
    - ``"bh"`` (Benjamini and Hochberg): ``min_{j>=i} min(1, m·p_j/j)``: of what is below α, the
      expected share of false findings is below α, if the tests are independent or positively
      dependent.

    NaN (no test) stays, and is not counted in m.

    Examples
    --------
    >>> correct_p_values([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    check_one_of("correction", correction, (*CORRECTIONS, None))
    result: Array = values.copy()
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    ascending, m = values[order], len(order)
    rank = np.arange(1, m + 1)
    if correction == "bonferroni":
        result[order] = np.minimum(1.0, m * ascending)
    elif correction == "holm":
        result[order] = np.minimum(1.0, np.maximum.accumulate((m - rank + 1) * ascending))
    elif correction == "bh":
        result[order] = np.minimum(1.0, np.minimum.accumulate((m * ascending / rank)[::-1])[::-1])
    return result


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
        return math.nan, math.nan
    t = float(stdtrit(n_queries - 1, (1.0 - confidence) / 2.0))
    level = NormalDist().cdf(math.sqrt(n_queries / (n_queries - 1)) * t)
    low, high = np.quantile(draws, [level, 1.0 - level])
    return float(low), float(high)


def influence_deviation(terms: Terms, metric: int, method: int, baseline: int) -> tuple[float, int]:
    """Return the standard deviation over queries behind T, and the number of queries.

    ``u_q = (b_q - R_b·e_q)/ē - (a_q - R_a·d_q)/d̄`` is the influence of query q on the difference
    (numerators a, b and denominators d, e of baseline and method; bars are means over queries). For
    plain means it is the difference of the query's values, less T. NaN with fewer than 2 queries.
    """
    judged = terms.takes_part(metric, method, baseline)
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
        return math.nan
    if deviation == 0.0:
        return 1.0 if abs(difference) <= EQUAL else 0.0
    t = difference * math.sqrt(n_queries) / deviation
    return float(2.0 * stdtr(n_queries - 1, -abs(t)))


def randomization_p(
    terms: Terms,
    pairs: list[tuple[int, int, int]],
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
) -> list[float]:
    """Two-sided p of the randomization test of each (metric, method, baseline).

    If the two methods were alike, exchanging their results on any query would change nothing: p is
    the share of all 2^n ways to exchange them whose ``|T|`` is at least that observed. Queries on
    which both are equal do not matter. With at most `EXACT_UP_TO` others all ways are taken, else
    N random ones: ``p = (1 + #)/(1 + N)``, the observed way being one of them.
    """
    result = [math.nan] * len(pairs)
    sampled: dict[int, list[Array]] = {}
    for k, pair in enumerate(pairs):
        # What exchanging query q adds to the method's sums: a_q - b_q and d_q - e_q.
        ours, theirs = (terms.pair(which, pair[0]) for which in pair[1:])
        moved, weighed = theirs[0] - ours[0], theirs[1] - ours[1]
        differing = (moved != 0.0) | (weighed != 0.0)
        if np.count_nonzero(differing) > EXACT_UP_TO:
            sampled[k] = [moved, weighed] if weighed.any() else [moved]
        else:
            few = all_exchanges(np.stack([moved[differing], weighed[differing]], axis=1))
            result[k] = _share_as_large(_differences(terms, pair, *few.T))
    if sampled:
        stacked = np.stack([column for k in sampled for column in sampled[k]], axis=1)
        sums = iter(exchange_sums(stacked, n_resamples, seed, n_jobs).T)
        for k, columns in sampled.items():
            # The first entry is the observed way: nothing exchanged.
            own = [np.append(0.0, next(sums)) for _ in columns]
            result[k] = _share_as_large(_differences(terms, pairs[k], *own))
    return result


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
        return math.nan
    return float(np.mean(size[~np.isnan(size)] >= size[0] * (1.0 - _NOTHING)))
