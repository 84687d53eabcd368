"""What the data decide where nothing is said: the same wherever they lie, and told."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

import linrank
from cli_files import write_svmlight
from linrank import RankSVM, RankSVMCV, make_ranking, ranksvm_path
from linrank.choices import PAPERS
from linrank.data.rows import ColumnStatistics
from linrank.data.scaling import Scaling
from linrank.judging.candidates import Trial, fair_convention, usual_Cs
from linrank.methods.ground import settle_parameters
from linrank.methods.parameters import RankSVMParameters
from linrank.parts.parts import Facts
from linrank.ranksvm.path import GRID


def facts(**changes) -> Facts:
    """Fifty queries of three grades and four dense features, but for what is changed."""
    known = {"n_rows": 1000, "n_nonzero": [1000] * 4, "variance": [1.0] * 4, "n_queries": 50}
    known |= {"n_levels": 150, "low": 0.0, "high": 2.0} | changes
    zero, n_nonzero = np.zeros(len(known["n_nonzero"])), np.array(known.pop("n_nonzero"))
    n_rows, variance = known.pop("n_rows"), np.array(known.pop("variance"))
    return Facts(
        ColumnStatistics(float(n_rows), n_rows, zero, variance, zero, zero + 1, n_nonzero), **known
    )


THIN = {"n_nonzero": [90] * 4}


@pytest.mark.parametrize(
    ("changes", "given", "expected"),
    [
        ({}, {}, ("standard", "ndcg@20", None)),
        ({"n_queries": 39, "n_levels": 117}, {}, ("standard", "uniform", "pairs")),
        ({"n_queries": 1, "n_levels": 3}, {}, ("standard", "uniform", None)),
        ({"high": 31.0}, {}, ("standard", "uniform", "pairs")),
        ({"low": -1.0}, {}, ("standard", "uniform", "pairs")),
        ({"n_levels": 501}, {}, ("standard", "uniform", "pairs")),
        (THIN, {}, ("none", "uniform", "pairs")),
        (THIN | {"variance": [9.0, 1.0, 1.0, 1.0]}, {}, ("standard", "ndcg@20", None)),
        ({}, {"pairs": "adjacent"}, ("standard", "uniform", "pairs")),
        ({}, {"solver": "tron"}, ("standard", "uniform", "pairs")),
        ({}, {"solver": "bundle", "loss": "hinge"}, ("standard", "ndcg@20", None)),
        ({}, {"scale": "minmax"}, ("minmax", "ndcg@20", None)),
        ({}, {"pair_weighting": "gain_diff"}, ("standard", "gain_diff", "pairs")),
        ({}, {"pair_weighting": "map"}, ("standard", "map", None)),
        ({}, {"query_normalization": "pairs"}, ("standard", "ndcg@20", "pairs")),
        (THIN, {"scale": "standard"}, ("standard", "uniform", "pairs")),
    ],
)
def test_what_the_data_decide(changes, given, expected):
    p = settle_parameters(RankSVMParameters(**given), facts(**changes))
    assert (p.scale, p.pair_weighting, p.query_normalization) == expected


def test_preferences_are_not_weighed_by_a_measure():
    p = settle_parameters(RankSVMParameters(), facts(), is_listed=True)
    assert (p.pair_weighting, p.query_normalization) == ("uniform", "pairs")


@pytest.mark.parametrize(
    ("changes", "balance"),
    [
        ({}, 50 / 40),
        ({"variance": [4.0] * 4}, 50 / 40 / 4),  # of raw features: their unit does not matter
        ({"n_queries": 1, "n_levels": 3}, 1000),
        ({"n_levels": 501}, 1000),  # a value for each row
        (THIN, 500 / 4),
    ],
)
def test_the_weight_of_all_losses(changes, balance):
    known = facts(**changes)
    assert_allclose(known.balance(known.spread(Scaling())), balance)


def grades(**changes):
    return make_ranking(n_queries=60, n_features=4, random_state=0, **changes)


def test_settings_are_the_same_wherever_the_rows_lie(tmp_path):
    data = grades()
    X = (16 * data.X).round() / 16  # exact in float32
    expected = RankSVM().fit(X, data.y, qid=data.qid)
    assert expected.settings_ == {
        "C": pytest.approx(1 / 40),
        "scale": "standard",
        "pair_weighting": "ndcg@20",
        "query_normalization": None,
    }
    assert expected.C_ == expected.settings_["C"] == expected.model_.training["C"]
    store = linrank.Store.write(tmp_path / "store", X, data.y, qid=data.qid, chunk_bytes=1500)
    fits = [
        RankSVM().fit(rows, data.y, qid=data.qid) for rows in (np.float32(X), sparse.csr_array(X))
    ]
    fits += [RankSVM().fit(store), RankSVM(memory_limit="64GB").fit(store)]
    for found in fits:
        assert found.settings_ == expected.settings_ | {"C": pytest.approx(expected.C_)}
        assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-5)
    whole, passes = (RankSVMCV(cv=2, **more).fit(store) for more in ({}, {"memory_limit": "64GB"}))
    assert_allclose(passes.Cs_, whole.Cs_)
    assert passes.settings_ == whole.settings_ | {"C": pytest.approx(whole.C_)}


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_whether_rows_are_sparse_is_a_matter_of_content(make):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 40)) < 0.05, 1.0, 0.0)
    y, qid = rng.integers(0, 3, 300), np.repeat(np.arange(60), 5)
    thin, thick = (RankSVM().fit(make(rows), y, qid=qid).settings_ for rows in (X, X + 1e-3))
    assert (thin["scale"], thin["pair_weighting"]) == ("none", "uniform")
    assert (thick["scale"], thick["pair_weighting"]) == ("standard", "ndcg@20")


def test_the_unit_of_raw_features_does_not_matter():
    data = grades()
    raw = RankSVM(scale="none", pair_weighting="uniform", tol=1e-8)
    one, two = (clone(raw).fit(X, data.y, qid=data.qid) for X in (data.X, 8 * data.X))
    assert_allclose(two.C_, one.C_ / 64)
    assert_allclose(8 * two.coef_, one.coef_, rtol=1e-5)


@pytest.mark.parametrize("scale", ["minmax", "query", "none"])
def test_every_scaling_has_its_unit(scale, tmp_path):
    data = grades()
    store = linrank.Store.write(tmp_path / "s", data.X, data.y, qid=data.qid, chunk_bytes=1500)
    memory, passes = RankSVM(scale=scale), RankSVM(scale=scale, memory_limit="64GB")
    assert_allclose(passes.fit(store).C_, memory.fit(data.X, data.y, qid=data.qid).C_)
    assert memory.C_ > 1 / 40 or scale == "none"  # features are narrower than their deviation


def test_curves_have_more_columns_and_a_smaller_C():
    data = grades()
    plain = RankSVM().fit(data.X, data.y, qid=data.qid)
    curved = RankSVM(curves="quantile").fit(data.X, data.y, qid=data.qid)
    assert_allclose(curved.C_, plain.C_ / 2)  # a line and a quantile for each feature


# ---- one grid ----


def test_there_is_one_grid(tmp_path, cli):
    data = grades()
    expected = RankSVM().fit(data.X, data.y, qid=data.qid).C_ * np.array(GRID)
    search = RankSVMCV(cv=2).fit(data.X, data.y, qid=data.qid)
    path = ranksvm_path(data.X, data.y, data.qid)
    whole = linrank.Dataset.of(data.X, data.y, qid=data.qid)
    trial = Trial(whole, None, "ndcg@10", fair_convention("linrank"))
    parameters = "linrank.methods.parameters:RankSVMParameters"
    tried = usual_Cs(trial, parameters, train="", warm_start=True)
    page = linrank.report(whole, train=whole, n_resamples=100)
    file = write_svmlight(tmp_path / "data.txt", data)
    tuned = cli(f"tune {file} --folds 2 --json -q").json["path"]["C"]
    for found in (search.Cs_, search.path_.Cs, path.Cs, tried, page.material.training.tuning.Cs):
        assert_allclose(found, expected)
    assert_allclose(tuned, expected, rtol=1e-3)  # text has float32 features


# ---- what is told ----


def test_train_tells_what_the_data_decided(tmp_path, cli):
    train = f"train {write_svmlight(tmp_path / 'data.txt', grades())} {tmp_path / 'model.json'}"
    line = "C = 0.025 (auto), scale standard (auto), pairs by ndcg@20 (auto)"
    assert f"settings  {line}" in cli(train).err
    given = f"{train} -c 0.1 --pair-weighting uniform --query-normalization"
    line = "C = 0.1, scale standard (auto), pairs uniform, queries equal"
    assert f"settings  {line}" in cli(f"{given} pairs").err
    told = cli(f"{given} none --scale none --json")
    assert "settings" not in told.err
    found = told.json["training"]
    assert {name: found[name] for name in PAPERS} == PAPERS | {"C": 0.1}
    assert found["auto"] == []
    found = cli(f"{train} --json -q").json["training"]
    assert found["auto"] == ["C", "scale", "pair_weighting", "query_normalization"]
    assert (found["scale"], found["pair_weighting"]) == ("standard", "ndcg@20")
    assert found["C"] == pytest.approx(1 / 40)


def test_rows_of_weight_zero_do_not_decide():
    data = grades()
    counts = np.random.default_rng(1).random(len(data.y)) < 0.4  # some queries lose all pairs
    plain = RankSVM(pair_weighting="uniform", tol=1e-8)
    weighted = clone(plain).fit(data.X, data.y, qid=data.qid, sample_weight=counts.astype(float))
    left = clone(plain).fit(data.X[counts], data.y[counts], qid=data.qid[counts])
    assert weighted.settings_ == left.settings_ | {"C": pytest.approx(left.C_)}
    assert_allclose(weighted.coef_, left.coef_, rtol=1e-6)
