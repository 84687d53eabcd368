"""RegularizedRankSVM: scikit-learn's checks, weights, validation, attributes, model files."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import ConvergenceWarning, evaluate, make_ranking
from papers import RegularizedRankSVM
from small_data import small

DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, random_state=3)


def fit(gamma=1.0, lam=0.1, C=1.0, weight=None, **params):
    ranker = RegularizedRankSVM(gamma, lam, C, **params)
    return ranker.fit(DATA.X, DATA.y, qid=DATA.qid, sample_weight=weight)


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
    assert ranker.duality_gap_ <= 1e-4 * abs(ranker.objective_)
    assert len(ranker.ranks_) == ranker.n_queries_ == 15
    check_duals(ranker, DATA)
    ranker.set_params(keep_duals=False).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert not hasattr(ranker, "duals_")


def test_early_stopping_keeps_the_last_iterate_where_that_is_best():
    """Not the one of the least objective, which is what a fit without validation data keeps."""
    train, other = small(5, n_levels=3), small(55, n_levels=3)
    stopping = {"early_stopping": True, "n_iter_no_change": 9, "keep_duals": True}
    ranker = RegularizedRankSVM(1.0, 10.0, 10.0, max_iter=4, tol=1e-12, **stopping)
    with pytest.warns(ConvergenceWarning):
        ranker.fit(train.X, train.y, qid=train.qid, eval_set=(other.X, other.y), eval_qid=other.qid)
    assert ranker.best_iteration_ == 4 > np.argmin(ranker.history_["objective"])
    found = evaluate(other.y, ranker.predict(other.X), qid=other.qid, metrics=["ndcg@10"])
    assert_allclose(found["ndcg@10"], ranker.history_["val_ndcg@10"][4], rtol=1e-12)
    check_duals(ranker, train)


def test_a_second_fit_writes_the_same_file(tmp_path):
    """Nothing is random."""
    ranker = fit(scale="minmax")
    for name, each in (("model", ranker), ("again", fit(scale="minmax"))):
        each.save(tmp_path / name)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    told, ranks = ranker.model_.training, ranker.ranks_[DATA.queries.n_levels > 1]
    assert (told["method"], told["gamma"], told["lam"], told["C"]) == ("regularized", 1.0, 0.1, 1.0)
    assert (told["mean_rank"], told["largest_rank"]) == (ranks.mean(), ranks.max())
    assert "seed" not in told


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
