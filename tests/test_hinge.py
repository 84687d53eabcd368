"""The hinge by Newton's method on a narrowing band, against generic solvers and the bundle."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from explicit_pairs import ExplicitPairs
from linrank import make_ranking
from linrank.data.dataset import Dataset
from linrank.losses.base import Dual
from linrank.ranksvm.train import train
from linrank.solvers.result import duality_gap, lower_bound
from real_data import mq2008


def small(seed: int) -> Dataset:
    return make_ranking(8, (2, 12), 5, 4, random_state=seed)


@pytest.mark.parametrize("seed", [0, 1, 12, 14, 25])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize(("low", "high"), [(0.0, np.inf), (-0.05, 0.02), (0.3, 0.7)])
def test_bounds_do_not_keep_the_gap_open(seed, C, low, high):
    """Where a step within a band gains less than rounding, a narrower band goes on."""
    data, ends = small(seed), (np.full(5, low), np.full(5, high))
    result = train(data, C=C, loss="hinge", tol=1e-6, bounds=ends)
    assert result.converged, result.message
    assert result.gap <= 1e-6 * result.value
    assert ((low <= result.w) & (result.w <= high)).all()
    listed = ExplicitPairs.of(data)
    assert_allclose(listed.objective(result.w, C, "hinge"), result.value, rtol=1e-10)
    # F is convex: no point of the box near the optimum, or far from it, lies below the bound.
    rng = np.random.default_rng(seed)
    for distance in 10.0 ** np.arange(-6.0, 1.0):
        w = np.clip(result.w + distance * rng.normal(size=(40, 5)), low, high)
        least = min(listed.objective(one, C, "hinge") for one in w)
        assert least >= result.value - result.gap - 1e-9 * result.value


def test_gains_that_overflow_are_refused():
    data = Dataset.of(np.eye(3), [0.0, 1.0, 2000.0])
    with pytest.raises(ValueError, match=r"the label 2000 is too large.*grade_diff"):
        train(data, pair_weighting="gain_diff")
    assert train(data, pair_weighting="grade_diff").converged


def test_mq2008_is_below_the_objective_of_svm_rank():
    """SVM-rank stops at 24934.0 at its ε = .001."""
    result = train(mq2008(1, 2, 3), C=1.0, loss="hinge")
    assert result.converged
    assert result.value <= 24934.0
    assert result.value - result.gap <= 24916.66


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("shape", [(200, 5), (30, 200)])
def test_the_bound_holds_where_rows_can_be_separated(C, shape):
    """Slacks are then as small as the rounding of scores, which a narrow band makes slopes of."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape)
    y = np.digitize(X @ rng.normal(size=shape[1]), [-1.0, 1.0])
    data = Dataset.of(X, y, qid=np.arange(len(X)) // 25)
    best = train(data, C=C, loss="hinge", solver="bundle", tol=1e-9)
    for tol in (1e-3, 1e-4, 1e-6):
        result = train(data, C=C, loss="hinge", tol=tol)
        assert result.value - result.gap <= best.value * (1 + 1e-7)


def test_a_dual_point_that_is_all_rounding_proves_nothing():
    """e'α less its allowance may be negative; a negative length of α would not be feasible."""
    dual = Dual(linear=-0.08, quadratic=0.0, slack=0.13, largest=1.0)
    point = SimpleNamespace(
        box=None, w=np.array([0.1]), risk_square=0.01, primal=0.06, primal_error=0.001, dual=dual
    )
    assert lower_bound(point) == 0.0
    assert duality_gap(point) == 0.061


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_large_features_do_not_send_the_solver_astray(C):
    """A difference of squares of slacks keeps no digit far out, where F must not look small."""
    data = small(5)
    big = Dataset.of(1e8 * np.asarray(data.X), data.y, qid=data.qid)
    listed = ExplicitPairs.of(big)
    best = train(big, C=C, loss="hinge", tol=1e-4)
    result = train(big, C=C, loss="hinge", tol=1e-6)
    assert max(result.history["objective"]) == result.history["objective"][0]
    assert result.value <= best.value * (1 + 1e-3)
    assert_allclose(listed.objective(result.w, C, "hinge"), result.value, rtol=1e-6)


def test_a_tiny_C_still_gives_a_direction():
    """0 is then within the tolerance, but ranks nothing: one step is always made."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    result = train(Dataset.of(X, X[:, 0]), C=1e-6, loss="hinge")
    assert result.converged
    assert result.n_iter >= 1
    assert np.argsort(X @ result.w)[-1] == np.argmax(X[:, 0])
