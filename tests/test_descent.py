"""Stochastic learners: each step against the formula, the laws of the state, and fits in memory."""

import math
import signal
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, as_rows
from linrank.data.synthetic import make_ranking
from linrank.ranksvm.train import train
from linrank.stochastic.descent import RULES, Descent, Learner, switch_plan
from linrank.stochastic.samplers import PLANNED, DrawnPairs, pair_sampler
from linrank.stochastic.train import ExactObjective, descend
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
    """Of two threads at work on an object one is refused: mostly this one, whose call is short."""
    refused = []

    def is_done(action):
        try:
            action()
        except RuntimeError as error:
            refused.append(str(error))
            return False
        return True

    def insist():
        while not is_done(work):
            pass

    thread = threading.Thread(target=insist)
    thread.start()
    while thread.is_alive() and not refused:
        is_done(call)
    thread.join()
    assert f"this {name} is in use by another thread" in refused[0]


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
    with pytest.raises(ValueError, match=r"n_columns must lie in \[0, 2\^40\]"):
        descent.grow(2**40 + 1)
    descent.run(*sampled_problem(), 100)
    assert descent.weights().shape == (n_models, 11)


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


def problem(seed=0, n_rows=300, n_features=6, dtype=np.float64, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features)).astype(dtype)
    signal_ = X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows)
    y = np.digitize(signal_, [-1, 1]).astype(float)
    weight = rng.integers(0, 4, n_rows).astype(float) if weights else None
    return Dataset.of(X, y, qid=rng.integers(0, 12, n_rows), sample_weight=weight)


def minimum(data, alpha):
    """The least λ/2 ‖w‖² + mean hinge, by the exact solver."""
    C = 1 / (alpha * pair_sampler(data.queries, row_weight=data.weight).total_weight)
    return alpha * train(data, C=C, loss="hinge", tol=1e-6).value


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("algorithm", ["pegasos", "sgd-svm", "hybrid"])
def test_it_comes_within_a_percent_of_the_exact_minimum(algorithm, weights):
    data = problem(weights=weights)
    result = descend(
        data, algorithm=algorithm, alpha=0.01, n_steps=200_000, average="weighted", record="exact"
    )
    best = minimum(data, 0.01)
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
    exact = descend(data, alpha=0.5, n_steps=result.n_steps, record="exact")
    assert exact.objective <= 1.02 * minimum(data, 0.5)


@pytest.mark.parametrize("average", [None, "weighted"])
def test_tol_does_not_take_a_rise_at_the_beginning_for_the_end(average):
    """Long first steps: the objective is many times that of w = 0, and may rise at first."""
    data = problem()
    result = descend(data, alpha=1e-4, n_steps=10**6, tol=0.01, average=average)
    assert result.objective <= 1.2 * minimum(data, 1e-4)


@pytest.mark.parametrize("algorithm", ["pegasos", "pa"])
def test_a_start_is_not_forgotten(algorithm):
    """From near the optimum a few steps stay near it; from zero they do not get there."""
    data = problem(seed=4)
    best = descend(data, alpha=1e-3, n_steps=300_000, average="weighted")
    few = {"alpha": 1e-3, "algorithm": algorithm, "n_steps": 20, "record": "exact"}
    warm = descend(data, w0=best.w, **few).objective
    cold = descend(data, **few).objective
    assert warm < cold
    assert warm < 1.5 * minimum(data, 1e-3)


# ---- errors -------------------------------------------------------------------------------------


ROWS, SAMPLER = sampled_problem()
HUGE = Dataset.of([[1e200, -1e200], [-1e200, 1e200], [3e200, 1e200]], [0, 1, 2])
OPTIONS = [
    ({"alpha": 0.0}, r"alpha must be a finite number > 0, got 0\.0"),
    ({"n_steps": 1.5}, r"n_steps must be an integer >= 1, got 1\.5"),
    ({"algorithm": "adam"}, "algorithm must be .*'hybrid', got 'adam'"),
    ({"record": "always"}, "record must be None, 'exact' or 'sampled', got 'always'"),
    ({"record": "exact", "algorithm": "logistic"}, "use record='sampled'"),
    ({"tol": 0.0}, r"tol must be a finite number > 0, got 0\.0"),
    ({"aggressiveness": 0.0, "algorithm": "pa"}, "aggressiveness must be a finite number > 0"),
]
REFUSED = [
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
    *((partial(descend, problem(), **options), message) for options, message in OPTIONS),
    *(
        (partial(descend, HUGE, n_steps=50, algorithm=name), "left the range of floating point")
        for name in (*ALGORITHMS, "hybrid")
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_misuse_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


@given(positive, positive, budget, st.sampled_from([2.0**-10, 0.25, 4.0, 2.0**20]))
def test_laws_of_the_plan(square, alpha, n_steps, factor):
    n_first, first_step, eager = switch_plan(square, alpha, n_steps)
    assert 0 <= n_first <= min(n_steps / 4, square / alpha)
    assert first_step >= max(1.0, square / alpha)
    assert eager == 1.0 / square
    # The step at the switch is no longer than a passive-aggressive one.
    assert 1.0 / (alpha * first_step) <= eager * (1 + 1e-12)
    # x → c x and λ → c² λ is the same problem for w/c: only the step of PA follows.
    same = switch_plan(square * factor, alpha * factor, n_steps)
    assert same == (n_first, first_step, eager / factor)
    # More steps or less regularization never shorten it.
    for more in ((alpha, 2 * n_steps), (alpha / 2, n_steps)):
        longer = switch_plan(square, *more)
        assert longer[0] >= n_first
        assert longer[1] >= first_step


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
    best = minimum(data, alpha)
    objective = ExactObjective.of(data.rows, sampler, alpha, 1)

    def excess(algorithm):
        options = {"n_steps": 30_000, "average": average, "aggressiveness": 1.0 / square}
        fits = [
            descend(data, algorithm=algorithm, alpha=alpha, seed=seed, **options)
            for seed in range(5)
        ]
        return np.exp(np.mean([np.log(objective(fit.w)[0] / best - 1) for fit in fits]))

    assert times * excess("hybrid") < excess(algorithm)
