"""Each convention, number by number, against the tool that it is named after."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linrank.metrics import convention, evaluate


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


# ---- SciPy ------------------------------------------------------------------------------------


def test_tau_of_many_rows_is_not_quadratic_and_does_not_overflow():
    """5·10^11 pairs by label and by score: their product is beyond 64 bits."""
    y = np.arange(1_000_000, dtype=float)
    assert evaluate(y, y, metrics="kendall_tau")["kendall_tau"] == pytest.approx(1.0, rel=1e-14)
    assert evaluate(y, -y, metrics="kendall_tau")["kendall_tau"] == pytest.approx(-1.0, rel=1e-14)


# ---- trec_eval --------------------------------------------------------------------------------


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
    lightgbm.train(
        {
            "objective": "lambdarank",
            "metric": ["ndcg", "map"],
            "eval_at": [1, 3, 10],
            "learning_rate": 1e-300,
            "num_leaves": 2,
            **quiet,
        },
        data,
        num_boost_round=1,
        valid_sets=[data],
        valid_names=["valid"],
        callbacks=[lightgbm.record_evaluation(reported)],
    )
    names = [f"{m}@{k}" for m in ("ndcg", "map") for k in (1, 3, 10)]
    result = evaluate(y, s, group=sizes, metrics=names, convention="lightgbm")
    truth = [reported["valid"][name][0] for name in names]
    assert_allclose([result[name] for name in names], truth, rtol=1e-12)


# ---- ranx and ir_measures ---------------------------------------------------------------------
