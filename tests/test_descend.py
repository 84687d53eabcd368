"""descend, the stochastic fit on data in memory: its minimum, λ and C, records, tolerance."""

from __future__ import annotations

import math
import signal
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from explicit_pairs import ExplicitPairs
from linrank.data.dataset import Dataset
from linrank.ranksvm.train import train
from linrank.stochastic.samplers import pair_sampler
from linrank.stochastic.train import descend


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
    for given in ({"validation": problem(seed=2)}, {}):  # held-out pairs, then those at hand
        result = descend(data, **options, **given)
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
