"""Dual variables as matrices: against listed pairs and a generic solver, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from dual_values import by_pair, dual_value, fit
from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import LinearModel, dual_matrix, make_ranking
from linrank.data.dataset import Dataset
from linrank.duals import entries as band
from linrank.duals.entries import hinge_entries
from linrank.ranksvm.train import Problem
from papers import (
    DominationRanker,
    FactorizedRankSVM,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SGDRanker,
)
from small_data import small, weighted

# ---- the squared hinge --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_weighted", [False, True])
def test_squared_hinge_is_the_slope_at_the_margins(seed, is_weighted):
    data = small(seed, n_levels=4)
    data = weighted(data, seed) if is_weighted else data
    weight = {q: 0.5 + k % 3 for k, q in enumerate(np.unique(data.qid).tolist())}
    ranker = fit(data, 0.3, "squared_hinge", weight, tol=1e-12)
    dual = dual_matrix(ranker, data, query_weight=weight)
    listed = ExplicitPairs.of(data, query_weight=weight)
    alpha = by_pair(dual, listed, data)
    expected = 0.6 * listed.weight * np.maximum(0.0, listed.slacks(ranker.coef_))
    np.testing.assert_allclose(alpha, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dual.beta, ranker.coef_, atol=1e-5)  # w = X'A'α at the optimum
    np.testing.assert_allclose(dual.beta, listed.difference.T @ alpha, atol=1e-12)
    assert dual.value == pytest.approx(dual_value(alpha, listed, 0.3, "squared_hinge"), rel=1e-12)
    assert dual.primal == pytest.approx(listed.objective(ranker.coef_, 0.3, "squared_hinge"))
    assert 0.0 <= dual.gap <= 1e-9 * dual.primal
    rough = fit(data, 1.0, "squared_hinge", tol=0.5)  # whose gap is ½‖∇F‖²
    loose = dual_matrix(rough, data.X, data.y, data.qid, sample_weight=data.weight)
    gradient = rough.coef_ - loose.beta
    assert loose.gap == pytest.approx(0.5 * gradient @ gradient, rel=1e-8)
    assert loose.gap > 1e-9


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


def test_blocks_lie_as_the_training_has_kept_them():
    data = small(3, n_levels=4).select(np.random.default_rng(0).permutation(60))
    ids, weight = data.queries.ids, (data.qid != data.queries.ids[0]) * 1.0
    ranker = RegularizedRankSVM(0.5, keep_duals=True)
    ranker.fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    kept, own = ranker.duals_, {"qid": data.qid, "sample_weight": weight}
    dual, soft = (dual_matrix(ranker, data.X, data.y, thresholded=t, **own) for t in (False, True))
    found = [block for block in dual if block.query != ids[0]]
    assert not dual.full(ids[0]).any()  # all of its pairs have weight 0
    assert len(found) == kept.n_blocks > 1
    for k, block in enumerate(found):
        np.testing.assert_array_equal(block.rows, kept.rows(k))
        np.testing.assert_array_equal(block.columns, kept.columns(k))
        np.testing.assert_array_equal(block.values, kept.block(k))
        below = data.y[block.rows][:, None] > data.y[block.columns]
        np.testing.assert_array_equal(block.is_pair, below)
        low = np.maximum(block.singular_values - 0.5 / (2 * ranker.lam), 0.0)  # γ/2λ
        np.testing.assert_allclose(soft.block(block.query).singular_values, low, atol=1e-12)
        assert soft.block(block.query).rank() == (low > 0).sum()
    np.testing.assert_allclose(dual.beta, ranker.coef_, atol=1e-9)
    assert soft.value == dual.value  # it is that of α
    assert "regularized, thresholded" in repr(soft)


# ---- the matrix ---------------------------------------------------------------------------------


def test_blocks_and_squares_agree():
    data = small(7, n_levels=3)
    dual = dual_matrix(fit(data, 0.1), data.X, data.y, data.qid)
    blocks = list(dual)
    assert len(blocks) == len(dual) == len(dual.query_ids)
    assert [block.query for block in blocks] == dual.query_ids
    for block in blocks:
        singular, levels = block.singular_values, data.y[block.members]
        assert block.n_rows == len(levels)
        assert set(block.rows) == set(block.members[levels > levels.min()])
        assert set(block.columns) == set(block.members[levels < levels.max()])
        assert block.n_pairs == (levels[:, None] > levels).sum()
        square = block.full()
        whole = np.linalg.svd(square, compute_uv=False)
        np.testing.assert_allclose(whole[: len(singular)], singular, atol=1e-12)
        assert block.rank() == np.linalg.matrix_rank(square, tol=1e-6 * whole[0])
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


# ---- what is refused ----------------------------------------------------------------------------

DATA, Y = small(0), small(0).y
X, QID, N = DATA.X, DATA.qid, DATA.n_rows
LISTED = RankSVM().fit_pairs(X, [[0, 1], [2, 3]], y=Y, qid=QID, across_queries=True)
FITTED, FACTORS = fit(DATA), factorized(DATA, 2)[0]
KEPT = RegularizedRankSVM(0.5, keep_duals=True).fit(X, Y, qid=QID)
KEPT.model_.training["n_rows"] = KEPT.model_.training["n_pairs"] = None
SHORT = SimpleNamespace(model_=FACTORS.model_, factors_=FACTORS.factors_[1:])
OTHER_LABELS = np.roll(Y, 1) * (np.arange(N) % 2)
NO_DUALS = "takes a fitted RankSVM or RankSVMCV, a LinearModel"
REFUSED = [
    (SGDRanker(n_steps=10).fit(X, Y, qid=QID), (DATA,), {}, NO_DUALS),
    (DominationRanker().fit(X, Y, qid=QID), (DATA,), {}, NO_DUALS),
    (3, (DATA,), {}, "got int"),
    (LinearModel(np.ones(5)), (DATA,), {}, "does not say how"),
    (RankSVM(), (DATA,), {}, "this RankSVM is not fitted yet"),
    (fit(DATA, positive=True), (DATA,), {}, "trained with bounds"),
    (LISTED, (DATA,), {}, "2 listed preferences"),
    (FITTED, (X[1:], Y[1:], QID[1:]), {}, f"have {N - 1} rows, the model was trained on {N}"),
    (FITTED, (X, Y), {}, "have 1 queries, the model was trained on 12"),
    (FITTED, (X, OTHER_LABELS, QID), {}, r"have \d+ pairs, the model was trained on \d+"),
    (FITTED, (X[:, :4], Y, QID), {}, "X has 4 features, the model 5"),
    (FITTED, (DATA, Y), {}, "brings its own y"),
    (FITTED, (DATA,), {"thresholded": True}, "thresholded=True is of RegularizedRankSVM"),
    (FACTORS.model_, (DATA,), {}, "keep_factors=True"),
    (SHORT, (DATA,), {}, rf"shape \({N - 1}, 2\), but X has"),
    (KEPT.model_, (DATA,), {}, "keep_duals=True"),
    (KEPT, (DATA.select(slice(1, None)),), {}, rf"duals_ are of {N} rows, but X has"),
    (KEPT, (X, -Y, QID), {}, "duals_ are of other queries or labels"),
    (KEPT, (X, np.roll(Y, 1), QID), {}, "duals_ are of other queries or labels"),
    *(
        (FITTED, (DATA,), {"tol": tol}, "tol must be a finite number > 0")
        for tol in (0.0, -1.0, float("nan"), "1", float("inf"))
    ),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_has_no_duals_or_other_data_is_refused(case):
    model, given, options, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=message):  # NotFittedError is a ValueError
        dual_matrix(model, *given, **options)


@pytest.mark.parametrize("scale", ["none", "standard", "query"])
@pytest.mark.parametrize(
    "ranker",
    [
        FactorizedRankSVM(2, 10.0, keep_factors=True, random_state=0),
        RegularizedRankSVM(0.1, C=10.0, keep_duals=True),
    ],
)
def test_kept_duals_of_rows_in_another_order_are_refused(ranker, scale):
    data = small(4, n_levels=4)
    ranker = clone(ranker).set_params(scale=scale)
    ranker.fit(data.X, data.y, qid=data.qid)
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    np.testing.assert_allclose(
        dual.beta, ranker.model_.scaling.unfold(ranker.coef_), rtol=1e-7, atol=1e-9
    )
    told = "belong to the training data.* in the same order"
    for X, y, qid in (
        (data.X[::-1], data.y[::-1], data.qid[::-1]),
        (data.X[::-1], data.y, data.qid),
        (data.X, data.y.max() - data.y, data.qid),
    ):
        with pytest.raises(ValueError, match=told):
            dual_matrix(ranker, X, y, qid)


# ---- the hinge: against a generic solver of the dual over listed pairs --------------------------


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
