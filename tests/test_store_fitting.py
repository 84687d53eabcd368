"""Estimators on stores: mapped, and in passes within a limit on memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import linrank
import papers
from linrank.data.rows import as_rows
from linrank.io.store.store import Store
from linrank.parts.passes import SPARE

TIGHT = SPARE + 300_000  # room for two small chunks, no more
GRID = [1e-3, 0.03, 1.0]


pytestmark = pytest.mark.filterwarnings(
    "ignore:X does not have valid feature names",
    "ignore:(the best|every) (C|alpha)",
    "ignore::linrank.ConvergenceWarning",
)
MADE = linrank.make_ranking(n_queries=300, n_features=9, random_state=0)
WEIGHT = np.random.default_rng(0).integers(1, 3, MADE.n_rows).astype(float)
NAMES = [f"f{i}" for i in range(9)]
DATA = linrank.Dataset.of(MADE.X, MADE.y, qid=MADE.qid, sample_weight=WEIGHT, feature_names=NAMES)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("stores") / "store"
    return Store.of(path, DATA, chunk_bytes=20_000)


def in_memory(ranker: Any, data: linrank.Dataset) -> Any:
    return ranker.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "query"])
@pytest.mark.parametrize(
    "ranker",
    [papers.RankSVM(C=0.1, tol=1e-14), papers.DominationRanker("l2", 2.0, tol=1e-14)],
    ids=lambda ranker: type(ranker).__name__,
)
def test_passes_find_what_memory_finds(ranker, scale, store):
    ranker = clone(ranker).set_params(scale=scale)
    whole = in_memory(clone(ranker), DATA)
    ample, tight = (clone(ranker).set_params(memory_limit=n).fit(store) for n in ("64GB", TIGHT))
    np.testing.assert_array_equal(ample.coef_, tight.coef_)
    size = np.abs(whole.coef_).max()
    np.testing.assert_allclose(ample.coef_, whole.coef_, rtol=0, atol=1e-9 * size)
    assert (ample.n_pairs_, ample.n_queries_) == (whole.n_pairs_, whole.n_queries_)
    assert list(ample.feature_names_in_) == list(DATA.feature_names)
    assert ample.model_.training["n_rows"] == DATA.n_rows
    scores = whole.predict(DATA.X, qid=DATA.qid)
    np.testing.assert_allclose(ample.predict(DATA.X, qid=DATA.qid), scores, atol=1e-7)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize(
    "ranker",
    [
        linrank.RankSVM(C=0.1),
        linrank.RankSVM(C=0.1, loss="hinge"),
        linrank.RankSVM(C=0.1, pair_weighting="ndcg@5", coef_bounds={"idf": (0.0, None)}),
        linrank.RankSVMCV(Cs=[0.01, 0.1], cv=2),
        linrank.DominationRanker("l2", 2.0),
        linrank.SGDRanker(average=True, n_steps=2_000, random_state=0),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
def test_what_no_pair_sees_has_no_weight(ranker: Any, storage: str, tmp_path: Path) -> None:
    query = np.random.default_rng(1).gamma(2.0, 50.0, 300)[np.asarray(DATA.qid) % 300]
    X = np.column_stack([DATA.X, query, np.full(DATA.n_rows, 0.1)])
    names = [*(DATA.feature_names or ()), "idf", "constant"]
    rows = sparse.csr_array(X) if storage == "csr" else X
    given = linrank.Dataset.of(rows, DATA.y, qid=DATA.qid, feature_names=names)
    store = Store.of(tmp_path / "store", given, chunk_bytes=20_000)
    coef = ranker.set_params(memory_limit="64GB").fit(store).coef_
    assert store.n_chunks > 1
    assert coef[-2:].tolist() == [0.0, 0.0]
    assert (coef[:-2] != 0.0).all()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize(
    "ranker",
    [
        linrank.RankSVM(curves="quantile"),
        linrank.RankSVM(curves="spline", n_knots=5, increasing=["f0"], decreasing=[3]),
        linrank.RankSVM(curves="step", interactions=12, random_state=0),
        linrank.RankSVM(curves="quantile", pair_weighting="ndcg@5"),
        linrank.DominationRanker("l2", 2.0, curves="quantile"),
    ],
    ids=lambda ranker: f"{ranker.curves}-{type(ranker).__name__}",
)
def test_curves_over_a_store_are_those_of_memory(ranker, storage, tmp_path):
    X = sparse.csr_array(DATA.X) if storage == "csr" else DATA.X
    data = replace(DATA, rows=as_rows(X))
    store = Store.of(tmp_path / "store", data, chunk_bytes=20_000)
    ranker.set_params(tol=1e-8, **({"C": 0.1} if hasattr(ranker, "C") else {}))
    whole = clone(ranker).fit(data)
    ample, tight = (
        clone(ranker).set_params(memory_limit=limit).fit(store) for limit in ("64GB", 2 * TIGHT)
    )
    model, scores = whole.model_, whole.predict(data.X)
    for name in ("knots", "offsets"):
        assert getattr(ample.model_.curves, name).tobytes() == getattr(model.curves, name).tobytes()
    np.testing.assert_allclose(ample.predict(data.X), scores, atol=1e-3 * np.ptp(scores))
    assert ample.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    assert tight.predict(data.X).tobytes() == ample.predict(data.X).tobytes()
    assert ample.model_.training["curves"] == ranker.curves
    np.testing.assert_allclose(ample.model_.statistics.mean, model.statistics.mean)
    assert ample.model_.feature_names == list(data.feature_names)


def test_a_search_over_a_store_has_the_curves_of_every_fold(store):
    options = {"curves": "spline", "n_knots": 4, "increasing": [1], "tol": 1e-6}
    for cv in (3, (DATA.X, DATA.y, DATA.qid)):
        whole, found = (
            linrank.RankSVMCV([0.01, 0.1], cv=cv, memory_limit=limit, **options).fit(given)
            for limit, given in ((None, DATA), ("64GB", store))
        )
        np.testing.assert_allclose(found.scores_, whole.scores_, atol=1e-3)
        scores = whole.predict(DATA.X)
        np.testing.assert_allclose(found.predict(DATA.X), scores, atol=1e-3 * np.ptp(scores))
        assert isinstance(found.model_, linrank.AdditiveModel)


def test_query_weights_by_id(store):
    weights = {id_: float(i % 3) for i, id_ in enumerate(np.unique(DATA.qid).tolist())}
    ranker, valid = papers.RankSVM(C=0.1, tol=1e-12), {"X_val": DATA.X, "y_val": DATA.y}
    given = {"query_weight": weights, **valid, "qid_val": DATA.qid}
    whole = clone(ranker).fit(DATA, **given)
    ranker.set_params(memory_limit="64GB").fit(store, **given)
    np.testing.assert_allclose(ranker.coef_, whole.coef_, rtol=0, atol=1e-8)
    for name in ("val_ndcg@10", "objective"):
        assert ranker.history_[name][-1] == pytest.approx(whole.history_[name][-1], rel=1e-6)
    best = ranker.history_["val_ndcg@10"][ranker.best_iteration_]
    assert best == max(ranker.history_["val_ndcg@10"])
    with pytest.raises(ValueError, match="mapping from query id to weight"):
        ranker.fit(store, query_weight=np.ones(300))


def test_the_limit_has_room_for_the_sums_of_hessians(tmp_path: Path) -> None:
    """A sum by a tree keeps one matrix a level, and a kernel 64 MB of parts."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.standard_normal((640, 1000)), rng.integers(0, 3, 640), np.arange(640) // 5
    n_bytes = {}
    for n_chunks in (1, 128):
        store = Store.write(
            tmp_path / f"{n_chunks}", X, y, qid=qid, chunk_bytes=X.nbytes // n_chunks
        )
        assert store.n_chunks == n_chunks
        with pytest.raises(MemoryError, match="is too small") as caught:
            papers.RankSVM(memory_limit="1MB").fit(store)
        found = re.search(r"takes (\d+\.\d) MB beyond", str(caught.value))
        assert found is not None
        n_bytes[n_chunks] = float(found[1]) * 1e6 - 3 * store.chunks[0].nbytes - SPARE
    assert n_bytes[128] > 20 * X.shape[1] ** 2 * 8  # 18 to 21 matrices were measured
    assert n_bytes[128] - n_bytes[1] == pytest.approx(7 * X.shape[1] ** 2 * 8, rel=0.01)


