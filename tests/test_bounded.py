"""Bounds on the weights: the optimum of a generic solver, KKT conditions, a certified gap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from hypothesis_profiles import examples
from linrank.data.bounds import Box
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.errors import NoPairsError
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import train
from linrank.solvers.bounded import metric_of
from linrank.solvers.conjugate import Diagonal, Explicit, Plain
from linrank.solvers.newton import newton
from linrank.solvers.result import duality_gap
from small_data import small as small_ranking
from strategies import datasets


def pair_function(data: Dataset, C: float, scale=None):
    """F and its gradient over the list of pairs."""
    X = np.asarray(data.X.toarray() if sparse.issparse(data.X) else data.X, dtype=np.float64)
    X = X if scale is None else X * scale
    qid = data.qid if data.qid is not None else np.zeros(data.n_rows)
    u = np.ones(data.n_rows) if data.weight is None else data.weight
    i, j = np.nonzero((qid[:, None] == qid) & (data.labels[:, None] > data.labels))
    weight, D = u[i] * u[j], X[i] - X[j]

    def value_and_gradient(w):
        slack = np.maximum(0, 1 - D @ w)
        return 0.5 * w @ w + C * weight @ slack**2, w - 2 * C * D.T @ (weight * slack)

    return value_and_gradient


def generic_optimum(data: Dataset, C: float, lower, upper, scale=None) -> tuple[float, np.ndarray]:
    best = minimize(
        pair_function(data, C, scale),
        np.clip(np.zeros(data.n_features), lower, upper),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower, upper, strict=True)),
        options={"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-10},
    )
    return best.fun, best.x


def small(seed=0, **options) -> Dataset:
    return small_ranking(seed, n_features=6, **options)


def everywhere(n, low, high):
    return np.full(n, float(low)), np.full(n, float(high))


BOXES = {
    "positive": everywhere(6, 0, np.inf),
    "negative": everywhere(6, -np.inf, 0),
    "narrow": everywhere(6, -0.05, 0.02),
    "away from 0": everywhere(6, 0.3, 0.7),
    "mixed": (
        np.array([-np.inf, 0, -0.1, 0.2, 0.5, -1]),
        np.array([0.0, np.inf, 0.1, 0.2, 1, np.inf]),
    ),
    "a point": everywhere(6, 0.25, 0.25),
}


@examples(60)
@given(datasets(weights=True), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 1.0, 20.0]))
def test_the_kkt_conditions_hold(data, seed, C):
    """Free variables have no gradient, those at a bound one that points outwards."""
    rng = np.random.default_rng(seed)
    lower = rng.choice([-np.inf, -0.5, 0.0, 0.25], data.n_features)
    upper = np.maximum(lower, rng.choice([-1.0, 0.0, 0.5, np.inf], data.n_features))
    try:
        result = train(data, C=C, tol=1e-12, bounds=(lower, upper))
    except NoPairsError:
        assume(False)
    value, g = pair_function(data, C)(result.w)
    small_enough = 1e-5 * (1 + C * np.abs(g).max())
    assert_allclose(result.value, value, rtol=1e-9)
    assert ((lower <= result.w) & (result.w <= upper)).all()
    assert (g[result.w < upper] >= -small_enough).all()
    assert (g[result.w > lower] <= small_enough).all()
    off = result.w - np.clip(result.w - g, lower, upper)
    assert_allclose(result.kkt_residual, np.linalg.norm(off), atol=small_enough)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_a_quadratic_is_minimized_exactly(seed, n):
    """From any face: bounds that hold at the start and not at the end are released."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    M, g = A @ A.T + 0.1 * np.eye(n), rng.normal(size=n)
    lower = rng.choice([-np.inf, -0.5, 0.0], n)
    box = Box(lower, np.maximum(lower, rng.choice([0.0, 0.5, np.inf], n)))
    w = box.clip(rng.choice([-9.0, 0.0, 0.1, 9.0], n))
    d = metric_of(M, None).minimizer(w, g, box).d
    slope = g + M @ d
    off = w + d - box.clip(w + d - slope)
    assert_allclose(off, 0, atol=1e-4 * (1 + np.abs(g + M @ -w).max()))
    assert_allclose(w + d, box.clip(w + d), atol=1e-12)


