"""DominationRanker and its search: the optimum by another solver, what they record and refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import ConvergenceWarning, evaluate, load_model, make_ranking
from linrank.data.dataset import Dataset
from linrank.domination.layering import margin_of_part
from linrank.domination.train import make_problem
from linrank.search.folds import deal
from linrank.search.tuning import Tuning
from papers import DominationRanker, DominationRankerCV
from plain_domination import PlainDomination

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")

DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, random_state=3)


def fit(penalty="l1", alpha=1.0, tol=1e-9, **params):
    return DominationRanker(penalty, alpha, tol=tol, **params).fit(DATA.X, DATA.y, qid=DATA.qid)


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "alpha", "scale"),
    [
        *(("l1", 3.0, "none"), ("none", 0.0, "none"), ("l1", 3.0, "standard")),
        *(("l2", alpha, "standard") for alpha in (1e-3, 0.5, 30.0)),
    ],
)
def test_the_optimum_is_that_of_a_generic_solver(penalty, alpha, scale):
    """Nobody finds a smaller objective, and the certificate says so; it is of scaled weights."""
    deviation = DATA.X.astype(float).std(axis=0) if scale == "standard" else np.ones(6)
    plain = PlainDomination(DATA.X / deviation, DATA.y, DATA.qid)
    tol = 1e-7 if penalty == "none" else 1e-9
    ranker = fit(penalty, alpha, tol=tol, max_iter=50_000, scale=scale)
    best = plain.objective(plain.minimum(penalty, alpha), penalty, alpha)
    found = plain.objective(ranker.coef_ * deviation, penalty, alpha)
    assert ranker.converged_
    assert_allclose(ranker.objective_, found, rtol=1e-7)
    assert found <= best * (1 + 1e-6)
    assert found - best <= ranker.duality_gap_ + 1e-6 * found


# ---- attributes ---------------------------------------------------------------------------------


def test_sparsity_is_told():
    ranker = fit("l1", 8.0)
    n = int(np.count_nonzero(ranker.coef_))
    assert 0 < n < 6
    assert (ranker.n_nonzero_, ranker.density_) == (n, n / 6)
    assert (ranker.sparse_coef_.shape, ranker.sparse_coef_.nnz) == ((1, 6), n)
    assert_array_equal(ranker.sparse_coef_.toarray()[0], ranker.coef_)


def test_the_model_is_saved_with_what_it_was_trained_by(tmp_path):
    ranker = fit("l1", 3.0, margin=("log", 1, 2.7), layers=lambda y: y + 1)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    expected = {
        **{"method": "domination", "penalty": "l1", "alpha": 3.0, "margin": "log:1,2.7"},
        **{"layers": "function", "pooled": False, "seed": None},
        **{"n_pairs": DATA.queries.n_pairs, "objective": ranker.objective_},
    }
    assert {key: model.training[key] for key in expected} == expected
    assert "method='domination'" in repr(model)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_best_round_of_an_induction_is_certified_over_all_features(penalty):
    test = make_ranking(n_queries=10, n_features=6, n_levels=3, random_state=9)
    rounds = []  # stop in the second: most features are still outside
    ranker = DominationRanker(
        *(penalty, 0.1),
        feature_induction=1,
        early_stopping=True,
        scoring="p@1",
        callback=lambda state: rounds.append(state["round"]) or state["round"] == 2,
    )
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid, X_val=test.X, y_val=test.y, qid_val=test.qid)
    best = ranker.best_iteration_
    assert best < len(rounds) - 1
    whole = make_problem(DATA, penalty=penalty, alpha=0.1, n_jobs=1).at(np.array(ranker.coef_))
    assert_allclose(ranker.objective_, whole.value)
    assert_allclose(ranker.duality_gap_, whole.gap)
    assert_allclose(ranker.kkt_residual_, whole.kkt_residual)
    assert ranker.duality_gap_ > ranker.history_["gap"][best]


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"penalty": None}, "penalty must be 'l1', 'l2' or 'none', got None"),
        ({"alpha": -1.0}, r"alpha must be a finite number >= 0, got -1\.0"),
        ({"alpha": np.inf}, "alpha must be a finite number >= 0, got inf"),
        ({"alpha": "1"}, "alpha must be a finite number >= 0, got '1'"),
        ({"alpha": 0}, "alpha must be > 0 with penalty='l1', got 0; for no penalty use"),
        ({"solver": "bundle"}, "solver must be 'auto', 'coordinate' or 'newton', got 'bundle'"),
        ({"solver": "newton"}, "solver='newton' needs penalty='l2', got penalty='l1'"),
        (
            {"solver": "newton", "penalty": "l2", "feature_induction": 5},
            "cannot go with feature_induction=5; use solver='coordinate'",
        ),
        ({"feature_induction": 2.5}, "feature_induction must be an integer >= 1.*got 2.5"),
        ({"negative_sampling": 0.0}, "negative_sampling must be a share .* got 0.0"),
        ({"negative_sampling": 1.5}, "negative_sampling must be a share .* got 1.5"),
    ],
)
def test_wrong_parameters_are_told(params, message):
    with pytest.raises(ValueError, match=message):
        DominationRanker(**params).fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize("penalty", ["l1", "l2", "none"])
def test_curvature_that_underflows_or_overflows_is_borne_in_silence(penalty):
    rng = np.random.default_rng(4)
    X, y, qid = rng.normal(size=(18, 5)), rng.permutation(18), rng.integers(0, 3, 18)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = DominationRanker(penalty, 0.5, solver="coordinate", margin=1e3, max_iter=100)
        assert np.isfinite(ranker.fit(X, y, qid=qid).coef_).all()
        if penalty == "l1":
            ranker = DominationRanker("l1", 0.5, max_iter=100)
            ranker.fit(X * [1e200, 1, 1, 1, 1], y, qid=qid)


@pytest.mark.parametrize("seed", [14, 48])
def test_rows_that_can_be_told_apart_do_not_blow_up_the_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    X, y, qid = rng.normal(size=(n, 3)), rng.permutation(n), rng.integers(0, 4, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = DominationRanker("none", margin=1e3).fit(X, y, qid=qid)
    assert np.abs(ranker.coef_).max() < 1e12  # 1e274 without a limit


# ---- the search ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    data = make_ranking(24, n_features=6, n_levels=3, noise=1.0, dtype="float64", random_state=3)
    return data.select(np.random.default_rng(0).permutation(data.n_rows))


def search(data, **params):
    params = {"n_alphas": 8, "cv": 3, "tol": 1e-6, **params}
    return DominationRankerCV(**params).fit(data.X, data.y, qid=data.qid)


def test_a_search_shows_the_path_of_its_choice(data):
    ranker = search(data, scoring="ndcg@5", max_features=4)
    k, path = int(np.flatnonzero(ranker.alphas_ == ranker.alpha_)[0]), ranker.path_
    assert ranker.scores_.shape == ranker.n_nonzeros_.shape == (3, len(path))
    assert (ranker.n_nonzeros_[:, :-1] <= 4).all()  # the grid is cut for all folds
    assert_array_equal(ranker.coef_, path.coefs[k])
    assert ranker.n_nonzero_ == path.n_nonzero[k] == ranker.sparse_coef_.nnz
    assert (ranker.n_iter_, ranker.objective_) == (path.n_iter[: k + 1].sum(), path.objectives[k])
    assert ranker.history_["alpha"][0] == ranker.alpha_


def test_margins_by_row_go_with_their_rows(data):
    margin = np.random.default_rng(0).random(data.n_rows) + data.y
    found = search(data, margin=margin, alphas=[3.0])
    fold = deal(data, 3)[0]
    part, valid = data.select(fold.train), data.select(fold.valid)
    one = DominationRanker(alpha=3.0, margin=margin[fold.train], tol=1e-6)
    scores = one.fit(part.X, part.y, qid=part.qid).predict(valid.X)
    measure = evaluate(valid.y, scores, qid=valid.qid)["ndcg@10"]
    assert_allclose(found.scores_[0, 0], measure, rtol=1e-9)
    assert_array_equal(search(data, margin=margin.tolist(), alphas=[3.0]).scores_, found.scores_)


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
    weightless = Dataset.of(np.zeros((4, 1)), [0, 1, 2, 0], sample_weight=[1, 1, 0, 1])
    part = margin_of_part(np.array([[0, 0], [7, 0]]), "labels", weightless, np.array([0, 1, 2]))
    assert_array_equal(part, [[0, 0], [7, 0]])  # rows of weight 0 make no layer


def test_a_table_in_folds_that_lack_a_layer(data):
    """The only row of the top layer is in one fold."""
    y = np.where(data.y == 2, 1, data.y)
    y[int(np.flatnonzero(y == 1)[0])] = 9
    table = np.array([[0, 0, 0], [1, 0, 0], [3, 2, 0]])
    found = DominationRankerCV(alphas=[5.0, 1.0], cv=3, margin=table)
    assert np.isfinite(found.fit(data.X, y, qid=data.qid).scores_).all()


@pytest.mark.parametrize(("n_nonzero", "words"), [(0, "leaves no weight"), (2, "try larger")])
def test_an_alpha_that_leaves_no_weight_need_not_be_larger(n_nonzero, words):
    counts = np.array([[n_nonzero, 3], [n_nonzero, 4]])
    scores = np.array([[0.5, 0.4], [0.6, 0.4]])
    tuning = Tuning({"alpha": np.array([2.0, 1.0])}, scores, facts={"n_nonzero": counts})
    assert words in tuning.edge
