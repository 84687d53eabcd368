"""Dual variables as matrices: against listed pairs, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from dual_values import by_pair, dual_value, fit
from explicit_pairs import ExplicitPairs
from linrank import LinearModel, dual_matrix
from linrank.data.dataset import Dataset
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


def test_blocks_lie_as_the_training_has_kept_them():
    data = small(3, n_levels=4).select(np.random.default_rng(0).permutation(60))
    ranker = RegularizedRankSVM(0.5, keep_duals=True).fit(data.X, data.y, qid=data.qid)
    kept = ranker.duals_
    dual = dual_matrix(ranker, data.X, data.y, data.qid)
    assert len(dual) == kept.n_blocks > 1
    for k, block in enumerate(dual):
        np.testing.assert_array_equal(block.rows, kept.rows(k))
        np.testing.assert_array_equal(block.columns, kept.columns(k))
        np.testing.assert_array_equal(block.values, kept.block(k))
        below = data.y[block.rows][:, None] > data.y[block.columns]
        np.testing.assert_array_equal(block.is_pair, below)
    np.testing.assert_allclose(dual.beta, ranker.coef_, atol=1e-9)


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

DATA, Y = small(0), small(0).y
X, QID, N = DATA.X, DATA.qid, DATA.n_rows
LISTED = RankSVM().fit_pairs(X, [[0, 1], [2, 3]], y=Y, qid=QID, across_queries=True)
FITTED, FACTORS, KEPT = fit(DATA), factorized(DATA, 2)[0], regularized(DATA)[0]
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
