"""Dual variables as matrices, by listed pairs and a generic solver; their ranks and supports."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.base import clone

from dual_values import by_pair, dual_value, fit, support_of
from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import (
    DualMatrix,
    LinearModel,
    RankProfile,
    RankProfileDisplay,
    dual_matrix,
    make_ranking,
    rank_profile,
)
from linrank import support_distribution as distribution
from linrank.data.dataset import Dataset
from linrank.duals import analysis
from linrank.duals import entries as band
from linrank.duals.entries import Cells, hinge_entries
from linrank.pairs import pruned
from linrank.ranksvm.train import Problem
from papers import (
    DominationRanker,
    FactorizedRankSVM,
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SGDRanker,
)
from small_data import small, weighted
from strategies import scored_queries

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


def of_matrix(A: np.ndarray) -> DualMatrix:
    """The dual matrix of one query of two levels whose block is A (rows above × rows below)."""
    m, n = A.shape
    y = np.repeat([1, 0], [m, n])
    data = Dataset.of(np.arange(m + n, dtype=np.float64)[:, None], y)

    def entries(cells: Cells) -> np.ndarray:
        return A[cells.top[:, None], cells.bottom - m]

    return DualMatrix(Problem.of(data, 1.0, loss="hinge"), np.zeros(1), entries)


def with_spectrum(singular, m=6, n=8):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (m, n))
    return U[:, : len(singular)] * singular @ V[:, : len(singular)].T


def test_known_spectra():
    # Energies 16, 4, 1, 1: of 22 in all.
    dual = of_matrix(with_spectrum([4.0, 2.0, 1.0, 1.0]))
    energy = (0.5, 16 / 22, 0.74, 20 / 22, 0.95, 0.96, 1.0)
    profile = rank_profile(dual, energy=energy)
    assert profile.dimensions.tolist() == [[1, 1, 2, 2, 3, 4, 4]]
    assert (profile.ranks, profile.possible, profile.n_rows) == ([4], [6], [14])
    np.testing.assert_allclose(profile.ratios()[0], np.array([1, 1, 2, 2, 3, 4, 4]) / 14)
    np.testing.assert_allclose(profile.ratios("possible")[0], np.array([1, 1, 2, 2, 3, 4, 4]) / 6)
    # Values below the tolerance are zeros.
    dual = of_matrix(with_spectrum([1.0, 1e-3, 1e-7]))
    assert (dual.block().rank(), dual.block().rank(1e-8)) == (2, 3)
    assert rank_profile(dual).dimensions.tolist() == [[1, 2]]
    assert rank_profile(dual, tol=1e-8).dimensions.tolist() == [[1, 3]]
    assert rank_profile(dual, tol=0.1, energy=1.0).ranks.tolist() == [1]


def test_rank_one_and_zero():
    assert rank_profile(of_matrix(np.outer([1, 2, 3], [1, 0, 2, 5]))).dimensions.tolist() == [
        [1, 1]
    ]
    nothing = rank_profile(of_matrix(np.zeros((3, 4))), baseline="shuffled")
    assert nothing.dimensions.tolist() == nothing.baseline.dimensions.tolist() == [[0, 0]]
    assert nothing.distribution()[:, 0].tolist() == [1, 1]


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8))
def test_dimensions_by_their_definition(seed, m, n):
    A = np.random.default_rng(seed).uniform(0, 1, (m, n))
    shares = (0.3, 0.9, 0.99)
    found = rank_profile(of_matrix(A), energy=shares, tol=0.0).dimensions[0]
    square = np.linalg.svd(A, compute_uv=False) ** 2
    for share, k in zip(shares, found, strict=True):
        assert square[:k].sum() >= share * square.sum() * (1 - 1e-12)
        assert square[: k - 1].sum() < share * square.sum()


def test_of_three_levels_the_symmetric_rank_is_that_of_the_square():
    data = small(3, n_levels=3)
    dual = dual_matrix(RankSVM(0.3, loss="hinge").fit(data.X, data.y, qid=data.qid), data)
    profile = rank_profile(dual, symmetric=True)
    for rank, possible, query in zip(
        profile.ranks, profile.possible, profile.query_ids, strict=True
    ):
        square = dual.full(query)
        largest = np.linalg.norm(square + square.T, 2)
        assert rank == np.linalg.matrix_rank(square + square.T, tol=1e-6 * largest)
        assert rank <= possible <= len(square)


def test_shuffling_keeps_values_and_pairs():
    """A matrix of ones stays what it is, and a rank-one matrix of many values does not."""
    rng = np.random.default_rng(0)
    ones = rank_profile(of_matrix(np.ones((5, 7))), baseline="shuffled")
    assert ones.baseline.dimensions.tolist() == ones.dimensions.tolist() == [[1, 1]]
    product = of_matrix(np.outer(rng.uniform(0, 1, 5), rng.uniform(0, 1, 7)))
    profile = rank_profile(product, baseline="shuffled", random_state=1)
    assert (profile.ranks, profile.baseline.ranks) == ([1], [5])
    again = rank_profile(product, baseline="shuffled", random_state=1).baseline
    np.testing.assert_array_equal(again.dimensions, profile.baseline.dimensions)


def test_shuffling_of_a_staircase_stays_on_its_pairs():
    data = small(1, n_levels=4)
    model = FactorizedRankSVM(1, 0.1, keep_factors=True, random_state=0)
    model.fit(data.X, data.y, qid=data.qid)
    from linrank.duals.analysis import _shuffle

    for block in dual_matrix(model, data):
        other = _shuffle(block, 3)
        assert not other.values[~block.is_pair].any()
        np.testing.assert_array_equal(
            np.sort(other.values[block.is_pair]), np.sort(block.values[block.is_pair])
        )


def profile_of(dimensions, n_rows, possible, **options) -> RankProfile:
    dimensions, n = np.atleast_2d(dimensions), np.asarray(n_rows)
    energy = tuple(np.linspace(0.9, 1.0, dimensions.shape[1]).tolist())
    ids = list(range(len(n)))
    return RankProfile(
        ids, n, n * 3, np.asarray(possible), dimensions[:, -1], energy, dimensions, 1e-6, **options
    )


def test_distribution_by_tenths():
    profile = profile_of([[1, 3], [1, 10], [2, 4], [3, 9]], [10, 10, 10, 10], [5, 10, 4, 9])
    assert profile.distribution().tolist() == [
        [2, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 0, 0, 1, 1],
    ]
    assert profile.distribution("possible").tolist() == [
        [1, 1, 0, 1, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0, 0, 3],
    ]
    with pytest.raises(ValueError, match="relative_to must be 'size' or 'possible', got 'rows'"):
        profile.distribution("rows")
    for n in (10, 20, 70, 130):  # k/10 is in the range that ends with it, whatever its rounding
        profile = profile_of(np.arange(n // 10, n + 1, n // 10)[:, None], [n] * 10, [n] * 10)
        assert profile.distribution().tolist() == [[1] * 10]


def test_words_and_columns():
    null = profile_of([[2, 4], [3, 5]], [10, 20], [4, 5])
    profile = profile_of([[1, 4], [2, 5]], [10, 20], [4, 5], baseline=null)
    assert profile.to_frame().iloc[1].to_dict() == {
        **{"query": 1, "rows": 20, "pairs": 60, "possible": 5, "rank": 5, "k_90%": 2, "k_100%": 5},
        **{"k_90% shuffled": 3, "k_100% shuffled": 5},
    }
    words = repr(profile)
    assert "2 queries" in words
    assert "90% of the energy in 1.5 dimensions, 10% of the size, 32% of the largest" in words
    assert "shuffled 2.5" in words


def test_from_a_model_or_from_its_dual_matrix():
    data = small(5, n_levels=3)
    ranker = RankSVM(0.3, loss="squared_hinge").fit(data.X, data.y, qid=data.qid)
    profile = rank_profile(ranker, data.X, data.y, data.qid)
    same = rank_profile(dual_matrix(ranker, data))
    np.testing.assert_array_equal(profile.dimensions, same.dimensions)
    np.testing.assert_array_equal(profile.ranks, profile.dimensions[:, 1])
    listed = ExplicitPairs.of(data)
    counts = [(data.qid[listed.winner] == query).sum() for query in profile.query_ids]
    assert profile.n_pairs.tolist() == counts
    assert (profile.ranks <= profile.possible).all()


# ---- the picture --------------------------------------------------------------------------------


@pytest.mark.parametrize("relative_to", ["size", "possible"])
def test_the_picture_shows_the_distribution(relative_to):
    null = profile_of([[2, 4], [3, 5]], [10, 20], [4, 5])
    profile = profile_of([[1, 4], [2, 5]], [10, 20], [4, 5], baseline=null)
    axes = RankProfileDisplay(profile, relative_to).plot(Figure().subplots(1, 2)).axes_
    for k, ax in enumerate(axes):
        heights = [bar.get_height() for bar in ax.patches]
        assert heights == profile.distribution(relative_to)[k].tolist()
        shuffled, _median = ax.get_lines()
        assert shuffled.get_ydata().tolist() == null.distribution(relative_to)[k].tolist()
    assert axes[0].get_title().startswith("90% of the energy: median")
    assert len(RankProfileDisplay(null, relative_to).to_figure().axes) == 2


# ---- α by closeness of pairs --------------------------------------------------------------------


def ranks(labels: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """Dense ranks of the labels inside each query, by the definition."""
    return np.array(
        [len({b for b, p in zip(labels, qid, strict=True) if p == q and b < a})
         for a, q in zip(labels, qid, strict=True)]
    )  # fmt: skip


@given(case=scored_queries(max_rows=20))
def test_it_is_the_slope_of_every_pair_by_order_difference(case):
    listed = case.pairs()
    assume(listed)
    found = support_of(case.scores, case.labels, case.qid, C=0.7)
    rank = ranks(case.labels, case.qid)
    i, j = np.array(listed).T
    slack = np.maximum(0.0, (1.0 - case.scores[i]) + case.scores[j])
    of_pair = {(a, b): 1.4 * x for a, b, x in zip(i, j, slack, strict=True)}
    assert sorted(map(tuple, found.rows.tolist())) == sorted(of_pair)  # each pair once
    expected = [of_pair[tuple(pair)] for pair in found.rows.tolist()]
    np.testing.assert_allclose(found.alpha, expected, rtol=1e-12, atol=1e-12)
    difference = rank[found.rows[:, 0]] - rank[found.rows[:, 1]]
    assert (np.diff(difference) >= 0).all()  # from closest to farthest
    for r, n, total in zip(found.difference, found.n_pairs, found.alpha_sum, strict=True):
        assert n == (difference == r).sum()
        assert total == pytest.approx(found.alpha[difference == r].sum())
    assert found.n_closest == (difference == 1).sum()
    assert found.n_pairs.sum() == len(listed)


def test_of_very_many_pairs_a_sample_is_looked_at(monkeypatch):
    scores, labels = np.random.default_rng(0).normal(size=300), np.arange(300) % 3
    whole = support_of(scores, labels)
    assert whole.n_total == len(whole.alpha) == 30_000
    monkeypatch.setattr(analysis, "_LOOKED_AT", 29_999)
    monkeypatch.setattr(analysis, "_SAMPLE", 3000)
    some = support_of(scores, labels)
    assert some.n_total == 30_000
    assert some.n_pairs.sum() == len({tuple(pair) for pair in some.rows.tolist()}) == 3000
    alpha = dict(zip(map(tuple, whole.rows.tolist()), whole.alpha.tolist(), strict=True))
    assert [alpha[i, j] for i, j in some.rows.tolist()] == some.alpha.tolist()
    assert some.support_share == pytest.approx(whole.support_share, abs=0.05)
    assert "of 3,000 of 30,000 pairs" in repr(some)


@pytest.mark.parametrize("is_adjacent", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_linear_model_has_the_duals_of_its_matrix(loss, is_adjacent):
    data = weighted(small(2, n_levels=4), 2)
    weight = {q: 0.5 + k % 3 for k, q in enumerate(np.unique(data.qid).tolist())}
    ranker = fit(data, 0.3, loss, weight, pairs="adjacent" if is_adjacent else "all")
    found = distribution(ranker, data, query_weight=weight)
    dual = dual_matrix(ranker, data, query_weight=weight)
    listed = ExplicitPairs.of(data, query_weight=weight, adjacent=is_adjacent)
    assert len(found.alpha) == len(listed.winner) == ranker.n_pairs_
    own, theirs = np.lexsort(found.rows.T), np.lexsort((listed.winner, listed.loser))
    expected = by_pair(dual, listed, data)
    np.testing.assert_array_equal(found.rows[own, 0], listed.winner[theirs])
    np.testing.assert_allclose(found.alpha[own], expected[theirs], atol=1e-9)
    if is_adjacent:
        np.testing.assert_array_equal(found.difference, [1])
    alone = distribution(dual)  # the matrix knows its data
    np.testing.assert_allclose(alone.alpha, found.alpha, atol=1e-9)


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"pairs": "pruned", "random_state": 3}])
def test_a_kernel_ranker_gives_a_near_optimal_dual_point(options):
    """α of the smoothed hinge is feasible, and its dual value near the optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.round(X[:, 0] ** 2 + X[:, 1], 1)
    ranker = KernelRankSVM(C=10.0, **options).fit(X, y)
    found = distribution(ranker, X, y)
    assert int(found.n_pairs.sum()) == ranker.n_pairs_
    beta = np.zeros(30)  # at the optimum A'α
    np.add.at(beta, found.rows[:, 0], found.alpha)
    np.subtract.at(beta, found.rows[:, 1], found.alpha)
    kernel = np.exp(-ranker.gamma_ * np.square(X[:, np.newaxis] - X).sum(axis=2))
    scores = ranker.predict(X)
    np.testing.assert_allclose(kernel @ beta, scores, atol=0.05 * np.abs(scores).max())
    if "loss" in options:
        assert (found.alpha <= 10.0).all()
        dual = found.alpha.sum() - 0.5 * beta @ kernel @ beta
        assert -1e-9 <= ranker.objective_ - dual <= 2e-3 * ranker.objective_
        assert 0 < found.n_support.sum() < found.n_pairs.sum()


