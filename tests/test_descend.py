"""descend, the stochastic fit in memory: its minimum, records and tolerance; the plan of hybrid."""

from __future__ import annotations

import math
import signal
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from explicit_pairs import ExplicitPairs
from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.ranksvm.train import train
from linrank.stochastic.descent import Descent, Learner, switch_plan
from linrank.stochastic.samplers import PLANNED, DrawnPairs, pair_sampler
from linrank.stochastic.train import ExactObjective, descend


def problem(seed=0, n_rows=300, n_features=6, dtype=np.float64, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)).astype(dtype)
    signal_ = X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows)
    y = np.digitize(signal_, [-1, 1]).astype(float)
    weight = rng.integers(0, 4, n_rows).astype(float) if weights else None
    return Dataset.of(X, y, qid=rng.integers(0, 12, n_rows), sample_weight=weight)


def minimum(data, alpha, sampler):
    """The least λ/2 ‖w‖² + mean hinge, by the exact solver."""
    C = 1 / (alpha * sampler.total_weight)
    return alpha * train(data, C=C, loss="hinge", tol=1e-6).value


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("algorithm", ["pegasos", "sgd-svm", "hybrid"])
def test_it_comes_within_a_percent_of_the_exact_minimum(algorithm, weights):
    data = problem(weights=weights)
    sampler = pair_sampler(data.queries, row_weight=data.weight)
    result = descend(
        data, algorithm=algorithm, alpha=0.01, n_steps=200_000, average="weighted", record="exact"
    )
    best = minimum(data, 0.01, sampler)
    assert best * (1 - 1e-5) <= result.objective <= 1.01 * best
    assert result.objective - result.gap <= best * (1 + 1e-9)


def test_logistic_comes_near_the_minimum_of_its_own_objective():
    from scipy.optimize import minimize

    data = problem(n_rows=60)
    x = ExplicitPairs.of(data).difference

    def objective(w):
        margins = x @ w
        return 0.005 * w @ w + np.logaddexp(0, -margins).mean()

    best = minimize(objective, np.zeros(x.shape[1]), method="BFGS").fun
    result = descend(data, algorithm="logistic", alpha=0.01, n_steps=300_000, average="weighted")
    assert best <= objective(result.w) <= 1.002 * best


def test_alpha_and_C_are_two_names_of_one_number():
    data = problem(seed=1)
    p = data.queries.n_pairs
    by_alpha = descend(data, alpha=1 / (2.0 * p), n_steps=3000, record="exact")
    by_C = descend(data, C=2.0, n_steps=3000, record="exact")
    assert by_alpha.alpha == by_C.alpha
    assert_array_equal(by_alpha.w, by_C.w)
    ranksvm = ExplicitPairs.of(data).objective(by_C.w, 2.0, "hinge")
    assert by_C.objective == pytest.approx(by_C.alpha * ranksvm, rel=1e-10)


def test_sampled_and_exact_records_agree_and_leave_the_fit_alone():
    data = problem(seed=2, n_rows=900)
    exact = descend(data, n_steps=20_000, record="exact", alpha=0.01)
    sampled = descend(data, n_steps=20_000, record="sampled", alpha=0.01)
    silent = descend(data, n_steps=20_000, alpha=0.01)
    assert_array_equal(exact.w, silent.w)
    assert_array_equal(sampled.w, silent.w)
    assert exact.history["n_steps"] == sampled.history["n_steps"]
    assert_allclose(exact.history["objective"], sampled.history["objective"], rtol=0.05)
    assert math.isnan(sampled.gap)
    assert math.isnan(silent.objective)


def test_milestones_are_four_a_decade_and_end_at_the_last_step():
    history = descend(problem(), n_steps=12_345, record="sampled").history
    assert history["n_steps"] == [100, 178, 316, 562, 1000, 1778, 3162, 5623, 10_000, 12_345]


def test_tol_stops_when_nothing_is_gained():
    data = problem(n_rows=100)
    options = {"alpha": 0.5, "n_steps": 10**7, "tol": 1e-3}
    for more in ({"validation": problem(seed=2)}, {}):  # held-out pairs, then those at hand
        result = descend(data, **options, **more)
        assert result.stopped == "tolerance"
        assert result.n_steps < 10**6
    sampler = pair_sampler(data.queries)
    exact = descend(data, alpha=0.5, n_steps=result.n_steps, record="exact")
    assert exact.objective <= 1.02 * minimum(data, 0.5, sampler)


@pytest.mark.parametrize("average", [None, "weighted"])
def test_tol_does_not_take_a_rise_at_the_beginning_for_the_end(average):
    """Long first steps: the objective is many times that of w = 0, and may rise at first."""
    data = problem()
    result = descend(data, alpha=1e-4, n_steps=10**6, tol=0.01, average=average)
    assert result.objective <= 1.2 * minimum(data, 1e-4, pair_sampler(data.queries))


