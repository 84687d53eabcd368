"""The statistics behind a comparison, each against its definition or another library."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from linrank.judging.significance import (
    EXACT_UP_TO,
    Terms,
    all_exchanges,
    bootstrap_sums,
    correct_p_values,
    exchange_sums,
    fixed_point,
    influence_deviation,
    interval,
    randomization_p,
    t_p,
)

VALUES = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


def terms_of(baseline, method, weights=None, other_weights=None) -> Terms:
    """One metric of two methods; weights are the denominators, 1 if not given."""
    weights = np.ones(len(baseline)) if weights is None else weights
    other_weights = weights if other_weights is None else other_weights
    columns = np.stack([baseline, method, weights, other_weights], axis=1).astype(float)
    shared = weights is other_weights
    return Terms(columns, np.array([[0], [1]]), np.array([[2], [2 if shared else 3]]))


def some(seed: int, n: int, halves: bool = False):
    """Two methods' values; with halves from a coarse grid, so that sums tie."""
    rng = np.random.default_rng(seed)
    both = rng.integers(0, 5, (2, n)) / 4 if halves else fixed_point(rng.random((2, n)), n)
    return both[0], both[1]


@given(VALUES, st.integers(0, 2**32 - 1))
def test_fixed_point_sums_are_exact_in_any_order(values, seed):
    rounded = fixed_point(values, len(values))
    exact = math.fsum(rounded)
    shuffled = np.random.default_rng(seed).permutation(rounded)
    assert sum(shuffled.tolist()) == np.sum(shuffled) == exact
    step = max(np.max(np.abs(values)) * len(values) * 2.0**-51, 2.0**-1022)
    assert np.max(np.abs(rounded - values)) <= step


def test_bootstrap_equals_a_plain_loop():
    columns = fixed_point(np.random.default_rng(3).random((50, 4)), 50)
    rng = np.random.default_rng([7, 0, 0])
    plain = [columns[rng.integers(50, size=50)].sum(axis=0) for _ in range(20)]
    assert_array_equal(bootstrap_sums(columns, 20, seed=7), plain)


def test_exchanges_are_random_subsets():
    sums = exchange_sums(np.eye(30), 4000, seed=1)
    assert set(np.unique(sums)) == {0.0, 1.0}
    assert_allclose(sums.mean(axis=0), 0.5, atol=4 * 0.5 / math.sqrt(4000))
    assert np.max(np.abs(np.corrcoef(sums.T) - np.eye(30))) < 5 / math.sqrt(4000)


def test_all_exchanges_are_all_subsets_of_the_others():
    columns = np.diag([1.0, 2.0, 4.0, 8.0])
    assert sorted(all_exchanges(columns).sum(axis=1)) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]


@pytest.mark.parametrize("function", [bootstrap_sums, exchange_sums])
def test_sums_are_the_same_bits_on_any_number_of_threads(function):
    columns = fixed_point(np.random.default_rng(0).random((100_000, 3)), 100_000)
    one = function(columns, 33, seed=5, n_jobs=1)
    assert_array_equal(function(columns, 33, seed=5, n_jobs=4), one)
    assert_array_equal(function(columns[:, [1]], 33, seed=5, n_jobs=2), one[:, [1]])
    assert np.any(function(columns, 33, seed=6) != one)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("n", [2, 3, 7, 10])
