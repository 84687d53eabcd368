"""Regularization paths: every model is the optimum of its C, to a gap that is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linrank
from explicit_pairs import ExplicitPairs
from linrank import ConvergenceWarning, Dataset, _core, make_ranking
from linrank.data.rows import Priced
from linrank.objective import Ridge, Risk, Sum
from linrank.ranksvm import train as ranksvm
from linrank.ranksvm.path import train_path
from linrank.ranksvm.train import Problem
from linrank.solvers.conjugate import Memory
from linrank.solvers.result import duality_gap
from papers import ranksvm_path
from real_data import mq2008
from small_data import small

GRID = [1e-4, 1e-2, 0.1, 1.0, 30.0]


def results(data: Dataset, Cs=GRID, **options):
    return list(train_path(data, Cs, **options))


# ---- the models and their certificates ----------------------------------------------------------


REGIMES = {
    "explicit": {"n_queries": 60, "rows_per_query": (3, 30), "n_features": 20},
    "sampled": {"n_queries": 900, "rows_per_query": (5, 20), "n_features": 8},
    "diagonal": {"n_queries": 150, "n_features": 4100, "density": 0.003},
    "plain": {"n_queries": 10, "rows_per_query": 12, "n_features": 700, "density": 0.05},
}


@pytest.mark.parametrize("regime", REGIMES)
def test_all_regimes_equal_cold_fits(regime, monkeypatch):
    if regime == "sampled":
        monkeypatch.setattr(Priced, "hessian_price", 100)
    data = make_ranking(random_state=3, **REGIMES[regime])
    Cs = [2.0**k for k in range(-12, 1, 3)]
    for C, result in zip(Cs, results(data, Cs, tol=1e-6), strict=True):
        cold = ranksvm.train(data, C=C, tol=1e-11)
        assert result.gap <= 1e-6 * result.value
        assert_allclose(result.value, cold.value, rtol=1e-6)
        assert result.value >= cold.value * (1 - 1e-9)


@pytest.mark.parametrize(
    "options", [{"loss": "hinge"}, {"solver": "bundle"}, {"solver": "tron", "tol": 1e-4}]
)
def test_other_losses_and_solvers_are_certified_too(options):
    data = small(4)
    found = ranksvm_path(data.X, data.y, data.qid, Cs=[0.01, 0.1, 1.0], **options)
    assert found.converged.all()
    assert (found.gaps <= 1e-3 * found.objectives).all()
    for k, C in enumerate([0.01, 0.1, 1.0]):
        best = ranksvm.train(data, C=C, tol=1e-7, loss=options.get("loss", "squared_hinge")).value
        assert -1e-6 * best <= found.objectives[k] - best <= found.gaps[k] + 1e-6 * best


# ---- the pieces ---------------------------------------------------------------------------------


def test_a_point_of_another_C_sweeps_nothing(monkeypatch):
    problem = Problem.of(small(6), 0.3)
    point = problem.objective().at(np.ones(5))
    assert point.value > 0
    assert point.gradient.any()
    monkeypatch.setattr(_core, "pair_point", None)
    monkeypatch.setattr(_core, "gradient", None)
    assert duality_gap(point.reweighted(2.0)) >= 0


def test_the_memory_follows_C():
    """Products remembered at one C are those of the Hessian at another, for a fixed active set."""
    problem, n = Problem.of(small(7), 0.3), 5
    w, p = np.full(n, 1e-3), np.random.default_rng(1).normal(size=n)
    memory = Memory(4, n)
    hp = problem.objective().at(w).hvp(p)[0]
    memory.add(p, hp, float(p @ hp))
    memory.reweight(10.0)
    _, carried, php = memory.pairs[0]
    truth = Sum(Ridge(), Risk(problem.rows, problem.objective().terms[1].loss, 3.0)).at(w).hvp(p)[0]
    assert_allclose(carried, truth, rtol=1e-12)
    assert_allclose(php, p @ truth, rtol=1e-12)


def test_neighbors_cost_little():
    """The point of the start counts for nothing anew: about one step and two products a value."""
    data = make_ranking(300, (5, 40), 10, random_state=0)
    found = ranksvm_path(data.X, data.y, data.qid)
    assert found.n_iter.sum() <= 45
    assert found.n_hvp.sum() <= 90
    again = ranksvm_path(data.X, data.y, data.qid, Cs=[1.0, 1.0 + 1e-9])
    assert again.n_iter[1] == again.n_hvp[1] == 0
    assert_array_equal(again.coefs[0], again.coefs[1])


# ---- the result and the arguments ---------------------------------------------------------------


def test_result():
    data = small(8)
    found = ranksvm_path(data.X, data.y, data.qid, Cs=[1.0, 0.01, 0.1, 0.1], scale="standard")
    assert_array_equal(found.Cs, [0.01, 0.1, 1.0])
    assert len(found) == 3
    assert found.coefs.shape == (3, 5)
    assert found.converged.all()
    assert (np.diff(found.norms) > 0).all()
    assert_allclose(found.norms[2], np.linalg.norm(found.results[2].w))
    assert_array_equal(found.n_nonzero, [5, 5, 5])
    assert [history["objective"][-1] for history in found.history] == found.objectives.tolist()
    assert (found.seconds >= 0).all()
    with pytest.raises(AttributeError):
        found.Cs = None


def test_auto_is_25_powers_of_two_times_the_C_of_auto():
    data = small(9)
    found = linrank.ranksvm_path(data.X, data.y, data.qid)
    C = linrank.RankSVM().fit(data.X, data.y, qid=data.qid).C_
    assert_allclose(found.Cs / C, 2.0 ** np.arange(-10, 15))


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        ([], r"non-empty list of numbers > 0, got shape \(0,\)"),
        (1.0, r"non-empty list"),
        ([1.0, 0.0], r"Cs\[1\] is 0; all must be finite and > 0"),
        ([-2.0], r"Cs\[0\] is -2"),
        ([1.0, 2.0, np.nan], r"Cs\[2\] is nan"),
        ([np.inf], r"Cs\[0\] is inf"),
        ("some", "'auto' or numbers > 0, got 'some'"),
        (["a"], r"'auto' or numbers > 0, got \['a'\]"),
        ([[1.0, 2.0]], r"got shape \(1, 2\)"),
    ],
)
def test_wrong_grids(Cs, message):
    data = small()
    with pytest.raises(ValueError, match=message):
        ranksvm_path(data.X, data.y, data.qid, Cs=Cs)


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.filterwarnings("error")
def test_a_callback_ends_the_path(solver):
    data, seen = small(), []

    def stop(state):
        seen.append(state["C"])
        return state["C"] >= 0.1

    found = ranksvm_path(data.X, data.y, data.qid, Cs=GRID, solver=solver, callback=stop)
    assert sorted(set(seen)) == [1e-4, 1e-2, 0.1]
    assert_array_equal(found.Cs, [1e-4, 1e-2, 0.1])
    assert found.coefs.shape == (3, 5)


def test_too_few_iterations_are_told():
    data = small()
    with pytest.warns(ConvergenceWarning, match=r"of 5 values of C .* raise max_iter or tol"):
        found = ranksvm_path(data.X, data.y, data.qid, Cs=GRID, max_iter=1, tol=1e-10)
    assert not found.converged.all()
    # What is reported is still a true bound.
    for C, objective, gap in zip(GRID, found.objectives, found.gaps, strict=True):
        assert objective - ExplicitPairs.of(data).optimum(C)[0] <= gap + 1e-9 * objective


WIDE = np.array([1e9, 1.0, 1e-3, 1.0, 1.0])  # ranges of features


def test_a_bound_that_rounding_keeps_open_is_told():
    data = small()
    with pytest.warns(ConvergenceWarning, match="scale them, or raise tol"):
        found = ranksvm_path(data.X * WIDE, data.y, data.qid, Cs=[1.0, 4.0], tol=1e-15)
    assert (found.n_iter < 100).all()


@pytest.mark.parametrize("size", [1.0, 1e9, 1e15])
def test_the_gap_far_from_the_optimum_is_not_lost_in_rounding(size):
    """At 0, ``½‖∇F‖²`` of large features is many digits above F, and so is what it rounds to."""
    data = small()
    wide = replace(data, rows=type(data.rows)(data.X * WIDE * size))
    start = Problem.of(wide, 1.0).objective().at(np.zeros(5))
    best = ranksvm.train(wide, tol=1e-10).value
    assert start.value - best <= duality_gap(start) * (1 + 1e-9)
    assert duality_gap(start) <= start.value * (1 + 1e-12)


# ---- real data ----------------------------------------------------------------------------------


def test_mq2008():
    data = mq2008(1, 2, 3)
    found = ranksvm_path(data.X, data.y, data.qid, Cs=2.0 ** np.arange(-15, 11))
    assert (found.gaps <= 1e-4 * found.objectives).all()
    assert_allclose(found.objectives[15], 29566.523, rtol=1e-4)
    assert found.n_iter.sum() <= 36
    for k in (0, 8, 25):
        cold = ranksvm.train(data, C=found.Cs[k], tol=1e-10)
        assert found.objectives[k] >= cold.value * (1 - 1e-9)
        assert found.objectives[k] - cold.value <= found.gaps[k]
