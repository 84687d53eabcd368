"""FactorizedRankSVM: its numbers over explicit pairs, validation, attributes, scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from explicit_pairs import ExplicitPairs
from linrank import (
    ConvergenceWarning,
    evaluate,
    load_model,
    make_ranking,
)
from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.lowrank.factorized import train_factorized
from papers import FactorizedRankSVM
from plain_factorized import PlainFactors, bounds, largest_fall

RAW = make_ranking(
    n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, dtype="float64", random_state=3
)
DATA = Scaling.fit("standard", RAW.rows).applied(RAW)
TEST = Scaling("standard", Scaling.fit("standard", RAW.rows).factors).applied(
    make_ranking(n_queries=20, n_features=6, n_levels=3, dtype="float64", random_state=9)
)
CONSTRAINTS = ["box", "ball"]


def fit(n_components=3, C=0.1, data=DATA, **params):
    given = {name: params.pop(name, None) for name in ("sample_weight", "query_weight")}
    params = {"random_state": 0, "keep_factors": True, **params}
    return FactorizedRankSVM(n_components, C, **params).fit(data.X, data.y, qid=data.qid, **given)


def held_out(**params):
    ranker = FactorizedRankSVM(3, 0.1, random_state=0, **params)
    return ranker.fit(DATA.X, DATA.y, qid=DATA.qid, X_val=TEST.X, y_val=TEST.y, qid_val=TEST.qid)


def plain(data, C=0.1, u=None, c=None, normalized=False):
    """The problem over a list of all its pairs, and the bound b of each row."""
    data = replace(data, weight=u)
    if normalized:
        pairs = ExplicitPairs.of(data)
        query = data.qid[pairs.winner]
        sums = {q: pairs.weight[query == q].sum() for q in set(data.qid.tolist())}
        c = {q: 1.0 / total if total > 0 else 0.0 for q, total in sums.items()}
    return PlainFactors(ExplicitPairs.of(data, query_weight=c)), bounds(data, C, c)


def check_numbers(ranker, factors, reach, rtol=1e-9):
    """Model, objective and bounds are those of the factors, which are feasible."""
    V, C = ranker.factors_, ranker.C
    assert_allclose(ranker.coef_, factors.weights(V), rtol=1e-6, atol=1e-9)
    assert_allclose(ranker.objective_, factors.value(V), rtol=rtol)
    assert_allclose(ranker.hinge_objective_, factors.hinge_objective(ranker.coef_, C), rtol=rtol)
    assert ranker.lower_bound_ == -ranker.objective_
    assert_allclose(ranker.duality_gap_, ranker.hinge_objective_ - ranker.lower_bound_)
    assert (V >= 0).all()
    assert (factors.alpha(V) <= C * factors.pairs.weight * (1 + 1e-9)).all()
    size = np.linalg.norm(V, axis=1)
    if ranker.constraint == "box":
        size = V.max(axis=1) * np.sqrt(ranker.n_components)
    assert (size <= reach * (1 + 1e-9)).all()


# ---- the numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("n_components", [1, 4])
def test_model_and_objectives_are_those_of_the_factors(constraint, n_components):
    ranker = fit(n_components, constraint=constraint)
    assert ranker.factors_.shape == (DATA.n_rows, n_components)
    check_numbers(ranker, *plain(DATA))
    assert ranker.converged_
    V = ranker.factors_
    expected = largest_fall(V, plain(DATA)[0].gradient(V), plain(DATA)[1], constraint)
    assert_allclose(ranker.kkt_residual_, expected, rtol=1e-6)
    assert 0 <= ranker.kkt_residual_ < 0.01 * ranker.lower_bound_
    assert ranker.n_pairs_ == DATA.queries.n_pairs
    assert ranker.n_queries_ == 15


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_weights_of_rows_and_queries(constraint):
    rng = np.random.default_rng(1)
    u = rng.integers(0, 3, DATA.n_rows).astype(float)
    c = {q: rng.uniform(0.5, 2) for q in set(DATA.qid.tolist())}
    ranker = fit(constraint=constraint, sample_weight=u, query_weight=c)
    check_numbers(ranker, *plain(DATA, u=u, c=c))
    normalized = fit(C=5.0, constraint=constraint, sample_weight=u, query_normalization="pairs")
    check_numbers(normalized, *plain(DATA, C=5.0, u=u, normalized=True))


def test_factors_follow_the_order_of_the_rows():
    order = np.random.default_rng(0).permutation(DATA.n_rows)
    mixed = DATA.select(order)
    for X in (mixed.X, sparse.csr_array(mixed.X)):
        ranker = FactorizedRankSVM(3, 0.1, random_state=0, keep_factors=True)
        ranker.fit(X, mixed.y, qid=mixed.qid.astype(str))
        check_numbers(ranker, *plain(mixed))


@pytest.mark.parametrize("scale", ["standard", "minmax", "query"])
def test_scaling_is_part_of_the_model(scale):
    scaling = Scaling.fit(scale, RAW.rows)
    scaled = scaling.applied(RAW)
    factors = plain(scaled)[0]
    ranker = fit(data=RAW, scale=scale)
    assert_allclose(ranker.objective_, factors.value(ranker.factors_), rtol=1e-9)
    expected = scaled.X @ factors.weights(ranker.factors_)
    assert_allclose(ranker.predict(RAW.X, qid=RAW.qid), expected, rtol=1e-6, atol=1e-9)


# ---- running ------------------------------------------------------------------------------------


def test_early_stopping_keeps_the_best_epoch():
    """Coefficients, bounds and factors are all of that epoch, to the bit."""
    seen = []
    ranker = held_out(
        scoring="p@5",
        early_stopping=True,
        n_iter_no_change=4,
        tol=1e-12,
        keep_factors=True,
        callback=lambda state: seen.append(state["w"].copy()),
    )
    values = ranker.history_["val_p@5"]
    best = ranker.best_iteration_
    assert best == int(np.argmax(values))
    assert len(values) == best + 5  # the patience
    assert_array_equal(ranker.coef_, seen[best])
    assert len(seen) == len(values)  # not called for the epochs that are repeated
    assert ranker.objective_ == ranker.history_["objective"][best]
    assert ranker.n_iter_ == len(values) - 1
    assert not ranker.converged_
    check_numbers(ranker, *plain(DATA))
    found = evaluate(TEST.y, ranker.predict(TEST.X), qid=TEST.qid, metrics=["p@5"])["p@5"]
    assert_allclose(found, max(values))
    assert ranker.model_.training["stopped"] == "callback"


def test_too_few_epochs_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="did not converge: max_iter=1 is too few epochs"):
        ranker = fit(max_iter=1, tol=1e-12)
    assert not ranker.converged_
    assert ranker.n_iter_ == 1
    told = r"FactorizedRankSVM did not converge: .* by [0-9.e-]+ of it after max_iter=9 epochs"
    with pytest.warns(ConvergenceWarning, match=told):
        fit(max_iter=9, tol=1e-12)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_gap_is_never_negative(constraint):
    for exponent in range(-12, -2):
        ranker = fit(C=10.0**exponent, constraint=constraint)
        assert ranker.duality_gap_ >= 0.0
        assert_allclose(ranker.hinge_objective_, ranker.lower_bound_, rtol=1e-2)


def test_an_objective_above_that_of_no_factors_has_not_converged():
    """Stationary factors have f <= 0. A start in the whole box is far above it with such a C."""
    rng = np.random.default_rng(0)
    data = Dataset.of(rng.normal(size=(60, 4)), rng.integers(0, 3, 60), qid=np.arange(60) // 10)
    far = train_factorized(data, C=1e100, V0=np.full((60, 2), 1e50), n_components=2, max_iter=100)
    assert far.value > 0.0
    assert not far.converged


# ---- the model ----------------------------------------------------------------------------------


def test_the_model_is_saved_with_what_it_was_trained_by(tmp_path):
    ranker = fit(4, constraint="ball", random_state=11)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert_array_equal(model.coef, ranker.coef_)
    assert model.training == ranker.model_.training
    expected = {
        "method": "factorized",
        "n_components": 4,
        "constraint": "ball",
        "C": 0.1,
        "seed": 11,
        "objective": ranker.objective_,
        "lower_bound": ranker.lower_bound_,
        "gap": ranker.duality_gap_,
        "n_iter": ranker.n_iter_,
        "converged": True,
        "n_pairs": DATA.queries.n_pairs,
    }
    assert {key: model.training[key] for key in expected} == expected
    for told in ("method='factorized'", "n_components=4", "constraint='ball'", "C=0.1"):
        assert told in repr(model)
