"""Names of measures, the result, bad input, and conventions by the tools that they follow."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank import metrics
from linrank.metrics import Evaluation, convention, evaluate, parse
from linrank.metrics.measures import ALIASES, MEASURES, valid_forms
from small_data import small

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
OPTIONS = {"empty": st.sampled_from([0.0, 1.0, "skip"]), "p": st.floats(0, 0.999)}


@given(st.data())
def test_every_measure_parses_back(data):
    kind = data.draw(st.sampled_from(list(MEASURES.values())))
    given = {}
    for option in (field.name for field in fields(kind) if field.name != "k"):
        known = OPTIONS.get(option, FLOATS)
        known = st.sampled_from(kind.choices[option]) if option in kind.choices else known
        given[option] = data.draw(st.none() | known)
    if kind.cutoff != "none":
        given["k"] = data.draw(st.integers(1, 10**6))
    measure = kind(**given)
    assert parse(str(measure)) == measure
    assert parse(measure) is measure


def test_names_are_those_of_the_classes():
    for name in ("map(rel=2, empty=skip)", "rbp(p=0.95, rel=2)@10", "p(rel=0.5)@8", "gamma"):
        assert str(parse(name)) == name
    for alias, name in ALIASES.items():
        cutoff = "" if MEASURES[name].cutoff == "none" else "@3"
        assert str(parse(alias.upper() + cutoff)) == name + cutoff


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (" nDCG @ 10 ", "ndcg@10"),
        ("P(rel=2)@5", "p(rel=2)@5"),
        ("ndcg@10-", "ndcg(empty=0)@10"),
        ("pairwise_accuracy(TIES=half)", "pairwise_accuracy(ties=half)"),
        ("nDCG(dcg='exp-log2')@10", "ndcg(gain=exponential)@10"),  # ir_measures
        ("nDCG(dcg='log2')@10", "ndcg(gain=linear)@10"),
        ("RBP(rel=1,p=0.8)", "rbp(p=0.8, rel=1)"),
        ("ndcg_cut_10", "ndcg@10"),  # trec_eval
        ("ndcg_cut.10", "ndcg@10"),
        ("P_5", "p@5"),
        ("ndcg_burges@10", "ndcg(gain=exponential)@10"),  # ranx
        ("ndcg_burges", "ndcg(gain=exponential)"),
        ("rbp.95", "rbp(p=0.95)"),
        ("map@5-", "map(empty=0)@5"),  # XGBoost
    ],
)
def test_other_spellings(spelling, name):
    assert str(parse(spelling)) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", r"unknown metric 'ndgc@10'\. Did you mean 'ndcg'\? Valid forms: ndcg\[@k\]"),
        ("accuracy", "Did you mean 'pairwise_accuracy'"),
        ("ndcg@", "unknown metric"),
        ("ndcg@0", "cutoff must be an integer >= 1, got '0'"),
        ("ndcg@3000000000", "must be an integer from 1 to 2147483647, got 3000000000"),
        ("p", "p needs a cutoff: write p@10"),
        ("auc@5", "takes no @k"),
        ("ndcg(rel=2)", "ndcg has no option 'rel'; it has gain, discount, empty"),
        ("ndcg(gain=cubic)", "gain must be one of exponential, linear, got 'cubic'"),
        ("p(rel=x)@5", "'x' is not a number"),
        ("p(rel=nan)@5", "rel must be a finite number"),
        ("p(rel)@5", "write options as option=value"),
        ("p(rel=1, rel=2)@5", "rel is given twice"),
        ("ndcg(empty=2)", "empty must be 0, 1 or 'skip'"),
        ("pairwise_accuracy-", "has no option 'empty'"),
        ("domination_error(ties=half)", "ties must be one of right, error, got 'half'"),
        ("all_pairs_error(ties=right)", "ties must be one of error, half, skip, got 'right'"),
        ("rbp(p=1)", "p must be a number from 0 to below 1, got 1.0"),
        ("kendall_tau(over=queries)", "kendall_tau has no option 'over'; it takes none"),
        ("ndcg(dcg=cubic)", "ndcg has no option 'dcg'"),
        ("recip_rnk", "Did you mean 'mrr'"),
    ],
)
def test_bad_names_say_what_is_valid(name, message):
    with pytest.raises(ValueError, match=message):
        evaluate([1, 0], [1, 0], metrics=[name])


def test_measures_are_values():
    assert len({metrics.NDCG(k=10), parse("ndcg@10"), parse("nDCG@10")}) == 1
    with pytest.raises(AttributeError):
        metrics.NDCG().k = 3
    with pytest.raises(ValueError, match="ties must be one of error, half, skip, got 'no'"):
        metrics.PairwiseAccuracy(ties="no")
    with pytest.raises(TypeError, match="a metric is a name such as 'ndcg@10'"):
        parse(10)
    assert len(valid_forms()) == 18


def test_conventions_can_be_changed():
    assert convention("letor", discount="letor") == convention("letor")
    assert convention("letor", empty="skip").describe().startswith("letor, empty=skip: ")
    with pytest.raises(ValueError, match="unknown convention 'letr'; did you mean 'letor'"):
        evaluate([1], [1], convention="letr")
    with pytest.raises(ValueError, match="has no choice 'tie'"):
        convention("letor", tie="stable")
    with pytest.raises(ValueError, match="ties must be one of stable, average"):
        convention("letor", ties="random")


@pytest.mark.parametrize("name", ["domination_error", "dominated_error(ties=right, over=queries)"])
def test_models_are_not_chosen_by_an_error_that_likes_ties(name):
    with pytest.raises(
        ValueError, match=r"scores all rows alike .* write domina\w+_error\(ties=er"
    ):
        metrics.parse_scoring(name)
    assert not metrics.parse_scoring(name.split("(")[0] + "(ties=error)").higher_is_better


# ---- the result -------------------------------------------------------------------------------


def test_result_is_a_mapping():
    result = evaluate(
        [1, 0, 0, 1], [4, 3, 2, 1], qid=list("aabb"), metrics=["mrr", "NDCG@1", "mrr"]
    )
    assert list(result) == ["mrr", "ndcg@1"]
    assert result["nDCG@1"] == result["ndcg@1"] == 0.5
    assert len(result) == 2
    with pytest.raises(KeyError, match="'map' was not evaluated; there are mrr, ndcg@1"):
        result["map"]
    assert "map" not in result
    table = result.to_text().splitlines()
    assert table[0].split() == ["metric", "mean", "queries"]
    assert table[1].split() == ["mrr", "0.7500", "2"]
    assert table[-1].startswith("convention linrank: gain 2^y - 1")
    assert repr(result) == "<Evaluation {'mrr': 0.75, 'ndcg@1': 0.5}, 2 queries, linrank>"
    assert str(result) == result.to_text()


def test_result_to_dict_is_json():
    result = evaluate([1, 0, 0, 0], [4, 3, 2, 1], qid=list("aabb"), metrics=["auc"])
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["means"] == {"auc": 1.0}
    assert plain["per_query"] == {"auc": [1.0, None]}
    assert plain["query_ids"] == ["a", "b"]
    assert plain["n_queries"] == 2


# ---- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "s", "options", "message"),
    [
        ([1, 0], [1, math.nan], {}, "scores has nan at row 1"),
        ([1, math.nan], [1, 0], {}, "Input y contains NaN at row 1"),
        ([1, 0, 1], [1, 0], {}, "y has 3 rows but scores has 2"),
        ([], [], {}, "y is empty"),
        ([1, 0], [[1, 0], [0, 1]], {}, r"scores should be a 1d array"),
        ([1, -1], [1, 0], {"metrics": "ndcg@3"}, "negative label -1 at row 1.*shift the labels"),
        ([1, -1], [1, 0], {"metrics": "err"}, "negative label -1 at row 1"),
        ([1, 3], [1, 0], {"metrics": "err(y_max=2)"}, "y has 3 at row 1, above the highest grade"),
        ([1, 0], [1, 0], {"qid": [1]}, "qid has 1 elements but there are 2 rows"),
        ([1, 0], [1, 0], {"docid": ["a"], "convention": "trec_eval"}, "docid must hold one id"),
        ([1, 0], [1, 0], {"docid": ["a", None], "convention": "trec_eval"}, "docid of row 1 is"),
        ([1, 0], [1, 0], {"metrics": []}, "metrics is empty; name at least one of ndcg"),
    ],
)
def test_bad_input(y, s, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(y, s, **options)


def test_negative_labels_are_fine_without_gains():
    result = evaluate([1, -1], [1, 0], metrics=["map", "auc", "pairwise_accuracy"])
    assert set(result.values()) == {1.0}
    assert evaluate([1, -1], [1, 0], metrics="ndcg", convention="trec_eval")["ndcg"] == 1.0


def test_infinite_scores_are_ranked_and_signed_zeros_are_tied():
    assert evaluate([1, 0, 0], [math.inf, 0, -math.inf], metrics="mrr")["mrr"] == 1.0
    assert evaluate([1, 0, 0], [-math.inf, 0, math.inf], metrics="mrr")["mrr"] == 1 / 3
    result = evaluate([1, 0], [-0.0, 0.0], metrics="pairwise_accuracy")
    assert result.pairs.totals() == (0, 0, 1)


# ---- terms: means as ratios of sums over queries ------------------------------------------------


FORMS = [name + ("@3" if kind.cutoff == "required" else "") for name, kind in MEASURES.items()]
FORMS += [
    "ndcg(empty=skip)@5",
    *(f"pairwise_accuracy(ties={ties})" for ties in ("error", "half", "skip")),
    *(f"all_pairs_error(ties={ties})" for ties in ("error", "half", "skip")),
    "pairwise_accuracy(ties=skip, over=queries)",
    *(f"domination_error(ties=error, over={over})" for over in ("rows", "queries")),
    *(f"dominated_error(ties=error, over={over})" for over in ("rows", "queries")),
]


def scored(seed: int = 0, n_queries: int = 30):
    """Labels, scores with ties, queries; every fifth query has one label only."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 9, n_queries))
    y = np.where(qid % 5 == 0, 0.0, rng.integers(0, 3, len(qid)))
    return y, rng.integers(0, 4, len(qid)).astype(float), qid


