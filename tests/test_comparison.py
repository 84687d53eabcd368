"""linrank.compare: its statistics by definition, its laws, what it refuses, how it reads."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from hypothesis_profiles import examples
from linrank.judging.compare import compare, compare_evaluations
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
from linrank.metrics import Evaluation, evaluate

METRICS = ["ndcg@5", "map", "pairwise_accuracy", "all_pairs_error", "pairwise_accuracy(ties=skip)"]
TESTS = ["randomization", "t"]


def problem(n_queries: int = 60, seed: int = 0):
    """(y, {method: scores}, qid): three methods that see the labels through more and more noise."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(2, 9, n_queries))
    y = rng.integers(0, 3, len(qid)).astype(float)
    noise = {"weak": 4.0, "good": 1.0, "fair": 2.0}  # rounded: some ties
    scores = {name: (y + z * rng.normal(size=len(y))).round(1) for name, z in noise.items()}
    return y, scores, qid


def quick(y, scores, qid, **options):
    return compare(y, scores, **{"qid": qid, "metrics": METRICS, "n_resamples": 400, **options})


def test_cells_hold_what_evaluate_says():
    y, scores, qid = problem()
    result = quick(y, scores, qid, baseline="fair")
    assert (result.methods, result.metrics) == (("weak", "good", "fair"), tuple(METRICS))
    assert (result.baseline, result.n_queries) == ("fair", 60)
    alone = {name: evaluate(y, s, qid=qid, metrics=METRICS) for name, s in scores.items()}
    for (method, metric), cell in result.cells.items():
        ours, theirs = alone[method].per_query[metric], alone["fair"].per_query[metric]
        assert cell.mean == alone[method][metric]
        assert_allclose(cell.difference, alone[method][metric] - alone["fair"][metric], atol=1e-12)
        assert cell.low <= cell.mean <= cell.high
        assert cell.difference_low <= cell.difference <= cell.difference_high
        assert cell.n_queries == np.count_nonzero(~np.isnan(ours))
        sign = -1 if metric == "all_pairs_error" else 1
        assert cell.wins == np.count_nonzero(sign * (ours - theirs) > 1e-9)
        assert cell.losses == np.count_nonzero(sign * (ours - theirs) < -1e-9)
        both = ~np.isnan(ours) & ~np.isnan(theirs)
        assert cell.wins + cell.ties + cell.losses == np.count_nonzero(both)
        if metric in ("ndcg@5", "map") and method != "fair":  # means over queries
            gain = ours - theirs
            assert_allclose(cell.effect_size, gain.mean() / gain.std(ddof=1), rtol=1e-6)


@pytest.mark.parametrize("test", TESTS)
@examples(10)
@given(seed=st.integers(0, 1000), n_queries=st.sampled_from([2, 12, 40]))
def test_exchanging_the_methods_turns_the_signs(test, seed, n_queries):
    y, scores, qid = problem(n_queries, seed)
    one = quick(y, scores, qid, test=test, baseline="weak")
    other = quick(y, scores, qid, test=test, baseline="good")
    for metric in METRICS:
        ours, theirs = one.cells["good", metric], other.cells["weak", metric]
        assert_array_equal(ours.difference, -theirs.difference)
        assert_allclose(ours.difference_low, -theirs.difference_high, atol=1e-12)
        assert_allclose(ours.difference_high, -theirs.difference_low, atol=1e-12)
        assert (ours.wins, ours.ties, ours.losses) == (theirs.losses, theirs.ties, theirs.wins)
        assert_allclose(ours.p, theirs.p, rtol=1e-9)
        assert_allclose(ours.effect_size, -theirs.effect_size, rtol=1e-9)


@pytest.mark.parametrize("test", TESTS)
def test_a_method_does_not_differ_from_itself(test):
    y, scores, qid = problem()
    result = quick(y, {"one": scores["good"], "same": scores["good"] * 2 + 1}, qid, test=test)
    for metric in METRICS:
        cell = result.cells["same", metric]
        assert (cell.p, cell.p_corrected, cell.effect_size) == (1.0, 1.0, 0.0)
        assert (cell.difference, cell.difference_low, cell.difference_high) == (0.0, 0.0, 0.0)
        assert (cell.wins, cell.losses) == (0, 0)
        assert result.verdict("same", metric) == "unclear"


def test_an_error_and_its_accuracy_tell_the_same():
    y, scores, qid = problem()
    result = quick(y, scores, qid)
    accuracy, error = (result.cells["good", m] for m in ("pairwise_accuracy", "all_pairs_error"))
    assert_allclose(error.difference, -accuracy.difference, atol=1e-12)
    assert (error.p, error.wins, error.losses) == (accuracy.p, accuracy.wins, accuracy.losses)
    assert result.verdict("good", "all_pairs_error") == "better"
    assert result.verdict("weak", "all_pairs_error") == "baseline"
    turned = quick(y, scores, qid, baseline="good")
    assert turned.verdict("weak", "all_pairs_error") == "worse"


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh", None])
def test_p_is_corrected_over_the_methods_of_a_metric(correction):
    y, scores, qid = problem(30)
    result = quick(y, scores, qid, correction=correction)
    for metric in METRICS:
        cells = [result.cells[m, metric] for m in ("good", "fair")]
        expected = correct_p_values([c.p for c in cells], correction)
        assert_array_equal([c.p_corrected for c in cells], expected)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    y, scores, qid = problem(500)
    one = quick(y, scores, qid, n_resamples=5000, n_jobs=1).to_dict()
    assert quick(y, scores, qid, n_resamples=5000, n_jobs=3).to_dict() == one
    assert quick(y, scores, qid, n_resamples=5000, random_state=1).to_dict() != one


