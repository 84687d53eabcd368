"""train_regularized against explicit pairs, generic solvers and its own limits."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from explicit_pairs import ExplicitPairs, box_quadratic_program
from hypothesis_profiles import examples
from linrank.data.dataset import Dataset
from linrank.errors import NoPairsError
from linrank.lowrank import proximal, regularized
from linrank.lowrank.regularized import train_regularized
from linrank.ranksvm.train import train
from plain_regularized import PlainRegularized
from small_data import small
from strategies import datasets

CASES = [(1.0, 0.1, 1.0), (0.3, 1.0, 0.5), (0.5, 5.0, 3.0), (0.05, 0.02, 0.1)]


def alpha_of(result, pairs):
    """The dual variables in the order of the explicit pairs; entries that are no pairs are 0."""
    A = np.zeros((result.duals.pairs.queries.n_rows,) * 2)
    for k in range(result.duals.n_blocks):
        A[np.ix_(result.duals.rows(k), result.duals.columns(k))] = result.duals.block(k)
    alpha = A[pairs.winner, pairs.loser].copy()
    A[pairs.winner, pairs.loser] = 0.0
    assert not A.any()
    return alpha


def check_consistent(result, plain):
    """What the result says of its α is what the definition says."""
    alpha = alpha_of(result, plain.pairs)
    assert (alpha >= 0.0).all()
    assert (alpha <= plain.upper * (1 + 1e-12)).all()
    assert_allclose(result.w, plain.pairs.difference.T @ alpha, atol=1e-9)
    assert_allclose(result.value, plain.value(alpha), rtol=1e-9, atol=1e-9)
    values = np.linalg.svd(plain.matrix(alpha), compute_uv=False)
    threshold = plain.gamma / (2.0 * plain.lam)
    if np.abs(values - threshold).min(initial=1.0) > 1e-9:
        assert result.ranks.sum() == np.count_nonzero(values > threshold)
    return alpha


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "lam", "C"), CASES)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_optimum_by_a_generic_solver(gamma, lam, C, is_weighted):
    """L-BFGS-B on the pairs, its result bracketed by the Frank-Wolfe gap."""
    data = small(2, n_levels=3).select(slice(0, 30))
    data = replace(data, weight=np.random.default_rng(0).integers(1, 4, 30) / 2)
    data = data if is_weighted else replace(data, weight=None)
    plain = PlainRegularized(ExplicitPairs.of(data), data.n_rows, gamma, lam, C)
    best, lower = plain.minimum()
    result = train_regularized(data, gamma=gamma, lam=lam, C=C, tol=1e-7)
    alpha = check_consistent(result, plain)
    assert result.converged
    assert result.value <= best + 1e-6 * abs(best)
    assert result.value - result.gap <= best  # a lower bound of the minimum
    assert lower <= result.value + 1e-9 * abs(best)  # the other certificate agrees
    assert best - lower <= 1e-4 * abs(best)
    assert plain.value(alpha) - plain.gap(alpha) <= best


@given(
    datasets(max_rows=14, weights=True),
    st.sampled_from([0.0, 0.1, 1.0, 50.0]),
    st.sampled_from([0.05, 1.0, 20.0]),
    st.sampled_from([0.1, 2.0]),
)
@examples(40)
def test_certificate_holds_on_any_data(data, gamma, lam, C):
    """Sparse, dense, float32, tied rows, one-level queries: within the gap of the lower bound."""
    try:
        result = train_regularized(data, gamma=gamma, lam=lam, C=C, tol=1e-5, max_iter=3000)
    except NoPairsError:
        assume(False)
    plain = PlainRegularized(ExplicitPairs.of(data), data.n_rows, gamma, lam, C)
    alpha = check_consistent(result, plain)
    assert result.converged
    assert 0.0 <= result.gap <= 1.0001e-5 * abs(result.value)
    scale = 1e-9 * max(1.0, abs(result.value))
    rng = np.random.default_rng(0)
    for share in (0.0, 0.5, 1.0):  # no feasible point is below the bound
        other = share * alpha + (1.0 - share) * rng.uniform(0.0, 1.0, len(alpha)) * plain.upper
        assert plain.value(other) >= result.value - result.gap - scale


def test_gap_bounds_the_distance_at_every_iterate():
    data = small(3, n_levels=4)
    best = train_regularized(data, gamma=0.5, lam=2.0, C=2.0, tol=1e-8)
    history = train_regularized(data, gamma=0.5, lam=2.0, C=2.0, tol=1e-5).history
    for objective, gap, bound in zip(
        history["objective"], history["gap"], history["lower_bound"], strict=True
    ):
        assert bound <= best.value + 1e-9 * abs(best.value)
        assert gap >= objective - best.value - 1e-9 * abs(best.value)
    assert history["objective"][0] == 0.0  # α = 0
    assert_allclose(history["gap"][0], 2.0 * data.queries.n_pairs)  # -Σ Cω is a bound
    assert_allclose(history["kkt_residual"][0], np.sqrt(data.queries.n_pairs))  # by min(1, C)
    assert history["lower_bound"] == sorted(history["lower_bound"])


@pytest.mark.parametrize("C", [1e-8, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("lam", [1e-6, 1e5])
@pytest.mark.parametrize("size", [1e-6, 1e3])
def test_no_bound_is_above_the_objective_at_any_scale(C, lam, size):
    """Rounding of the prices, which λ multiplies, must not lift the bound over a feasible Ψ."""
    data = small(2, n_levels=3).select(slice(0, 30))
    data = Dataset.of(size * data.X, data.y, qid=data.qid)
    runs = [
        train_regularized(data, gamma=0.5, lam=lam, C=C, tol=tol, max_iter=40)
        for tol in (1e-3, 1e-9)
    ]
    plain = PlainRegularized(ExplicitPairs.of(data), data.n_rows, 0.5, lam, C)
    for run in runs:
        assert_allclose(run.value, plain.value(alpha_of(run, plain.pairs)), rtol=1e-7)
    least = min(run.value for run in runs)
    highest = max(max(run.history["lower_bound"]) for run in runs)
    assert highest <= least + 1e-9 * abs(least)


# ---- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("gamma", [0.0, 1e-9])
def test_without_the_nuclear_norm_it_is_the_hinge_ranksvm(C, gamma):
    data = small(4, n_levels=3)
    result = train_regularized(data, gamma=gamma, lam=0.2, C=C, tol=1e-6)
    hinge = train(data, C=C, loss="hinge", solver="bundle", tol=1e-7)
    assert_allclose(-result.value, hinge.value, rtol=2e-6)
    assert_allclose(result.w, hinge.w, atol=0.02 * np.abs(hinge.w).max())


@pytest.mark.parametrize("lam", [0.05, 3.0])
def test_a_large_gamma_leaves_no_low_rank_part(lam):
    """Then A = 0, and the problem is the dual of ``M + 2λI`` on the box."""
    data = small(5, n_levels=3).select(slice(0, 40))
    result = train_regularized(data, gamma=1e6, lam=lam, tol=1e-9)
    pairs = ExplicitPairs.of(data)
    # λ‖α‖² is ½‖√(2λ) α‖²: a feature of its own for each pair.
    own = np.sqrt(2.0 * lam) * np.eye(len(pairs.weight))
    _, lower = box_quadratic_program(np.hstack([pairs.difference, own]), pairs.weight)
    assert_allclose(-result.value, lower, rtol=1e-8)
    assert not result.ranks.any()


# ---- what does not matter, and what does --------------------------------------------------------


def test_a_weight_of_two_is_not_the_row_twice():
    """Two rows of α share what one could have; the matrix has smaller singular values then."""
    data = small(7, n_levels=2)
    rows = np.repeat(np.arange(data.n_rows), 2)
    options = {"gamma": 1.0, "lam": 0.5, "tol": 1e-7}
    heavy = train_regularized(replace(data, weight=np.full(data.n_rows, 2.0)), **options)
    copies = train_regularized(
        Dataset.of(data.X[rows], data.y[rows], qid=data.qid[rows]), **options
    )
    assert copies.value + copies.gap < heavy.value - heavy.gap


def test_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(regularized, "_WORTHWHILE", 0.0)  # threads even for small blocks
    data = small(11, n_levels=3)
    one, many = (train_regularized(data, gamma=0.2, lam=0.5, n_jobs=n) for n in (1, 3))
    assert_array_equal(one.w, many.w)
    assert_array_equal(one.duals.values, many.duals.values)


def test_more_features_than_a_matrix_is_worth(monkeypatch):
    """Sparse text: conjugate gradients with a diagonal instead of a factor."""
    data = small(12)
    options = {"gamma": 0.3, "lam": 0.3, "tol": 1e-7}
    by_matrix = train_regularized(data, **options)
    monkeypatch.setattr(proximal, "_MATRIX", 0)
    assert_allclose(train_regularized(data, **options).value, by_matrix.value, rtol=2e-7)


# ---- stopping, errors ---------------------------------------------------------------------------


def test_stops_after_max_iter_with_the_iterate_that_is_kept():
    data = small(13, n_levels=4)
    options = {"gamma": 1.0, "lam": 10.0, "C": 10.0}
    best = train_regularized(data, tol=1e-7, **options).value
    is_last = set()
    for n in range(2, 12):
        result = train_regularized(data, max_iter=n, tol=1e-12, **options)
        objectives = result.history["objective"]
        assert (result.n_iter, result.stopped, result.converged) == (n, "max_iter", False)
        assert "raise max_iter or tol" in result.message
        assert result.gap >= result.value - best > 0.0
        assert result.kept == int(np.argmin(objectives))
        assert result.kkt_residual == result.history["kkt_residual"][result.kept]
        assert result.value <= objectives[result.kept] + 1e-9 * abs(result.value)
        is_last.add(result.kept == n)
    assert is_last == {True, False}  # the objective is not monotone: both happen


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"gamma": -1.0}, ValueError, "gamma must be a finite number >= 0, got -1.0"),
        ({"gamma": np.nan}, ValueError, "gamma must be a finite number >= 0, got nan"),
        ({"lam": 0.0}, ValueError, "lam must be a finite number > 0, got 0.0"),
        ({"lam": "x"}, ValueError, "lam must be a finite number > 0, got 'x'"),
        ({"memory_limit": 0}, ValueError, "memory_limit must be .* got 0; it is a number of bytes"),
        ({"memory_limit": 1000}, MemoryError, r"1.0 kB, is too small: .* pairs .* or use Factor"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        train_regularized(small(), **options)


def test_a_decomposition_that_fails_names_its_query(monkeypatch):
    def fail(M, threshold):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(regularized, "leading", fail)
    data = Dataset.of([[0.0], [1.0], [2.0]], [0, 1, 1], qid=["a", "a", "a"])
    with pytest.raises(np.linalg.LinAlgError, match=r"2x1 block of query 'a' do not converge"):
        train_regularized(data, gamma=1e-3)


def test_features_beyond_double_precision():
    data = Dataset.of([[0.0], [1e200], [2e200]], [0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match=r"divide|overflow"):
            train_regularized(data)
