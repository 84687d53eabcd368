"""RankSVMCV and giant queries on a cluster: the numbers of the same rows in memory."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from distributed_data import as_dask_arrays, as_delayed, ranking
from numpy.testing import assert_allclose
from sklearn.base import clone

import linrank
from linrank.dask import RankSVM, RankSVMCV
from linrank.errors import DataWarning

# Noise has no best C; that the choice lies at an end of these grids is no concern here.
pytestmark = pytest.mark.filterwarnings("ignore:(the best|every) C")
GRID = [1e-3, 0.05, 1.0]


def giant(n_rows=2000):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 5))
    y = np.digitize(X @ rng.standard_normal(5) + rng.standard_normal(n_rows), [-1, 1, 3])
    return X, y, da.from_array(X, chunks=(n_rows // 3, -1)), da.from_array(y, chunks=n_rows // 3)


@pytest.mark.parametrize(
    ("n_parts", "shuffled", "options"),
    [
        (1, False, {"scale": "standard"}),
        (3, False, {"scoring": "err"}),
        (5, True, {"scoring": "pairwise_accuracy", "scale": "minmax"}),
    ],
)
def test_the_choice_is_that_in_memory(client, n_parts, shuffled, options):
    data = ranking(20, shuffled=shuffled)
    there = as_dask_arrays(data, n_parts)
    options = {"cv": 3, "tol": 1e-11, **options}
    truth = linrank.RankSVMCV(GRID, n_jobs=1, **options)
    truth.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)
    found = RankSVMCV(GRID, **options).fit(
        there.X, there.y, qid=there.qid, sample_weight=there.weight
    )
    assert_allclose(found.scores_, truth.scores_, rtol=1e-12)
    assert found.C_ == truth.C_
    assert_allclose(found.coef_, truth.coef_, rtol=1e-6, atol=1e-8)
    assert (found.n_pairs_, found.n_queries_) == (truth.n_pairs_, truth.n_queries_)
    assert found.model_.training["score"] == pytest.approx(found.best_score_)
    local = found.to_local()
    assert type(local) is linrank.RankSVMCV
    assert_allclose(local.predict(data.X), data.X @ found.coef_)


def test_every_fold_has_its_own_curves(client):
    data = ranking(20)
    there = as_dask_arrays(data, 3)
    options = {"cv": 3, "tol": 1e-9, "curves": "spline", "n_knots": 3, "increasing": [1]}
    truth = linrank.RankSVMCV(GRID, n_jobs=1, **options)
    truth.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight)
    found = RankSVMCV(GRID, **options).fit(
        there.X, there.y, qid=there.qid, sample_weight=there.weight
    )
    assert_allclose(found.scores_, truth.scores_, rtol=1e-6)
    assert found.C_ == truth.C_
    assert_allclose(found.predict(data.X), truth.predict(data.X), atol=1e-3)


def test_folds_of_one_giant_query(client):
    X, y, there, labels = giant(900)
    truth = linrank.RankSVMCV([1e-4, 1e-2], cv=2, tol=1e-9, n_jobs=1).fit(X, y)
    found = RankSVMCV([1e-4, 1e-2], cv=2, tol=1e-9).fit(there, labels)
    assert_allclose(found.scores_, truth.scores_, rtol=1e-12)
    assert found.needs_qid_ is False


@pytest.mark.parametrize("options", [{}, {"scale": "standard"}, {"loss": "hinge"}], ids=str)
def test_ranksvm_learns_from_one_giant_query(client, options):
    X, y, there, labels = giant()
    tol = 1e-4 if options.get("loss") else 1e-8
    truth = linrank.RankSVM(C=1e-3, tol=tol, **options).fit(X, y)
    found = RankSVM(C=1e-3, tol=tol, **options).fit(there, labels)
    assert found.converged_
    assert found.n_pairs_ == truth.n_pairs_
    if "loss" in options:
        assert abs(found.objective_ - truth.objective_) <= found.duality_gap_ + truth.duality_gap_
    else:
        assert_allclose(found.coef_, truth.coef_, rtol=1e-6, atol=1e-9)


def test_graded_rows_without_queries_are_asked_for(client):
    _, _, there, labels = giant(300)
    for ranker in (RankSVM(C=1e-3, tol=0.1), RankSVMCV([1e-3], cv=2, tol=0.1)):
        said = rf"{type(ranker).__name__}.fit got no query ids, .*4 levels from 0 to 3.*qid=None"
        with pytest.warns(DataWarning, match=said):
            ranker.fit(there, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            ranker.fit(there, labels, qid=None)
            ranker.fit(there, abs(there[:, 0]))


def test_ranksvm_leaves_split_queries_where_they_are(client):
    data = ranking(9, shuffled=True)
    there = as_delayed(data, 4)
    truth = linrank.RankSVM(C=0.1, tol=1e-14).fit(data.X, data.y, qid=data.qid)
    found = RankSVM(C=0.1, tol=1e-14, on_split="gather").fit(there.X, there.y, qid=there.qid)
    assert found.repair_.n_rows == 0
    assert_allclose(found.coef_, truth.coef_, rtol=1e-9, atol=1e-12)


def test_scaling_within_queries_that_are_split_is_refused(client):
    _, _, there, labels = giant(300)
    with pytest.raises(ValueError, match="scale='query'"):
        RankSVM(scale="query").fit(there, labels)


def test_a_checkpoint_of_a_giant_query_is_resumed(client, tmp_path):
    _, _, there, labels = giant(600)
    path = tmp_path / "w"
    first = RankSVM(C=1e-3, tol=1e-9, checkpoint=path).fit(there, labels)
    again = RankSVM(C=1e-3, tol=1e-9, checkpoint=path).fit(there, labels, resume=True)
    assert again.n_iter_ < first.n_iter_
    assert_allclose(again.coef_, first.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "bundle"}, "solver='bundle' reads rows that are all in memory, not a cluster"),
        ({"pairs": "pruned"}, "pairs='pruned' lists pairs of all queries"),
        ({"on_split": "ignore"}, "on_split must be 'repair', 'error' or 'gather'"),
        ({"cv": 99}, "cannot fill 99 folds"),
        ({"patience": 0}, "patience"),
    ],
)
def test_what_cannot_be_done_is_refused(client, options, message):
    there = as_dask_arrays(ranking(), 2)
    with pytest.raises(ValueError, match=message):
        RankSVMCV(GRID, **options).fit(there.X, there.y, qid=there.qid)


def test_parameters_are_those_in_memory_and_those_of_a_cluster():
    ranker = RankSVMCV(GRID, cv=3, scale="standard", on_split="error")
    assert isinstance(ranker, linrank.RankSVMCV)
    own = {"client", "on_split", "patience"}
    assert set(ranker.get_params()) - own == set(linrank.RankSVMCV().get_params())
    assert clone(ranker).get_params() == ranker.get_params()


def test_the_rows_of_a_fold_count_once():
    from dask.sizeof import sizeof

    from linrank.dask.rounds import make_chunk
    from linrank.parts.recipes import RankRecipe

    data = linrank.make_ranking(n_queries=4, n_features=50, random_state=0)
    alone, beside = (make_chunk(data, None, RankRecipe(), shared) for shared in (False, True))
    assert sizeof(alone) - sizeof(beside) == data.rows.nbytes
    by_query = RankRecipe(by_query=True)  # its rows are a copy, which counts
    sizes = [sizeof(make_chunk(data, None, by_query, shared)) for shared in (False, True)]
    assert sizes[0] == sizes[1]