@pytest.mark.parametrize("name", metrics.CONVENTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_the_ratio_of_the_sums_is_the_mean(form, name):
    y, scores, qid = scored()
    result = evaluate(y, scores, qid=qid, metrics=form, convention=name)
    numerator, denominator = result.terms(form)
    assert numerator.dtype == denominator.dtype == np.float64
    assert numerator.shape == denominator.shape == (30,)
    assert_allclose(numerator.sum() / denominator.sum(), result[form], rtol=1e-13)


def test_large_counts_come_back_exactly():
    """10^6 pairs a query: value·total is an integer only after rounding."""
    rng = np.random.default_rng(0)
    y, scores, qid = rng.integers(0, 2, 4000), rng.normal(size=4000), np.repeat([1, 2], 2000)
    result = evaluate(y, scores, qid=qid, metrics="pairwise_accuracy")
    numerator, denominator = result.terms("pairwise_accuracy")
    assert_array_equal(numerator, result.pairs.concordant)
    assert_array_equal(denominator, result.pairs.concordant + result.pairs.discordant)


def test_any_spelling_finds_the_terms_and_an_unknown_one_is_an_error():
    y, scores, qid = scored()
    result = evaluate(y, scores, qid=qid, metrics="ndcg@5")
    assert_array_equal(result.terms("nDCG@5")[0], result.terms("ndcg@5")[0])
    with pytest.raises(KeyError, match="'map' was not evaluated; there are ndcg@5"):
        result.terms("map")


def test_parts_joined_are_the_whole():
    y, scores, qid = scored()
    metrics = ["ndcg@5", "map", "pairwise_accuracy(ties=half)", "domination_error", "mrr"]
    whole = evaluate(y, scores, qid=qid, metrics=metrics)
    first = qid < 11
    parts = [evaluate(y[k], scores[k], qid=qid[k], metrics=metrics) for k in (first, ~first)]
    joined = Evaluation.joined(parts)
    assert_array_equal(joined.query_ids, whole.query_ids)
    assert joined.convention == whole.convention
    assert joined.n_queries == 30
    for name in metrics:
        assert_allclose(joined[name], whole[name], rtol=1e-14)
        assert_array_equal(joined.per_query[name], whole.per_query[name])
        for ours, theirs in zip(joined.terms(name), whole.terms(name), strict=True):
            assert_array_equal(ours, theirs)
    assert joined.pairs.totals() == whole.pairs.totals()
    assert joined.dominating.totals() == whole.dominating.totals()


def test_joined_ids_are_unique():
    data = small()
    part = evaluate(data.y, data.X[:, 0], qid=data.qid, metrics="map")
    ids = Evaluation.joined([part, part]).query_ids.tolist()
    assert ids == [f"{k}:{i}" for k in (1, 2) for i in part.query_ids]
    assert_array_equal(Evaluation.joined([part]).query_ids, part.query_ids)
    alone = evaluate(data.y, data.X[:, 0], metrics="map")
    assert Evaluation.joined([alone, alone]).query_ids.tolist() == ["1", "2"]


def test_a_measure_without_queries_stays_undefined():
    part = evaluate([1, 1], [2, 1], qid=[1, 2], metrics="pairwise_accuracy")
    other = evaluate([0, 0], [2, 1], qid=[3, 4], metrics="pairwise_accuracy")
    assert np.isnan(Evaluation.joined([part, other])["pairwise_accuracy"])


def test_only_parts_that_are_alike_are_joined():
    y, scores, qid = scored()
    part = evaluate(y, scores, qid=qid, metrics="map")
    with pytest.raises(ValueError, match="part 2 has the measures mrr but part 1 has map"):
        Evaluation.joined([part, evaluate(y, scores, qid=qid, metrics="mrr")])
    letor = evaluate(y, scores, qid=qid, metrics="map", convention="letor")
    with pytest.raises(ValueError, match="part 2 follows the convention 'letor' but part 1 'linr"):
        Evaluation.joined([part, letor])
    with pytest.raises(ValueError, match="no evaluations to join"):
        Evaluation.joined([])


def queries(seed, n_queries=30, n_levels=4, decimals=1, most=14):
    """(y, s, sizes): tied scores, every fifth query without a relevant row, some of one row."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most, n_queries)
    y = rng.integers(0, n_levels, sizes.sum())
    qid = np.repeat(np.arange(n_queries), sizes)
    y[qid % 5 == 3] = 0
    return y.astype(float), rng.normal(size=len(y)).round(decimals), sizes


def by_query(sizes, *arrays):
    ends = np.cumsum(sizes)[:-1]
    return zip(*(np.split(a, ends) for a in arrays), strict=True)


# ---- the LETOR 4.0 and MSLR scripts, from the rules they follow --------------------------------


def letor_query(y, s, relevant, depth=10):
    """P@1..depth, MAP, NDCG@1..depth and MeanNDCG of one query as the scripts print them.

    Rows are sorted by score, equal scores stay as they came. The gains are looked up, the first
    two ranks are not discounted, a position past the end of the list has NDCG 0.
    """
    ranked = [y[i] for i in sorted(range(len(y)), key=lambda i: -s[i])]
    found, p, precisions = 0, [0.0] * max(depth, len(ranked)), []
    for i in range(len(p)):
        if i < len(ranked) and ranked[i] >= relevant:
            found += 1
            precisions.append(found / (i + 1))
        p[i] = found / (i + 1)
    gain = {0: 0, 1: 1, 2: 3, 3: 7, 4: 15}

    def dcg(labels):
        totals = []
        for i, label in enumerate(labels):
            term = gain[int(label)] * (1.0 if i == 0 else math.log(2) / math.log(i + 1))
            totals.append(term + (totals[-1] if totals else 0.0))
        return totals

    ideal = dcg(sorted(ranked, reverse=True))
    ndcg = [a / b if b else 0.0 for a, b in zip(dcg(ranked), ideal, strict=True)]
    padded = ndcg + [0.0] * max(0, depth - len(ndcg))
    average_precision = sum(precisions) / found if found else 0.0
    return p[:depth], average_precision, padded[:depth], sum(ndcg) / len(ndcg)


@pytest.mark.parametrize(("name", "relevant"), [("letor", 1), ("mslr", 2)])
def test_letor_scripts(name, relevant):
    y, s, sizes = queries(0, n_queries=60, n_levels=5)
    names = [f"{m}@{k}" for m in ("p", "ndcg") for k in range(1, 11)] + ["map", "mean_ndcg"]
    result = evaluate(y, s, group=sizes, metrics=names, convention=name)
    truth = [letor_query(a, b, relevant) for a, b in by_query(sizes, y, s)]
    for k in range(1, 11):
        assert_allclose(result.per_query[f"p@{k}"], [t[0][k - 1] for t in truth], rtol=1e-12)
        assert_allclose(result.per_query[f"ndcg@{k}"], [t[2][k - 1] for t in truth], rtol=1e-12)
    assert_allclose(result["map"], np.mean([t[1] for t in truth]), rtol=1e-12)
    assert_allclose(result["mean_ndcg"], np.mean([t[3] for t in truth]), rtol=1e-12)


# ---- scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 1, 3, 10])
def test_sklearn_ndcg(k):
    from sklearn.metrics import ndcg_score

    y, s, sizes = queries(1)
    name = "ndcg" if k is None else f"ndcg@{k}"
    for ties in ("average", "stable"):
        chosen = convention("sklearn", ties=ties)
        result = evaluate(y, s, group=sizes, metrics=name, convention=chosen)
        for value, (a, b) in zip(result.per_query[name], by_query(sizes, y, s), strict=True):
            if len(a) == 1:  # scikit-learn refuses these
                continue
            if ties == "stable" and len(set(b)) < len(b):  # and breaks ties by another order here
                continue
            expected = ndcg_score([a], [b], k=k, ignore_ties=ties == "stable")
            assert_allclose(value, expected, rtol=1e-12)


def test_sklearn_average_precision_and_auc():
    from sklearn.metrics import average_precision_score, roc_auc_score

    y, s, sizes = queries(3, n_levels=2, most=25)
    result = evaluate(y, s, group=sizes, metrics=["map", "auc"], convention="sklearn")
    rows = by_query(sizes, y, s)
    for value, area, (a, b) in zip(*result.per_query.values(), rows, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns about queries of one class
            assert_allclose(value, average_precision_score(a, b), rtol=1e-12)
        if len(set(a)) == 2:
            assert_allclose(area, roc_auc_score(a, b), rtol=1e-12)
        else:
            assert math.isnan(area)


# ---- XGBoost ----------------------------------------------------------------------------------


def xgboost_reports(y, s, sizes, metrics):
    """What XGBoost says of a model without trees whose scores are given as base margin."""
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.zeros((len(y), 1)), label=y)
    data.set_group(sizes)
    data.set_base_margin(s.astype(np.float32))
    booster = xgboost.Booster({"objective": "rank:ndcg", "eval_metric": metrics}, [data])
    pairs = [part.rsplit(":", 1) for part in booster.eval(data).split("\t")[1:]]
    return {name.removeprefix("eval-"): float(value) for name, value in pairs}


@pytest.mark.parametrize("seed", range(3))
def test_xgboost(seed):
    y, s, sizes = queries(seed + 10, n_queries=40)
    ours = ["ndcg", "ndcg@1", "ndcg@5", "ndcg@10", "ndcg@5-"]
    truth = xgboost_reports(y, s, sizes, ours)
    result = evaluate(y, s, group=sizes, metrics=ours, convention="xgboost")
    assert_allclose([result[m] for m in ours], [truth[m] for m in ours], rtol=1e-12)

    binary = (y > 0).astype(float)
    ours = ["map", "map@2", "map@5", "map@5-", "pre@2", "pre@10"]
    truth = xgboost_reports(binary, s, sizes, ours)
    result = evaluate(binary, s, group=sizes, metrics=ours, convention="xgboost")
    assert_allclose([result[m] for m in ours], [truth[m] for m in ours], rtol=1e-12)


# ---- LightGBM ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_lightgbm(seed):
    """A booster with a vanishing learning rate, so that its scores are the init_score."""
    lightgbm = pytest.importorskip("lightgbm")
    y, s, sizes = queries(seed + 20, n_queries=40)
    quiet = {"verbose": -1, "min_data_in_leaf": 1, "min_data_in_bin": 1}
    column = np.arange(len(y), dtype=float)[:, None]
    data = lightgbm.Dataset(column, label=y, group=sizes, init_score=s, params=quiet)
    reported: dict = {}
    asked = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 3, 10]}
    asked |= {"learning_rate": 1e-300, "num_leaves": 2, **quiet}
    note = lightgbm.record_evaluation(reported)
    lightgbm.train(asked, data, 1, valid_sets=[data], valid_names=["valid"], callbacks=[note])
    names = [f"{m}@{k}" for m in ("ndcg", "map") for k in (1, 3, 10)]
    result = evaluate(y, s, group=sizes, metrics=names, convention="lightgbm")
    truth = [reported["valid"][name][0] for name in names]
    assert_allclose([result[name] for name in names], truth, rtol=1e-12)