def test_randomization_with_few_queries_equals_scipy(n, halves):
    a, b = some(n, n, halves)
    mine = randomization_p(terms_of(a, b), [(0, 1, 0)], 10, 0)[0]
    truth = stats.permutation_test(
        (b - a,), lambda d, axis: np.mean(d, axis=axis), permutation_type="samples",
        n_resamples=np.inf, vectorized=True,
    )  # fmt: skip
    assert_allclose(mine, truth.pvalue, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_randomization_of_ratios_equals_all_exchanges(seed):
    """Denominators of their own, which move with the query: pooled pairs with ties skipped."""
    rng = np.random.default_rng(seed)
    n = 8
    d, e = rng.integers(1, 30, (2, n)).astype(float)
    a, b = np.floor(d * rng.random(n)), np.floor(e * rng.random(n))
    truth, observed = 0, abs(b.sum() / e.sum() - a.sum() / d.sum())
    for flips in itertools.product([False, True], repeat=n):
        b2, e2 = np.where(flips, a, b).sum(), np.where(flips, d, e).sum()
        a2, d2 = np.where(flips, b, a).sum(), np.where(flips, e, d).sum()
        truth += abs(b2 / e2 - a2 / d2) >= observed - 1e-12
    mine = randomization_p(terms_of(a, b, d, e), [(0, 1, 0)], 10, 0)[0]
    assert mine == truth / 2**n


def test_random_exchanges_come_near_all_of_them():
    n = EXACT_UP_TO + 1
    a, b = some(4, n, halves=True)
    b = np.where(a == b, b + 0.25, b)
    mine = randomization_p(terms_of(a, b), [(0, 1, 0)], 20_000, 0)[0]
    every = np.abs((b - a).sum() + 2 * all_exchanges((a - b)[:, None])[:, 0])
    truth = np.mean(every >= abs((b - a).sum()))
    assert 0.05 < truth < 0.95
    assert abs(mine - truth) < 4 * math.sqrt(truth * (1 - truth) / 20_000)


def test_the_p_of_random_exchanges_counts_the_observed_one():
    """100 queries that all gain: no exchange comes near, and p is 1/(1 + N), never 0."""
    p = randomization_p(terms_of(np.zeros(100), np.ones(100)), [(0, 1, 0)], 99, 0)
    assert p == [0.01]


def test_queries_on_which_both_are_equal_do_not_matter():
    a, b = some(1, 9)
    padded = terms_of(np.append(a, np.full(500, 0.25)), np.append(b, np.full(500, 0.25)))
    assert randomization_p(padded, [(0, 1, 0)], 10, 0) == randomization_p(
        terms_of(a, b), [(0, 1, 0)], 10, 0
    )


@pytest.mark.parametrize("n", [2, 5, 100])
def test_t_equals_scipy(n):
    a, b = some(n, n)
    mine = t_p(float(np.mean(b) - np.mean(a)), *influence_deviation(terms_of(a, b), 0, 1, 0))
    assert_allclose(mine, stats.ttest_rel(b, a).pvalue, rtol=1e-9)


def test_spread_is_that_of_the_influence_of_queries():
    """u_q/n is the derivative of T by the weight of query q; here by finite differences."""
    rng = np.random.default_rng(0)
    d, e = rng.integers(1, 30, (2, 12)).astype(float)
    a, b = d * rng.random(12), e * rng.random(12)

    def difference(w):
        return (w @ b) / (w @ e) - (w @ a) / (w @ d)

    one, step = np.ones(12), 1e-6
    u = [
        12 * (difference(one + step * row) - difference(one - step * row)) / (2 * step)
        for row in np.eye(12)
    ]
    deviation, n = influence_deviation(terms_of(a, b, d, e), 0, 1, 0)
    assert_allclose(deviation, np.sqrt(np.sum(np.square(u)) / 11), rtol=1e-6)
    assert n == 12


@pytest.mark.parametrize(
    ("difference", "deviation", "n", "p"),
    [(0.0, 0.0, 5, 1.0), (0.1, 0.0, 5, 0.0), (0.1, math.nan, 1, math.nan)],
)
def test_t_without_spread(difference, deviation, n, p):
    assert_array_equal(t_p(difference, deviation, n), p)


def test_interval_is_wider_for_few_queries():
    """For normal draws the ends are those of Student's interval: ±t·√(n/(n-1)) deviations."""
    draws = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    low, high = interval(draws, 5, 0.9)
    assert_allclose(high, stats.t.ppf(0.95, 4) * math.sqrt(5 / 4), rtol=1e-3)
    assert_allclose(low, -high, rtol=1e-9)


def test_interval_needs_two_queries_and_skips_undefined_draws():
    assert all(math.isnan(end) for end in interval(np.zeros(10), 1, 0.95))
    assert all(math.isnan(end) for end in interval(np.full(10, np.nan), 5, 0.95))
    assert interval(np.array([1.0, np.nan, 1.0]), 5, 0.95) == (1.0, 1.0)


@pytest.mark.parametrize("n", [10, 60])
def test_intervals_cover_the_truth_as_often_as_they_say(n):
    """Of 300 simulated sets, between 91 and 98.5 % (three standard errors) hold the true mean."""
    rng = np.random.default_rng(n)
    hits = 0
    for seed in range(300):
        # Many zeros and a skewed rest, as measures by query are.
        values = np.where(rng.random(n) < 0.35, 0.0, rng.beta(0.8, 0.6, n))
        draws = bootstrap_sums(values[:, None], 400, seed, n_jobs=1)[:, 0] / n
        low, high = interval(draws, n, 0.95)
        hits += low <= 0.65 * 0.8 / 1.4 <= high
    assert 0.91 <= hits / 300 <= 0.985


def test_p_values_are_uniform_where_methods_are_alike():
    rng = np.random.default_rng(5)
    both = fixed_point(rng.random((400, 2, 25)), 25)
    p = np.array([randomization_p(terms_of(a, b), [(0, 1, 0)], 400, 0, 1)[0] for a, b in both])
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert np.mean(p <= 0.05) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ("bonferroni", [0.04, 0.16, 0.12, 1.0]),
        ("holm", [0.04, 0.09, 0.09, 0.5]),
        ("bh", [0.04, 0.16 / 3, 0.16 / 3, 0.5]),
        (None, [0.01, 0.04, 0.03, 0.5]),
    ],
)
def test_corrections_by_hand(correction, expected):
    assert_allclose(correct_p_values([0.01, 0.04, 0.03, 0.5], correction), expected, rtol=1e-12)
    with_nan = correct_p_values([0.01, np.nan, 0.04, 0.03, 0.5], correction)
    assert_allclose(with_nan[[0, 2, 3, 4]], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="be 'holm', 'bonferroni', 'bh' or None, got 'sidak'"):
        correct_p_values([0.1], "sidak")


P_VALUES = arrays(np.float64, st.integers(1, 20), elements=st.floats(0, 1))


@given(P_VALUES)
def test_bh_equals_scipy(p):
    assert_allclose(correct_p_values(p, "bh"), stats.false_discovery_control(p), rtol=1e-12)


@given(P_VALUES)
def test_holm_lies_between_none_and_bonferroni_and_keeps_the_order(p):
    holm = correct_p_values(p, "holm")
    assert np.all(p <= holm)
    assert np.all(holm <= correct_p_values(p, "bonferroni"))
    assert np.all(np.diff(holm[np.argsort(p, kind="stable")]) >= 0)
    assert_allclose(np.min(holm), min(1.0, len(p) * np.min(p)))


def test_a_difference_of_rounding_alone_is_no_finding():
    baseline = np.full(10, 0.5)
    method = baseline.copy()
    method[3] += 2.0**-48
    terms = terms_of(baseline, method)
    difference = float(terms.difference(terms.sums, 1, 0, 0))
    assert difference > 0.0
    assert t_p(difference, *influence_deviation(terms, 0, 1, 0)) == 1.0
