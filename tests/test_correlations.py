"""Rank correlations of pairs: the definitions, SciPy, and how they hang together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from hypothesis_profiles import examples
from linrank.metrics import evaluate, parse

DEFINITIONS = {
    "gamma": reference.goodman_kruskal_gamma,
    "somers_d": reference.somers_d,
    "kendall_tau": reference.kendall_tau,
}


@st.composite
def rankings(draw):
    """(y, s, qid): ties in both, queries of one row, of one label, of one score."""
    n = draw(st.integers(1, 60))
    y, s, qid = (
        draw(st.lists(st.integers(0, top), min_size=n, max_size=n))
        for top in (draw(st.integers(0, 8)), draw(st.integers(0, 8)), 4)
    )
    return np.array(y, dtype=float), np.array(s, dtype=float), np.array(qid)


@examples(150)
@given(rankings())
def test_they_equal_their_definitions(case):
    y, s, qid = case
    names = [*DEFINITIONS, "gamma(over=queries)", "somers_d(over=queries)"]
    result = evaluate(y, s, qid=qid, metrics=names)
    rows = [qid == q for q in result.query_ids]
    for name in names:
        truth = [DEFINITIONS[parse(name).name](y[r], s[r]) for r in rows]
        assert_allclose(result.per_query[name], truth, rtol=1e-13, err_msg=name)
        if name == "kendall_tau" or "queries" in name:
            judged = [v for v in truth if not math.isnan(v)]
            mean = math.fsum(judged) / len(judged) if judged else math.nan
            assert_allclose(result[name], mean, rtol=1e-13, atol=1e-15)
    c, d, t = np.sum([reference.pair_counts(y[r], s[r]) for r in rows], axis=0)
    assert_allclose(result["gamma"], (c - d) / (c + d) if c + d else math.nan, rtol=1e-14)
    assert_allclose(result["somers_d"], (c - d) / (c + d + t) if c + d + t else math.nan)


@given(rankings())
def test_they_follow_from_the_accuracies(case):
    """D = 2·acc_½ - 1, γ = 2·acc_skip - 1, the concordance index is acc_½: by query and pooled."""
    y, s, qid = case
    for over in ("pairs", "queries"):
        half, skip = (f"pairwise_accuracy(ties={t}, over={over})" for t in ("half", "skip"))
        d, gamma, index = (f"{m}(over={over})" for m in ("somers_d", "gamma", "concordance_index"))
        r = evaluate(y, s, qid=qid, metrics=[half, skip, d, gamma, index])
        assert_allclose(r[d], 2 * r[half] - 1, atol=1e-15)
        assert_allclose(r[gamma], 2 * r[skip] - 1, atol=1e-15)
        assert_array_equal(r.per_query[index], r.per_query[half])
        assert_array_equal(r[index], r[half])


@given(rankings())
def test_turning_the_scores_around_turns_the_sign(case):
    y, s, qid = case
    names = list(DEFINITIONS)
    there, back = evaluate(y, s, qid=qid, metrics=names), evaluate(y, -s, qid=qid, metrics=names)
    for name in names:
        assert_array_equal(there.per_query[name], -back.per_query[name])
        assert_array_equal(there[name], -back[name])


def test_scipy():
    """kendalltau (τ_b) and somersd of every query; one of them has all scores equal."""
    from scipy.stats import kendalltau, somersd

    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 60, 25)
    y = rng.integers(0, 5, sizes.sum()).astype(float)
    s = rng.normal(size=len(y)).round(1)
    s[: sizes[0]] = 0.5
    result = evaluate(y, s, group=sizes, metrics=["kendall_tau", "somers_d"])
    ends = np.cumsum(sizes)[:-1]
    queries = list(zip(np.split(y, ends), np.split(s, ends), strict=True))
    tau = [kendalltau(a, b).statistic for a, b in queries]
    assert math.isnan(tau[0])
    assert_allclose(result.per_query["kendall_tau"], tau, rtol=1e-12)
    assert_allclose(result["kendall_tau"], np.nanmean(tau), rtol=1e-12)
    d = [somersd(a, b).statistic for a, b in queries if len(set(a)) > 1 and len(set(b)) > 1]
    ours = result.per_query["somers_d"]
    ours = [v for v, (a, b) in zip(ours, queries, strict=True) if len(set(a)) > 1 < len(set(b))]
    assert_allclose(ours, d, rtol=1e-12)


def test_counts_come_with_what_is_pooled():
    y, s, qid = [2, 1, 0, 1, 0], [3, 1, 1, 1, 2], [1, 1, 1, 2, 2]
    for name in ("gamma", "somers_d", "concordance_index"):
        result = evaluate(y, s, qid=qid, metrics=name)
        assert result.pairs.totals() == (2, 1, 1)
        assert_array_equal(result.pairs.concordant, [2, 0])
    assert evaluate(y, s, qid=qid, metrics="kendall_tau").pairs is None


def test_a_constant_scorer_has_no_tau_and_no_gamma():
    result = evaluate([1, 0, 2], [5, 5, 5], metrics=["kendall_tau", "gamma", "somers_d"])
    assert math.isnan(result["kendall_tau"])
    assert math.isnan(result["gamma"])
    assert result["somers_d"] == 0.0


def test_tau_of_many_rows_is_not_quadratic_and_does_not_overflow():
    """5·10^11 pairs by label and by score: their product is beyond 64 bits."""
    y = np.arange(1_000_000, dtype=float)
    assert evaluate(y, y, metrics="kendall_tau")["kendall_tau"] == pytest.approx(1.0, rel=1e-14)
    assert evaluate(y, -y, metrics="kendall_tau")["kendall_tau"] == pytest.approx(-1.0, rel=1e-14)
