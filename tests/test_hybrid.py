"""The hybrid: laws of its plan, the mean square it rests on, and what the plan is good for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.ranksvm.train import train
from linrank.stochastic.descent import Descent, Learner, switch_plan
from linrank.stochastic.samplers import PLANNED, DrawnPairs, pair_sampler
from linrank.stochastic.train import ExactObjective, descend

positive = st.floats(1e-12, 1e12)
budget = st.integers(1, 10**9)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_features=6, random_state=1)


def one_query(X, y):
    return Dataset.of(X, y)


# ---- the plan ------------------------------------------------------------------------------------


@given(positive, positive, budget)
def test_plan_is_within_its_bounds(square, alpha, n_steps):
    n_first, first_step, eager = switch_plan(square, alpha, n_steps)
    assert 0 <= n_first <= min(n_steps / 4, square / alpha)
    assert first_step >= max(1.0, square / alpha)
    assert eager == 1.0 / square
    # The step at the switch is no longer than a passive-aggressive one.
    assert 1.0 / (alpha * first_step) <= eager * (1 + 1e-12)


@given(positive, positive, budget, st.sampled_from([2.0**-10, 0.25, 4.0, 2.0**20]))
def test_plan_does_not_depend_on_the_unit_of_the_features(square, alpha, n_steps, factor):
    """x → c x and λ → c² λ is the same problem for w/c: only the step of PA follows."""
    plan = switch_plan(square, alpha, n_steps)
    same = switch_plan(square * factor, alpha * factor, n_steps)
    assert same[:2] == plan[:2]
    assert same[2] == plan[2] / factor


@given(positive, positive, budget)
def test_more_steps_or_less_regularization_never_shorten_the_plan(square, alpha, n_steps):
    plan = switch_plan(square, alpha, n_steps)
    for other in (switch_plan(square, alpha, 2 * n_steps), switch_plan(square, alpha / 2, n_steps)):
        assert other[0] >= plan[0]
        assert other[1] >= plan[1]


@pytest.mark.parametrize("square", [0.0, -0.0, float("nan"), float("inf"), 5e-324, 1e308])
def test_plan_is_usable_where_nothing_can_be_planned(square):
    """No difference at all, or squares beyond the range of floating point."""
    n_first, first_step, eager = switch_plan(square, 1e-4, 100)
    Learner("pa", 1e-4, eager)
    Learner("pegasos", 1e-4, 1.0, first_step)
    assert n_first == 0
    assert first_step > 0


# ---- the mean square -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_mean_square_is_that_of_the_pairs_drawn(dtype, storage):
    rng = np.random.default_rng(2)
    X = (rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.4)).astype(dtype)
    data = one_query(storage(X), rng.integers(3, size=60))
    sampler = pair_sampler(data.queries)
    winners, losers = sampler.core.draw(_core.Random(5 ^ 0x9E3779B9), 1024)
    X = X.astype(np.float64)
    expected = np.mean(np.sum((X[winners] - X[losers]) ** 2, axis=1))
    found = DrawnPairs.of(data.rows, sampler, PLANNED, 5).mean_square()
    assert_allclose(found, expected, rtol=1e-12)


def test_mean_square_of_empty_sparse_rows_is_zero():
    data = one_query(csr_array((4, 3)), [0, 1, 2, 3])
    assert DrawnPairs.of(data.rows, pair_sampler(data.queries), PLANNED, 0).mean_square() == 0.0


# ---- the fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [None, "uniform", "weighted"])
def test_hybrid_is_pa_then_pegasos_from_the_last_iterate(data, average):
    alpha, n_steps, seed = 0.05, 3000, 7
    sampler = pair_sampler(data.queries)
    square = DrawnPairs.of(data.rows, sampler, PLANNED, seed).mean_square()
    n_first, first_step, eager = switch_plan(square, alpha, n_steps)
    assert 0 < n_first < n_steps
    plain = Descent(data.n_features, [Learner("pa", alpha, eager)], None, seed)
    plain.run(data.rows, sampler, n_first)
    after = Descent(data.n_features, [Learner("pegasos", alpha)], average)
    after.become(0, Learner("pegasos", alpha, 1.0, first_step), plain.weights()[0])
    after.random.state = plain.random.state
    after.run(data.rows, sampler, n_steps - n_first)
    options = {"alpha": alpha, "n_steps": n_steps, "average": average, "seed": seed}
    fit = descend(data, algorithm="hybrid", **options)
    assert_allclose(fit.w, after.weights()[0], rtol=1e-10, atol=1e-14)
    losses = plain.mean_losses() * n_first + after.mean_losses() * (n_steps - n_first)
    assert_allclose(fit.loss, losses[0] / n_steps, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["pa", "romma"])
def test_iterate_is_the_last_one_whatever_is_averaged(data, algorithm):
    sampler, rule = pair_sampler(data.queries), Learner(algorithm, 0.1, 0.1)
    plain, averaged = (Descent(data.n_features, [rule], how, 3) for how in (None, "weighted"))
    for descent in (plain, averaged):
        descent.run(data.rows, sampler, 500)
    assert_allclose(averaged.iterate(0), plain.weights()[0], rtol=1e-9)
    assert not np.allclose(averaged.weights()[0], plain.weights()[0], rtol=1e-6)


def test_equal_rows_leave_nothing_to_learn():
    fit = descend(one_query(np.ones((6, 2)), [0, 0, 0, 1, 1, 1]), algorithm="hybrid", n_steps=50)
    assert_array_equal(fit.w, np.zeros(2))


@pytest.mark.parametrize(
    ("algorithm", "average", "times"),
    [("pegasos", None, 5), ("pegasos", "weighted", 5), ("pa", None, 2)],
)
def test_hybrid_is_nearer_to_the_optimum_than_its_parents(data, algorithm, average, times):
    """κ = 10⁵ and fewer steps: Pegasos is still far away, the last iterate of PA noisy."""
    sampler = pair_sampler(data.queries)
    square = DrawnPairs.of(data.rows, sampler, PLANNED, 0).mean_square()
    alpha = square / 1e5
    C = 1.0 / (alpha * sampler.total_weight)
    best = alpha * train(data, C=C, loss="hinge", tol=1e-4).value
    objective = ExactObjective.of(data.rows, sampler, alpha, 1)

    def excess(algorithm):
        options = {"n_steps": 30_000, "average": average, "aggressiveness": 1.0 / square}
        fits = [
            descend(data, algorithm=algorithm, alpha=alpha, seed=seed, **options)
            for seed in range(5)
        ]
        return np.exp(np.mean([np.log(objective(fit.w)[0] / best - 1) for fit in fits]))

    assert times * excess("hybrid") < excess(algorithm)
