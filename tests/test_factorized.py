"""Factorized RankSVM: sums over levels equal those over pairs, f falls, bounds hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.lowrank.factorized import train_factorized
from linrank.ranksvm.train import train
from plain_factorized import PlainFactors, bounds, largest_fall
from small_data import small, weighted
from strategies import datasets

CONSTRAINTS = ["box", "ball"]


def feasible(V, b, constraint):
    inside = np.max(V, axis=1) * np.sqrt(V.shape[1])
    if constraint == "ball":
        inside = np.linalg.norm(V, axis=1)
    return (V >= 0).all() and (inside <= b * (1 + 1e-12)).all()


@examples(60)
@given(datasets(weights=True), st.sampled_from(CONSTRAINTS), st.integers(1, 4), st.integers(0, 99))
def test_equals_the_sum_over_pairs(data, constraint, K, seed):
    assume(data.queries.n_pairs > 0)
    C = 0.7
    plain = PlainFactors(ExplicitPairs.of(data))
    result = train_factorized(
        data, n_components=K, C=C, constraint=constraint, max_iter=4, seed=seed
    )
    V = result.factors
    b = bounds(data, C)
    assert V.shape == (data.n_rows, K)
    assert feasible(V, b, constraint)
    np.testing.assert_allclose(result.w, plain.weights(V), rtol=1e-9, atol=1e-9)
    assert result.value == pytest.approx(plain.value(V), rel=1e-9, abs=1e-9)
    assert (plain.alpha(V) <= C * plain.pairs.weight * (1 + 1e-9)).all()
    assert result.hinge_objective == pytest.approx(plain.hinge_objective(result.w, C), rel=1e-9)
    fall = largest_fall(V, plain.gradient(V), b, constraint)
    # Rows of queries with one level have no part, and their factors are 0.
    assert result.kkt_residual == pytest.approx(fall, rel=1e-7, abs=1e-8)
    assert result.gap >= 0.0  # weak duality
    falls = -np.diff(result.history["objective"])
    assert (falls >= -1e-12 * np.abs(result.history["objective"][:-1])).all()


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_lower_bound_of_the_hinge_optimum(constraint):
    data = small(1)
    best = train(data, C=0.5, loss="hinge", solver="bundle", tol=1e-9)
    for seed in range(3):
        result = train_factorized(data, C=0.5, constraint=constraint, seed=seed)
        assert result.history["lower_bound"][-1] == -result.value
        assert -result.value <= best.value * (1 + 1e-9)
        assert result.hinge_objective >= best.value - best.gap
        assert result.gap == pytest.approx(result.hinge_objective + result.value)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_ends_where_a_generic_solver_finds_no_way_down(constraint):
    data = small(2)
    C, K = 0.3, 2
    plain = PlainFactors(ExplicitPairs.of(data))
    result = train_factorized(
        data, n_components=K, C=C, constraint=constraint, tol=1e-12, max_iter=20000
    )
    V = result.factors
    upper = np.sqrt(C / K) if constraint == "box" else np.sqrt(C)
    found = minimize(
        lambda v: plain.value(v.reshape(V.shape)),
        V.ravel(),
        jac=lambda v: plain.gradient(v.reshape(V.shape)).ravel(),
        method="SLSQP" if constraint == "ball" else "L-BFGS-B",
        bounds=[(0.0, upper)] * V.size,
        constraints=(
            ()
            if constraint == "box"
            else {
                "type": "ineq",
                "fun": lambda v: C - (v.reshape(V.shape) ** 2).sum(axis=1),
                "jac": lambda v: np.concatenate(
                    [np.diag(-2 * v.reshape(V.shape)[:, k])[:, :, None] for k in range(K)], axis=2
                ).reshape(len(V), -1),
            }
        ),
    )
    assert result.kkt_residual <= 1e-4 * abs(result.value)
    assert result.value <= found.fun + 1e-5 * abs(found.fun)


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
    runs = [train_factorized(data, C=0.01, seed=3, n_jobs=n, max_iter=8) for n in (1, 2, 3, 1)]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.w, runs[0].w)
        np.testing.assert_array_equal(run.factors, runs[0].factors)
        assert run.history["objective"] == runs[0].history["objective"]
    other = train_factorized(data, C=0.01, seed=4, n_jobs=1, max_iter=8)
    assert not np.array_equal(other.w, runs[0].w)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_scale_multiplies_columns(is_sparse):
    data = small(7)
    scale = np.array([0.5, 2.0, 1.0, -1.0, 0.0])
    wrap = sparse.csr_array if is_sparse else np.asarray
    raw = Dataset.of(wrap(data.X), data.labels, qid=data.qid)
    ready = Dataset.of(wrap(data.X * scale), data.labels, qid=data.qid)
    options = {"C": 0.2, "max_iter": 6}
    on_the_fly = train_factorized(raw, scale=scale, **options)
    before = train_factorized(ready, **options)
    np.testing.assert_allclose(on_the_fly.w, before.w, rtol=1e-7, atol=1e-9)
    assert on_the_fly.hinge_objective == pytest.approx(before.hinge_objective)


def test_a_weight_of_two_is_the_row_twice():
    """The copies share what the row has: ``v_i = v + v'``, whatever ω."""
    data = small(9)
    rng = np.random.default_rng(1)
    twice = rng.random(data.n_rows) < 0.4
    V0 = rng.random((data.n_rows, 3)) * np.sqrt(0.5 / 3)
    rows = np.concatenate([np.arange(data.n_rows), np.flatnonzero(twice)])
    copies = Dataset.of(data.X[rows], data.labels[rows], qid=np.asarray(data.qid)[rows])
    heavy = Dataset.of(data.X, data.labels, qid=data.qid, sample_weight=1.0 + twice)
    options = {"n_components": 3, "C": 0.5, "max_iter": 6, "seed": 5}
    one = train_factorized(heavy, V0=V0 * (1.0 + twice)[:, None], **options)
    other = train_factorized(copies, V0=V0[rows], **options)
    np.testing.assert_allclose(other.w, one.w, rtol=1e-8)
    np.testing.assert_allclose(other.history["objective"], one.history["objective"], rtol=1e-8)