def test_one_method_alone_has_intervals():
    y, scores, qid = problem()
    result = quick(y, {"good": scores["good"]}, qid)
    cell = result.cells["good", "map"]
    assert cell.low < cell.mean < cell.high
    assert math.isnan(cell.p)
    assert not re.search("difference|baseline", result.to_text())


@pytest.mark.parametrize(("test", "p"), [("randomization", 1.0), ("t", math.nan)])
def test_a_single_query_has_no_interval(test, p):
    result = compare([1, 0, 0], {"a": [3, 2, 1], "b": [1, 2, 3]}, metrics="mrr", test=test)
    cell = result.cells["b", "mrr"]
    assert_allclose(cell.difference, 1 / 3 - 1)
    assert_array_equal([cell.low, cell.high, cell.difference_low, cell.effect_size], np.nan)
    assert_array_equal(cell.p, p)
    assert (cell.wins, cell.ties, cell.losses) == (0, 0, 1)
    assert "undefined: the metric can judge no query" in result.to_text()


@pytest.mark.parametrize("test", TESTS)
def test_a_metric_that_judges_no_query_is_undefined(test):
    result = compare(
        [1, 1, 1], {"a": [3, 2, 1], "b": [1, 2, 3]}, qid=[1, 1, 2], metrics="pairwise_accuracy",
        test=test,
    )  # fmt: skip
    cell = result.cells["b", "pairwise_accuracy"]
    assert_array_equal([cell.mean, cell.low, cell.difference, cell.p, cell.p_corrected], np.nan)
    assert (cell.wins, cell.ties, cell.losses, cell.n_queries) == (0, 0, 0, 0)
    assert result.verdict("b", "pairwise_accuracy") == "unclear"
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))


def test_every_query_with_the_same_gain():
    qid = np.repeat(np.arange(5), 2)
    scores = {"wrong": [1, 2] * 5, "right": [2, 1] * 5}
    result = compare([1, 0] * 5, scores, qid=qid, metrics="mrr", test="t")
    cell = result.cells["right", "mrr"]
    assert (cell.p, cell.effect_size) == (0.0, math.inf)
    assert result.to_dict()["metrics"]["mrr"]["methods"]["right"]["effect_size"] is None
    exact = compare([1, 0] * 5, scores, qid=qid, metrics="mrr")
    assert exact.cells["right", "mrr"].p == 2 / 2**5


def test_folds_are_compared_as_one():
    y, scores, qid = problem()
    first = qid < 25
    whole = quick(y, scores, qid)
    folds = {}
    for name, s in scores.items():
        parts = [evaluate(y[k], s[k], qid=qid[k], metrics=METRICS) for k in (first, ~first)]
        folds[name] = Evaluation.joined(parts)
    joined = compare_evaluations(folds, n_resamples=400)
    for place, cell in whole.cells.items():
        assert_allclose(astuple(joined.cells[place]), astuple(cell), rtol=1e-12)


