"""Descents to the optimum: with and without Newton steps, few features and many, all penalties."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank import make_ranking
from linrank.data.dataset import Dataset
from linrank.domination.coordinate import Descent, descend
from linrank.domination.layering import Layering
from linrank.domination.train import make_problem, sample_negatives, train


def few_features():
    data = make_ranking(n_queries=40, n_features=8, noise=1.0, random_state=3)
    X = np.column_stack([data.X, data.X[:, 0] + 0.3 * data.X[:, 1]])  # two that go together
    return Dataset.of(X, data.y, qid=data.qid)


def many_features():
    """More features than the Hessian is written down for."""
    rng = np.random.default_rng(7)
    X = sparse.random_array((400, 900), density=0.05, rng=rng, format="csr")
    labels = np.digitize(X @ rng.normal(size=900) + 0.3 * rng.normal(size=400), [-0.5, 0.5])
    return Dataset.of(X, labels, qid=rng.integers(0, 8, 400))


def three_features():
    """So small that steps by loose bounds arrive too."""
    data = make_ranking(n_queries=6, n_features=3, noise=1.0, random_state=1)
    return Dataset.of(data.X - data.X.mean(axis=0), data.y, qid=data.qid)


DATA = {"few": few_features(), "many": many_features()}


def solved(name, penalty, alpha, *, is_plain=False, tol=1e-9, max_iter=20_000, **options):
    problem = make_problem(DATA[name], penalty=penalty, alpha=alpha, n_jobs=1)
    descent = Descent(problem, **options)
    descent.is_plain = is_plain
    return descend(descent, tol=tol, max_iter=max_iter)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(("penalty", "alpha"), [("l1", 1.0), ("l1", 0.3), ("l2", 0.5)])
def test_newton_steps_do_not_change_the_optimum(name, penalty, alpha):
    with_steps = solved(name, penalty, alpha)
    plain = solved(name, penalty, alpha, is_plain=True, tol=1e-7)
    assert with_steps.converged
    assert_allclose(with_steps.value, plain.value, rtol=1e-6)
    assert with_steps.value <= plain.value * (1 + 1e-9)
    assert with_steps.n_iter <= plain.n_iter


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_gap_is_certified_on_the_way(name, penalty):
    result = solved(name, penalty, 0.2, is_plain=True, tol=1e-8)
    best = solved(name, penalty, 0.2, tol=1e-12).value
    objectives, gaps = (np.array(result.history[key]) for key in ("objective", "gap"))
    assert (objectives - best <= gaps + 1e-9 * best).all()
    assert (np.diff(objectives) <= 1e-12 * best).all()


@pytest.mark.parametrize("name", DATA)
def test_newton_and_coordinate_descent_agree(name):
    data = DATA[name]
    one, other = (
        train(data, penalty="l2", alpha=0.3, solver=solver, tol=1e-10, n_jobs=1)
        for solver in ("newton", "coordinate")
    )
    assert one.converged
    assert other.converged
    assert_allclose(one.value, other.value, rtol=1e-9)
    assert_allclose(one.w, other.w, atol=1e-4)


@pytest.mark.parametrize("curvature", ["range", "paper"])
def test_other_curvatures_reach_the_same_optimum(curvature):
    problem = make_problem(three_features(), penalty="l2", alpha=1.0)
    best = descend(Descent(problem), tol=1e-9, max_iter=100)
    slow = descend(Descent(problem, curvature=curvature), tol=1e-6, max_iter=9999)
    assert slow.converged
    assert_allclose(slow.value, best.value, rtol=1e-6)
    assert slow.n_iter > best.n_iter


def test_largest_alpha_is_where_the_first_feature_enters():
    problem = make_problem(DATA["many"], penalty="l1", alpha=1.0, n_jobs=1)
    top = problem.largest_alpha()
    assert_array_equal(solved("many", "l1", top * (1 + 1e-9)).w, 0.0)
    assert np.count_nonzero(solved("many", "l1", top * 0.99).w) >= 1


def test_without_a_penalty_the_descent_stops_when_sweeps_bring_little():
    result = train(DATA["few"], penalty="none", tol=1e-6, n_jobs=1)
    assert result.converged
    assert result.gap == np.inf
    assert "lowered F by less" in result.message
    assert result.kkt_residual < 0.1


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    X = sparse.random_array((30_000, 700), density=0.05, rng=rng, format="csr")
    assert X.data.nbytes > 4_000_000  # enough for threads to be used at all
    data = Dataset.of(X, rng.integers(0, 3, 30_000), qid=rng.integers(0, 50, 30_000))
    one, three = (train(data, alpha=60.0, tol=1e-3, n_jobs=n) for n in (1, 3))
    assert_array_equal(one.w, three.w)
    assert np.count_nonzero(one.w)


# ---- negative sampling --------------------------------------------------------------------------


def test_sampled_negatives_are_as_many_as_asked_and_weigh_as_much():
    data = DATA["few"]
    whole = Layering.of(data)
    part = sample_negatives(whole, 0.3, np.random.default_rng(0))
    queries, all_queries = part.queries, whole.queries
    for q in range(queries.n_queries):
        kept = queries.levels[queries.offsets[q] : queries.offsets[q + 1]]
        levels = all_queries.levels[all_queries.offsets[q] : all_queries.offsets[q + 1]]
        if all_queries.n_levels[q] < 2:
            continue
        n = int((levels == 0).sum())
        assert (kept == 0).sum() == np.ceil(0.3 * n)
        assert_array_equal(np.bincount(kept)[1:], np.bincount(levels)[1:])
        weight = part.row_weight[queries.offsets[q] : queries.offsets[q + 1]]
        assert_allclose(weight[kept == 0].sum(), n)
        assert_array_equal(weight[kept > 0], 1.0)
    # At w = 0 the loss is that of all rows: Σ log(1 + |D(i)|).
    full = make_problem(data, penalty="l1", alpha=1.0)
    some = make_problem(data, penalty="l1", alpha=1.0, negative_sampling=0.3, seed=0)
    zero = np.zeros(data.n_features)
    assert_allclose(some.at(zero).value, full.at(zero).value, rtol=1e-12)
