"""Factorized RankSVM: sums over levels equal those over pairs, f falls; by pairs, as published."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import Dataset, make_ranking
from linrank.data.scaling import Scaling
from linrank.lowrank.factorized import train_factorized
from linrank.published import PAIR_WORK, factorize_by_pairs
from linrank.ranksvm.train import train
from papers import FactorizedRankSVM
from plain_factorized import PlainFactors, bounds, largest_fall
from small_data import small
from strategies import datasets

CONSTRAINTS = ["box", "ball"]
every_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS)


@examples(60)
@given(
    *(datasets(weights=True), st.sampled_from(CONSTRAINTS), st.integers(1, 4)),
    *(st.integers(0, 99), st.booleans()),
)
def test_equals_the_sum_over_pairs(data, constraint, K, seed, weighs_queries):
    assume(data.queries.n_pairs > 0)
    C, c, by_id = 0.7, None, None
    if weighs_queries and data.qid is not None:
        c = np.random.default_rng(seed).integers(1, 4, data.queries.n_queries) / 2.0
        by_id = dict(zip(data.queries.ids.tolist(), c.tolist(), strict=True))
    plain = PlainFactors(ExplicitPairs.of(data, query_weight=by_id))
    result = train_factorized(
        *(data,), n_components=K, C=C, constraint=constraint, max_iter=4, seed=seed, query_weight=c
    )
    V, b = result.factors, bounds(data, C, by_id)
    inside = np.linalg.norm(V, axis=1) if constraint == "ball" else V.max(axis=1) * np.sqrt(K)
    assert V.shape == (data.n_rows, K)
    assert (V >= 0).all()
    assert (inside <= b * (1 + 1e-12)).all()
    assert_allclose(result.w, plain.weights(V), rtol=1e-9, atol=1e-9)
    assert result.value == pytest.approx(plain.value(V), rel=1e-9, abs=1e-9)
    assert (plain.alpha(V) <= C * plain.pairs.weight * (1 + 1e-9)).all()
    assert result.hinge_objective == pytest.approx(plain.hinge_objective(result.w, C), rel=1e-9)
    fall = largest_fall(V, plain.gradient(V), b, constraint)
    # Rows of queries with one level have no part, and their factors are 0.
    assert result.kkt_residual == pytest.approx(fall, rel=1e-7, abs=1e-8)
    assert result.gap >= 0.0  # weak duality
    falls = -np.diff(result.history["objective"])
    assert (falls >= -1e-12 * np.abs(result.history["objective"][:-1])).all()


@every_constraint
def test_ends_where_there_is_no_way_down(constraint):
    """To first order: what the linearization of f promises within the constraints."""
    data, C = small(2), 0.3
    options = {"n_components": 2, "C": C, "constraint": constraint, "max_iter": 20_000}
    result = train_factorized(data, tol=1e-12, **options)
    V, plain = result.factors, PlainFactors(ExplicitPairs.of(data))
    fall = largest_fall(V, plain.gradient(V), bounds(data, C), constraint)
    assert fall <= 1e-4 * abs(result.value)


def test_a_drawn_start_is_its_best_multiple():
    """``f(sV) = ½s⁴‖β‖² - s²Σα``: no multiple of it within the box is lower."""
    data = small(14)
    for C in (1e-6, 1.0, 100.0):
        start = train_factorized(data, C=C, max_iter=1, callback=lambda state: True)
        f = start.history["objective"][0]
        assert f < 0.0
        for s in (0.9, 1.1):
            V0 = s * start.factors
            if V0.max() <= np.sqrt(C / 5):
                other = train_factorized(data, C=C, V0=V0, callback=lambda state: True)
                assert other.value > f


def test_separable_rows_do_not_end_at_the_saddle():
    """Few pairs need a dual: from the whole box, f lingers near 0, where V is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = X @ [2.0, -1.0, 1.0, 0.0, 0.0] > 4.5  # a few rows of each query
    data = Dataset.of(X, y, qid=np.arange(3000) // 300)
    best = train(data, C=1.0, loss="hinge", tol=1e-4).value
    found = train_factorized(data, C=1.0)
    assert found.converged
    assert -found.value > 0.5 * best


def test_threads_and_repetition_give_the_same_bits():
    data = make_ranking(400, (20, 120), 40, random_state=0)  # several queries a batch, 4 MB
    first, *others = (
        train_factorized(data, C=0.01, seed=3, n_jobs=n, max_iter=3) for n in (1, 2, 3, 1)
    )
    for run in others:
        assert_array_equal(run.w, first.w)
        assert_array_equal(run.factors, first.factors)
        assert run.history["objective"] == first.history["objective"]
    other = train_factorized(data, C=0.01, seed=4, n_jobs=1, max_iter=3)
    assert not np.array_equal(other.w, first.w)


# ---- the end ------------------------------------------------------------------------------------


def test_says_why_it_stopped():
    data = small(13)
    assert train_factorized(data).stopped == "tolerance"
    short = train_factorized(data, max_iter=7, tol=1e-12)
    assert short.stopped == "max_iter"
    assert re.search(
        r"by [0-9.e-]+ of it after max_iter=7 epochs.* raise max_iter or tol", short.message
    )
    # All factors at their bounds: no step is left, and that is the optimum.
    full = train_factorized(data, C=1e-9)
    assert (full.stopped, full.converged) == ("tolerance", True)
    assert_allclose(full.factors[full.factors.any(axis=1)] ** 2 * 5, 1e-9)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_few_epochs_and_an_objective_of_zero_have_a_message(max_iter):
    data = Dataset.of(np.eye(4), np.array([0, 1, 0, 1]), qid=np.array([1, 1, 2, 2]))
    rest = train_factorized(data, n_components=2, V0=np.zeros((4, 2)), max_iter=max_iter)
    assert rest.value == 0.0
    assert f"max_iter={max_iter} is too few epochs to tell" in rest.message


def test_an_objective_above_that_of_no_factors_has_not_converged():
    """Stationary factors have f <= 0. A start in the whole box is far above it with such a C."""
    rng = np.random.default_rng(0)
    data = Dataset.of(rng.normal(size=(60, 4)), rng.integers(0, 3, 60), qid=np.arange(60) // 10)
    far = train_factorized(data, C=1e100, V0=np.full((60, 2), 1e50), n_components=2, max_iter=100)
    assert far.value > 0.0
    assert not far.converged


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_components": 2**31}, ValueError, "n_components must be below"),
        ({"n_components": 2**31 - 1}, MemoryError, "use a smaller n_components"),
        ({"V0": np.zeros((3, 5))}, ValueError, r"V0 has shape \(3, 5\), expected"),
        ({"V0": np.full((74, 5), np.nan)}, ValueError, "V0 has a NaN or infinite entry"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        train_factorized(small(), **options)


def test_rows_too_large_for_doubles():
    data = small()
    with pytest.raises(ValueError, match="too large for double precision"):
        train_factorized(Dataset.of(data.X * 1e200, data.labels, qid=data.qid))


# ---- the estimator ------------------------------------------------------------------------------

SHAPE = {"n_features": 6, "n_levels": 3, "dtype": "float64"}
DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), random_state=3, **SHAPE)
SCALING = Scaling.fit("standard", DATA.rows)
DATA = SCALING.applied(DATA)
TEST = SCALING.applied(make_ranking(n_queries=20, random_state=9, **SHAPE))


def test_early_stopping_keeps_the_factors_of_the_best_epoch():
    """Model, objective and bound are those of the factors, over the list of all pairs."""
    seen, plain = [], PlainFactors(ExplicitPairs.of(DATA))
    options = {"keep_factors": True, "random_state": 0, "callback": lambda state: seen.append(1)}
    stopping = {"scoring": "p@5", "early_stopping": True, "n_iter_no_change": 4, "tol": 1e-12}
    given = {"X_val": TEST.X, "y_val": TEST.y, "qid_val": TEST.qid}
    ranker = FactorizedRankSVM(3, 0.1, **options, **stopping)
    ranker.fit(DATA.X, DATA.y, qid=DATA.qid, **given)
    values, V = ranker.history_["val_p@5"], ranker.factors_
    assert len(seen) == len(values)  # not called for the epochs that are repeated
    assert (ranker.n_iter_, ranker.converged_) == (len(values) - 1, False)
    assert_allclose(ranker.coef_, plain.weights(V), rtol=1e-6, atol=1e-9)
    assert_allclose(ranker.objective_, plain.value(V), rtol=1e-9)
    hinge = plain.hinge_objective(plain.weights(V), ranker.C)
    assert_allclose(ranker.hinge_objective_, hinge, rtol=1e-6)
    assert ranker.lower_bound_ == -ranker.objective_
    assert_allclose(ranker.duality_gap_, ranker.hinge_objective_ - ranker.lower_bound_)


# ---- by pairs, as published ---------------------------------------------------------------------


def listed(data: Dataset) -> PlainFactors:
    return PlainFactors(ExplicitPairs.of(data))


def one_epoch(data: Dataset, V: np.ndarray, rate: float, largest: np.ndarray) -> np.ndarray:
    """V after a step of every query, in the order of their first rows, at the gradient of all."""
    V, plain = V.copy(), listed(data)
    qid = np.zeros(data.n_rows) if data.qid is None else np.asarray(data.qid)
    for query in dict.fromkeys(qid.tolist()):
        rows = qid == query
        step = rate * plain.gradient(V)[rows]
        V[rows] = np.clip(V[rows] - step, 0.0, largest[rows, np.newaxis])
    return V


def has_pairs(data: Dataset) -> bool:
    return data.queries.n_pairs > 0


@pytest.mark.parametrize("work", PAIR_WORK)
@examples(60)
@given(
    data=datasets(weights=True).filter(has_pairs),
    K=st.integers(1, 4),
    C=st.sampled_from([0.1, 1.0, 7.0]),
    rate=st.sampled_from([1e-3, 0.05, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_an_epoch_is_that_of_the_listed_pairs(work, data, K, C, rate, seed):
    """Any storage, queries interleaved; steps that end inside the box and on its faces."""
    u = np.ones(data.n_rows) if data.weight is None else data.weight
    largest = u * np.sqrt(C / K)
    V0 = np.random.default_rng(seed).uniform(0, 1, (data.n_rows, K)) * largest[:, np.newaxis]
    fit = factorize_by_pairs(
        data, learning_rate=rate, n_components=K, C=C, work=work, max_iter=1, V0=V0
    )
    expected, plain = one_epoch(data, V0, rate, largest), listed(data)
    size = 1.0 + np.abs(plain.gradient(V0)).max()
    assert_allclose(fit.factors, expected, rtol=1e-9, atol=1e-12 * size)
    for V, found in ((V0, fit.history["objective"][0]), (fit.factors, fit.value)):
        assert_allclose(found, plain.value(V), rtol=1e-9, atol=1e-9)
    assert_allclose(fit.w, plain.weights(fit.factors), rtol=1e-9, atol=1e-10)
    assert (fit.factors >= 0).all()
    assert (fit.factors <= largest[:, np.newaxis]).all()


def test_the_callback_stops():
    seen = []
    fit = factorize_by_pairs(
        small(), learning_rate=1e-4, callback=lambda state: seen.append(state) or len(seen) == 3
    )
    assert [state["n_iter"] for state in seen] == [0, 1, 2]
    assert seen[-1]["objective"] == fit.value
    assert len(fit.history["seconds"]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": np.inf}, "learning_rate must be a finite number > 0"),
        ({"C": -1.0}, "C must be a finite number > 0, got -1"),
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"work": "all"}, "work must be 'by_pair' or 'by_row', got 'all'"),
        ({"V0": np.zeros((2, 2))}, r"V0 must have the shape .* got \(2, 2\)"),
    ],
)
def test_bad_options_of_pairs_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        factorize_by_pairs(small(), **{"learning_rate": 0.1, **options})
