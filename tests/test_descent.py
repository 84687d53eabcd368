"""Stochastic learners: each step against the formula, and the laws of the state."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.sparse import csr_array

from hypothesis_profiles import examples
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, as_rows
from linrank.stochastic.descent import RULES, Descent, Learner
from linrank.stochastic.samplers import pair_sampler
from plain_descent import PlainDescent

ALGORITHMS = tuple(RULES)
AVERAGES = (None, "uniform", "weighted")


def learner(algorithm, strength=0.05, first_step=0.0):
    return Learner(algorithm, strength, strength, first_step)


def matrix(rng, n_rows, n_features, kind, dtype=np.float64):
    X = rng.standard_normal((n_rows, n_features)).astype(dtype)
    if kind == "dense":
        return X, as_rows(X)
    X *= rng.random(X.shape) < 0.3
    rows = as_rows(csr_array(X))
    if kind == "csr64":
        rows = CsrRows(rows.values, rows.columns.astype(np.int64), rows.offsets, rows.n_columns)
    return X, rows


def pairs(rng, n_rows, n_pairs):
    winners = rng.integers(0, n_rows, n_pairs)
    return winners, (winners + rng.integers(1, n_rows, n_pairs)) % n_rows


def consistent(X, winners, losers):
    """The same pairs, turned so that one direction ranks them all: on others ROMMA goes astray."""
    better = X.sum(axis=1)
    right = better[winners] > better[losers]
    return np.where(right, winners, losers), np.where(right, losers, winners)


def twin_of(rule, X, winners, losers):
    twin = PlainDescent(
        X.shape[1],
        rule.algorithm,
        strength=rule.alpha if rule.shrinks else rule.aggressiveness,
        first_step=rule.first_step,
    )
    for i, j in zip(winners, losers, strict=True):
        twin.step(X[i] - X[j])
    return twin


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "csr", "csr64"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_steps_are_those_of_the_formula(algorithm, kind, dtype):
    for n_features in (1, 3, 7, 8, 9, 16, 21, 46):
        rng = np.random.default_rng(n_features)
        X, rows = matrix(rng, 30, n_features, kind, dtype)
        winners, losers = consistent(X, *pairs(rng, 30, 200))
        rule = learner(algorithm)
        # Of dense rows the difference is rounded to their type, of sparse rows it is never formed.
        twin = twin_of(rule, X if kind == "dense" else X.astype(np.float64), winners, losers)
        for average in AVERAGES:
            descent = Descent(n_features, [rule], average)
            descent.step(rows, winners, losers)
            expected = twin.w if average is None else twin.averaged(average)
            scale = np.abs(expected).max() + 1e-12
            assert_allclose(descent.weights()[0], expected, atol=1e-9 * scale, rtol=0)
            assert_allclose(descent.mean_losses()[0], twin.loss / 200, rtol=1e-9)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("n_models", [2, 7, 8, 9, 20])
def test_models_side_by_side_are_the_same_as_alone(n_models, kind, average):
    rng = np.random.default_rng(n_models)
    X, rows = matrix(rng, 40, 13, kind, np.float32)
    winners, losers = consistent(X, *pairs(rng, 40, 300))
    rules = [learner(ALGORITHMS[m % len(ALGORITHMS)], 10.0 ** -(m % 4)) for m in range(n_models)]
    together = Descent(13, rules, average)
    together.step(rows, winners, losers)
    for rule, weights in zip(rules, together.weights(), strict=True):
        alone = Descent(13, [rule], average)
        alone.step(rows, winners, losers)
        assert_allclose(weights, alone.weights()[0], atol=1e-9 * np.abs(weights).max())


def sampled_problem(seed=0, n_rows=200):
    rng = np.random.default_rng(seed)
    rows = as_rows(rng.standard_normal((n_rows, 11)).astype(np.float32))
    queries = Queries.of(rng.integers(0, 3, n_rows).astype(float), rng.integers(0, 9, n_rows))
    return rows, pair_sampler(queries)


@examples(25)
@given(
    st.lists(st.integers(0, 1500), max_size=6),
    st.sampled_from(ALGORITHMS),
    st.sampled_from(AVERAGES),
)
def test_calls_and_threads_leave_no_trace(cuts, algorithm, average):
    rows, sampler = sampled_problem()
    rules = [learner(algorithm, 0.01 * (m + 1)) for m in range(10)]
    whole, cut = (Descent(11, rules, average, seed=5) for _ in range(2))
    whole.run(rows, sampler, sum(cuts), n_threads=1)
    for n_steps in cuts:
        cut.run(rows, sampler, n_steps, n_threads=3)
    assert_array_equal(whole.weights(), cut.weights())
    assert_array_equal(whole.random.state, cut.random.state)


def test_the_norm_is_measured_anew_at_the_same_steps_however_calls_are_cut():
    rows, sampler = sampled_problem()
    whole, cut = (Descent(11, [learner("pegasos", 1e-3)], seed=5) for _ in range(2))
    whole.run(rows, sampler, 50_000)
    for n_steps in (16_383, 1, 1, 20_000, 13_615):
        cut.run(rows, sampler, n_steps)
    assert_array_equal(whole.weights(), cut.weights())


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("n_models", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_state_goes_on_bit_for_bit(algorithm, n_models, average):
    rows, sampler = sampled_problem()
    rules = [learner(algorithm, 0.01 * (m + 1)) for m in range(n_models)]
    descent = Descent(11, rules, average, seed=1)
    descent.run(rows, sampler, 700)
    other = Descent.restore(descent.state())
    for each in (descent, other):
        each.run(rows, sampler, 900)
    assert other.n_steps == 1600
    assert other.learners == descent.learners
    assert_array_equal(other.weights(), descent.weights())
    assert_array_equal(other.mean_losses(), descent.mean_losses())


# ---- laws of the steps --------------------------------------------------------------------------


def test_a_romma_step_solves_its_problem():
    rng = np.random.default_rng(3)
    X, rows = matrix(rng, 20, 4, "dense")
    n_solved = 0
    for i, j in zip(*pairs(rng, 20, 40), strict=True):
        start = rng.standard_normal(4) * rng.choice([0.05, 0.3, 2.0])
        x = X[i] - X[j]
        if start @ x >= 1:
            continue
        descent = Descent(4, [Learner("romma")])
        descent.become(0, Learner("romma"), start)
        descent.step(rows, [i], [j])
        w = descent.weights()[0]
        assert w @ x == pytest.approx(1, rel=1e-9)
        assert w @ start >= start @ start * (1 - 1e-9)
        solved = minimize(
            lambda v: v @ v,
            w + 0.01,
            jac=lambda v: 2 * v,
            method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": lambda v, x=x: v @ x - 1},
                {"type": "ineq", "fun": lambda v, s=start: v @ s - s @ s},
            ],
            options={"ftol": 1e-12},
        )
        if solved.success:
            n_solved += 1
            assert w @ w <= solved.fun * (1 + 1e-6)
    assert n_solved > 15


@pytest.mark.parametrize("n_models", [1, 3])
@pytest.mark.parametrize("algorithm", ["pa", "romma"])
def test_sparse_rows_that_are_equal_leave_the_weights_alone(algorithm, n_models):
    """‖x‖² must be exactly 0 for them: a step divides by it."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((4, 23))
        X[1] = X[0]
        sparse, dense = (
            Descent(23, [Learner(algorithm, aggressiveness=1e9)] * n_models) for _ in range(2)
        )
        for descent, rows in ((sparse, as_rows(csr_array(X))), (dense, as_rows(X))):
            descent.step(rows, [2, 0, 1], [3, 1, 0])
        assert_allclose(sparse.weights(), dense.weights(), rtol=1e-12)


