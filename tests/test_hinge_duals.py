"""Dual variables of the hinge: against a generic solver of the dual over listed pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dual_values import by_pair, dual_value, fit
from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import dual_matrix, make_ranking
from linrank.data.dataset import Dataset
from linrank.duals import entries as band
from linrank.duals.entries import hinge_entries
from linrank.ranksvm.train import Problem
from small_data import small, weighted


@examples(25)
@given(st.integers(0, 1000), st.sampled_from([0.01, 1.0, 100.0]), st.booleans())
def test_hinge_duals_are_optimal(seed, C, is_weighted):
    """Feasible, and as good as an interior-point method on all pairs; the fit is a rough one."""
    data = small(seed, n_levels=3)
    data = weighted(data, seed) if is_weighted else data
    listed = ExplicitPairs.of(data)
    optimum, _ = listed.optimum(C, "hinge")
    ranker = fit(data, C)
    dual = dual_matrix(ranker, data.X, data.y, data.qid, sample_weight=data.weight)
    alpha = by_pair(dual, listed, data)
    assert (alpha >= 0.0).all()
    assert (alpha <= C * listed.weight * (1 + 1e-12)).all()
    assert dual.value == pytest.approx(dual_value(alpha, listed, C, "hinge"), rel=1e-10)
    assert optimum - dual.value <= 2e-8 * optimum
    assert dual.value <= optimum * (1 + 1e-8)
    at_model = listed.objective(ranker.coef_, C, "hinge")
    assert dual.gap == pytest.approx(at_model - dual.value, abs=1e-9 * at_model)


@pytest.mark.parametrize("scale", ["standard", "query"])
def test_scaled_models_are_worked_on_in_their_own_space(scale):
    data = small(3, n_levels=3)
    data = replace(data, rows=type(data.rows)(data.X * [1.0, 100.0, 0.01, 5.0, 1.0]))
    ranker = fit(data, 0.1, scale=scale)
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    scaled = ranker.model_.scaling.transformed(data)
    listed = ExplicitPairs.of(scaled, scale=ranker.model_.scaling.factors)
    optimum, _ = listed.optimum(0.1, "hinge")
    assert dual_value(by_pair(dual, listed, data), listed, 0.1, "hinge") >= optimum * (1 - 1e-8)
    assert 0.0 <= dual.gap <= 1e-3 * optimum


@pytest.mark.parametrize("options", [{"pairs": "adjacent"}, {"pair_weighting": "gain_diff"}])
def test_other_pairs_and_weights(options):
    data = small(4, n_levels=4)
    ranker = fit(data, 0.2, query_normalization="pairs", **options)
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    chosen = {"adjacent": "pairs" in options}
    chosen["gain"] = np.exp2(data.y) if "pair_weighting" in options else None
    raw = ExplicitPairs.of(data, **chosen)
    sizes = {q: raw.weight[data.qid[raw.winner] == q].sum() for q in np.unique(data.qid).tolist()}
    c = {query: 1.0 / size if size else 0.0 for query, size in sizes.items()}
    listed = ExplicitPairs.of(data, query_weight=c, **chosen)
    optimum, _ = listed.optimum(0.2, "hinge")
    assert dual_value(by_pair(dual, listed, data), listed, 0.2, "hinge") >= optimum * (1 - 1e-8)


def test_only_pairs_at_the_kink_have_fractions():
    data = make_ranking(20, (20, 30), 4, random_state=0, n_levels=3, dtype="float64")
    dual = dual_matrix(fit(data, 0.5), data.X, data.y, data.qid)
    alpha = np.concatenate([block.values[block.is_pair] for block in dual])
    inside = (alpha > 0.0) & (alpha < 0.5)
    assert 0 < inside.sum() <= 4  # in general position no more than features
    z = data.X @ dual.beta
    slack = np.concatenate([(1 - z[b.rows, None] + z[b.columns])[b.is_pair] for b in dual])
    # A gap of 1e-9 places β within its square root.
    np.testing.assert_allclose(slack[inside], 0.0, atol=1e-5)
    assert (slack[alpha == 0.0] < 1e-5).all()
    assert (slack[alpha == 0.5] > -1e-5).all()


def test_without_a_band_the_huber_point_is_left(monkeypatch):
    data = small(2, n_levels=3)
    ranker = fit(data, 1.0)
    problem = Problem.of(data, 1.0, loss="hinge")
    assert hinge_entries(problem, ranker.coef_, 1e-9).exceptions is not None
    monkeypatch.setattr("linrank.duals.entries._LISTED", 1)
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    assert dual.entries.exceptions is None
    listed = ExplicitPairs.of(data)
    alpha = by_pair(dual, listed, data)
    assert (alpha >= 0.0).all()
    assert (alpha <= 1.0).all()
    assert dual.value == pytest.approx(dual_value(alpha, listed, 1.0, "hinge"))
    optimum, _ = listed.optimum(1.0, "hinge")
    assert optimum * (1 - 1e-5) <= dual.value <= optimum * (1 + 1e-9)


def test_a_band_is_what_its_definition_says():
    data = weighted(make_ranking(12, 10, 5, random_state=5, n_levels=3, dtype="float64"), 5)
    problem = Problem.of(data, 1.0, loss="hinge")
    w = 3.0 * np.random.default_rng(0).normal(size=5)
    z = data.queries.gather(data.X @ w)
    winner, loser, weight = band.list_band(problem.pairs, z, 0.5, 10_000)
    listed = ExplicitPairs.of(data)
    near = (np.abs(listed.slacks(w)) <= 0.5) & (listed.weight > 0)
    order = np.arange(data.n_rows) if data.queries.order is None else data.queries.order
    got = sorted(zip(order[winner], order[loser], weight, strict=True))
    assert near.sum() > 10
    expected = zip(listed.winner[near], listed.loser[near], listed.weight[near], strict=True)
    assert got == sorted(expected)
    assert band.list_band(problem.pairs, z, 0.5, int(near.sum()) - 1) is None


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_the_box_problem_against_a_generic_solver(shape):
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    D, offset = rng.normal(size=shape), rng.normal(size=shape[1])
    upper = rng.uniform(0.1, 1, shape[0])

    def negative(alpha):
        w = offset + D.T @ alpha
        return 0.5 * w @ w - alpha.sum(), D @ w - 1.0

    best = minimize(negative, upper / 2, jac=True, bounds=[(0, u) for u in upper], tol=1e-14)
    alpha = band.maximize_in_box(D, offset, upper, 1e-12)
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    assert negative(alpha)[0] <= best.fun + 1e-9
    assert negative(alpha)[0] == pytest.approx(best.fun, abs=1e-6)


@pytest.mark.filterwarnings("ignore:RankSVM did not converge")
def test_rounding_of_the_last_steps_does_not_reach_alpha():
    """Integer features, large C: late steps of the interior point once left D at -6e9."""
    data = small(50, n_levels=4, n_features=20)
    data = Dataset.of(np.round(2 * data.X), data.y, qid=data.qid)
    listed = ExplicitPairs.of(data)
    optimum, _ = listed.optimum(1000.0, "hinge")
    dual = dual_matrix(fit(data, 1000.0), data)
    assert dual_value(by_pair(dual, listed, data), listed, 1000.0, "hinge") >= optimum * (1 - 1e-8)
