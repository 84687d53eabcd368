"""The oracle itself: its optimum against SciPy's general constrained solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from explicit_pairs import ExplicitPairs
from linrank.data.synthetic import make_ranking


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("C", [0.01, 1.0, 20.0])
def test_the_optimum_is_that_of_the_primal_with_slack_variables(power, C):
    """``min ½‖w‖² + C Σ ω ξ^power`` under ``D w + ξ >= 1``, ``ξ >= 0``, by SLSQP."""
    data = make_ranking(3, (3, 6), 3, random_state=4, dtype="float64")
    weight = np.random.default_rng(0).integers(1, 4, data.n_rows) / 2
    pairs = ExplicitPairs.of(replace(data, weight=weight))
    n, D, omega = 3, pairs.difference, pairs.weight
    m = len(omega)
    A = np.hstack([D, np.eye(m)])
    solution = minimize(
        lambda v: 0.5 * v[:n] @ v[:n] + C * omega @ v[n:] ** power,
        np.concatenate([np.zeros(n), np.ones(m)]),
        jac=lambda v: np.concatenate([v[:n], C * power * omega * v[n:] ** (power - 1)]),
        constraints={"type": "ineq", "fun": lambda v: A @ v - 1.0, "jac": lambda v: A},
        bounds=[(None, None)] * n + [(0.0, None)] * m,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    value, w = pairs.optimum(C, {1: "hinge", 2: "squared_hinge"}[power])
    assert_allclose(value, solution.fun, rtol=1e-6)
    assert_allclose(w, solution.x[:n], atol=1e-3 * (1 + np.abs(w).max()))


def listed(pairs: ExplicitPairs) -> dict[tuple[int, int], float]:
    rows = zip(pairs.winner, pairs.loser, pairs.weight, strict=True)
    return {(int(i), int(j)): float(weight) for i, j, weight in rows}


def test_the_pairs_and_their_weights_follow_the_definition():
    data = make_ranking(1, (4, 4), 2, random_state=0, dtype="float64")
    labels, weight = np.array([0.0, 3.0, 1.0, 3.0]), np.array([1.0, 2.0, 3.0, 5.0])
    data = replace(data, labels=labels, weight=weight)
    everything = ExplicitPairs.of(data, query_weight={data.qid[0].item(): 10.0})
    assert listed(everything) == {(1, 0): 20, (1, 2): 60, (2, 0): 30, (3, 0): 50, (3, 2): 150}
    neighbors = ExplicitPairs.of(data, gain=2.0**labels, adjacent=True)
    assert listed(neighbors) == {(1, 2): 36, (2, 0): 3, (3, 2): 90}
