"""The quadratic on the simplex: optimal by its own conditions, and against a generic solver."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from linrank.solvers.bundle import maximize_on_simplex


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
