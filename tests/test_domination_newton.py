"""The l2 problem of the domination loss by Newton's method."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from linrank.data.dataset import Dataset
from linrank.data.rows import as_rows
from linrank.domination.layering import Layering
from linrank.domination.problem import DominationLoss, DominationProblem
from linrank.domination.train import minimize_ridge


def ridge(rows, layering, alpha, scale=None):
    return DominationProblem(rows, layering, "l2", alpha, scale)


def by_newton(problem, **options):
    return minimize_ridge(problem, alpha=problem.alpha, **options)


def problem_of(seed=0, n=120, n_features=6):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_features))
    y = np.clip(np.round(x[:, 0] + rng.normal(size=n)), 0, 3)
    return Dataset.of(x, y, qid=np.arange(n) // 12)


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 30.0])
def test_the_optimum_is_that_of_a_generic_optimizer(alpha):
    data = problem_of()
    layering, scale = Layering.of(data, margin=0.5), np.linspace(0.5, 2.0, 6)
    loss, x = DominationLoss(layering), data.rows.values.astype(np.float64)

    def objective(w):
        point = loss.at(x @ (scale * w))
        slope = scale * (x.T @ point.gradient) + 2 * alpha * w
        return point.value + alpha * w @ w, slope

    generic = minimize(objective, np.zeros(6), jac=True, tol=1e-10)
    result = by_newton(ridge(data.rows, layering, alpha, scale), tol=1e-10)
    assert result.converged
    assert_allclose(result.value, generic.fun, rtol=1e-9)
    assert_allclose(result.w, generic.x, atol=1e-4)
    value, slope = objective(result.w)
    assert_allclose(result.value, value, rtol=1e-13)
    assert_allclose(result.gradient_norm, np.linalg.norm(slope), rtol=1e-4, atol=1e-9)


def test_history_and_callback_are_in_the_units_of_the_objective():
    data, alpha, seen = problem_of(), 0.25, []
    layering = Layering.of(data)
    result = by_newton(
        ridge(data.rows, layering, alpha),
        callback=lambda entry: seen.append(entry),
    )
    at_zero = DominationLoss(layering).at(np.zeros(data.n_rows)).value
    assert_allclose(result.history["objective"][0], at_zero)
    assert [entry["objective"] for entry in seen] == result.history["objective"]
    assert [entry["gap"] for entry in seen] == result.history["gap"]
    assert result.history["n_hvp"][-1] == result.n_hvp
    assert np.all(np.diff(result.history["objective"]) < 0)
    first = DominationLoss(layering).at(np.zeros(data.n_rows)).gradient @ data.rows.values
    assert_allclose(result.history["gradient_norm"][0], np.linalg.norm(first), rtol=1e-6)
    assert 0 <= result.gap <= 1e-6 * result.value
    bound = result.value - result.gap
    assert all(
        objective - gap <= bound + 1e-9
        for objective, gap in zip(result.history["objective"], result.history["gap"], strict=True)
    )


def test_a_callback_stops_and_too_few_iterations_say_so():
    data = problem_of()
    layering = Layering.of(data)
    stopped = by_newton(
        ridge(data.rows, layering, 1e-3),
        callback=lambda entry: entry["n_iter"] >= 1,
    )
    assert (stopped.stopped, stopped.n_iter) == ("callback", 1)
    short = by_newton(ridge(data.rows, layering, 1e-3), max_iter=1, tol=1e-12)
    assert short.stopped == "max_iter"
    assert "certified gap" in short.message
    again = by_newton(
        ridge(data.rows, layering, 1e-3),
        w0=by_newton(ridge(data.rows, layering, 1e-3)).w,
    )
    assert again.n_iter == 0


def test_a_sample_stands_for_the_whole():
    rng = np.random.default_rng(0)
    n = 20_000
    y, qid = (rng.random(n) < 0.05) + 0.0 + (rng.random(n) < 0.1), np.arange(n) // 4000
    data = Dataset.of(rng.normal(size=(n, 3)), y, qid=qid, sample_weight=rng.uniform(0.5, 1.5, n))
    table = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [3.0, 1.0, 0.0]])
    for margin in (table, 0.7):
        layering = Layering.of(data, margin=margin, query_weight=np.linspace(1.0, 2.0, 5))
        part = layering.sample(3000, seed=1)
        assert (part.queries.n_queries, part.queries.n_rows < 4000) == (5, True)
        z = rng.normal(size=n)
        estimate = DominationLoss(part).at(z[part.queries.order]).value
        assert_allclose(estimate, DominationLoss(layering).at(z).value, rtol=0.05)
        problem = ridge(data.rows, layering, 0.5)
        sampled, whole = (
            one.objective().at(np.zeros(3)) for one in (problem.sample(3000), problem)
        )
        assert_allclose(sampled.value, whole.value, rtol=1e-12)


def test_many_rows_begin_with_a_sample_and_end_at_the_same_optimum():
    rng = np.random.default_rng(2)
    n = 30_000
    x = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.clip(np.round(x @ [1.0, -0.5, 0.2, 0.0] + rng.normal(size=n)), 0, 2)
    layering = Layering.of(Dataset.of(x, y, qid=np.arange(n) // 20))
    result = by_newton(ridge(as_rows(x), layering, 1.0), tol=1e-9)
    cold = by_newton(ridge(as_rows(x), layering, 1.0), tol=1e-9, w0=np.zeros(4))
    assert result.converged
    assert result.history["objective"][0] < cold.history["objective"][0]
    assert_allclose(result.w, cold.w, atol=1e-4)