@pytest.mark.parametrize("n_models", [1, 3])
@pytest.mark.parametrize("average", ["uniform", "weighted"])
def test_romma_averages_keep_their_digits_where_little_is_left_of_the_weights(average, n_models):
    """Of w = x/‖x‖² little is left by a pair on the sphere with the diameter x."""
    rng = np.random.default_rng(0)
    for outside in (0.0, 1e-15, 1e-13, 1e-10, 1e-6, 1e-3):
        for _ in range(10):
            x, to = rng.standard_normal((2, 3))
            radius = np.linalg.norm(x) / 2 * (1 + outside)
            X = np.array([x, np.zeros(3), x / 2 + to / np.linalg.norm(to) * radius])
            rule = learner("romma")
            descent = Descent(3, [rule] * n_models, average)
            descent.step(as_rows(X), [0, 2], [1, 1])
            expected = twin_of(rule, X, [0, 2], [1, 1]).averaged(average)
            scale = np.abs(expected).max()
            assert_allclose(descent.weights()[0], expected, atol=1e-9 * scale, rtol=0)


def test_losses_are_those_of_all_steps_though_the_rule_changed():
    rng = np.random.default_rng(0)
    X, rows = matrix(rng, 30, 5, "dense")
    winners, losers = pairs(rng, 30, 100)
    descent = Descent(5, [learner("pa")])
    descent.step(rows, winners[:60], losers[:60])
    then = learner("pegasos", first_step=50.0)
    first = twin_of(learner("pa"), X, winners[:60], losers[:60])
    twin = PlainDescent(5, "pegasos", strength=0.05, first_step=50.0)
    twin.w = first.w
    descent.become(0, then, descent.iterate(0))
    for i, j in zip(winners[60:], losers[60:], strict=True):
        twin.step(X[i] - X[j])
    descent.step(rows, winners[60:], losers[60:])
    assert_allclose(descent.mean_losses()[0], (first.loss + twin.loss) / 100, rtol=1e-9)


