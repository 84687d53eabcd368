"""DominationRankerCV: equal to the same by hand, without leaks, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import (
    evaluate,
    make_ranking,
)
from linrank.data.dataset import Dataset
from linrank.domination.layering import Layering, margin_of_part
from linrank.search.folds import deal
from linrank.search.tuning import Tuning
from papers import DominationRanker, DominationRankerCV

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")

SHAPE = {"n_features": 6, "n_levels": 3, "noise": 1.0, "dtype": "float64"}


@pytest.fixture(scope="module")
def data():
    data = make_ranking(n_queries=24, random_state=3, **SHAPE)
    return data.select(np.random.default_rng(0).permutation(data.n_rows))


@pytest.fixture(scope="module")
def held_out():
    return make_ranking(n_queries=12, random_state=4, **SHAPE)


def fit(data, **params):
    params = {"n_alphas": 8, "cv": 3, "tol": 1e-6, **params}
    return DominationRankerCV(**params).fit(data.X, data.y, qid=data.qid)


def measured(ranker, data, scoring="ndcg@10"):
    scores = ranker.predict(data.X, qid=data.qid)
    return evaluate(data.y, scores, qid=data.qid, metrics=scoring)[scoring]


# ---- equal to the same by hand ------------------------------------------------------------------


# ---- the choice ---------------------------------------------------------------------------------


# ---- attributes and parameters ------------------------------------------------------------------


def test_the_attributes(data):
    ranker = fit(data, scoring="ndcg@5")
    k = int(np.flatnonzero(ranker.alphas_ == ranker.alpha_)[0])
    assert ranker.scores_.shape == ranker.n_nonzeros_.shape == (3, 8)
    assert_array_equal(ranker.coef_, ranker.path_.coefs[k])
    assert ranker.n_nonzero_ == ranker.path_.n_nonzero[k] == ranker.sparse_coef_.nnz
    assert ranker.density_ == ranker.n_nonzero_ / 6
    assert ranker.n_iter_ == ranker.path_.n_iter[: k + 1].sum()
    assert ranker.objective_ == ranker.path_.objectives[k]
    assert ranker.duality_gap_ <= 1e-6 * ranker.objective_
    assert ranker.converged_
    assert ranker.n_queries_ == 24
    assert ranker.n_pairs_ == Layering.of(data).n_pairs
    assert ranker.history_["alpha"][0] == ranker.alpha_
    assert ranker.model_.training["method"] == "domination"


def test_max_features_cuts_the_grid_for_all_folds(data):
    whole, part = fit(data, n_alphas=15), fit(data, n_alphas=15, max_features=1)
    n = len(part.alphas_)
    assert 1 < n < 15
    assert_array_equal(part.alphas_, whole.alphas_[:n])
    assert_array_equal(part.scores_, whole.scores_[:, :n])
    assert len(part.path_) == n
    assert (part.n_nonzeros_[:, :-1] <= 1).all()


# ---- margins of a part --------------------------------------------------------------------------


def test_margins_by_row_go_with_their_rows(data):
    margin = np.random.default_rng(0).random(data.n_rows) + data.y
    found = fit(data, margin=margin, alphas=[3.0])
    fold = deal(data, 3)[0]
    part = data.select(fold.train)
    one = DominationRanker(alpha=3.0, margin=margin[fold.train], tol=1e-6)
    one.fit(part.X, part.y, qid=part.qid)
    assert_allclose(found.scores_[0, 0], measured(one, data.select(fold.valid)), rtol=1e-9)
    assert_array_equal(fit(data, margin=margin.tolist(), alphas=[3.0]).scores_, found.scores_)


def test_of_a_table_the_layers_of_the_part_are_kept():
    data = Dataset.of(np.arange(6.0).reshape(-1, 1), [0, 1, 2, 5, 0, 2], qid=[0, 0, 0, 0, 1, 1])
    table = np.arange(16.0).reshape(4, 4)
    part = margin_of_part(table, "labels", data, np.array([4, 5]))
    assert_array_equal(part, [[0, 0], [8, 0]])
    same = margin_of_part(table[:2, :2], "binary", data, np.array([0, 1]))
    assert_array_equal(same, [[0, 0], [4, 0]])
    for form in (None, 1.0, "log", ("linear", 2.0), np.abs):
        assert margin_of_part(form, "labels", data, np.array([1])) is form
    with pytest.raises(ValueError, match="the data have 4 layers"):
        margin_of_part(np.zeros((2, 2)), "labels", data, np.array([4, 5]))


def test_a_table_in_folds_that_lack_a_layer(data):
    """The only row of the top layer is in one fold."""
    y = np.where(data.y == 2, 1, data.y)
    y[int(np.flatnonzero(y == 1)[0])] = 9
    table = np.array([[0, 0, 0], [1, 0, 0], [3, 2, 0]])
    found = DominationRankerCV(alphas=[5.0, 1.0], cv=3, margin=table)
    found.fit(data.X, y, qid=data.qid)
    assert np.isfinite(found.scores_).all()


def test_rows_of_weight_0_make_no_layer():
    data = Dataset.of(
        np.arange(4.0).reshape(-1, 1), [0, 1, 2, 0], qid=[0, 0, 0, 0], sample_weight=[1, 1, 0, 1]
    )
    part = margin_of_part(np.array([[0, 0], [7, 0]]), "labels", data, np.array([0, 1, 2]))
    assert_array_equal(part, [[0, 0], [7, 0]])


@pytest.mark.parametrize(("n_nonzero", "words"), [(0, "leaves no weight"), (2, "try larger")])
def test_an_alpha_that_leaves_no_weight_need_not_be_larger(n_nonzero, words):
    counts = np.array([[n_nonzero, 3], [n_nonzero, 4]])
    scores = np.array([[0.5, 0.4], [0.6, 0.4]])
    tuning = Tuning({"alpha": np.array([2.0, 1.0])}, scores, facts={"n_nonzero": counts})
    assert words in tuning.edge