def test_listed_pairs_are_found_beside_swept_ones():
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 12, 40).astype(float), rng.normal(size=40)
    found = support_of(scores, y, C=2.0, pairs="pruned", seed=4)
    expected = pruned(y, seed=4)
    assert sorted(map(tuple, found.rows.tolist())) == sorted(map(tuple, expected.pairs.tolist()))
    slack = np.maximum(0.0, 1.0 - scores[found.rows[:, 0]] + scores[found.rows[:, 1]])
    np.testing.assert_allclose(found.alpha, 4.0 * slack)
    assert found.n_closest == len(expected) // 2


def test_more_pairs_than_are_kept_are_summed(monkeypatch):
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 30, 200).astype(float), rng.normal(size=200)
    whole = support_of(scores, y)
    monkeypatch.setattr(analysis, "_LISTED", 1000)
    summed = support_of(scores, y)
    assert (summed.rows, summed.alpha) == (None, None)
    for name in ("difference", "n_pairs", "n_support", "alpha_sum"):
        np.testing.assert_allclose(getattr(summed, name), getattr(whole, name))


def test_shares_and_columns():
    # Two pairs of difference 1 with ξ = 1 and 0, one of difference 2 with ξ = 0.
    found = support_of([0.0, 0.0, 1.0], [0, 1, 2])
    assert found.up_to(1) == {"pairs": 2 / 3, "support": 1.0, "alpha": 1.0}
    assert found.support_share == 1 / 3
    table = found.to_frame()
    np.testing.assert_array_equal(table["difference"], [1, 2])
    np.testing.assert_array_equal(table["support_share"], [0.5, 0.0])
    np.testing.assert_array_equal(table["alpha_mean"], [1.0, 0.0])
    assert "33.3% have α > 0; the 2 1-closest ones are 100.0% of these" in repr(found)