def test_a_norm_that_rounding_left_below_zero_can_be_restored():
    state = Descent(3, [Learner()]).state()
    state["scalars"][0, 4] = -1e-20
    assert Descent.restore(state).state()["scalars"][0, 4] == -1e-20


def test_shrinking_neither_drifts_nor_underflows_after_a_thousand_million_steps():
    """The closed form w = v/(λt): a model that starts at step 10⁹ is the twin's, which keeps w."""
    rng = np.random.default_rng(0)
    X, rows = matrix(rng, 30, 9, "dense")
    winners, losers = pairs(rng, 30, 500)
    start = rng.standard_normal(9)
    for algorithm in ("sgd-svm", "pegasos", "logistic"):
        rule = Learner(algorithm, 1e-3, first_step=1e9)
        descent = Descent(9, [rule], "weighted")
        descent.become(0, rule, start)
        descent.step(rows, winners, losers)
        twin = PlainDescent(9, algorithm, strength=1e-3, first_step=1e9)
        twin.w = start if algorithm != "pegasos" else start.copy()
        for i, j in zip(winners, losers, strict=True):
            twin.step(X[i] - X[j])
        assert_allclose(descent.weights()[0], twin.averaged("weighted"), rtol=1e-12)


def test_grown_features_start_at_zero():
    rng = np.random.default_rng(0)
    X, rows = matrix(rng, 20, 6, "dense")
    winners, losers = pairs(rng, 20, 100)
    narrow = as_rows(X[:, :4].copy())
    for n_models in (1, 3):
        grown = Descent(4, [Learner("pegasos", 0.01)] * n_models, "uniform")
        grown.step(narrow, winners, losers)
        before = grown.weights()
        grown.grow(6)
        assert_array_equal(grown.weights()[:, :4], before)
        assert not grown.weights()[:, 4:].any()
        grown.step(rows, winners, losers)
        assert grown.weights()[:, 4:].any()