def test_weights_bound_the_duals():
    data = weighted(small(10), 2)
    c = np.random.default_rng(0).integers(0, 3, data.queries.n_queries) / 2.0
    by_id = dict(zip(data.queries.ids.tolist(), c.tolist(), strict=True))
    plain = PlainFactors(ExplicitPairs.of(data, query_weight=by_id))
    result = train_factorized(data, C=2.0, query_weight=c)
    assert feasible(result.factors, bounds(data, 2.0, by_id), "box")
    assert (plain.alpha(result.factors) <= 2.0 * plain.pairs.weight * (1 + 1e-9)).all()
    assert result.hinge_objective == pytest.approx(plain.hinge_objective(result.w, 2.0))


def test_says_why_it_stopped():
    data = small(13)
    assert train_factorized(data).stopped == "tolerance"
    short = train_factorized(data, max_iter=7, tol=1e-12)
    assert short.stopped == "max_iter"
    assert "raise max_iter or tol" in short.message
    # All factors at their bounds: no step is left, and that is the optimum.
    full = train_factorized(data, C=1e-9)
    assert (full.stopped, full.converged) == ("tolerance", True)
    paired = full.factors.any(axis=1)
    np.testing.assert_allclose(full.factors[paired] ** 2 * 5, 1e-9)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_few_epochs_and_an_objective_of_zero_have_a_message(max_iter):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    data = Dataset.of(X, y, qid=np.array([1, 1, 2, 2]))
    rest = train_factorized(data, n_components=2, V0=np.zeros((4, 2)), max_iter=max_iter)
    assert rest.value == 0.0
    assert f"max_iter={max_iter} is too few epochs to tell" in rest.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"n_components": 2.0}, "n_components must be an integer >= 1, got 2.0"),
        ({"n_components": True}, "n_components must be an integer >= 1, got True"),
        ({"n_components": 2**31}, "n_components must be below"),
        ({"C": 0.0}, "C must be a finite number > 0, got 0.0"),
        ({"C": float("nan")}, "C must be a finite number > 0"),
        ({"constraint": "sphere"}, "constraint must be 'box' or 'ball', got 'sphere'"),
        ({"tol": -1.0}, "tol must be a finite number > 0, got -1.0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
        ({"V0": np.zeros((3, 5))}, r"V0 has shape \(3, 5\), expected"),
        ({"V0": np.full((60, 5), np.nan)}, "V0"),
        (
            {"query_normalization": "rows"},
            "query_normalization must be None or 'pairs', got 'rows'",
        ),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        train_factorized(small(), **options)


def test_more_factors_than_memory():
    with pytest.raises(MemoryError, match="use a smaller n_components"):
        train_factorized(small(), n_components=2**31 - 1)


def test_rows_too_large_for_doubles():
    data = small()
    with pytest.raises(ValueError, match="too large for double precision"):
        train_factorized(Dataset.of(data.X * 1e200, data.labels, qid=data.qid))
