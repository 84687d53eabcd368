"""RegularizedRankSVM: scikit-learn's checks, weights, validation, attributes, model files."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from linrank import ConvergenceWarning, evaluate, load_model, make_ranking
from papers import RankSVM, RegularizedRankSVM
from small_data import small

DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, random_state=3)
OTHER = DATA.select(DATA.qid >= np.unique(DATA.qid)[8])
TRAIN = DATA.select(DATA.qid < np.unique(DATA.qid)[8])


def fit(gamma=1.0, lam=0.1, C=1.0, data=DATA, qid=True, weight=None, query_weight=None, **params):
    return RegularizedRankSVM(gamma, lam, C, **params).fit(
        data.X,
        data.y,
        qid=data.qid if qid else None,
        sample_weight=weight,
        query_weight=query_weight,
    )


def check_duals(ranker, data):
    """``coef_`` is ``Σ α_ij (x_i - x_j)``."""
    w = np.zeros(data.n_features)
    for k in range(ranker.duals_.n_blocks):
        block = ranker.duals_.block(k)
        w += block.sum(1) @ data.X[ranker.duals_.rows(k)]
        w -= block.sum(0) @ data.X[ranker.duals_.columns(k)]
    assert_allclose(ranker.coef_, w, atol=1e-6)


def test_attributes_belong_together():
    ranker = fit(keep_duals=True)
    assert ranker.converged_
    assert ranker.duality_gap_ <= 1e-4 * abs(ranker.objective_)
    assert ranker.n_pairs_ == DATA.queries.n_pairs
    assert len(ranker.ranks_) == ranker.n_queries_ == 15
    assert len(ranker.history_["objective"]) == ranker.n_iter_ + 1
    check_duals(ranker, DATA)
    assert not hasattr(clone(ranker).set_params(keep_duals=False), "duals_")
    ranker.set_params(keep_duals=False).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert not hasattr(ranker, "duals_")


def test_gamma_zero_is_ranksvm():
    ours = fit(0.0, C=0.3, tol=1e-6)
    hinge = RankSVM(C=0.3, loss="hinge", tol=1e-6).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert_allclose(-ours.objective_, hinge.objective_, rtol=1e-5)


def test_validation_and_early_stopping():
    stopping = {"early_stopping": True, "n_iter_no_change": 2, "keep_duals": True}
    ranker = RegularizedRankSVM(0.5, 10.0, 0.1, tol=1e-8, **stopping)
    ranker.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, X_val=OTHER.X, y_val=OTHER.y, qid_val=OTHER.qid)
    scores = ranker.history_["val_ndcg@10"]
    assert scores[ranker.best_iteration_] == max(scores)
    found = evaluate(OTHER.y, ranker.predict(OTHER.X), qid=OTHER.qid, metrics=["ndcg@10"])
    assert_allclose(found["ndcg@10"], max(scores), rtol=1e-12)
    assert len(scores) == len(ranker.history_["objective"])
    check_duals(ranker, TRAIN)  # those of the iterate that was chosen
    plain = RegularizedRankSVM(0.5).fit(
        DATA.X, DATA.y, qid=DATA.qid, eval_set=[(OTHER.X, OTHER.y)], eval_qid=[OTHER.qid]
    )
    assert plain.best_iteration_ <= plain.n_iter_


def test_early_stopping_keeps_the_last_iterate_where_that_is_best():
    """Not the one of the least objective, which is what a fit without validation data keeps."""
    train, other = small(5, n_levels=3), small(55, n_levels=3)
    ranker = RegularizedRankSVM(
        1.0, 10.0, 10.0, max_iter=4, tol=1e-12, early_stopping=True, n_iter_no_change=9
    )
    with pytest.warns(ConvergenceWarning):
        ranker.fit(train.X, train.y, qid=train.qid, eval_set=(other.X, other.y), eval_qid=other.qid)
    objectives, scores = ranker.history_["objective"], ranker.history_["val_ndcg@10"]
    assert ranker.best_iteration_ == 4 > np.argmin(objectives)
    found = evaluate(other.y, ranker.predict(other.X), qid=other.qid, metrics=["ndcg@10"])
    assert_allclose(found["ndcg@10"], scores[4], rtol=1e-12)


def test_model_files(tmp_path):
    ranker = fit(scale="minmax")
    ranker.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert_array_equal(model.predict(OTHER.X), ranker.predict(OTHER.X))
    told = model.training
    assert (told["method"], told["gamma"], told["lam"], told["C"]) == ("regularized", 1.0, 0.1, 1.0)
    assert_allclose(ranker.explain(OTHER.X).sum(axis=1), ranker.predict(OTHER.X), atol=1e-9)
    ranks = ranker.ranks_[DATA.queries.n_levels > 1]
    assert (told["mean_rank"], told["largest_rank"]) == (ranks.mean(), ranks.max())
    assert "seed" not in told  # nothing is random: a second fit writes the same file
    fit(scale="minmax").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), deepcopy])
def test_kept_duals_can_be_copied(copied):
    ranker = fit(0.1, keep_duals=True, weight=np.linspace(0.0, 2.0, DATA.n_rows))
    check_duals(copied(ranker), DATA)
    check_duals(ranker, DATA)


@pytest.mark.parametrize(
    "params", [{"C": 5e-324}, {"C": 1e-300}, {"gamma": 1e300}, {"gamma": 1e300, "lam": 10.0}]
)
def test_the_ends_of_the_range(params):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker = fit(**params)
    assert ranker.converged_
    assert not ranker.ranks_.any()
    if "C" not in params:  # no singular value reaches γ/2λ: λ‖α‖² is the penalty, whatever γ is
        assert_array_equal(ranker.coef_, fit(1e6, params.get("lam", 0.1)).coef_)


@pytest.mark.parametrize("params", [{"C": 1e300}, {"lam": 1e300}])
def test_numbers_out_of_range_are_told(params):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"sum to .* use a smaller C or lam, or smaller weigh"):
            fit(**params)
