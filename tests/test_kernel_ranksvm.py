"""KernelRankSVM: its optimum by brute force, and the same problem in other words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernel_twin import KernelTwin, plain_kernel
from linrank.data.scaling import Scaling
from papers import KernelRankSVM
from small_data import small

DATA = small(3, 4, n_levels=4)
OTHER = small(4, 4, n_levels=4)
KERNELS = {
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "linear": {},
}
TIGHT = 1e-8  # a tolerance for comparisons


def fit(kernel="rbf", data=DATA, X=None, query_weight=None, **params):
    params = {"tol": TIGHT, "random_state": 0, "gamma": 0.3, **params}
    ranker = KernelRankSVM(kernel, **params)
    return ranker.fit(
        data.X if X is None else X,
        data.y,
        qid=data.qid,
        sample_weight=data.weight,
        query_weight=query_weight,
    )


def beta_of(ranker, n_rows):
    """β of all rows."""
    beta = np.zeros(n_rows)
    beta[ranker.support_] = ranker.dual_coef_
    return beta


def pairs_of(data):
    """All pairs (i above j), a row each."""
    return np.argwhere((data.qid[:, None] == data.qid) & (data.y[:, None] > data.y))


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_optimum_is_that_of_all_pairs(kernel, C, loss):
    tol = TIGHT if loss == "squared_hinge" else 1e-5
    if (kernel, C) == ("poly", 30.0):
        tol = max(tol, 1e-6)  # Q of 10³, and coefficients of as much: what rounding leaves
    ranker = fit(kernel, C=C, loss=loss, tol=tol, **{**KERNELS[kernel]})
    Q = plain_kernel(DATA.X, DATA.X, kernel, **KERNELS[kernel])
    twin = KernelTwin.of(DATA, Q)
    least, scores = twin.optimum(C, loss)
    assert ranker.converged_
    assert ranker.n_pairs_ == len(twin.pairs.winner)
    assert least * (1 - 1e-8) <= ranker.objective_ <= least * (1 + 2 * tol) + 1e-9
    beta, found = beta_of(ranker, DATA.n_rows), ranker.predict(DATA.X)
    assert_allclose(found, Q @ beta, rtol=1e-8, atol=1e-9)
    assert_allclose(twin.objective(found, beta, C, loss), ranker.objective_, rtol=1e-7)
    # ½‖w - w*‖² <= F - F*, and a score is w times a row of length √Q_ii.
    assert (np.abs(found - scores) <= np.sqrt(2 * ranker.duality_gap_ * np.diag(Q)) + 1e-4).all()
    assert_allclose(
        ranker.decision_function(OTHER.X),
        plain_kernel(OTHER.X, DATA.X, kernel, **KERNELS[kernel]) @ beta,
        atol=1e-8,
    )


def test_coefficients_at_the_optimum():
    """``β = 2C A'ξ``: none for rows without a violated pair, and a sum of 0 in every query."""
    ranker = fit(C=0.7)
    beta, scores = beta_of(ranker, DATA.n_rows), ranker.predict(DATA.X)
    expected = np.zeros(DATA.n_rows)
    for i, j in pairs_of(DATA):
        slack = max(0.0, 1.0 - scores[i] + scores[j])
        expected[i] += 2 * 0.7 * slack
        expected[j] -= 2 * 0.7 * slack
    assert_allclose(beta, expected, atol=1e-5)
    for query in np.unique(DATA.qid):
        assert abs(beta[DATA.qid == query].sum()) < 1e-9
    assert not beta[np.abs(expected) == 0.0].any()
    assert ranker.n_support_ == len(ranker.support_) == np.count_nonzero(beta) < DATA.n_rows
    assert_array_equal(ranker.support_vectors_, DATA.X[ranker.support_])


# ---- the same problem in other words ------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_by_name_by_matrix_and_by_function(kernel):
    params = KERNELS[kernel]

    def function(A, B):
        return plain_kernel(A, B, kernel, **params)

    named = fit(kernel, **params)
    given = fit("precomputed", X=function(DATA.X, DATA.X))
    called = fit(function)
    expected = named.predict(OTHER.X)
    assert_allclose(given.predict(function(OTHER.X, DATA.X)), expected, atol=1e-6)
    assert_allclose(called.predict(OTHER.X), expected, atol=1e-6)
    assert given.n_features_in_ == DATA.n_rows
    with pytest.raises(AttributeError, match="a precomputed kernel has no rows"):
        given.support_vectors_  # noqa: B018


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_listed_pairs_have_the_optimum_of_their_list(loss):
    rng = np.random.default_rng(1)
    pairs = rng.permuted(np.tile(np.arange(DATA.n_rows), (60, 1)), axis=1)[:, :2]
    omega = rng.uniform(0.0, 2.0, len(pairs))
    twin = KernelTwin.listed(plain_kernel(DATA.X, DATA.X, "rbf", gamma=0.3), pairs, omega)
    least, scores = twin.optimum(2.0, loss)
    ranker = KernelRankSVM(gamma=0.3, C=2.0, loss=loss, tol=1e-5, random_state=0)
    ranker.fit_pairs(DATA.X, pairs, pair_weight=omega)
    assert_allclose(ranker.objective_, least, rtol=1e-5)
    assert_allclose(ranker.predict(DATA.X), scores, atol=1e-2)


def test_scaling_is_part_of_the_model():
    factors = Scaling.fit("standard", DATA.rows).factors
    by_hand = fit(X=DATA.X * factors).predict(OTHER.X * factors)
    assert_allclose(fit(scale="standard").predict(OTHER.X), by_hand, atol=1e-6)
    ranker = fit(scale="query")
    scaled = Scaling("query").transform(OTHER.rows, OTHER.queries).to_user()
    rows = Scaling("query").transform(DATA.rows, DATA.queries).to_user()
    beta = beta_of(ranker, DATA.n_rows)
    expected = plain_kernel(scaled, rows, "rbf", gamma=0.3) @ beta
    assert_allclose(ranker.predict(OTHER.X, qid=OTHER.qid), expected, atol=1e-8)
    with pytest.raises(ValueError, match="needs qid"):
        ranker.predict(OTHER.X)