@pytest.mark.parametrize("algorithm", ["pegasos", "pa"])
def test_a_start_is_not_forgotten(algorithm):
    """From near the optimum a few steps stay near it; from zero they do not get there."""
    data = problem(seed=4)
    sampler = pair_sampler(data.queries)
    best = descend(data, alpha=1e-3, n_steps=300_000, average="weighted")
    few = {"alpha": 1e-3, "algorithm": algorithm, "n_steps": 20, "record": "exact"}
    warm = descend(data, w0=best.w, **few).objective
    cold = descend(data, **few).objective
    assert warm < cold
    assert warm < 1.5 * minimum(data, 1e-3, sampler)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, r"alpha must be a finite number > 0, got 0\.0"),
        ({"n_steps": 1.5}, r"n_steps must be an integer >= 1, got 1\.5"),
        ({"algorithm": "adam"}, "algorithm must be .*'hybrid', got 'adam'"),
        ({"record": "always"}, "record must be None, 'exact' or 'sampled', got 'always'"),
        ({"record": "exact", "algorithm": "logistic"}, "use record='sampled'"),
        ({"tol": 0.0}, r"tol must be a finite number > 0, got 0\.0"),
        ({"aggressiveness": 0.0, "algorithm": "pa"}, "aggressiveness must be a finite number > 0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        descend(problem(), **options)


@pytest.mark.parametrize("algorithm", ["pegasos", "sgd-svm", "pa", "romma", "logistic", "hybrid"])
def test_weights_that_overflow_are_an_error(algorithm):
    X = np.array([[1e200, -1e200], [-1e200, 1e200], [3e200, 1e200]])
    with pytest.raises(ValueError, match="left the range of floating point"):
        descend(Dataset.of(X, [0, 1, 2]), n_steps=50, algorithm=algorithm)


def check_interrupt(call):
    """A Ctrl-C during the call ends it within seconds."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("needs timers")
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    start = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert time.process_time() - start < 2.0


def test_an_interrupt_is_answered_while_steps_run():
    check_interrupt(lambda: descend(Dataset.of(np.eye(40), np.arange(40.0)), n_steps=10**12))


# ---- the hybrid: laws of its plan, and what it is good for --------------------------------------

positive = st.floats(1e-12, 1e12)
budget = st.integers(1, 10**9)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_features=6, random_state=1)


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
    n_first, first_step, eager = switch_plan(square, alpha, n_steps)
    same = switch_plan(square * factor, alpha * factor, n_steps)
    assert same == (n_first, first_step, eager / factor)


@given(positive, positive, budget)
def test_more_steps_or_less_regularization_never_shorten_the_plan(square, alpha, n_steps):
    plan = np.array(switch_plan(square, alpha, n_steps)[:2])
    for more in ((alpha, 2 * n_steps), (alpha / 2, n_steps)):
        assert (np.array(switch_plan(square, *more)[:2]) >= plan).all()


@pytest.mark.parametrize("square", [0.0, -0.0, float("nan"), float("inf"), 5e-324, 1e308])
def test_plan_is_usable_where_nothing_can_be_planned(square):
    """No difference at all, or squares beyond the range of floating point."""
    n_first, first_step, eager = switch_plan(square, 1e-4, 100)
    Learner("pa", 1e-4, eager)
    Learner("pegasos", 1e-4, 1.0, first_step)
    assert (n_first, first_step > 0) == (0, True)


# ---- the mean square -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_mean_square_is_that_of_the_pairs_drawn(dtype, storage):
    rng = np.random.default_rng(2)
    X = (rng.standard_normal((60, 9)) * (rng.random((60, 9)) < 0.4)).astype(dtype)
    data = Dataset.of(storage(X), rng.integers(3, size=60))
    sampler = pair_sampler(data.queries)
    winners, losers = sampler.core.draw(_core.Random(5 ^ 0x9E3779B9), 1024)
    X = X.astype(np.float64)
    expected = np.mean(np.sum((X[winners] - X[losers]) ** 2, axis=1))
    found = DrawnPairs.of(data.rows, sampler, PLANNED, 5).mean_square()
    assert_allclose(found, expected, rtol=1e-12)


def test_mean_square_of_empty_sparse_rows_is_zero():
    data = Dataset.of(csr_array((4, 3)), [0, 1, 2, 3])
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
    fit = descend(Dataset.of(np.ones((6, 2)), [0, 0, 0, 1, 1, 1]), algorithm="hybrid", n_steps=50)
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