@pytest.mark.parametrize("n_models", [1, 2])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_differences_that_overflow_are_noticed(algorithm, n_models):
    """3e38 - -3e38 is infinite in float32, its product with the weights of 0 not a number."""
    X = np.array([[0, 1], [0, 2], [3e38, 1], [-3e38, 0]], dtype=np.float32)
    descent = Descent(2, [learner(algorithm)] * n_models)
    descent.step(as_rows(X), [1, 2], [0, 3])
    with pytest.raises(ValueError, match="left the range of floating point"):
        descent.check_finite()


# ---- errors -------------------------------------------------------------------------------------


def test_a_second_thread_is_refused():
    """It could move the arrays that the first one writes to."""
    rows, sampler = sampled_problem()
    descent = Descent(11, [learner("pegasos")] * 3, "uniform")
    thread = threading.Thread(target=descent.run, args=(rows, sampler, 3_000_000))
    thread.start()
    refused = False
    while thread.is_alive() and not refused:
        try:
            descent.grow(12)
        except RuntimeError as error:
            refused = "this Descent is in use by another thread" in str(error)
    thread.join()
    assert refused
    descent.grow(13)
    assert descent.weights().shape == (3, 13)


def promises_memory_that_it_lacks():
    """Whether the system grants any request, and ends the process that makes use of it."""
    setting = Path("/proc/sys/vm/overcommit_memory")
    return not setting.exists() or setting.read_text().strip() == "1"


@pytest.mark.skipif(promises_memory_that_it_lacks(), reason="the system refuses no request")
@pytest.mark.parametrize("n_models", [1, 9])
def test_memory_that_there_is_not_leaves_everything_as_it_was(n_models):
    rows, sampler = sampled_problem()
    with pytest.raises(MemoryError):
        Descent(2**40, [Learner()] * n_models)
    with pytest.raises(ValueError, match=r"n_columns must be at most 2\^40"):
        Descent(11, [Learner()] * n_models).grow(2**40 + 1)
    descent = Descent(11, [Learner()] * n_models, "uniform")
    with pytest.raises(MemoryError):
        descent.grow(2**40)
    descent.run(rows, sampler, 100)
    assert descent.weights().shape == (n_models, 11)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["alpha", "aggressiveness"])
def test_strengths_must_be_positive(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a finite number > 0, got {value}"):
        Learner(**{name: value})


def test_misuse_is_refused():
    rows, sampler = sampled_problem()
    with pytest.raises(ValueError, match=r"algorithm must be .*got 'adam'"):
        Learner("adam")
    with pytest.raises(ValueError, match="average must be None, "):
        Descent(3, [Learner()], "median")
    with pytest.raises(ValueError, match="rows have 11 columns, the weights 3"):
        Descent(3, [Learner()]).run(rows, sampler, 10)
    with pytest.raises(ValueError, match="pair 1 names row 200"):
        Descent(11, [Learner()]).step(rows, [0, 200], [1, 2])
    with pytest.raises(ValueError, match="first_step > 0"):
        Descent(2, [Learner()]).become(0, Learner(), [1.0, 0.0])
    other = as_rows(np.ones((10, 11)))
    with pytest.raises(ValueError, match="draws from 200 rows, the matrix has 10"):
        Descent(11, [Learner()]).run(other, sampler, 10)


@pytest.mark.parametrize("key", ["scalars", "v", "z", "rules", "random"])
def test_a_damaged_state_is_refused(key):
    descent = Descent(3, [Learner(), Learner()], "uniform")
    state = descent.state()
    for damage in (lambda a: a[:-1], lambda a: a[..., :-1], lambda a: a[..., None]):
        with pytest.raises((ValueError, TypeError)):
            Descent.restore({**state, key: damage(state[key])})
    if key == "scalars":
        for value in (math.nan, -1.0, 9.0):
            with pytest.raises(ValueError, match=r"damaged|finite|algorithm"):
                Descent.restore({**state, key: np.full_like(state[key], value)})