@pytest.mark.parametrize("preconditioner", [lambda: Explicit(8), Diagonal, Plain])
@pytest.mark.parametrize("box", BOXES)
def test_every_preconditioner_leads_to_the_optimum(preconditioner, box):
    data, (lower, upper) = small(3), BOXES[box]
    risk = Risk(data.rows, SquaredHinge(Pairs(data.queries), 1), 0.5)
    objective = Sum(Ridge(Box(lower, upper)), risk)
    w0 = np.full(6, 5.0)  # outside of most boxes
    result = newton(objective, w0, preconditioner=preconditioner(), tol=1e-10)
    truth, _ = generic_optimum(data, 0.5, lower, upper)
    assert_allclose(result.value, truth, rtol=1e-8)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_gap_is_certified_at_every_iterate(box, loss):
    data, (lower, upper) = small(6), BOXES[box]
    best = train(data, loss=loss, tol=1e-9, max_iter=1000, bounds=(lower, upper))
    history = train(data, loss=loss, tol=1e-6, bounds=(lower, upper)).history
    distance = np.array(history["objective"]) - best.value
    assert (np.array(history["gap"]) >= distance - 1e-8 * best.value).all()
    assert history["gap"][-1] <= 2e-3 * best.value


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_the_hinge_in_a_box_is_certified_to_the_tolerance(box, tol):
    """Also where the optimum of the smoothed loss is found at once, as at a corner."""
    for seed in range(5):
        result = train(small(seed), loss="hinge", tol=tol, bounds=BOXES[box])
        assert result.converged, result.message
        assert result.gap <= tol * result.value


@given(st.integers(0, 2**32 - 1))
def test_the_gap_bounds_the_distance_at_any_point(seed):
    """Also far from the optimum; and no length of the dual point beats the one that is used."""
    rng = np.random.default_rng(seed)
    data = small(int(rng.integers(4)))
    lower, upper = BOXES[rng.choice(list(BOXES))]
    box = Box(lower, upper)
    point = Sum(Ridge(box), Risk(data.rows, SquaredHinge(Pairs(data.queries), 1), 0.3)).at(
        box.clip(rng.normal(size=6))
    )
    best = train(data, C=0.3, tol=1e-11, bounds=(lower, upper)).value
    gap = duality_gap(point)
    assert gap >= point.value - best - 1e-7 * point.value
    u, dual = point.w - point.gradient, point.dual
    for t in (0.0, 0.3, 0.9, 1.0, 1.1, 3.0):
        v = box.clip(t * u)
        value = t * dual.linear - t * t * dual.quadratic - (t * u @ v - 0.5 * v @ v)
        assert gap <= point.value - value + 1e-6 * (point.value + abs(value))


def test_positive_weights_of_harmful_features_are_all_zero():
    """The optimum is the vertex 0, with a gradient that is not small."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = -y[:, None] + 0.1 * rng.normal(size=(60, 4))
    result = train(Dataset.of(X, y), bounds=everywhere(4, 0, np.inf))
    assert (result.w == 0).all()
    assert result.converged
    assert result.kkt_residual == 0.0
    assert result.gap <= 1e-11 * result.value  # the rounding of F
    assert result.history["gradient_norm"][-1] > 1.0


def test_a_degenerate_vertex_is_no_trap():
    """Bounds at the free optimum itself: multipliers are 0, and the active set is not unique."""
    data = small(8)
    free = train(data, tol=1e-12)
    lower = np.where(np.arange(6) % 2 == 0, free.w, -np.inf)
    upper = np.where(np.arange(6) % 3 == 0, free.w, np.inf)
    result = train(data, tol=1e-10, bounds=(lower, np.maximum(lower, upper)), max_iter=30)
    assert result.converged
    assert_allclose(result.value, free.value, rtol=1e-9)


def test_tens_of_thousands_of_features():
    data = make_ranking(1, 3000, 30_000, 2, density=1e-3, random_state=3)
    n = data.n_features
    result = train(data, C=0.01, bounds=everywhere(n, 0, np.inf), tol=1e-6)
    assert result.converged
    assert result.gap <= 1e-4 * result.value
    assert (result.w >= 0).all()
    assert 1000 < (result.w == 0).sum() < n


def test_the_start_is_clipped_and_an_optimal_start_is_kept():
    data, bounds = small(4), BOXES["positive"]
    best = train(data, tol=1e-10, bounds=bounds)
    states = []
    again = train(data, bounds=bounds, w0=best.w, callback=lambda state: states.append(state["w"]))
    assert again.n_iter <= 1
    assert_allclose(again.value, best.value, rtol=1e-10)
    train(data, bounds=bounds, w0=np.full(6, -3.0), callback=lambda s: states.append(s["w"]))
    assert all((w >= 0).all() for w in states)
