"""Cutting planes: the optimum of the list of pairs, and bounds that hold on the way to it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.losses.base import Hinge, SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.solvers.bundle import _Model, bundle, maximize_on_simplex
from small_data import small, weighted
from strategies import datasets

LOSSES = {"hinge": Hinge, "squared_hinge": SquaredHinge}


def objective(data: Dataset, loss: str, C: float, scale=None) -> Sum:
    weight = None if data.weight is None else data.queries.gather(data.weight)
    return Sum(Ridge(), Risk(data.rows, LOSSES[loss](Pairs(data.queries, weight)), C, scale))


def fit(data: Dataset, loss: str = "hinge", C: float = 1.0, w0=None, **options):
    start = np.zeros(data.n_features) if w0 is None else w0
    return bundle(objective(data, loss, C), start, **options)


def lower_bounds(history) -> np.ndarray:
    return np.array(history["objective"]) - np.array(history["gap"])


@examples(50)
@given(datasets(weights=True), st.sampled_from(sorted(LOSSES)), st.floats(1e-3, 100.0))
def test_every_small_problem_is_certified(data, loss, C):
    """Ties, equal rows, margins of exactly 1, and queries without pairs."""
    result = fit(data, loss, C, tol=1e-7)
    pairs = ExplicitPairs.of(data)
    assert_allclose(result.value, pairs.objective(result.w, C, loss), rtol=1e-9)
    assert result.gap <= 1e-7 * result.value
    if len(pairs.weight):
        truth = pairs.optimum(C, loss)[0]
        assert lower_bounds(result.history).max() <= truth * (1 + 1e-8)
        assert result.value >= truth * (1 - 1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bounds_close_in_on_the_optimum_from_both_sides(loss):
    data = make_ranking(40, (3, 20), 12, random_state=3, dtype="float64")
    truth = ExplicitPairs.of(data).optimum(5.0, loss)[0]
    history = fit(data, loss, 5.0, tol=1e-10).history
    objectives, lower = np.array(history["objective"]), lower_bounds(history)
    assert len(objectives) > 20
    assert (np.diff(objectives) <= 0).all()
    assert (np.diff(lower) >= -1e-10 * truth).all()  # less the rounding of F, which varies
    assert (lower <= truth * (1 + 1e-8)).all()
    assert (objectives >= truth * (1 - 1e-8)).all()
    # The distance of best point and model's minimizer is a sub-gradient up to the gap.
    distance, gap = np.array(history["gradient_norm"]), np.array(history["gap"])
    assert (0.5 * distance**2 <= gap * (1 + 1e-6) + 1e-9 * truth).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_plane_touches_the_risk_where_it_was_cut_and_is_below_it_elsewhere(loss):
    data, rng = weighted(small(5)), np.random.default_rng(0)
    f = objective(data, loss, 0.7)
    for _ in range(5):
        point = f.at(0.3 * rng.normal(size=5))
        model = _Model(5)
        model.cut(point)
        a, b = model._a[1], model._b[1]
        assert_allclose(a @ point.w + b, point.parts[1].value, rtol=1e-12)
        for w in rng.normal(size=(20, 5)):
            assert a @ w + b <= f.at(w).parts[1].value * (1 + 1e-12)


def test_why_it_stopped_is_told():
    data = make_ranking(60, (5, 30), 10, random_state=9)
    short = fit(data, C=10.0, max_iter=3)
    assert (short.stopped, short.n_iter, short.converged) == ("max_iter", 3, False)
    assert "max_iter=3" in short.message
    assert "raise max_iter" in short.message
    seen = []
    halted = fit(data, C=10.0, callback=lambda state: seen.append(state["gap"]) or len(seen) == 4)
    assert (halted.stopped, halted.n_iter) == ("callback", 3)
    assert seen == halted.history["gap"]
    exact = fit(data, C=10.0, tol=1e-300)
    assert exact.stopped == "precision"
    assert 0.0 < exact.gap <= 1e-9 * exact.value


def test_planes_out_of_use_are_dropped_without_loss(monkeypatch):
    data = make_ranking(40, (3, 20), 8, random_state=6, dtype="float64")
    kept, patient = fit(data, C=5.0, tol=1e-8), []
    monkeypatch.setattr("linrank.solvers.bundle._PATIENCE", 1)
    original = _Model.bound
    monkeypatch.setattr(_Model, "bound", lambda m: patient.append(m._n) or original(m))
    dropped = fit(data, C=5.0, tol=1e-8)
    assert dropped.converged
    assert max(patient) < dropped.n_iter
    assert_allclose(dropped.value, kept.value, rtol=2e-8)
    assert (np.diff(lower_bounds(dropped.history)) >= -1e-10 * kept.value).all()


def test_features_beyond_double_precision_are_told():
    data = make_ranking(5, (3, 5), 2, random_state=0, dtype="float64")
    huge = Dataset.of(1e80 * np.asarray(data.X), data.labels, qid=data.qid)
    with pytest.raises(ValueError, match="divide them by a common factor"):
        fit(huge)


# ---- the quadratic on the simplex ---------------------------------------------------------------


def value_of(gram, b, beta):
    return b @ beta - 0.5 * beta @ gram @ beta


def by_enumeration(gram, b):
    """The best of the stationary points of all faces: the definition, in 2^m solves."""
    m, best = len(b), -np.inf
    for size in range(1, m + 1):
        for face in combinations(range(m), size):
            rows = list(face)
            system = np.block([[gram[np.ix_(rows, rows)], np.ones((size, 1))], [np.ones(size), 0]])
            solution = np.linalg.lstsq(system, np.append(b[rows], 1.0), rcond=None)[0][:size]
            if (solution >= -1e-12).all() and abs(solution.sum() - 1) < 1e-9:
                beta = np.zeros(m)
                beta[rows] = np.maximum(solution, 0) / np.maximum(solution, 0).sum()
                best = max(best, value_of(gram, b, beta))
    return best


@st.composite
def programs(draw, max_rows=6):
    """Gram matrices of full rank, singular, with equal and nearly equal rows, of mixed scales."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(1, max_rows)), draw(st.integers(1, max_rows))
    A = rng.normal(size=(m, n)) * 10.0 ** draw(st.integers(-4, 4))
    kind = draw(st.sampled_from(["plain", "equal", "near", "zero", "scales"]))
    if kind == "equal":
        A[m // 2 :] = A[: m - m // 2]
    elif kind == "near":
        A[m // 2 :] = A[0] * (1 + 1e-9 * rng.normal(size=(m - m // 2, 1)))
    elif kind == "zero":
        A[0] = 0.0
    elif kind == "scales":
        A *= 10.0 ** rng.uniform(-3, 3, (m, 1))
    gram = A @ A.T
    b = rng.normal(size=m) * 10.0 ** draw(st.integers(-4, 4)) * (1 + np.abs(gram).mean())
    if draw(st.booleans()):
        b = np.round(b / (np.abs(b).max() or 1.0), 1) * np.abs(b).max()
    start = rng.random(m) if draw(st.booleans()) else np.eye(m)[draw(st.integers(0, m - 1))]
    return gram, b, start / start.sum()


@given(programs())
def test_the_maximum_is_that_of_the_best_face(program):
    gram, b, start = program
    beta = maximize_on_simplex(gram, b, start)
    assert (beta >= 0).all()
    assert_allclose(beta.sum(), 1.0, rtol=1e-14)
    best, scale = by_enumeration(gram, b), np.abs(b).max() + np.abs(gram).max()
    assert value_of(gram, b, beta) >= best - 1e-12 * abs(best) - 1e-15 * scale


@given(programs(max_rows=60))
def test_no_slope_exceeds_the_level(program):
    """``max s - s'β`` bounds what is missing to the maximum."""
    gram, b, start = program
    beta = maximize_on_simplex(gram, b, start)
    slope = b - gram @ beta
    missing = slope.max() - slope @ beta
    rounding = 1e-14 * (np.abs(b).max() + (np.abs(gram) @ beta).max())
    assert missing <= 1e-11 * abs(value_of(gram, b, beta)) + rounding


@pytest.mark.parametrize("m", [1, 3])
def test_rows_of_zeros_leave_a_linear_program(m):
    beta = maximize_on_simplex(np.zeros((m, m)), np.arange(m, dtype=float), np.full(m, 1 / m))
    assert_allclose(beta, np.eye(m)[-1])
