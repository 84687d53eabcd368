"""DominationRanker: parameters, weights, validation, attributes; its optimum by another solver."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import ConvergenceWarning, load_model, make_ranking
from linrank.domination.train import make_problem
from papers import DominationRanker
from plain_domination import PlainDomination

DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, random_state=3)


def fit(penalty="l1", alpha=1.0, data=DATA, tol=1e-9, y=None, qid=None, weight=None, **params):
    fitted = params.pop("query_weight", None)
    return DominationRanker(penalty, alpha, tol=tol, **params).fit(
        data.X,
        data.y if y is None else y,
        qid=data.qid if qid is None else qid,
        sample_weight=weight,
        query_weight=fitted,
    )


def check_optimum(ranker, plain, penalty, alpha):
    """Nobody finds a smaller objective, and the certificate says so."""
    best = plain.objective(plain.minimum(penalty, alpha), penalty, alpha)
    found = plain.objective(ranker.coef_, penalty, alpha)
    assert_allclose(ranker.objective_, found, rtol=1e-8)
    assert found <= best * (1 + 1e-6)
    assert found - best <= ranker.duality_gap_ + 1e-6 * found


# ---- the optimum --------------------------------------------------------------------------------

PENALTIES = [("l1", 3.0), ("l2", 0.5), ("none", 0.0)]


@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
def test_the_optimum_is_that_of_a_generic_solver(penalty, alpha):
    ranker = fit(penalty, alpha, tol=1e-10 if penalty == "none" else 1e-9, max_iter=50_000)
    check_optimum(ranker, PlainDomination(DATA.X, DATA.y, DATA.qid), penalty, alpha)
    assert ranker.converged_


@pytest.mark.parametrize("margin", [1.0, ("linear", 2.0, 0.5), "table"])
@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES[:2])
def test_the_optimum_with_margins(margin, penalty, alpha):
    y = DATA.y
    if margin == "table":
        margin = np.array([[0, 0, 0], [1, 0, 0], [3, 1.5, 0]])
        codes = np.unique(y, return_inverse=True)[1]
        plain = PlainDomination(DATA.X, y, DATA.qid, lambda i, j: margin[codes[i], codes[j]])
    else:
        s = np.zeros(len(y))
        for i in range(len(y)):
            own = np.unique(y[DATA.qid == DATA.qid[i]])
            rank = np.searchsorted(own, y[i])
            s[i] = margin * rank if np.isscalar(margin) else (rank > 0) * (2 * y[i] + 0.5)
        plain = PlainDomination(DATA.X, y, DATA.qid, lambda i, j: s[i] - s[j])
    check_optimum(fit(penalty, alpha, margin=margin), plain, penalty, alpha)


@pytest.mark.parametrize(
    ("layers", "layer"), [("binary", DATA.y > 0), (lambda y: y // 2, DATA.y // 2)]
)
def test_the_optimum_with_other_layers(layers, layer):
    plain = PlainDomination(DATA.X, layer, DATA.qid)
    check_optimum(fit("l2", 0.5, layers=layers), plain, "l2", 0.5)


def test_weights_of_rows_and_queries():
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, DATA.n_rows).astype(float)
    c = {q: rng.uniform(0.5, 2) for q in set(DATA.qid.tolist())}
    plain = PlainDomination(DATA.X, DATA.y, DATA.qid, u=weight, c=c)
    ranker = fit("l1", 2.0, weight=weight, query_weight=c)
    check_optimum(ranker, plain, "l1", 2.0)
    with pytest.raises(ValueError, match="no meaning with pooled=True"):
        fit(pooled=True, query_weight=c)


def test_the_penalty_is_on_scaled_weights():
    deviation = DATA.X.astype(float).std(axis=0)
    scaled = PlainDomination(DATA.X / deviation, DATA.y, DATA.qid)
    ranker = fit("l1", 3.0, scale="standard")
    best = scaled.objective(scaled.minimum("l1", 3.0), "l1", 3.0)
    assert_allclose(scaled.objective(ranker.coef_ * deviation, "l1", 3.0), best, rtol=1e-6)


# ---- attributes ---------------------------------------------------------------------------------


def test_sparsity_is_told():
    ranker = fit("l1", 8.0)
    n = int(np.count_nonzero(ranker.coef_))
    assert 0 < n < 6
    assert (ranker.n_nonzero_, ranker.density_) == (n, n / 6)
    assert ranker.sparse_coef_.shape == (1, 6)
    assert ranker.sparse_coef_.nnz == n
    assert_array_equal(ranker.sparse_coef_.toarray()[0], ranker.coef_)
    assert fit("l2").n_nonzero_ == 6


def test_the_model_is_saved_with_what_it_was_trained_by(tmp_path):
    ranker = fit("l1", 3.0, margin=("log", 1, 2.7), layers=lambda y: y + 1)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert_array_equal(model.coef, ranker.coef_)
    expected = {
        "method": "domination",
        "penalty": "l1",
        "alpha": 3.0,
        "margin": "log:1,2.7",
        "layers": "function",
        "pooled": False,
        "seed": None,
        "n_pairs": DATA.queries.n_pairs,
        "objective": ranker.objective_,
    }
    assert {key: model.training[key] for key in expected} == expected
    assert "method='domination'" in repr(model)


# ---- running ------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_best_round_of_an_induction_is_certified_over_all_features(penalty):
    test = make_ranking(n_queries=10, n_features=6, n_levels=3, random_state=9)
    n_seen = 0

    def scored(state):  # stop in the second round: most features are still outside
        nonlocal n_seen
        n_seen += 1
        return state["round"] == 2

    ranker = DominationRanker(
        penalty, 0.1, feature_induction=1, early_stopping=True, scoring="p@1", callback=scored
    )
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid, X_val=test.X, y_val=test.y, qid_val=test.qid)
    best = ranker.best_iteration_
    assert best < n_seen - 1
    whole = make_problem(DATA, penalty=penalty, alpha=0.1, n_jobs=1).at(np.array(ranker.coef_))
    assert_allclose(ranker.objective_, whole.value)
    assert_allclose(ranker.duality_gap_, whole.gap)
    assert_allclose(ranker.kkt_residual_, whole.kkt_residual)
    assert ranker.duality_gap_ > ranker.history_["gap"][best]


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"penalty": "l0"}, "penalty must be 'l1', 'l2' or 'none', got 'l0'"),
        ({"penalty": None}, "penalty must be .* got None"),
        ({"alpha": -1.0}, r"alpha must be a finite number >= 0, got -1\.0"),
        ({"alpha": np.inf}, "alpha must be a finite number >= 0, got inf"),
        ({"alpha": "1"}, "alpha must be a finite number >= 0, got '1'"),
        ({"alpha": 0}, "alpha must be > 0 with penalty='l1', got 0; for no penalty use"),
        ({"alpha": 0.0, "penalty": "l2"}, "alpha must be > 0 with penalty='l2'"),
        ({"alpha": -1.0, "penalty": "none"}, "alpha must be a finite number >= 0"),
        ({"solver": "bundle"}, "solver must be 'auto', 'coordinate' or 'newton', got 'bundle'"),
        ({"solver": "newton"}, "solver='newton' needs penalty='l2', got penalty='l1'"),
        (
            {"solver": "newton", "penalty": "l2", "feature_induction": 5},
            "cannot go with feature_induction=5; use solver='coordinate'",
        ),
        ({"feature_induction": 0}, "feature_induction must be an integer >= 1, or None"),
        ({"feature_induction": 2.5}, "feature_induction must be an integer >= 1.*got 2.5"),
        ({"feature_induction": True}, "feature_induction must be an integer >= 1.*got True"),
        ({"negative_sampling": 0.0}, "negative_sampling must be a share .* got 0.0"),
        ({"negative_sampling": 1.5}, "negative_sampling must be a share .* got 1.5"),
        ({"layers": "levels"}, "layers must be 'labels', 'binary' or a function"),
        ({"margin": np.zeros((2, 2))}, r"shape \(2, 2\), but the data have 3 layers"),
        ({"margin": np.nan}, "margin must be finite, got nan"),
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
            DominationRanker("l1", 0.5).fit(X * [1e200, 1, 1, 1, 1], y, qid=qid)


@pytest.mark.parametrize("seed", [14, 48])
def test_rows_that_can_be_told_apart_do_not_blow_up_the_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    X, y, qid = rng.normal(size=(n, 3)), rng.permutation(n), rng.integers(0, 4, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker = DominationRanker("none", margin=1e3).fit(X, y, qid=qid)
    assert np.abs(ranker.coef_).max() < 1e12  # 1e274 without a limit