def test_queries_in_another_order_are_found_by_their_ids():
    y, scores, qid = problem()
    back = np.argsort(-qid, kind="stable")
    here = {name: evaluate(y, s, qid=qid, metrics=METRICS) for name, s in scores.items()}
    turned = evaluate(y[back], scores["good"][back], qid=qid[back], metrics=METRICS)
    there = {**here, "good": turned}
    assert_array_equal(there["good"].query_ids, here["good"].query_ids[::-1])
    options = {"n_resamples": 100, "metrics": ["nDCG@5", METRICS[-1], "ap", "map"]}
    one, other = (compare_evaluations(e, **options) for e in (here, there))
    assert one.metrics == ("ndcg@5", METRICS[-1], "map")
    assert_allclose(astuple(other.cells["good", "map"]), astuple(one.cells["good", "map"]))
    assert other.cells["good", METRICS[-1]].wins == one.cells["good", METRICS[-1]].wins


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "wilcoxon"}, "test must be 'randomization' or 't', got 'wilc"),
        ({"correction": "sidak"}, "correction must be 'holm', 'bonferroni', 'bh' or None"),
        ({"baseline": "best"}, "baseline must be one of 'weak', 'good', 'fair'; got 'best'"),
        ({"confidence": 95}, "confidence must be between 0 and 1, as 0.95 for 95%; got 95"),
        ({"n_resamples": 0}, "n_resamples must be an integer >= 1, got 0"),
        ({"n_resamples": 2.5}, "n_resamples must be an integer >= 1, got 2.5"),
        ({"metrics": []}, "metrics is empty"),
        ({"metrics": "ndgc@5"}, "Did you mean 'ndcg'"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        quick(*problem(), **options)


def test_wrong_scores_are_named_by_their_method():
    y, scores, qid = problem()
    broken = np.where(np.arange(len(y)) == 4, np.nan, scores["good"])
    for wrong, message in (
        ({**scores, "bad": scores["good"][:-1]}, r"method 'bad': .*y has .* rows but scores has"),
        ({**scores, "bad": broken}, "method 'bad': scores has nan at row 4"),
        ([scores["good"]], r"scores must map the name of each method .* got list"),
        ({1: scores["good"]}, "name of a method must be a string, got 1"),
        ({}, "scores is empty"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            quick(y, wrong, qid)


def test_only_evaluations_of_the_same_kind_are_compared():
    y, scores, qid = problem()
    one = evaluate(y, scores["good"], qid=qid, metrics=["map", "mrr"])
    fewer = evaluate(y[qid > 1], scores["good"][qid > 1], qid=qid[qid > 1], metrics=["map", "mrr"])
    letor = evaluate(y, scores["good"], qid=qid, metrics=["map", "mrr"], convention="letor")
    other = evaluate(y, scores["good"], qid=qid, metrics=["map"])
    single = evaluate(y, scores["good"], metrics=["map", "mrr"])
    sizes = "'a' has 60 queries and 'b' 58, of which 58 are the same; query 0 of 'a' is missing in "
    for evaluations, options, message in (
        ({"a": one, "b": fewer}, {}, sizes + "'b'"),
        ({"b": fewer, "a": one}, {}, "query 0 of 'a' is missing in 'b'"),
        ({"a": one, "b": letor}, {}, "'b' was evaluated under the convention 'letor' but 'a'"),
        ({"a": one, "b": other}, {}, r"'b' was not evaluated by mrr, but 'a' was \(it has map"),
        ({"a": one}, {"metrics": "p@5"}, "'a' was not evaluated by p@5"),
        ({"a": one, "b": single}, {}, "of which 0 are the same"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_evaluations(evaluations, **options)


def test_the_text_explains_itself():
    y, scores, qid = problem()
    text = quick(y, scores, qid).to_text()
    assert text == str(quick(y, scores, qid))
    for piece in (
        "Means over 60 queries; ▲ better, ▼ worse than weak",
        "all_pairs_error: lower is better",
        "weak (baseline)",
        "randomization test, 400 random exchanges",
        "Corrected after Holm for 2 comparisons under each metric.",
        "verdict: better or worse where this p is below 0.05",
        "convention: linrank: gain 2^y - 1",
    ):
        assert piece in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120

    for metric in ("map: higher", "all_pairs_error: lower"):  # the best method first
        block = text.split(metric)[1].split("\n\n")[1].splitlines()[1:]
        assert [line.split()[0] for line in block] == ["good", "fair", "weak"]


def test_marks_and_words_follow_what_was_done():
    y, scores, qid = problem()
    result = quick(y, scores, qid)
    for options, words in (
        ({"test": "t"}, "paired t-test over queries"),
        ({"correction": None}, "Not corrected for several comparisons"),
        ({"correction": "bh"}, "Benjamini and Hochberg for 2 comparisons under"),
        ({"confidence": 0.9}, "90% interval"),
    ):
        assert words in " ".join(replace(result, **options).to_text().split())
    row = next(line for line in result.to_text().splitlines() if line.startswith("good"))
    assert row.count("▲") == sum(result.verdict("good", m) == "better" for m in METRICS) == 5
    p = result.cells["good", "map"].p_corrected
    strict = replace(result, confidence=1 - p)
    assert strict.verdict("good", "map") == "unclear"


def test_html_is_escaped_and_shown_by_notebooks():
    y, scores, qid = problem()
    evil = "<script>alert(1)</script>"
    result = quick(y, {evil: scores["weak"], "a&b": scores["good"]}, qid)
    html = result._repr_html_()
    assert len(re.findall(r"^\|-", result.to_markdown(), re.MULTILINE)) == 1 + len(METRICS)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "a&amp;b" in html
    assert html.count("<table") == html.count("</table>") == 1 + len(METRICS)


def test_to_dict_is_plain():
    y, scores, qid = problem()
    result = quick(y, scores, qid)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["metrics"]["all_pairs_error"]["higher_is_better"] is False
    row = plain["metrics"]["map"]["methods"]["good"]
    assert row["mean"] == result.cells["good", "map"].mean
    assert row["verdict"] == "better"
    assert plain["metrics"]["map"]["methods"]["weak"]["p"] is None
    assert (plain["baseline"], plain["test"], plain["seed"]) == ("weak", "randomization", 0)
    assert "Comparison of weak, good, fair" in repr(result)


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
    with pytest.raises(ValueError, match="correction must be 'holm', 'bonferroni', 'bh' or None"):
        correct_p_values([0.5], "sidak")


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
