"""A loss written in Python: the solver, and the certificate, of those of the core."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

import linrank
from linrank.data.rows import as_rows
from linrank.losses.base import ScoreLoss
from linrank.objective import Ridge, Risk, Sum
from linrank.solvers.conjugate import Plain
from linrank.solvers.newton import newton
from linrank.solvers.result import duality_gap


class Logistic(ScoreLoss):
    """``Σ log(1 + e^(z_j - z_i))`` over listed pairs."""

    def __init__(self, pairs, n_rows):
        super().__init__(None, n_rows)
        self.above, self.below = pairs.T

    @property
    def total_weight(self):
        return float(len(self.above))

    def at(self, z, near=None):
        margin = z[self.above] - z[self.below]
        p = expit(-margin)
        value, gradient = np.logaddexp(0.0, -margin).sum(), self._by_row(-p)
        return SimpleNamespace(z=z, value=value, gradient=gradient, bend=p * (1.0 - p))

    def curvature(self, point, v):
        return self._by_row(point.bend * (v[self.above] - v[self.below]))

    def _by_row(self, terms):
        n = self.n_positions
        return np.bincount(self.above, terms, n) - np.bincount(self.below, terms, n)


@pytest.fixture(scope="module")
def data():
    return linrank.make_ranking(n_queries=20, n_features=4, noise=0.5, random_state=3)


@pytest.fixture(scope="module")
def pairs(data):
    return np.argwhere((data.qid[:, None] == data.qid) & (data.y[:, None] > data.y))


def objective(data, loss, C=0.02):
    return Sum(Ridge(), Risk(as_rows(data.X), loss, C))


def solve(data, loss, tol):
    start = np.zeros(data.n_features)
    return newton(objective(data, loss), start, preconditioner=Plain(), tol=tol, proven=True)


def test_the_certificate_bounds_the_distance_everywhere(data, pairs):
    loss = Logistic(pairs, data.n_rows)
    best = solve(data, loss, 1e-10)
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 0.1, 1.0, 30.0):
        point = objective(data, loss).at(best.w + size * rng.normal(size=data.n_features))
        gap = duality_gap(point)
        assert gap >= point.value - best.value - 1e-12
        # It is ½‖∇F‖², unless a shorter dual vector is better.
        assert gap <= (0.5 * point.gradient @ point.gradient) * (1 + 1e-9) + 1e-9 * best.value


def test_the_logistic_loss_is_minimized_as_scipy_does_it(data, pairs):
    loss = Logistic(pairs, data.n_rows)

    def value(w):
        point = objective(data, loss).at(w)
        return point.value, point.gradient

    rival = minimize(value, np.zeros(data.n_features), jac=True, method="BFGS", tol=1e-9)
    found = solve(data, loss, 1e-9)
    assert found.value == pytest.approx(rival.fun, rel=1e-9)
    assert_allclose(found.w, rival.x, atol=1e-5)
