"""Stochastic learners: each step against the formula, and the laws of the state."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
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
    strength = rule.alpha if rule.shrinks else rule.aggressiveness
    twin = PlainDescent(X.shape[1], rule.algorithm, strength, rule.first_step)
    twin.run(X, winners, losers)
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
@example([16_383, 1, 1, 20_000], "pegasos", None)  # beyond where the norm is measured anew
def test_calls_threads_and_saved_states_leave_no_trace(cuts, algorithm, average):
    rows, sampler = sampled_problem()
    rules = [learner(algorithm, 0.01 * (m + 1)) for m in range(10)]
    whole, cut = (Descent(11, rules, average, seed=5) for _ in range(2))
    whole.run(rows, sampler, sum(cuts), n_threads=1)
    for n_steps in cuts:
        cut.run(rows, sampler, n_steps, n_threads=3)
        cut = Descent.restore(cut.state())
    for name in ("weights", "mean_losses"):
        assert_array_equal(getattr(whole, name)(), getattr(cut, name)())
    assert_array_equal(whole.random.state, cut.random.state)
    assert (whole.n_steps, whole.learners) == (cut.n_steps, cut.learners)


# ---- laws of the steps --------------------------------------------------------------------------


def test_a_romma_step_solves_its_problem():
    """The conditions of the optimum: both constraints, and multipliers >= 0 of those that hold."""
    rng = np.random.default_rng(3)
    X, rows = matrix(rng, 20, 4, "dense")
    for i, j in zip(*pairs(rng, 20, 40), strict=True):
        start = rng.standard_normal(4) * rng.choice([0.05, 0.3, 2.0])
        x = X[i] - X[j]
        descent = Descent(4, [Learner("romma")])
        descent.become(0, Learner("romma"), start)
        descent.step(rows, [i], [j])
        w = descent.weights()[0]
        if start @ x >= 1:
            assert_allclose(w, start, rtol=1e-12)
            continue
        assert w @ x == pytest.approx(1, rel=1e-9)
        slack = w @ start - start @ start
        sides = np.column_stack([x, start] if abs(slack) <= 1e-9 * (start @ start) else [x])
        multipliers, *_ = np.linalg.lstsq(sides, w, rcond=None)
        assert slack >= -1e-9 * (start @ start)
        assert (multipliers >= -1e-9).all()
        assert_allclose(sides @ multipliers, w, atol=1e-9 * np.abs(w).max())


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


@pytest.mark.parametrize("algorithm", ["sgd-svm", "pegasos", "logistic"])
def test_shrinking_neither_drifts_nor_underflows_after_a_thousand_million_steps(algorithm):
    """The closed form w = v/(λt): a model that starts at step 10⁹ is the twin's, which keeps w."""
    rng = np.random.default_rng(0)
    X, rows = matrix(rng, 30, 9, "dense")
    winners, losers = pairs(rng, 30, 500)
    rule = Learner(algorithm, 1e-3, first_step=1e9)
    twin, descent = PlainDescent(9, algorithm, 1e-3, 1e9), Descent(9, [rule], "weighted")
    twin.w = rng.standard_normal(9)
    descent.become(0, rule, twin.w)
    descent.step(rows, winners, losers)
    twin.run(X, winners, losers)
    assert_allclose(descent.weights()[0], twin.averaged("weighted"), rtol=1e-12)


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


def check_refuses_threads(name, work, call):
    """While a thread is at work on the object, another is refused."""
    thread = threading.Thread(target=work)
    thread.start()
    refused = False
    while thread.is_alive() and not refused:
        try:
            call()
        except RuntimeError as error:
            refused = f"this {name} is in use by another thread" in str(error)
    thread.join()
    assert refused


def test_a_second_thread_is_refused():
    """It could move the arrays that the first one writes to."""
    rows, sampler = sampled_problem()
    descent = Descent(11, [learner("pegasos")] * 3, "uniform")
    check_refuses_threads(
        "Descent", lambda: descent.run(rows, sampler, 500_000), lambda: descent.grow(12)
    )


def promises_memory_that_it_lacks():
    """Whether the system grants any request, and ends the process that makes use of it."""
    setting = Path("/proc/sys/vm/overcommit_memory")
    return not setting.exists() or setting.read_text().strip() == "1"


@pytest.mark.skipif(promises_memory_that_it_lacks(), reason="the system refuses no request")
@pytest.mark.parametrize("n_models", [1, 9])
def test_memory_that_there_is_not_leaves_everything_as_it_was(n_models):
    learners = [Learner()] * n_models
    descent = Descent(11, learners, "uniform")
    for grow in (lambda: Descent(2**40, learners), lambda: descent.grow(2**40)):
        with pytest.raises(MemoryError):
            grow()
    with pytest.raises(ValueError, match=r"n_columns must be at most 2\^40"):
        descent.grow(2**40 + 1)
    descent.run(*sampled_problem(), 100)
    assert descent.weights().shape == (n_models, 11)


ROWS, SAMPLER = sampled_problem()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda name=name, value=value: Learner(**{name: value}), f"{name} must be .* {value}")
            for name in ("alpha", "aggressiveness")
            for value in (0.0, -1.0, math.nan, math.inf)
        ),
        (lambda: Learner("adam"), r"algorithm must be .*got 'adam'"),
        (lambda: Learner(first_step=-1.0), "first_step must be finite and >= 0, got -1.0"),
        (lambda: Descent(3, [Learner()], "median"), "average must be None, "),
        (lambda: Descent(3, [Learner()]).run(ROWS, SAMPLER, 1), "11 columns, the weights 3"),
        (lambda: Descent(11, [Learner()]).step(ROWS, [0, 200], [1, 2]), "pair 1 names row 200"),
        (lambda: Descent(2, [Learner()]).become(0, Learner(), [1.0, 0.0]), "first_step > 0"),
        (
            lambda: Descent(11, [Learner()]).run(as_rows(np.ones((10, 11))), SAMPLER, 10),
            "draws from 200 rows, the matrix has 10",
        ),
    ],
)
def test_misuse_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("key", ["scalars", "v", "z", "rules", "random"])
def test_a_damaged_state_is_refused(key):
    state = Descent(3, [Learner(), Learner()], "uniform").state()
    state["scalars"][0, 4] = -1e-20
    Descent.restore(state)  # a norm that rounding has left below zero
    for damage in (lambda a: a[:-1], lambda a: a[..., :-1], lambda a: a[..., None]):
        with pytest.raises((ValueError, TypeError)):
            Descent.restore({**state, key: damage(state[key])})
    for value in (math.nan, -1.0, 9.0) if key == "scalars" else ():
        with pytest.raises(ValueError, match=r"damaged|finite|algorithm"):
            Descent.restore({**state, key: np.full_like(state[key], value)})