# ---- what is refused ----------------------------------------------------------------------------

PROFILE = [
    *(
        ({"energy": e}, "energy must be shares above 0 and up to 1")
        for e in (0.0, (0.9, 1.5), ("a",))
    ),
    ({"energy": ()}, "energy is empty"),
    ({"tol": 1.0}, r"tol must be a number from 0 to below 1, got 1\.0"),
    ({"baseline": "random"}, "baseline must be None or 'shuffled', got 'random'"),
    ({"y": [1], "thresholded": True}, "knows its data; leave y, thresholded out"),
    ({"model": RankSVM()}, "needs its training data"),
]
KERNEL = KernelRankSVM(loss="hinge").fit(X, Y, qid=QID).model_
KERNEL.training.pop("epsilon")
SMOOTH, CLOSEST = fit(DATA, 1.0, "squared_hinge"), fit(DATA, 1.0, pairs="closest", n_closest=3)
OTHERS = [
    *(
        (partial(rank_profile, **{"model": of_matrix(np.ones((2, 2))), **own}), told)
        for own, told in PROFILE
    ),
    (lambda: distribution(dual_matrix(FACTORS, DATA)), "model are no function of single pairs"),
    (partial(distribution, object(), X, Y, QID), "takes a fitted RankSVM or KernelRankSVM"),
    (partial(distribution, RankSVM()), "give the training data beside a RankSVM"),
    (partial(distribution, SMOOTH, X[:-1], Y[:-1], QID[:-1]), f"trained on {N}"),
    (partial(distribution, SMOOTH, DATA, tol=1.0), r"from 0 to below 1, got 1\.0"),
    (partial(distribution, CLOSEST, DATA), "pairs='closest' is not known for a linear model"),
    (partial(support_of, [0.0, 1.0], [0, 1], n_preferences=7), "7 listed preferences"),
    (partial(support_of, [0.0, 1.0], [0, 1], loss="log"), "takes a fitted RankSVM"),
    (partial(distribution, KERNEL, DATA), "needs the width within which its training smoothed it"),
]


@pytest.mark.parametrize(("call", "message"), OTHERS)
def test_what_has_no_profile_or_support_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
