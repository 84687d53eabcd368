"""Descents to the optimum: Newton's method and coordinate descent, few features and many."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank import make_ranking
from linrank.data.dataset import Dataset
from linrank.data.rows import as_rows
from linrank.domination.coordinate import Descent, descend
from linrank.domination.layering import Layering
from linrank.domination.problem import DominationLoss, DominationProblem
from linrank.domination.train import make_problem, minimize_ridge, sample_negatives, train
from plain_domination import PlainDomination


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


DATA = {"few": few_features(), "many": many_features()}
every_data = pytest.mark.parametrize("name", DATA)


def solved(name, penalty, alpha, *, is_plain=False, tol=1e-9, max_iter=20_000):
    descent = Descent(make_problem(DATA[name], penalty=penalty, alpha=alpha, n_jobs=1))
    descent.is_plain = is_plain
    return descend(descent, tol=tol, max_iter=max_iter)


@every_data
@pytest.mark.parametrize(("penalty", "alpha"), [("l1", 1.0), ("l1", 0.3), ("l2", 0.5)])
def test_newton_steps_do_not_change_the_optimum(name, penalty, alpha):
    with_steps = solved(name, penalty, alpha)
    plain = solved(name, penalty, alpha, is_plain=True, tol=1e-7)
    assert with_steps.converged
    assert_allclose(with_steps.value, plain.value, rtol=1e-6)
    assert with_steps.value <= plain.value * (1 + 1e-9)
    assert with_steps.n_iter <= plain.n_iter
    objectives, gaps = (np.array(plain.history[key]) for key in ("objective", "gap"))
    assert (objectives - with_steps.value <= gaps + 1e-9 * plain.value).all()
    assert (np.diff(objectives) <= 1e-12 * plain.value).all()


@every_data
def test_newton_and_coordinate_descent_agree(name):
    one, other = (
        train(DATA[name], penalty="l2", alpha=0.3, solver=solver, tol=1e-10, n_jobs=1)
        for solver in ("newton", "coordinate")
    )
    assert one.converged
    assert other.converged
    assert_allclose(one.value, other.value, rtol=1e-9)
    assert_allclose(one.w, other.w, atol=1e-4)


@pytest.mark.parametrize("curvature", ["range", "paper"])
def test_other_curvatures_reach_the_same_optimum(curvature):
    """So small that steps by loose bounds arrive too."""
    data = make_ranking(n_queries=6, n_features=3, noise=1.0, random_state=1)
    centered = Dataset.of(data.X - data.X.mean(axis=0), data.y, qid=data.qid)
    problem = make_problem(centered, penalty="l2", alpha=1.0)
    best = descend(Descent(problem), tol=1e-9, max_iter=100)
    slow = descend(Descent(problem, curvature=curvature), tol=1e-6, max_iter=9999)
    assert slow.converged
    assert_allclose(slow.value, best.value, rtol=1e-6)
    assert slow.n_iter > best.n_iter


def test_without_a_penalty_the_descent_stops_when_sweeps_bring_little():
    result = train(DATA["few"], penalty="none", tol=1e-6, n_jobs=1)
    assert (result.converged, result.gap) == (True, np.inf)
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


# ---- Newton's method ----------------------------------------------------------------------------


def ridge(rows, layering, alpha, **options):
    problem = DominationProblem(rows, layering, "l2", alpha, options.pop("scale", None))
    return minimize_ridge(problem, alpha=alpha, **options)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=120)), 0, 3)
    return Dataset.of(X, y, qid=np.arange(120) // 12)


def test_all_that_is_reported_is_in_the_units_of_the_objective(small):
    seen, layering = [], Layering.of(small)
    result = ridge(small.rows, layering, 0.25, callback=lambda entry: seen.append(entry))
    history = result.history
    for key in ("objective", "gap"):
        assert [entry[key] for entry in seen] == history[key]
    value, slope = PlainDomination(small.X, small.y, small.qid).loss(np.zeros(6))
    assert_allclose(history["objective"][0], value)
    assert_allclose(history["gradient_norm"][0], np.linalg.norm(slope), rtol=1e-6)
    assert history["n_hvp"][-1] == result.n_hvp
    assert 0 <= result.gap <= 1e-6 * result.value
    lower = np.array(history["objective"]) - history["gap"]
    assert (lower <= result.value - result.gap + 1e-9).all()
    again = ridge(small.rows, layering, 0.25, w0=result.w)
    assert again.n_iter == 0
    short = ridge(small.rows, layering, 1e-3, max_iter=1, tol=1e-12)
    assert short.stopped == "max_iter"
    assert "certified gap" in short.message


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
        problem = DominationProblem(data.rows, layering, "l2", 0.5)
        some, whole = (one.objective().at(np.zeros(3)) for one in (problem.sample(3000), problem))
        assert_allclose(some.value, whole.value, rtol=1e-12)


def test_many_rows_begin_with_a_sample_and_end_at_the_same_optimum():
    rng = np.random.default_rng(2)
    n = 30_000
    x = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.clip(np.round(x @ [1.0, -0.5, 0.2, 0.0] + rng.normal(size=n)), 0, 2)
    layering = Layering.of(Dataset.of(x, y, qid=np.arange(n) // 20))
    result, cold = (ridge(as_rows(x), layering, 1.0, tol=1e-9, w0=w0) for w0 in (None, np.zeros(4)))
    assert result.converged
    assert result.history["objective"][0] < cold.history["objective"][0]
    assert_allclose(result.w, cold.w, atol=1e-4)


# ---- negative sampling --------------------------------------------------------------------------


def test_sampled_negatives_are_as_many_as_asked_and_weigh_as_much():
    data = DATA["few"]
    whole = Layering.of(data)
    part = sample_negatives(whole, 0.3, np.random.default_rng(0))

    def levels_of(queries, q):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        return queries.levels[rows], rows

    for q in np.flatnonzero(whole.queries.n_levels > 1):
        (kept, rows), (levels, _) = levels_of(part.queries, q), levels_of(whole.queries, q)
        n = int((levels == 0).sum())
        assert (kept == 0).sum() == np.ceil(0.3 * n)
        assert_array_equal(np.bincount(kept)[1:], np.bincount(levels)[1:])
        weight = part.row_weight[rows]
        assert_allclose(weight[kept == 0].sum(), n)
        assert_array_equal(weight[kept > 0], 1.0)
    # At w = 0 the loss is that of all rows: Σ log(1 + |D(i)|).
    full, some = (
        make_problem(data, penalty="l1", alpha=1.0, negative_sampling=share)
        for share in (None, 0.3)
    )
    zero = np.zeros(data.n_features)
    assert_allclose(some.at(zero).value, full.at(zero).value, rtol=1e-12)
