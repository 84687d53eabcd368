"""The order behind all measures, against Python's sort; and labels at the edges of their range."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank.metrics import convention, evaluate, rank_within_queries

# Scores that crowd in one bucket, differ in the last bit, are equal or infinite, and smooth ones.
EDGES = [0.0, -0.0, 1.0, 1 + 2**-52, 1 + 2**-40, -1e308, 1e308, 5e-324, -5e-324, np.inf, -np.inf]
SCORES = st.one_of(
    st.lists(st.sampled_from(EDGES), min_size=1, max_size=60),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=60),
    st.lists(st.floats(-1, 1), min_size=1, max_size=300),
)


@given(SCORES)
def test_ranks_are_those_of_a_stable_sort(scores):
    expected = np.empty(len(scores), dtype=int)
    expected[sorted(range(len(scores)), key=lambda i: -scores[i])] = np.arange(1, len(scores) + 1)
    assert rank_within_queries(scores).tolist() == expected.tolist()


@pytest.mark.parametrize("n", [1, 2, 95, 8191, 8192, 20_000])
@pytest.mark.parametrize("kind", ["smooth", "crowded", "tied"])
def test_ranks_of_long_queries(n, kind):
    rng = np.random.default_rng(n)
    scores = rng.normal(size=n)
    if kind == "crowded":  # all but one in the first bucket
        scores = np.append(rng.random(n - 1), 1e12)
    elif kind == "tied":
        scores = rng.integers(0, 3, n).astype(float)
    expected = np.empty(n, dtype=int)
    expected[np.argsort(-scores, kind="stable")] = np.arange(1, n + 1)
    assert rank_within_queries(scores).tolist() == expected.tolist()


def test_relevance_of_negative_labels_is_that_of_the_label():
    y, scores = [-3.0, -1.0, 0.0], [3.0, 2.0, 1.0]
    result = evaluate(y, scores, metrics="p(rel=-2)@3", convention="trec_eval")
    assert result["p(rel=-2)@3"] == pytest.approx(2 / 3)


def test_err_counts_a_query_whose_chances_underflow():
    rules = convention("linrank", empty="skip")
    result = evaluate([3, 0, 0, 0, 1e15], [1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3], metrics="err",
                      convention=rules)  # fmt: skip
    assert result.per_query["err"].tolist()[:1] == [0.0]
    assert math.isnan(result.per_query["err"][1]), "no label above 0: left out"


def test_linear_gains_near_the_end_of_the_range():
    big = 1.7e308
    result = evaluate([big, big, 0.0], [1, 3, 2], metrics="ndcg(gain=linear)")
    expected = evaluate([1, 1, 0], [1, 3, 2], metrics="ndcg(gain=linear)")
    assert result["ndcg(gain=linear)"] == pytest.approx(expected["ndcg(gain=linear)"], rel=1e-15)
