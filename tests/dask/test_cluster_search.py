"""Paths, RankSVMCV and giant queries on a cluster: the numbers of the same rows in memory."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from distributed_data import ranking
from numpy.testing import assert_allclose
from sklearn.base import clone

import linrank
from linrank.dask import RankSVM, RankSVMCV, ranksvm_path
from linrank.errors import DataWarning

# Noise has no best C; that the choice lies at an end of these grids is no concern here.
pytestmark = pytest.mark.filterwarnings("ignore:(the best|every) C")
GRID = [1e-3, 0.05, 1.0]


def giant(n_rows):
    """One query in memory, and in four partitions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 5))
    y = np.digitize(X @ rng.standard_normal(5) + rng.standard_normal(n_rows), [-1, 1, 3])
    there = da.from_array(X, chunks=(n_rows // 3, -1)), da.from_array(y, chunks=n_rows // 3)
    return (X, y), there


def path(function, data, **options):
    return function(*data[:3], sample_weight=data.weight, Cs=GRID, tol=1e-12, **options)


@pytest.mark.parametrize(
    ("n_parts", "options"),
    [
        (1, {}),
        (2, {"scale": "standard"}),
        (5, {"scale": "query", "pairs": "adjacent"}),
        (5, {"positive": True, "scale": "minmax"}),
    ],
    ids=str,
)
def test_a_path_is_that_in_memory(client, n_parts, options):
    data = ranking(15)
    found = path(ranksvm_path, data.arrays(n_parts), **options)
    assert found.converged.all()
    truth = path(linrank.ranksvm_path, data, **options)
    assert_allclose(found.coefs, truth.coefs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"scale": "standard"}, {"pairs": "pruned", "random_state": 3}], ids=str
)
def test_split_queries_by_gathered_scores(client, options):
    """Rows stay where they are: every query of shuffled rows lies in all partitions."""
    data = ranking(9, shuffled=True)
    there, truth = data.delayed(4), path(linrank.ranksvm_path, data, **options)
    found = path(ranksvm_path, there, on_split="gather", **options)
    assert_allclose(found.coefs, truth.coefs, rtol=1e-7, atol=1e-9)
    if not options:
        ranker = there.fit(RankSVM(C=GRID[1], scale="none", tol=1e-14, on_split="gather"))
        assert ranker.repair_.n_rows == 0
        expected = data.fit(linrank.RankSVM(C=GRID[1], scale="none", tol=1e-14))
        assert_allclose(ranker.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("n_parts", "shuffled", "options"),
    [
        (1, False, {"scale": "standard"}),
        (3, False, {"scoring": "err"}),
        (5, True, {"scoring": "pairwise_accuracy", "scale": "minmax"}),
        (4, False, {"pair_weighting": "ndcg@3", "n_rounds": 2}),
        (3, False, {"curves": "spline", "n_knots": 3, "increasing": [1], "tol": 1e-9}),
    ],
)
def test_the_choice_is_that_in_memory(client, n_parts, shuffled, options):
    """Every fold has curves of its own."""
    data = ranking(20, shuffled=shuffled)
    options, is_linear = {"cv": 3, "tol": 1e-11, **options}, "curves" not in options
    truth = data.fit(linrank.RankSVMCV(GRID, n_jobs=1, **options))
    found = data.arrays(n_parts).fit(RankSVMCV(GRID, **options))
    assert_allclose(found.scores_, truth.scores_, rtol=1e-12 if is_linear else 1e-6)
    assert found.C_ == truth.C_
    assert (found.n_pairs_, found.n_queries_) == (truth.n_pairs_, truth.n_queries_)
    assert found.model_.training["score"] == pytest.approx(found.best_score_)
    room = 1e-6 if is_linear else 1e-3
    assert_allclose(found.predict(data.X), truth.predict(data.X), rtol=room, atol=room)
    local = found.to_local()
    assert type(local) is linrank.RankSVMCV
    assert_allclose(local.predict(data.X), found.predict(data.X))


def test_folds_of_one_giant_query(client):
    here, there = giant(900)
    truth = linrank.RankSVMCV([1e-4, 1e-2], cv=2, tol=1e-9, n_jobs=1).fit(*here)
    found = RankSVMCV([1e-4, 1e-2], cv=2, tol=1e-9).fit(*there)
    assert_allclose(found.scores_, truth.scores_, rtol=1e-12)
    assert found.needs_qid_ is False


@pytest.mark.parametrize("options", [{}, {"scale": "standard"}, {"loss": "hinge"}], ids=str)
def test_ranksvm_learns_from_one_giant_query_and_goes_on(client, tmp_path, options):
    here, there = giant(2000)
    options = {"C": 1e-3, "tol": 1e-4 if "loss" in options else 1e-8, **options}
    truth = linrank.RankSVM(**options).fit(*here)
    ranker = RankSVM(**options, checkpoint=tmp_path / "w")
    found, again = clone(ranker).fit(*there), ranker.fit(*there, resume=True)
    assert again.n_iter_ < found.n_iter_
    for one in (found, again):
        assert one.converged_
        assert one.n_pairs_ == truth.n_pairs_
        assert abs(one.objective_ - truth.objective_) <= one.duality_gap_ + truth.duality_gap_
        if "loss" not in options:
            assert_allclose(one.coef_, truth.coef_, rtol=1e-6, atol=1e-9)


def test_graded_rows_without_queries_are_asked_for(client):
    X, y = giant(300)[1]
    for ranker in (RankSVM(C=1e-3, tol=0.1), RankSVMCV([1e-3], cv=2, tol=0.1)):
        said = rf"{type(ranker).__name__}.fit got no query ids, .*4 levels from 0 to 3.*qid=None"
        with pytest.warns(DataWarning, match=said):
            ranker.fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            ranker.fit(X, y, qid=None)
            ranker.fit(X, abs(X[:, 0]))


def test_what_needs_whole_queries_is_refused(client):
    for options, message in (
        ({"scale": "query"}, r"scale='query'.*blocks elsewhere.*'standard'"),
        ({"curves": "quantile"}, r"in 3 blocks elsewhere.* on_split='repair'"),
    ):
        with pytest.raises(ValueError, match=message):
            RankSVM(**options).fit(*giant(300)[1])
    with pytest.raises(ValueError, match=r"pairs='pruned'.*a cluster"):
        path(ranksvm_path, ranking().arrays(2), pairs="pruned")


def test_parameters_are_those_in_memory_and_those_of_a_cluster(client):
    ranker = RankSVMCV(GRID, cv=3, client=client, scale="standard", on_split="error")
    assert isinstance(ranker, linrank.RankSVMCV)
    own = {"client", "on_split", "patience"}
    assert set(ranker.get_params()) - own == set(linrank.RankSVMCV().get_params())
    assert clone(ranker).get_params() == ranker.get_params()
    assert clone(ranker).client is client


def test_the_rows_of_a_fold_count_once():
    from dask.sizeof import sizeof

    from linrank.dask.rounds import make_chunk
    from linrank.parts.recipes import RankRecipe

    data = linrank.make_ranking(n_queries=4, n_features=50, random_state=0)
    for recipe, n_bytes in ((RankRecipe(), data.rows.nbytes), (RankRecipe(by_query=True), 0)):
        # By query, rows are a copy, which counts.
        alone, beside = (sizeof(make_chunk(data, None, recipe, shared)) for shared in (False, True))
        assert alone - beside == n_bytes
