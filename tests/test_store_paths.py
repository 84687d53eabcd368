"""Paths and cross-validation of a store within a limit on memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from linrank import DominationRankerCV
from linrank.data.synthetic import make_ranking
from linrank.io.store.store import Store
from papers import RankSVMCV, ranksvm_path

# Noise has no best C; that the choice lies at an end of these grids is no concern here.
pytestmark = pytest.mark.filterwarnings("ignore:(the best|every) (C|alpha)")
GRID = [1e-3, 0.03, 1.0]


@pytest.fixture(scope="module")
def data():
    return make_ranking(60, (3, 14), 6, noise=1.0, random_state=7, dtype="float32")


@pytest.fixture(scope="module")
def store(data, tmp_path_factory):
    found = Store.of(tmp_path_factory.mktemp("stores") / "small", data, chunk_bytes=2000)
    assert found.n_chunks > 4
    return found


@pytest.mark.parametrize("scale", ["none", "standard", "query"])
def test_a_search_of_the_domination_loss_in_passes_is_that_in_memory(store, data, scale):
    options = {"penalty": "l2", "n_alphas": 4, "cv": 3, "scale": scale, "tol": 1e-8}
    truth = DominationRankerCV(**options).fit(data.X, data.y, qid=data.qid)
    found = DominationRankerCV(**options, memory_limit="1GB").fit(store)
    assert_allclose(found.alphas_, truth.alphas_, rtol=1e-9)
    assert_allclose(found.scores_, truth.scores_, atol=1e-6)
    assert found.alpha_ == pytest.approx(truth.alpha_)
    assert_allclose(found.coef_, truth.coef_, atol=1e-5 * np.abs(truth.coef_).max())
    assert (found.path_.n_nonzero == truth.path_.n_nonzero).all()
    known = ("penalty", "solver", "n_pairs", "scoring")
    assert [found.model_.training[name] for name in known] == [
        truth.model_.training[name] for name in known
    ]
    with pytest.raises(ValueError, match="use penalty='l2'"):
        DominationRankerCV(memory_limit="1GB").fit(store)


@pytest.mark.parametrize("options", [{}, {"scale": "standard"}, {"scale": "query"}], ids=str)
def test_a_path_in_passes_is_the_path_in_memory(store, data, options):
    truth = ranksvm_path(data.X, data.y, data.qid, Cs=GRID, tol=1e-10, **options)
    mapped = ranksvm_path(store, Cs=GRID, tol=1e-10, **options)
    found = ranksvm_path(store, Cs=GRID, tol=1e-10, memory_limit="1GB", **options)
    assert_array_equal(mapped.coefs, truth.coefs)
    assert found.converged.all()
    assert_allclose(found.coefs, truth.coefs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("search", [RankSVMCV(GRID), DominationRankerCV("l2", n_alphas=3)])
def test_a_model_chosen_in_passes_knows_what_one_of_mapped_rows_does(search, data, tmp_path):
    store = Store.of(tmp_path / "store", replace(data, index_base=1), chunk_bytes=2000)
    search.set_params(cv=3, tol=1e-9)
    truth = clone(search).fit(store)
    found = clone(search).set_params(memory_limit="1GB").fit(store)
    assert found.model_.training["index_base"] == truth.model_.training["index_base"] == 1
    assert_allclose(found.feature_importances_, truth.feature_importances_, rtol=1e-3)


def test_cross_validation_in_passes_is_that_in_memory(store, data):
    options = {"cv": 4, "tol": 1e-10, "scale": "minmax", "n_jobs": 1}
    truth = RankSVMCV(GRID, **options).fit(data.X, data.y, qid=data.qid)
    found = RankSVMCV(GRID, memory_limit="1GB", **options).fit(store)
    assert_allclose(found.scores_, truth.scores_, rtol=1e-10)
    assert found.C_ == truth.C_
    assert_allclose(found.coef_, truth.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(found.predict(data.X), data.X @ found.coef_, rtol=1e-5, atol=1e-6)
    for name in ("n_queries_", "n_pairs_", "needs_qid_", "n_features_in_"):
        assert getattr(found, name) == getattr(truth, name)
    told = {"C", "score", "scoring", "n_rows", "n_queries", "n_pairs", "loss", "objective"}
    for name in told - {"objective"}:
        assert found.model_.training[name] == pytest.approx(truth.model_.training[name])


def test_a_mapped_store_is_cross_validated_without_a_limit(store, data):
    truth = RankSVMCV(GRID, cv=3, n_jobs=1).fit(data.X, data.y, qid=data.qid)
    found = RankSVMCV(GRID, cv=3, n_jobs=1).fit(store)
    assert_array_equal(found.scores_, truth.scores_)
    assert_array_equal(found.coef_, truth.coef_)


def test_validation_data_in_memory(store, data):
    other = make_ranking(20, (3, 14), 6, noise=1.0, random_state=8, dtype="float32")
    cv = (other.X, other.y, other.qid)
    options = {"cv": cv, "tol": 1e-10, "n_jobs": 1}
    truth = RankSVMCV(GRID, **options).fit(data.X, data.y, qid=data.qid)
    found = RankSVMCV(GRID, memory_limit="1GB", **options).fit(store)
    assert_allclose(found.scores_, truth.scores_, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": "pruned"}, "pairs='pruned'.*a store within memory_limit"),
        ({"solver": "bundle"}, "solver='bundle'"),
    ],
)
def test_what_passes_cannot_serve_is_refused(store, options, message):
    with pytest.raises(ValueError, match=message):
        RankSVMCV(GRID, memory_limit="1GB", **options).fit(store)
    with pytest.raises(ValueError, match=message):
        ranksvm_path(store, Cs=GRID, memory_limit="1GB", **options)


def test_a_limit_is_for_stores(data):
    with pytest.raises(ValueError, match="memory_limit=1000000 is for a store"):
        ranksvm_path(data.X, data.y, data.qid, memory_limit=1000000)
    with pytest.raises(ValueError, match="is for a store"):
        RankSVMCV(memory_limit="1GB").fit(data.X, data.y, qid=data.qid)


def test_labels_are_part_of_the_store(store):
    with pytest.raises(ValueError, match="qid is part of the store"):
        RankSVMCV(GRID).fit(store, qid=np.zeros(3))
    with pytest.raises(ValueError, match="y is part of the store"):
        ranksvm_path(store, np.zeros(3))