LEAST = """
import re, sys
import numpy as np
import linrank
from linrank.system.resources import parse_bytes

def in_memory(name):
    with open("/proc/self/status") as file:
        return 1024 * int(dict(line.split(":") for line in file)[name].split()[0])

ranker = eval("linrank." + sys.argv[2])
small = linrank.make_ranking(n_queries=60, n_features=3, random_state=0)
warm = linrank.Store.of(sys.argv[1] + "-warm", small, chunk_bytes=1000)
ranker.set_params(memory_limit="1GB").fit(warm)  # all that is imported late
store, held = linrank.Store(sys.argv[1]), np.ones(20_000_000)  # what others hold does not count
limit, is_fitted = "1kB", False
while not is_fitted:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is that of what follows
    before = in_memory("VmRSS")
    try:
        ranker.set_params(memory_limit=limit).fit(store)
        is_fitted = True
    except MemoryError as error:
        limit = re.search(r"allow (\\S+), or", str(error))[1]
print(parse_bytes(limit), in_memory("VmHWM") - before)
"""


@pytest.mark.parametrize(
    ("n_rows", "n_features", "ranker"),
    [
        (200_000, 100, "RankSVM(scale='query', pair_weighting='uniform', tol=0.01, n_jobs=1)"),
        pytest.param(1_000_000, 4, "RankSVM(tol=0.01, n_jobs=1)", marks=pytest.mark.slow),
        pytest.param(300_000, 100, "SGDRanker(n_steps=20_000)", marks=pytest.mark.slow),
    ],
    ids=["wide rows, scaled by query", "narrow rows, by a measure", "stochastic descent"],
)
def test_a_fit_takes_what_it_asks_for(
    n_rows: int, n_features: int, ranker: str, tmp_path: Path
) -> None:
    """The least limit is not exceeded, nor is it much more than is taken."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the system does not tell peaks of memory")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    y, qid = rng.integers(0, 3, n_rows), np.arange(n_rows) // 50
    path = tmp_path / "store"
    Store.write(path, X, y, qid=qid, chunk_bytes=X.nbytes // 20)
    command = [sys.executable, "-c", LEAST, str(path), ranker]
    limit, taken = map(int, subprocess.check_output(command, text=True).split())
    assert taken <= limit <= 1.6 * taken + SPARE


@pytest.mark.parametrize(
    "ranker",
    [
        papers.RankSVM(C=0.1),
        papers.RankSVMCV(GRID, cv=3, n_jobs=1),
        papers.DominationRanker(alpha=3.0),
        papers.FactorizedRankSVM(max_iter=5, random_state=0),
        papers.KernelRankSVM(approximation="nystroem", n_components=8, random_state=0),
        papers.SGDRankerCV(cv=2, random_state=0),
        papers.DominationRankerCV(n_alphas=3, cv=2),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_every_estimator_takes_a_store(ranker, store):
    scores = ranker.fit(store).predict(DATA.X)
    np.testing.assert_array_equal(scores, in_memory(ranker, DATA).predict(DATA.X))
    with pytest.raises(TypeError, match=r"X is a Store.*read it by data = store\.dataset\(\)"):
        ranker.predict(store)


# ---- paths and searches within a limit -----------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "tolerance"),
    [
        (papers.RankSVMCV(GRID, scale="minmax"), 1e-10),
        (papers.RankSVMCV(GRID, cv=None), 1e-10),
        *(
            (papers.DominationRankerCV("l2", n_alphas=4, scale=scale), 1e-6)
            for scale in ("none", "standard", "query")
        ),
    ],
    ids=str,
)
def test_a_search_in_passes_is_that_in_memory(search, tolerance, store):
    valid = linrank.make_ranking(40, n_features=9, random_state=8)
    search = clone(search).set_params(tol=1e-9, cv=search.cv and 3)
    if search.cv is None:
        search.set_params(cv=(valid.X, valid.y, valid.qid))
    truth = in_memory(clone(search), DATA)
    found = search.set_params(memory_limit="1GB").fit(store)
    np.testing.assert_allclose(found.scores_, truth.scores_, atol=tolerance)
    size = np.abs(truth.coef_).max()
    np.testing.assert_allclose(found.coef_, truth.coef_, atol=1e-5 * size)
    known = {"score", "scoring", "n_rows", "n_queries", "n_pairs", "loss", "penalty", "index_base"}
    for name in known & truth.model_.training.keys():
        assert found.model_.training[name] == pytest.approx(truth.model_.training[name])
    for name in ("n_queries_", "n_pairs_", "needs_qid_", "n_features_in_", "best_params_"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name))
    if search.scale != "query":
        importances = truth.feature_importances_
        np.testing.assert_allclose(found.feature_importances_, importances, rtol=1e-3)


@pytest.mark.parametrize("options", [{}, {"scale": "standard"}, {"scale": "query"}], ids=str)
def test_a_path_in_passes_is_the_path_in_memory(store, options):
    own = {"Cs": GRID, "tol": 1e-10, **options}
    truth = papers.ranksvm_path(DATA.X, DATA.y, DATA.qid, sample_weight=DATA.weight, **own)
    mapped = papers.ranksvm_path(store, **own)
    found = papers.ranksvm_path(store, memory_limit="1GB", **own)
    np.testing.assert_array_equal(mapped.coefs, truth.coefs)
    assert found.converged.all()
    np.testing.assert_allclose(found.coefs, truth.coefs, rtol=1e-5, atol=1e-6)


# ---- refusals ------------------------------------------------------------------------------------


def path_of(**options):
    return lambda *data: papers.ranksvm_path(*data, Cs=GRID, memory_limit="1GB", **options)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (papers.RankSVM(solver="bundle"), "solver='bundle' .* use solver='newton'"),
        (papers.RankSVM(pairs="pruned"), "pairs='pruned' .* use pairs='all' or 'adjacent'"),
        (papers.DominationRanker("l1"), "penalty='l1' .* use penalty='l2'"),
        (papers.DominationRanker("l2", pooled=True), "pooled=True"),
        (papers.DominationRanker("l2", margin=np.eye(5)), "a margin by table"),
        (papers.DominationRanker("l2", negative_sampling=0.5), "negative_sampling=0.5"),
        (papers.DominationRankerCV(), "use penalty='l2'"),
        (papers.RankSVMCV(GRID, pairs="pruned"), "pairs='pruned'.*a store within memory_limit"),
        (path_of(pairs="pruned"), "pairs='pruned'"),
        (path_of(solver="bundle"), "solver='bundle'"),
    ],
)
def test_what_passes_cannot_do_is_refused(fit, message, store):
    if not callable(fit):
        fit = clone(fit).set_params(memory_limit="1GB").fit
    with pytest.raises(ValueError, match=message):
        fit(store)


@pytest.mark.parametrize(
    "fit",
    [papers.RankSVM(memory_limit="1GB").fit, papers.RankSVMCV(memory_limit="1GB").fit, path_of()],
)
def test_a_limit_is_for_stores_which_have_labels_of_their_own(fit, store):
    with pytest.raises(ValueError, match="is for a store, got ndarray"):
        fit(DATA.X, DATA.y)
    with pytest.raises(ValueError, match="y is part of the store"):
        fit(store, DATA.y)


def test_a_limit_is_large_enough(store):
    told = r"memory_limit='1MB', 1.0 MB, is too small: .* allow [\d.]+[MG]B, or"
    with pytest.raises(MemoryError, match=told):
        papers.RankSVM(memory_limit="1MB").fit(store)
    with pytest.raises(ValueError, match="qid is part of the store"):
        papers.RankSVM().fit(store, qid=np.zeros(3))
