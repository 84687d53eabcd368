"""Models score rows on a device there; folds are cut from them and measured there."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import linrank
from linrank import LinearModel, make_ranking
from linrank.choices import PAPERS
from linrank.cli.main import main
from linrank.data.dataset import Dataset
from linrank.data.device_rows import on_device
from linrank.data.missing import Missing
from linrank.data.rows import as_rows
from linrank.data.scaling import Scaling
from linrank.errors import DeviceError
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


# ---- estimators ---------------------------------------------------------------------------------

FITS = {
    "defaults": {},
    "papers": dict(PAPERS),
    "hinge": {"loss": "hinge", "C": 0.01, "tol": 1e-4},
    "bounds": {"positive": True, "tol": 1e-8},
    "adjacent": {"pairs": "adjacent", "pair_weighting": "gain_diff", "tol": 1e-10},
    "closest": {"pairs": "closest", "tol": 1e-10},
    "filled": {"missing": "mean", "tol": 1e-10},
}


@pytest.mark.parametrize("storage", ["dense", "csr", "data set"])
@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_a_fit_moved_to_a_device_is_that_of_the_host(device, options, storage):
    data = data_set(0.3 if storage == "csr" else 1.0, n_queries=8)
    X = sparse.csr_array(data.X) if storage == "csr" else data.X
    given = (data,) if storage == "data set" else (X, data.y)
    own = {} if storage == "data set" else {"qid": data.qid}
    expected = linrank.RankSVM(**options).fit(*given, **own)
    found = linrank.RankSVM(**options, device="cuda").fit(*given, **own)
    assert found.n_iter_ == expected.n_iter_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7)
    assert_allclose(found.coef_, expected.coef_, atol=1e-3 * np.abs(expected.coef_).max())
    assert_allclose(found.feature_importances_, expected.feature_importances_, atol=1e-3)
    assert isinstance(found.predict(X), np.ndarray)
    assert "fingerprint" not in found.model_.training
    assert "fingerprint" in expected.model_.training


def test_rows_that_lie_there_are_trained_with_there(device):
    data = data_set(n_queries=8)
    X = device.put(data.X)
    there = Dataset.of(X, data.y, qid=data.qid)
    assert there.rows.device is device
    assert there.X is X
    expected = linrank.RankSVM().fit(data)
    for given, own in (((X, data.y), {"qid": data.qid}), ((there,), {})):
        for name in ("cpu", "cuda", "cuda:0"):
            found = linrank.RankSVM(device=name).fit(*given, **own)
            assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert is_on_device(found.predict(X))
    path = {"Cs": [0.01, 0.1], "scale": "none"}
    searches = [linrank.RankSVMCV(cv=3, **path).fit(each) for each in (data, there)]
    assert_allclose(searches[1].scores_, searches[0].scores_, rtol=1e-9)
    paths = [
        linrank.ranksvm_path(data.X, data.y, qid=data.qid, device=name, **path)
        for name in ("cpu", "cuda")
    ]
    assert_allclose(paths[1].objectives, paths[0].objectives, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"device": "gpu"}, "device must be 'cpu', 'cuda' or 'cuda:1' and so on, got 'gpu'"),
        ({"device": "cuda", "curves": "quantile"}, "curves and interactions can only be trained"),
        ({"device": "cuda", "scale": "query"}, "use scale='standard' or 'minmax'"),
        ({"device": "cuda", "solver": "tron"}, "reads stored rows, but these are .* on cuda:0"),
    ],
)
def test_what_does_not_run_there_is_refused(device, options, told):
    data = data_set()
    with pytest.raises(ValueError, match=told):
        linrank.RankSVM(**options).fit(data)


@pytest.mark.parametrize("density", [1.0, 0.3])
def test_the_domination_loss_takes_products_from_there(device, density):
    data = make_ranking(60, (2, 25), 6, density=density, random_state=4)
    options = {"penalty": "l2", "alpha": 0.1, "tol": 1e-9}
    expected = linrank.DominationRanker(**options).fit(data)
    found = linrank.DominationRanker(**options, device="cuda").fit(data)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-9)
    assert_allclose(found.coef_, expected.coef_, atol=1e-3 * np.abs(expected.coef_).max())
    for more, told in (({"penalty": "l1"}, "penalty='l1'"), ({"solver": "coordinate"}, "coordin")):
        with pytest.raises(ValueError, match=told):
            linrank.DominationRanker(**{**options, **more}, device="cuda").fit(data)


@pytest.mark.parametrize(
    "ranker",
    [
        *(linrank.SGDRanker(), linrank.DominationRanker(), linrank.DominationRankerCV()),
        *(linrank.FactorizedRankSVM(), linrank.AutoRanker(), linrank.RankSVM(curves="step")),
    ],
    ids=repr,
)
def test_methods_of_the_host_refuse_rows_on_a_device(device, ranker):
    data = data_set()
    with pytest.raises(ValueError, match=r"the rows are on cuda:0, and .* pass a copy, cupy.asnum"):
        ranker.fit(there(data, device))


def test_rows_in_passes_and_on_another_device_are_refused(device, tmp_path):
    data = data_set()
    store = linrank.convert(data, tmp_path / "store")
    ranker = linrank.RankSVM(device="cuda", memory_limit="64MB")
    with pytest.raises(ValueError, match="device='cuda' takes rows in memory, and these are a st"):
        ranker.fit(linrank.Store(tmp_path / "store"))
    assert store is not None
    with pytest.raises(ValueError, match="missing='mean' fills in values on the host"):
        linrank.RankSVM(missing="mean").fit(device.put(data.X), data.y, qid=data.qid)
    with pytest.raises(DeviceError, match="device='cuda:99': there "):
        linrank.RankSVM(device="cuda:99").fit(data)


def test_the_command_line_trains_there(device, tmp_path):
    linrank.convert(data_set(n_queries=8), tmp_path / "train.txt")
    for command in (["train"], ["tune", "--Cs", "0.01,0.1", "--folds", "2"]):
        asked = [*command, str(tmp_path / "train.txt"), "--scale", "none"]
        models = []
        for name in ("cpu", "cuda"):
            path = str(tmp_path / f"{name}.json")
            assert main([*asked, "-o", path, "--device", name]) == 0
            models.append(linrank.load_model(path))
        assert_allclose(models[1].coef, models[0].coef, rtol=1e-3, atol=1e-5)


@pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")  # tol is below rounding
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_tight_fits_agree_in_all_that_tol_promises(device, density):
    data = data_set(density)
    options = {**PAPERS, "C": 0.1, "tol": 1e-14}
    expected = linrank.RankSVM(**options).fit(data)
    found = linrank.RankSVM(**options, device="cuda").fit(data)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-10)
    assert_allclose(found.coef_, expected.coef_, atol=1e-8 * np.abs(expected.coef_).max())


@pytest.mark.parametrize("name", ["cuda", "cuda:99"])
def test_the_command_line_says_what_is_missing_in_one_line(monkeypatch, capsys, tmp_path, name):
    if name == "cuda":
        monkeypatch.setitem(sys.modules, "cupy", None)  # cannot be imported
    linrank.convert(data_set(n_queries=8), tmp_path / "train.txt")
    model = str(tmp_path / "model.json")
    assert main(["train", str(tmp_path / "train.txt"), "-o", model, "-q", "--device", name]) == 1
    told = "needs CuPy, which cannot be imported" if name == "cuda" else "there "
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"linrank: error: device='{name}'")
    assert told in line
