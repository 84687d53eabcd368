"""Dual variables as matrices: against listed pairs and a generic solver of the dual."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from explicit_pairs import ExplicitPairs
from linrank import (
    DominationRanker,
    LinearModel,
    RankSVM,
    RankSVMCV,
    SGDRanker,
    dual_matrix,
    make_ranking,
)
from linrank.data.dataset import Dataset
from linrank.lowrank import band
from linrank.lowrank.entries import BandEntries, HuberEntries
from linrank.lowrank.hinge_duals import hinge_entries
from linrank.lowrank.matrix import Block
from linrank.problem import Problem
from small_data import small, weighted


def fit(data: Dataset, C: float = 1.0, loss: str = "hinge", query_weight=None, **options):
    ranker = RankSVM(C, loss=loss, **options)
    return ranker.fit(
        data.X, data.y, qid=data.qid, sample_weight=data.weight, query_weight=query_weight
    )


def by_pair(dual, listed: ExplicitPairs, data: Dataset) -> np.ndarray:
    """α of the listed pairs, from the square matrices; asserts that the rest is 0."""
    whole = np.zeros((data.n_rows, data.n_rows))
    for query in dual.query_ids:
        block = dual.block(query)
        whole[np.ix_(block.members, block.members)] += dual.full(query)
    alpha = whole[listed.winner, listed.loser]
    whole[listed.winner, listed.loser] = 0.0
    assert not whole.any()
    return alpha


def dual_value(alpha: np.ndarray, listed: ExplicitPairs, C: float, loss: str) -> float:
    beta = listed.difference.T @ alpha
    value = alpha.sum() - 0.5 * beta @ beta
    if loss == "squared_hinge":
        used = listed.weight > 0
        value -= (alpha[used] ** 2 / listed.weight[used]).sum() / (4 * C)
    return float(value)


# ---- the squared hinge --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_squared_hinge_is_the_slope_at_the_margins(seed, is_weighted):
    data = small(seed, n_levels=4)
    data = weighted(data, seed) if is_weighted else data
    weight = {q: 0.5 + k % 3 for k, q in enumerate(np.unique(data.qid).tolist())}
    ranker = fit(data, 0.3, "squared_hinge", weight, tol=1e-12)
    dual = dual_matrix(
        ranker, data.X, data.y, data.qid, sample_weight=data.weight, query_weight=weight
    )
    listed = ExplicitPairs.of(data, query_weight=weight)
    alpha = by_pair(dual, listed, data)
    expected = 0.6 * listed.weight * np.maximum(0.0, listed.slacks(ranker.coef_))
    np.testing.assert_allclose(alpha, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dual.beta, ranker.coef_, atol=1e-5)  # w = X'A'α at the optimum
    np.testing.assert_allclose(dual.beta, listed.difference.T @ alpha, atol=1e-12)
    assert dual.value == pytest.approx(dual_value(alpha, listed, 0.3, "squared_hinge"), rel=1e-12)
    assert dual.primal == pytest.approx(listed.objective(ranker.coef_, 0.3, "squared_hinge"))
    assert 0.0 <= dual.gap <= 1e-9 * dual.primal


def test_the_gap_of_the_squared_hinge_is_half_the_square_of_the_gradient():
    data = small(1)
    ranker = fit(data, 1.0, "squared_hinge", tol=0.5)
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    gradient = ranker.coef_ - dual.beta
    assert dual.gap > 1e-6
    assert dual.gap == pytest.approx(0.5 * gradient @ gradient, rel=1e-8)


# ---- the hinge ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
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
    gain = np.exp2(data.y) if "pair_weighting" in options else None
    adjacent = "pairs" in options
    raw = ExplicitPairs.of(data, gain=gain, adjacent=adjacent)
    c = {
        query: 1.0 / raw.weight[data.qid[raw.winner] == query].sum()
        for query in np.unique(data.qid[raw.winner]).tolist()
    }
    listed = ExplicitPairs.of(
        data,
        query_weight={**dict.fromkeys(np.unique(data.qid).tolist(), 0.0), **c},
        gain=gain,
        adjacent=adjacent,
    )
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
    np.testing.assert_allclose(slack[inside], 0.0, atol=1e-6)
    assert (slack[alpha == 0.0] < 1e-6).all()
    assert (slack[alpha == 0.5] > -1e-6).all()


def test_all_pairs_at_the_kink():
    """One binary feature: every margin is w, and at the optimum 1; α is not unique."""
    X, y = np.repeat([[0.0], [1.0]], [30, 20], axis=0), np.repeat([0, 1], [30, 20])
    ranker = RankSVM(1.0, loss="hinge", tol=1e-6).fit(X, y)
    dual = dual_matrix(ranker, X, y)
    assert dual.value == pytest.approx(0.5, rel=1e-8)
    assert dual.block().values.sum() == pytest.approx(1.0, rel=1e-6)


def test_without_a_band_the_huber_point_is_left(monkeypatch):
    data = small(2, n_levels=3)
    ranker = fit(data, 1.0)
    problem = Problem.of(data, 1.0, loss="hinge")
    assert isinstance(hinge_entries(problem, ranker.coef_, 1e-9), BandEntries)
    monkeypatch.setattr("linrank.lowrank.hinge_duals._LISTED", 1)
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    assert isinstance(dual._entries, HuberEntries)
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
    found = band.list_band(problem.pairs, z, 0.5, 10_000)
    listed = ExplicitPairs.of(data)
    near = (np.abs(listed.slacks(w)) <= 0.5) & (listed.weight > 0)
    order = np.arange(data.n_rows) if data.queries.order is None else data.queries.order
    got = sorted(zip(order[found.winner], order[found.loser], found.weight, strict=True))
    assert near.sum() > 10
    expected = zip(listed.winner[near], listed.loser[near], listed.weight[near], strict=True)
    assert got == sorted(expected)
    assert band.list_band(problem.pairs, z, 0.5, int(near.sum()) - 1) is None


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_the_box_problem_against_a_generic_solver(shape):
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    D, offset, upper = (
        rng.normal(size=shape),
        rng.normal(size=shape[1]),
        rng.uniform(0.1, 1, shape[0]),
    )

    def negative(alpha):
        w = offset + D.T @ alpha
        return 0.5 * w @ w - alpha.sum(), D @ w - 1.0

    best = minimize(negative, upper / 2, jac=True, bounds=[(0, u) for u in upper], tol=1e-14)
    alpha = band.maximise_in_box(D, offset, upper, 1e-12)
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    assert negative(alpha)[0] <= best.fun + 1e-9
    assert negative(alpha)[0] == pytest.approx(best.fun, abs=1e-6)


# ---- models that bring their dual variables -----------------------------------------------------


def factorized(data: Dataset, K: int, seed: int = 0, **settings):
    """What an estimator with factors looks like, its weights those that the factors make."""
    rng = np.random.default_rng(seed)
    V = rng.uniform(0, 0.1, (data.n_rows, K))
    listed = ExplicitPairs.of(data)
    alpha = np.einsum("pk,pk->p", V[listed.winner], V[listed.loser])
    training = {"method": "factorized", "C": 1.0, "n_rows": data.n_rows, **settings}
    model = LinearModel(listed.difference.T @ alpha, training=training)
    return SimpleNamespace(model_=model, factors_=V), alpha, listed


@pytest.mark.parametrize("interleaved", [False, True])
def test_factors_make_masked_products(interleaved):
    data = small(0, n_levels=4)
    if interleaved:
        data = data.select(np.random.default_rng(0).permutation(data.n_rows))
    model, expected, listed = factorized(data, 3)
    dual = dual_matrix(model, data.X, data.y, data.qid)
    np.testing.assert_allclose(by_pair(dual, listed, data), expected, rtol=1e-12)
    np.testing.assert_allclose(dual.beta, model.model_.coef, rtol=1e-9)
    assert dual.value == pytest.approx(dual_value(expected, listed, 1.0, "hinge"))
    assert dual.gap == pytest.approx(listed.objective(dual.beta, 1.0, "hinge") - dual.value)
    assert "factorized" in repr(dual)


def test_masking_raises_the_rank_above_that_of_the_factors():
    """rank <= K (levels - 1), and K with two levels."""
    rng = np.random.default_rng(1)
    X, K = rng.normal(size=(60, 3)), 3
    for n_levels, expected in ((2, 3), (3, 6), (4, 9)):
        data = Dataset.of(X, np.arange(60) % n_levels)
        model, _, _ = factorized(data, K)
        assert dual_matrix(model, data.X, data.y).ranks().tolist() == [expected]


class Kept:
    """What the duals of a RegularizedRankSVM look like: blocks with rows by ascending level."""

    def __init__(self, pairs, alpha, listed, query):
        self.pairs, self.query = pairs, query
        self._whole = np.zeros((pairs.queries.n_rows,) * 2)
        self._whole[listed.winner, listed.loser] = alpha

    def _side(self, k, keep):
        queries, q = self.pairs.queries, self.query[k]
        at = np.arange(queries.offsets[q], queries.offsets[q + 1])
        level = queries.levels[at]
        at = at[np.argsort(level, kind="stable")]
        at = at[keep(queries.levels[at], queries.n_levels[q] - 1)]
        return at if queries.order is None else queries.order[at]

    def rows(self, k):
        return self._side(k, lambda level, highest: level > 0)

    def columns(self, k):
        return self._side(k, lambda level, highest: level < highest)

    def block(self, k):
        return self._whole[np.ix_(self.rows(k), self.columns(k))]


def regularized(data: Dataset, left_out: int = 0):
    listed = ExplicitPairs.of(data)
    problem = Problem.of(data, 1.0, loss="hinge")
    numbers = np.flatnonzero(data.queries.n_levels > 1)[left_out:]
    alpha = np.random.default_rng(0).uniform(0, 1, len(listed.winner))
    alpha[~np.isin(data.qid[listed.winner], data.queries.ids[numbers])] = 0.0
    training = {"method": "regularized", "C": 1.0, "gamma": 0.6, "lam": 0.5}
    model = LinearModel(listed.difference.T @ alpha, training=training)
    return (
        SimpleNamespace(model_=model, duals_=Kept(problem.pairs, alpha, listed, numbers)),
        alpha,
        listed,
    )


@pytest.mark.parametrize("interleaved", [False, True])
def test_kept_duals_are_found_by_row(interleaved):
    data = small(2, n_levels=4)
    if interleaved:
        data = data.select(np.random.default_rng(0).permutation(data.n_rows))
    model, expected, listed = regularized(data, left_out=1)
    dual = dual_matrix(model, data)
    np.testing.assert_array_equal(by_pair(dual, listed, data), expected)
    np.testing.assert_allclose(dual.beta, model.model_.coef, rtol=1e-9)
    thresholded = dual_matrix(model, data, thresholded=True)
    assert "regularized, thresholded" in repr(thresholded)
    assert thresholded.value == dual.value  # it is that of α
    for block, singular in zip(thresholded, dual.singular_values(), strict=True):
        soft = np.maximum(singular - 0.6, 0.0)  # γ/2λ
        np.testing.assert_allclose(block.singular_values, soft, atol=1e-12)
        assert block.rank() == (soft > 0).sum()


def test_duals_that_are_not_there_or_do_not_fit():
    data = small(0)
    model, _, _ = regularized(data)
    with pytest.raises(ValueError, match="keep_duals=True"):
        dual_matrix(model.model_, data)
    with pytest.raises(ValueError, match=rf"duals_ are of {data.n_rows} rows, but X has"):
        dual_matrix(model, data.select(slice(1, None)))


# ---- the matrix ---------------------------------------------------------------------------------


def test_blocks_and_squares_agree():
    data = small(7, n_levels=3)
    dual = dual_matrix(fit(data, 0.1), data.X, data.y, data.qid)
    blocks = list(dual)
    assert len(blocks) == len(dual) == len(dual.query_ids)
    assert [block.query for block in blocks] == dual.query_ids
    for block, singular, rank in zip(blocks, dual.singular_values(), dual.ranks(), strict=True):
        levels = data.y[block.members]
        assert block.n_rows == len(levels)
        assert set(block.rows) == set(block.members[levels > levels.min()])
        assert set(block.columns) == set(block.members[levels < levels.max()])
        assert block.n_pairs == (levels[:, None] > levels).sum()
        square = block.full()
        whole = np.linalg.svd(square, compute_uv=False)
        np.testing.assert_allclose(whole[: len(singular)], singular, atol=1e-12)
        assert rank == np.linalg.matrix_rank(square, tol=1e-6 * whole[0])
        prefix = np.sort(~block.is_pair, axis=1, kind="stable")
        np.testing.assert_array_equal(~block.is_pair, prefix)  # pairs of a row come first


def test_queries_of_one_level_have_no_block():
    X = np.arange(7.0)[:, None]
    y, qid = [1, 1, 0, 1, 2, 2, 0], list("aabbccc")
    dual = dual_matrix(RankSVM(loss="hinge").fit(X, y, qid=qid), X, y, qid)
    assert dual.query_ids == ["b", "c"]
    with pytest.raises(KeyError, match="no query 'a' with pairs among 2"):
        dual.block("a")
    with pytest.raises(KeyError, match="None"):
        dual.block()


def test_rank_of_a_zero_block():
    nothing = np.zeros((2, 3))
    block = Block(0, np.arange(2), np.arange(2, 5), nothing, nothing == 0, np.arange(5))
    assert block.rank() == 0


def test_ways_to_pass_model_and_data():
    data = small(8)
    ranker = fit(data, 0.1, "squared_hinge")
    expected = dual_matrix(ranker, data.X, data.y, data.qid).value
    assert dual_matrix(ranker.model_, data).value == expected
    assert dual_matrix(ranker, data.X, data.y, qid=data.qid, n_jobs=1).value == expected
    sizes = np.diff(data.queries.offsets)
    assert dual_matrix(ranker, data.X, data.y, group=sizes).value == expected
    chosen = RankSVMCV([0.1], cv=3).fit(data.X, data.y, qid=data.qid)
    assert dual_matrix(chosen, data).value == pytest.approx(expected, rel=1e-3)


def test_sparse_rows_give_the_same():
    from scipy.sparse import csr_array

    data = small(9, n_levels=3)
    ranker = fit(data, 0.1)
    dense = dual_matrix(ranker, data.X, data.y, data.qid)
    sparse = dual_matrix(ranker, csr_array(data.X), data.y, data.qid)
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)


# ---- what is refused ----------------------------------------------------------------------------


def test_models_without_duals():
    data = small(0)
    for other in (SGDRanker(n_steps=10), DominationRanker()):
        other.fit(data.X, data.y, qid=data.qid)
        with pytest.raises(TypeError, match="takes a fitted RankSVM or RankSVMCV, a LinearModel"):
            dual_matrix(other, data)
    with pytest.raises(TypeError, match="got int"):
        dual_matrix(3, data)
    with pytest.raises(TypeError, match="does not say how"):
        dual_matrix(LinearModel(np.ones(5)), data)
    with pytest.raises(NotFittedError, match="this RankSVM is not fitted yet"):
        dual_matrix(RankSVM(), data)


def test_bounds_and_preferences_are_refused():
    data = small(0)
    with pytest.raises(ValueError, match="trained with bounds"):
        dual_matrix(fit(data, positive=True), data)
    listed = RankSVM().fit_pairs(
        data.X, [[0, 1], [2, 3]], y=data.y, qid=data.qid, across_queries=True
    )
    with pytest.raises(ValueError, match="2 listed preferences"):
        dual_matrix(listed, data)


def test_other_data_than_those_of_the_training():
    data = small(0)
    ranker = fit(data)
    n = data.n_rows
    with pytest.raises(ValueError, match=f"have {n - 1} rows, the model was trained on {n}"):
        dual_matrix(ranker, data.X[1:], data.y[1:], data.qid[1:])
    with pytest.raises(ValueError, match="have 1 queries, the model was trained on 12"):
        dual_matrix(ranker, data.X, data.y)
    with pytest.raises(ValueError, match=r"have \d+ pairs, the model was trained on \d+"):
        dual_matrix(ranker, data.X, np.roll(data.y, 1) * (np.arange(n) % 2), data.qid)
    with pytest.raises(ValueError, match="X has 4 features, the model 5"):
        dual_matrix(ranker, data.X[:, :4], data.y, data.qid)
    with pytest.raises(ValueError, match="brings its own y"):
        dual_matrix(ranker, data, data.y)


def test_factors_that_are_not_there_or_do_not_fit():
    data = small(0)
    model, _, _ = factorized(data, 2)
    with pytest.raises(ValueError, match="keep_factors=True"):
        dual_matrix(model.model_, data)
    model.factors_ = model.factors_[1:]
    with pytest.raises(ValueError, match=rf"shape \({data.n_rows - 1}, 2\), but X has"):
        dual_matrix(model, data)


@pytest.mark.parametrize("tol", [0.0, -1.0, float("nan"), "1"])
def test_a_tolerance_that_is_none(tol):
    data = small(0)
    with pytest.raises(ValueError, match="tol must be a number > 0"):
        dual_matrix(fit(data), data, tol=tol)


def test_thresholding_is_of_regularized_models():
    data = small(0)
    with pytest.raises(ValueError, match="thresholded=True is of RegularizedRankSVM"):
        dual_matrix(fit(data), data, thresholded=True)
