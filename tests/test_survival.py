"""The concordance index of censored times: the definition, scikit-survival, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import linrank
import reference
from hypothesis_profiles import examples
from linrank import concordance_index


@st.composite
def times(draw, most=40):
    """(event, time, risk, qid): equal times and risks, some within a tolerance of each other."""
    n = draw(st.integers(1, most))
    lists = lambda values: draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    risk = np.array(lists(st.integers(0, 12))) / 4 + np.array(lists(st.sampled_from([0, 1e-9])))
    return (
        np.array(lists(st.booleans())),
        np.array(lists(st.integers(1, 8)), dtype=float),
        risk,
        np.array(lists(st.integers(0, 2))),
    )


@examples(200)
@given(times(), st.sampled_from([0.0, 1e-8, 0.25, 0.3, 10.0]))
def test_counts_equal_the_definition(case, tolerance):
    event, time, risk, qid = case
    got = concordance_index(event, time, risk, qid=qid, tied_tol=tolerance)
    truth = np.sum(
        [
            reference.censored_counts(event[qid == q], time[qid == q], risk[qid == q], tolerance)
            for q in np.unique(qid)
        ],
        axis=0,
    )
    assert [got.concordant, got.discordant, got.tied, got.tied_time] == truth.tolist()
    n = got.n_pairs
    value = (got.concordant + got.tied / 2) / n if n else math.nan
    assert_allclose([got.value, float(got)], value, rtol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_scikit_survival(seed):
    metrics = pytest.importorskip("sksurv.metrics")
    rng = np.random.default_rng(seed)
    n = 400
    event = rng.random(n) < (0.2, 0.5, 1.0)[seed % 3]
    time = rng.exponential(10, n).round(seed % 2)
    risk = (-time + 20 * rng.normal(size=n)).round(1) + rng.choice([0, 1e-9, 3e-8], n)
    value, *counts = metrics.concordance_index_censored(event, time, risk)
    got = concordance_index(event, time, risk)
    assert [got.concordant, got.discordant, got.tied, got.tied_time] == counts
    assert got.value == value


def test_without_censoring_it_is_the_measure():
    """All events seen: times are labels, and an early event has a high score."""
    rng = np.random.default_rng(0)
    y, s, qid = rng.integers(0, 9, 300), rng.normal(size=300).round(1), rng.integers(0, 7, 300)
    got = concordance_index(np.ones(300, bool), y, -s, qid=qid, tied_tol=0.0)
    measured = linrank.evaluate(y, s, qid=qid, metrics="concordance_index")
    assert got.value == measured["concordance_index"]
    assert (got.concordant, got.discordant, got.tied) == measured.pairs.totals()


def test_no_comparable_pair():
    assert math.isnan(concordance_index([False, False], [1, 2], [1, 2]).value)
    assert math.isnan(concordance_index([True], [1], [1]).value)
    assert math.isnan(concordance_index([True, True], [1, 2], [1, 2], qid=["a", "b"]).value)


@pytest.mark.parametrize(
    ("event", "time", "scores", "options", "message"),
    [
        ([1.0, 2.5], [True, False], [1, 2], {}, "event must hold True .* comes before time"),
        ([True], [1, 2], [1, 2], {}, r"one boolean for each of the 2 rows of time, got shape \(1,"),
        ([True, False], [1, 2], [1], {}, "time has 2 rows but scores has 1"),
        ([True, False], [1, math.nan], [1, 2], {}, "Input time contains NaN at row 1"),
        ([True, False], [1, 2], [math.inf, 2], {}, "Input scores contains infinity .* at row 0"),
        ([True, False], [[1, 2]], [1, 2], {}, "time should be a 1d array, got an array of shape"),
        ([], [], [], {}, "time is empty"),
        ([True, False], ["a", "b"], [1, 2], {}, "time has dtype <U1, which is not numeric"),
        ([True, False], [1, 2], [1, 2], {"tied_tol": -1}, "tied_tol must be a finite number >= 0"),
        ([True, False], [1, 2], [1, 2], {"qid": [1]}, "qid has 1 elements"),
    ],
)
def test_bad_input(event, time, scores, options, message):
    with pytest.raises(ValueError, match=message):
        concordance_index(event, time, scores, **options)
