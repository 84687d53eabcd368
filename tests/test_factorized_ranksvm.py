"""FactorizedRankSVM: what the estimator adds to `train_factorized`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explicit_pairs import ExplicitPairs
from linrank import ConvergenceWarning, evaluate, load_model, make_ranking
from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.lowrank.factorized import train_factorized
from papers import FactorizedRankSVM
from plain_factorized import PlainFactors

SHAPE = {"n_features": 6, "n_levels": 3, "dtype": "float64"}
RAW = make_ranking(n_queries=15, rows_per_query=(4, 9), random_state=3, **SHAPE)
SCALING = Scaling.fit("standard", RAW.rows)
DATA = SCALING.applied(RAW)
TEST = SCALING.applied(make_ranking(n_queries=20, random_state=9, **SHAPE))


def fit(n_components=3, C=0.1, data=DATA, held_out=None, **params):
    params = {"random_state": 0, "keep_factors": True, **params}
    given = {}
    if held_out is not None:
        given = {"X_val": held_out.X, "y_val": held_out.y, "qid_val": held_out.qid}
    return FactorizedRankSVM(n_components, C, **params).fit(data.X, data.y, qid=data.qid, **given)


def check_factors(ranker, data=DATA):
    """Model, objective and bound are those of the factors, over the list of all pairs."""
    factors, V = PlainFactors(ExplicitPairs.of(data)), ranker.factors_
    assert_allclose(ranker.objective_, factors.value(V), rtol=1e-9)
    hinge = factors.hinge_objective(factors.weights(V), ranker.C)
    assert_allclose(ranker.hinge_objective_, hinge, rtol=1e-6)
    assert ranker.lower_bound_ == -ranker.objective_
    assert_allclose(ranker.duality_gap_, ranker.hinge_objective_ - ranker.lower_bound_)
    return factors.weights(V)


@pytest.mark.parametrize("scale", ["standard", "minmax", "query"])
def test_scaling_is_part_of_the_model(scale):
    scaled = Scaling.fit(scale, RAW.rows).applied(RAW)
    ranker = fit(data=RAW, scale=scale)
    expected = scaled.X @ check_factors(ranker, scaled)
    assert_allclose(ranker.predict(RAW.X, qid=RAW.qid), expected, rtol=1e-6, atol=1e-9)


def test_early_stopping_keeps_the_best_epoch():
    """Coefficients, bounds and factors are all of that epoch, to the bit."""
    seen = []
    ranker = fit(
        held_out=TEST,
        scoring="p@5",
        early_stopping=True,
        n_iter_no_change=4,
        tol=1e-12,
        callback=lambda state: seen.append(state["w"].copy()),
    )
    values, best = ranker.history_["val_p@5"], ranker.best_iteration_
    assert best == int(np.argmax(values))
    assert len(values) == best + 5  # the patience
    assert len(seen) == len(values)  # not called for the epochs that are repeated
    assert_array_equal(ranker.coef_, seen[best])
    assert ranker.objective_ == ranker.history_["objective"][best]
    assert (ranker.n_iter_, ranker.converged_) == (len(values) - 1, False)
    assert_allclose(ranker.coef_, check_factors(ranker), rtol=1e-6, atol=1e-9)
    found = evaluate(TEST.y, ranker.predict(TEST.X), qid=TEST.qid, metrics=["p@5"])["p@5"]
    assert_allclose(found, max(values))
    assert ranker.model_.training["stopped"] == "callback"


def test_too_few_epochs_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="did not converge: max_iter=1 is too few epochs"):
        ranker = fit(max_iter=1, tol=1e-12)
    assert (ranker.converged_, ranker.n_iter_) == (False, 1)
    told = r"FactorizedRankSVM did not converge: .* by [0-9.e-]+ of it after max_iter=9 epochs"
    with pytest.warns(ConvergenceWarning, match=told):
        fit(max_iter=9, tol=1e-12)


@pytest.mark.parametrize("constraint", ["box", "ball"])
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


def test_the_model_is_saved_with_what_it_was_trained_by(tmp_path):
    ranker = fit(4, constraint="ball", random_state=11)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    expected = {
        **{"method": "factorized", "n_components": 4, "constraint": "ball", "C": 0.1, "seed": 11},
        **{"objective": ranker.objective_, "lower_bound": ranker.lower_bound_},
        **{"gap": ranker.duality_gap_, "n_iter": ranker.n_iter_, "converged": True},
        "n_pairs": DATA.queries.n_pairs,
    }
    assert {key: model.training[key] for key in expected} == expected
    for told in ("method='factorized'", "n_components=4", "constraint='ball'", "C=0.1"):
        assert told in repr(model)
