"""The choice of C: equal to the same thing by hand, without leaks, whatever the threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import KFold

from linrank import LinearModel, QueryKFold, evaluate, make_ranking
from linrank.data.dataset import Dataset
from linrank.data.queries import row_folds
from linrank.data.scaling import Scaling
from linrank.methods import ranksvm
from linrank.ranksvm.path import as_Cs
from linrank.search import folds as validation
from linrank.search.folds import Fold, _score_matrix, deal, judge
from papers import RankSVM, RankSVMCV
from path_searches import path_over, tune

pytestmark = pytest.mark.filterwarnings("ignore:the best C", "ignore:The groups parameter")
GRID = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]


@pytest.fixture(scope="module")
def data():
    data = make_ranking(n_queries=40, n_features=6, n_levels=3, noise=0.6, random_state=5)
    return data.select(np.random.default_rng(0).permutation(data.n_rows))


@pytest.fixture(scope="module")
def fitted(data):
    return RankSVMCV(GRID, cv=4).fit(data.X, data.y, qid=data.qid)


# ---- the search ---------------------------------------------------------------------------------


def test_the_refit_is_the_fit_at_the_chosen_C(data, fitted):
    cold = RankSVM(C=fitted.C_, tol=1e-10).fit(data.X, data.y, qid=data.qid)
    assert cold.objective_ * (1 - 1e-9) <= fitted.objective_
    assert fitted.objective_ - cold.objective_ <= fitted.duality_gap_ <= 1e-4 * fitted.objective_


@pytest.mark.filterwarnings("ignore:the best C")
def test_attributes_are_those_of_the_estimator_without_a_search(data):
    ranker = RankSVMCV([0.1], cv=2, pairs="adjacent").fit(data.X, data.y, qid=data.qid)
    alone = RankSVM(0.1, pairs="adjacent").fit(data.X, data.y, qid=data.qid)
    assert ranker.n_pairs_ == alone.n_pairs_ < data.queries.n_pairs
    own = {"Cs_", "scores_", "mean_scores_", "best_score_", "path_"}
    own |= {"best_params_", "best_index_", "cv_results_"}
    assert {name for name in vars(ranker) if name.endswith("_")} - own == {
        name for name in vars(alone) if name.endswith("_")
    }
    assert not hasattr(ranker, "fit_pairs")  # preferences have no folds


def test_folds_run_side_by_side_and_share_the_threads(data, monkeypatch):
    seen, gate, follow = [], threading.Barrier(2, timeout=120), ranksvm.follow

    def spy(ground, Cs, **told):
        seen.append(ground.n_threads)
        if len(seen) <= 2:
            gate.wait()  # passes only when two folds are under way at once
        return follow(ground, Cs, **told)

    monkeypatch.setattr(ranksvm, "follow", spy)
    tune(data, deal(data, 3), as_Cs(GRID), n_jobs=2)
    assert seen == [1, 1, 1]
    seen.clear()
    monkeypatch.setattr(validation, "_COPY_BYTES", data.rows.nbytes)
    gate = threading.Barrier(1)
    tune(data, deal(data, 3), as_Cs(GRID), n_jobs=4)
    assert seen == [4, 4, 4]  # copies for one fold at a time: the core has all threads


# ---- scores of a path ---------------------------------------------------------------------------


@pytest.mark.parametrize("density", [1.0, 0.3])
def test_blocks_of_rows_give_the_scores_of_predict(density, monkeypatch):
    data = make_ranking(60, 17, 9, density=density, random_state=1)
    path, scaling = path_over(data, as_Cs(GRID), scale="standard")
    monkeypatch.setattr("linrank.search.folds._BLOCK_BYTES", 3000)
    matrix = _score_matrix(data.rows, path.coefs, 1)
    for coef, scores in zip(path.coefs, matrix, strict=True):
        assert_array_equal(scores, LinearModel(coef).predict(data))
    values = judge(path.coefs, data, Fold(None, data), 0, scaling, "map")
    truth = [evaluate(data.y, z, qid=data.qid, metrics="map")["map"] for z in matrix]
    assert_array_equal(values, truth)


def test_a_model_of_zeros_is_not_perfect_on_sorted_rows():
    data = Dataset.of(np.ones((6, 2)), [2, 1, 0, 2, 1, 0], qid=[1, 1, 1, 2, 2, 2])
    path, _ = path_over(data, as_Cs([1.0]))
    assert judge(path.coefs, data, Fold(None, data), 0, Scaling(), "ndcg@10")[0] < 0.9


# ---- the rule of choice -------------------------------------------------------------------------


def test_the_edge_is_told(data):
    with pytest.warns(UserWarning, match=r"the best C, 1e-07, is the smallest"):
        RankSVMCV([1e-7, 1e5], cv=2, scoring="ndcg@10").fit(
            np.random.default_rng(0).normal(size=data.X.shape), data.y, qid=data.qid
        )


# ---- folds --------------------------------------------------------------------------------------


def test_rows_of_one_query_are_dealt_out_by_label():
    labels = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1])
    fold = row_folds(labels, 3)
    for k in range(3):
        assert sorted(labels[fold == k]) == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="2 rows cannot fill 3 folds"):
        row_folds(labels[:2], 3)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cv": 2.5}, TypeError, "cv must be a number of folds, .* got 2.5"),
        ({"cv": True}, TypeError, "got True"),
        ({"cv": [1, 2]}, ValueError, r"cv\[0\] must be a pair \(train, test\)"),
        ({"cv": [([0, 1], [])]}, ValueError, "fold 1 of cv has 2 training and 0 test rows"),
        ({"cv": (1,)}, ValueError, "cv is a tuple of 1; validation data is"),
        ({"cv": []}, ValueError, "cv has no folds"),
        ({"cv": iter([])}, ValueError, "an iterator serves one fit only"),
        ({"cv": [([0, 1], [99999])]}, ValueError, "fold 1 of cv has the row 99999; those of X are"),
        ({"cv": [([0, 1], [-1])]}, ValueError, "fold 1 of cv has the row -1"),
        ({"cv": [([0.0, 1.0], [2])]}, ValueError, "must hold row numbers, got float64"),
        ({"cv": [([True, False], [2])]}, ValueError, "must hold row numbers, got bool"),
        ({"cv": KFold(3)}, ValueError, "trains and tests on query .* split by query"),
    ],
)
def test_wrong_parameters(data, options, error, message):
    with pytest.raises(error, match=message):
        RankSVMCV(**options).fit(data.X, data.y, qid=data.qid)


def test_a_fold_that_cannot_be_judged_is_named():
    data = Dataset.of(np.eye(6), [0, 1, 0, 1, 1, 1], qid=[1, 1, 2, 2, 3, 3])
    folds = [Fold(np.array([0, 1]), np.array([2, 3])), Fold(np.arange(4), np.array([4, 5]))]
    with pytest.raises(ValueError, match="undefined on the validation part of fold 2"):
        tune(data, folds, as_Cs(GRID), scoring="pairwise_accuracy")


# ---- the estimator ------------------------------------------------------------------------------


def test_routing_of_qid(data):
    import sklearn
    from sklearn.model_selection import cross_val_score

    with sklearn.config_context(enable_metadata_routing=True):
        values = cross_val_score(
            RankSVMCV([0.01, 0.1], cv=2),
            data.X,
            data.y,
            cv=QueryKFold(3),
            params={"qid": data.qid},
        )
    assert len(values) == 3
    assert (values > 0.5).all()
