"""Metrics: the core against the definitions, and the laws they obey."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference
from hypothesis_profiles import examples
from linrank import concordance_index, make_ranking
from linrank.data.words import Comments
from linrank.metrics import convention, evaluate, parse, rank_within_queries

RULES = ("stable", "average", "pessimistic", "docid")


@st.composite
def scored_queries(draw, max_queries=4, max_rows=6, lowest=0, highest=4):
    """(y, s, qid, docid): queries interleaved, many ties; short because "average" is factorial."""
    n = draw(st.integers(1, max_queries * max_rows))
    qid = np.array(draw(st.lists(st.integers(0, max_queries - 1), min_size=n, max_size=n)))
    labels = st.integers(lowest, highest)
    y = np.array(draw(st.lists(labels, min_size=n, max_size=n)), dtype=float)
    s = np.array(draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n)), dtype=float) / 3
    docid = np.array(draw(st.permutations(range(n))))
    keep = np.concatenate([np.flatnonzero(qid == q)[:max_rows] for q in range(max_queries)])
    keep.sort()
    return y[keep], s[keep], qid[keep], docid[keep]


def definition(name, y, s, ties, docid, y_max):
    """The metric of one query by `reference`, NaN where it is 0/0."""
    m = parse(name)
    k, rel = getattr(m, "k", None), getattr(m, "rel", None) or 1.0
    if m.name in ("auc", "kendall_tau"):
        return reference.auc(y, s, rel) if m.name == "auc" else reference.kendall_tau(y, s)
    if m.name in ("ndcg", "mean_ndcg"):
        options = (m.gain or "exponential", m.discount or "standard")
        options = (k, *options) if m.name == "ndcg" else options
    else:
        p = 0.8 if getattr(m, "p", None) is None else m.p
        options = {"err": lambda: (m.y_max or y_max, k), "rbp": lambda: (k, p, rel)}
        options = options.get(m.name, lambda: (k, rel))()
    of_list = getattr(reference, DEFINITIONS.get(m.name, m.name))
    return reference.expected(lambda r: of_list(r, *options), y, s, ties, docid)


DEFINITIONS = {
    **{"map": "average_precision", "mrr": "reciprocal_rank", "p": "precision"},
    "rbp": "rank_biased_precision",
}
NAMES = [
    *("ndcg", "ndcg@1", "ndcg@3", "ndcg@10", "ndcg(gain=linear)@4", "ndcg(discount=letor)@5"),
    *("mean_ndcg", "mean_ndcg(gain=linear, discount=letor)", "map", "map@3", "map(rel=2)"),
    *("p@1", "p@4", "p(rel=3)@8", "recall@2", "recall(rel=2)@3", "mrr", "mrr(rel=3)@2"),
    *("err", "err@3", "err(y_max=6)@5", "auc", "auc(rel=2)", "success@1", "success(rel=3)@3"),
    *("rbp", "rbp(p=0)", "rbp(p=0.95, rel=2)@3", "kendall_tau"),
]


@pytest.mark.parametrize("ties", RULES)
@examples(60)
@given(case=scored_queries())
def test_core_equals_definition(ties, case):
    """Every measure of every query, in any row order, under every tie rule."""
    y, s, qid, docid = case
    result = evaluate(
        y, s, qid=qid, docid=docid, metrics=NAMES, convention=convention("linrank", ties=ties)
    )
    undefined_is_zero = {"ndcg", "mean_ndcg", "map", "recall"}
    for position, q in enumerate(result.query_ids):
        rows = qid == q
        for name in NAMES:
            truth = definition(name, y[rows], s[rows], ties, docid[rows], y.max())
            if math.isnan(truth) and parse(name).name in undefined_is_zero:
                truth = 0.0
            assert_allclose(
                result.per_query[name][position], truth, rtol=1e-12, atol=1e-15, err_msg=name
            )
    for name in NAMES:
        values = result.per_query[name]
        taking_part = values[~np.isnan(values)]
        expected = math.fsum(taking_part) / len(taking_part) if len(taking_part) else math.nan
        assert_allclose(result[name], expected, rtol=1e-15)


def shares(part, total, over):
    """Pooled, or the mean of the queries that have something to judge."""
    if over != "queries":
        return sum(part) / sum(total) if sum(total) else math.nan
    values = [p / t for p, t in zip(part, total, strict=True) if t]
    return math.fsum(values) / len(values) if values else math.nan


# Numerator and denominator from the pairs in the right order, in the wrong one, and tied.
OF_PAIRS = {
    ("pairwise_accuracy", "ties=error, "): lambda c, d, t: (c, c + d + t),
    ("pairwise_accuracy", "ties=half, "): lambda c, d, t: (c + t / 2, c + d + t),
    ("pairwise_accuracy", "ties=skip, "): lambda c, d, t: (c, c + d),
    ("all_pairs_error", "ties=error, "): lambda c, d, t: (d + t, c + d + t),
    ("all_pairs_error", "ties=half, "): lambda c, d, t: (d + t / 2, c + d + t),
    ("all_pairs_error", "ties=skip, "): lambda c, d, t: (d, c + d),
    ("concordance_index", ""): lambda c, d, t: (c + t / 2, c + d + t),
    ("gamma", ""): lambda c, d, t: (c - d, c + d),
    ("somers_d", ""): lambda c, d, t: (c - d, c + d + t),
}
BY_QUERY = {"gamma": reference.goodman_kruskal_gamma, "somers_d": reference.somers_d}


@examples(100)
@given(case=scored_queries(max_queries=3, max_rows=40, lowest=-20, highest=20))
def test_shares_of_pairs_equal_definition(case):
    """Counts are exact with few and many levels, and every share follows from them."""
    y, s, qid, _ = case
    forms = {
        f"{measure}({options}over={over})": (share, over, measure)
        for (measure, options), share in OF_PAIRS.items()
        for over in ("pairs", "queries")
    }
    result = evaluate(y, s, qid=qid, metrics=forms)
    rows = [qid == q for q in result.query_ids]
    truth = [reference.pair_counts(y[r], s[r]) for r in rows]
    counts = np.stack([result.pairs.concordant, result.pairs.discordant, result.pairs.tied], axis=1)
    assert_array_equal(counts, truth)
    assert result.pairs.totals() == tuple(np.sum(truth, axis=0))
    for name, (share, over, measure) in forms.items():
        part, total = zip(*(share(*counts) for counts in truth), strict=True)
        assert_allclose(result[name], shares(part, total, over), rtol=1e-13, atol=1e-15)
        values = [p / t if t else math.nan for p, t in zip(part, total, strict=True)]
        assert_allclose(result.per_query[name], values, rtol=1e-15)
        if measure in BY_QUERY:
            assert_allclose(values, [BY_QUERY[measure](y[r], s[r]) for r in rows], rtol=1e-13)


def random_case(n_rows, n_queries, decimals=1):
    rng = np.random.default_rng(0)
    qid, y = rng.integers(0, n_queries, n_rows), rng.integers(0, 5, n_rows).astype(float)
    return y, rng.normal(size=n_rows).round(decimals), qid


def test_threads_and_row_order_change_nothing():
    """The same bits from one and from three threads; permuting rows permutes queries only."""
    y, s, qid = random_case(60_000, 900, decimals=9)
    names = ["ndcg@10", "map", "err", "auc", "mean_ndcg", "pairwise_accuracy"]
    one, three = (evaluate(y, s, qid=qid, metrics=names, n_jobs=n) for n in (1, 3))
    for name in names:
        assert one[name] == three[name]
        assert_array_equal(one.per_query[name], three.per_query[name])
    mixed = np.random.default_rng(1).permutation(len(y))
    other = evaluate(y[mixed], s[mixed], qid=qid[mixed], metrics=names)
    by_id = np.argsort(one.query_ids), np.argsort(other.query_ids)
    for name in names:
        assert_allclose(one.per_query[name][by_id[0]], other.per_query[name][by_id[1]], rtol=1e-13)


@pytest.mark.parametrize("y_max", [1, 30, 52, 53, 700, 1831])
def test_exponential_gain_does_not_overflow(y_max):
    """NDCG@2 of labels far beyond 2^1024, against rational arithmetic."""
    y = np.array([0.0, y_max - 1, y_max])
    gains = [Fraction(2) ** int(v) - 1 for v in y]
    d = Fraction(1 / math.log2(3))
    expected = (gains[0] + gains[1] * d) / (gains[2] + gains[1] * d)
    assert_allclose(evaluate(y, [3, 2, 1], metrics="ndcg@2")["ndcg@2"], float(expected), rtol=1e-14)
    # 2^y - 1 = y ln 2 + ... for tiny y: the ratio of the gains is the ratio of the labels.
    tiny = evaluate([1e-18, 3e-18], [2, 1], metrics="ndcg@1")["ndcg@1"]
    assert_allclose(tiny, 1 / 3, rtol=1e-14)


def test_perfect_ranking_is_exactly_one():
    y, _, qid = random_case(500, 20)
    names = ["ndcg", "ndcg@7", "mean_ndcg", "map", "auc", "pairwise_accuracy"]
    result = evaluate(y, y, qid=qid, metrics=names)
    assert [result[name] for name in names] == [1.0] * len(names)


def test_missing_document_ids_are_row_numbers():
    """Without ids the later row wins, as ids that grow with the row would have it."""
    y, s, qid = random_case(200, 9, decimals=0)
    ids = [f"{i:05d}" for i in range(200)]
    with_ids = evaluate(y, s, qid=qid, docid=ids, convention="trec_eval")
    assert dict(with_ids) == dict(evaluate(y, s, qid=qid, convention="trec_eval"))
    assert with_ids["map"] != evaluate(y, s, qid=qid)["map"]


@pytest.mark.parametrize(
    "name", ["ndcg@5", "mean_ndcg", "map", "recall@2", "p@2", "mrr", "err", "rbp", "success@2"]
)
def test_empty_rules(name):
    """A query of zeros next to a perfect one: 0, 1 or absent where it is 0/0, 0 or absent else."""
    y, s, qid = [1, 0, 0, 0], [2, 1, 2, 1], [5, 5, 6, 6]
    values = {
        empty: evaluate(y, s, qid=qid, metrics=name, convention=convention("linrank", empty=empty))
        for empty in (0, 1, "skip")
    }
    full = values[0].per_query[name][0]
    assert full > 0
    undefined = name not in ("p@2", "mrr", "err", "rbp", "success@2")
    assert values[0].per_query[name][1] == 0
    assert values[1].per_query[name][1] == (1 if undefined else 0)
    assert math.isnan(values["skip"].per_query[name][1])
    assert values["skip"][name] == full
    assert values[0][name] == full / 2


def test_one_query_of_many_rows_is_not_quadratic():
    """10^6 rows with all labels distinct: 5·10^11 pairs, whose square is beyond 64 bits."""
    n = 1_000_000
    y, n_pairs = np.arange(n, dtype=float), n * (n - 1) // 2
    for scores, counts, tau in ((-y, (0, n_pairs, 0), -1.0), (0 * y, (0, 0, n_pairs), math.nan)):
        found = evaluate(y, scores, metrics=["pairwise_accuracy", "kendall_tau"])
        assert found.pairs.totals() == counts
        assert found["kendall_tau"] == pytest.approx(tau, rel=1e-14, nan_ok=True)


# ---- ranks ------------------------------------------------------------------------------------


def test_ranks_reject_nan_and_wrong_lengths():
    with pytest.raises(ValueError, match="scores has nan at row 0"):
        rank_within_queries([math.nan, 1])
    with pytest.raises(ValueError, match="qid has 1 elements"):
        rank_within_queries([1.0, 2.0], [1])
    _, s, qid = random_case(50_000, 40, decimals=2)
    assert_array_equal(rank_within_queries(s, qid, n_jobs=1), rank_within_queries(s, qid, n_jobs=3))


def test_the_foot_of_a_table_says_that_short_queries_count_nothing():
    """The rule that lowers the LETOR numbers most."""
    foot = "ndcg@k of queries with fewer than k rows 0"
    result = evaluate([1, 0], [2, 1], metrics="ndcg@10", convention="letor")
    assert result["ndcg@10"] == 0
    assert result.to_text().endswith(foot)
    assert foot not in evaluate([1, 0], [2, 1], metrics="ndcg@10").to_text()


# ---- errors -----------------------------------------------------------------------------------


@examples(150)
@given(case=scored_queries(max_queries=4, max_rows=25, lowest=-8, highest=8))
def test_domination_errors_equal_definition(case):
    """Ties, queries of one level and of one row, few and many levels, rows in any order."""
    y, s, qid, docid = case
    options = product(
        ("domination_error", "dominated_error"), ("right", "error"), ("rows", "queries")
    )
    names = [f"{kind}(ties={ties}, over={over})" for kind, ties, over in options]
    for rules in RULES:  # who comes first among ties has no say
        chosen = convention("linrank", ties=rules)
        result = evaluate(y, s, qid=qid, docid=docid, metrics=names, convention=chosen)
        for kind, got, definition in (
            ("domination_error", result.dominating, reference.domination_counts),
            ("dominated_error", result.dominated, reference.dominated_counts),
        ):
            truth = [definition(y[qid == q], s[qid == q]) for q in result.query_ids]
            assert_array_equal(np.stack([got.total, got.wrong, got.tied], axis=1), truth)
            total, wrong, tied = map(list, zip(*truth, strict=True))
            assert got.totals() == (sum(total), sum(wrong), sum(tied))
            for ties in ("right", "error"):
                part = [w + t * (ties == "error") for w, t in zip(wrong, tied, strict=True)]
                for over in ("rows", "queries"):
                    name = f"{kind}(ties={ties}, over={over})"
                    assert_allclose(result[name], shares(part, total, over), rtol=1e-14)
                values = [p / t if t else math.nan for p, t in zip(part, total, strict=True)]
                assert_array_equal(result.per_query[name], values)


def test_err_of_a_long_tied_group_ends():
    """All orders of 300,000 tied rows: nobody looks further than some thousand of them."""
    y = np.zeros(300_000)
    y[::20] = 1.0
    alone = evaluate(y, np.zeros(len(y)), metrics="err", convention="sklearn")["err"]
    # With so many rows drawing with and without replacement are the same, to about 1/n.
    chance = 0.05 * 0.5
    i = np.arange(1, 5000)
    assert alone == pytest.approx(float(np.sum(chance * (1 - chance) ** (i - 1) / i)), rel=1e-4)


# ---- the order behind all measures --------------------------------------------------------------


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


def test_a_data_set_brings_its_queries():
    data = make_ranking(9, (3, 12), 4, random_state=1)
    scores = np.random.default_rng(0).normal(size=data.n_rows).round(1)
    for rules in ("linrank", "trec_eval"):
        found = evaluate(data, scores, convention=rules)
        expected = evaluate(data.labels, scores, qid=data.qid, convention=rules)
        assert dict(found) == dict(expected)
        assert_array_equal(found.query_ids, expected.query_ids)
    for more in ({"qid": data.qid}, {"group": [data.n_rows]}):
        with pytest.raises(ValueError, match=f"{next(iter(more))} is part of the data set"):
            evaluate(data, scores, **more)
    ids = np.random.default_rng(1).permutation(data.n_rows).astype(str)
    named = replace(data, comments=Comments.of([f"#docid = {one}" for one in ids]))
    found = evaluate(named, np.zeros(data.n_rows), convention="trec_eval")
    rules = {"qid": data.qid, "convention": "trec_eval", "docid": ids}
    assert dict(found) == dict(evaluate(data.labels, np.zeros(data.n_rows), **rules))


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


# ---- concordance of censored times --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_scikit_survival(seed):
    metrics = pytest.importorskip("sksurv.metrics")
    rng = np.random.default_rng(seed)
    n = 400
    event = rng.random(n) < (0.2, 0.5, 1.0)[seed % 3]
    time = rng.exponential(10, n).round(seed)
    risk = (-time + 20 * rng.normal(size=n)).round(1) + rng.choice([0, 1e-9, 3e-8], n)
    tolerance = (1e-8, 0.25, 10.0)[seed]
    value, *counts = metrics.concordance_index_censored(event, time, risk, tolerance)
    got = concordance_index(event, time, risk, tied_tol=tolerance)
    assert [got.concordant, got.discordant, got.tied, got.tied_time] == counts
    assert got.value == float(got) == value
    parts = [slice(0, 150), slice(150, n)]
    counts = [metrics.concordance_index_censored(event[p], time[p], risk[p])[1:] for p in parts]
    got = concordance_index(event, time, risk, qid=np.arange(n) >= 150)
    assert [got.concordant, got.discordant, got.tied, got.tied_time] == np.sum(
        counts, axis=0
    ).tolist()
    assert math.isnan(concordance_index([True, True], [1, 2], [1, 2], qid=["a", "b"]).value)


@pytest.mark.parametrize(
    ("event", "time", "scores", "options", "message"),
    [
        ([1.0, 2.5], [True, False], [1, 2], {}, "event must hold True .* comes before time"),
        ([True], [1, 2], [1, 2], {}, r"one boolean for each of the 2 rows of time, got shape \(1,"),
        ([True, False], [1, 2], [1], {}, "time has 2 rows but scores has 1"),
        ([True, False], [1, math.nan], [1, 2], {}, "Input time contains NaN at row 1"),
        ([True, False], [1, 2], [math.inf, 2], {}, "Input scores contains infinity .* at row 0"),
        ([], [], [], {}, "time is empty"),
        ([True, False], [1, 2], [1, 2], {"tied_tol": -1}, "tied_tol must be a finite number >= 0"),
    ],
)
def test_bad_input(event, time, scores, options, message):
    with pytest.raises(ValueError, match=message):
        concordance_index(event, time, scores, **options)
