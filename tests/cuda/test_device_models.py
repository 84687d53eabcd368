"""Models score rows on a device there; folds are cut from them and measured there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank import LinearModel, make_ranking
from linrank.data.dataset import Dataset
from linrank.data.device_rows import on_device
from linrank.data.missing import Missing
from linrank.data.rows import as_rows
from linrank.data.scaling import Scaling
from linrank.methods.base import Task
from linrank.methods.parameters import RankSVMSearch
from linrank.methods.search import search_ranksvm
from linrank.search.folds import deal, judge
from linrank.system.device import Device, is_on_device


def data_set(density: float = 1.0, n_queries: int = 15) -> Dataset:
    return make_ranking(n_queries, (2, 25), 6, density=density, random_state=3)


def there(data: Dataset, device: Any) -> Dataset:
    return replace(data, rows=on_device(data.rows, device))


@pytest.mark.parametrize("density", [1.0, 0.3])
def test_scores_stay_on_the_device(device, density):
    data = data_set(density)
    model = LinearModel(np.random.default_rng(0).normal(size=6))
    expected = model.predict(data)
    for X in (there(data, device), on_device(data.rows, device)):
        scores = model.predict(X)
        assert is_on_device(scores)
        assert_allclose(device.get(scores), expected, rtol=1e-13)
    if density == 1.0:
        assert_allclose(device.get(model.predict(device.put(data.X))), expected, rtol=1e-13)
    with pytest.raises(ValueError, match="the rows have 5 features, the model 6"):
        model.predict(device.put(np.zeros((3, 5))))


def test_scores_that_are_no_numbers_are_refused(device):
    model = LinearModel([1.0, 0.0, 1e300], feature_names=["a", "b", "c"])
    X = np.ones((9, 3))
    for value, told in ((np.nan, "contains NaN at"), (np.inf, r"contains infinity \(inf\) at")):
        X[7, 1] = value
        with pytest.raises(ValueError, match=told + r" row 7, column 1 \('b'\)"):
            model.predict(device.put(X))
    X[7, 1] = 0.0
    X[[4, 6], 2] = 1e300
    with pytest.raises(ValueError, match=r"the score of row 4 is inf \(2 such rows\)"):
        model.predict(device.put(X))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (LinearModel([1.0], scaling=Scaling("query")), "scale='query'"),
        (LinearModel([1.0], missing=Missing("zero")), "missing='zero'"),
    ],
    ids=["query", "missing"],
)
def test_models_that_need_more_than_a_row(device, model, told):
    with pytest.raises(ValueError, match=rf"model with {told}; pass predict a copy on the host"):
        model.predict(device.put(np.ones((3, 1))))


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "index",
    [slice(2, 9), slice(None, None, 3), np.array([5, 0, 5, 11]), np.arange(12) % 3 == 1, [], [-1]],
    ids=str,
)
def test_some_rows(device, storage, index):
    rng = np.random.default_rng(1)
    rows = as_rows(storage(rng.normal(size=(12, 4)) * (rng.random((12, 4)) < 0.5)))
    index = index if isinstance(index, slice) else np.array(index, getattr(index, "dtype", int))
    expected, taken = rows.take(index), on_device(rows, device).take(index)
    assert taken.device is device
    assert taken.shape == expected.shape
    for found in (taken.stored(slice(None), 1), on_device(rows, device).stored(index, 1)):
        for name in ("values", "columns", "offsets")[: 3 if rows.is_sparse else 1]:
            assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize("scoring", ["ndcg@10", "map", "pairwise_accuracy"])
def test_folds_are_judged_there(device, monkeypatch, density, scoring):
    data = data_set(density)
    rng = np.random.default_rng(2)
    coefs = np.concatenate([np.zeros((1, 6)), rng.normal(size=(5, 6))])
    fetched: list[int] = []
    get = Device.get
    monkeypatch.setattr(Device, "get", lambda self, a: (fetched.append(a.size), get(self, a))[1])
    for k, fold in enumerate(deal(data, 3)):
        asked = fold, k, Scaling("none"), scoring
        found = judge(coefs, there(data, device), *asked)
        assert_allclose(found, judge(coefs, data, *asked), rtol=1e-12)
    if scoring != "pairwise_accuracy":
        assert max(fetched) <= data.queries.n_queries


def test_a_search_chooses_the_same_model(device):
    data = data_set(n_queries=10)
    task = Task(data, RankSVMSearch(Cs=[0.01, 1.0], scale="none"))
    folds = deal(data, 2)
    expected = search_ranksvm(task, folds)
    found = search_ranksvm(replace(task, data=there(data, device)), folds)
    assert_allclose(found.scores, expected.scores, rtol=1e-9)
    assert found.best_params == expected.best_params
    assert_allclose(found.model.coef, expected.model.coef, rtol=1e-4)
