"""The regularized dual: rectangles of dual variables, the optimum, its limits, the estimator."""

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank import ConvergenceWarning, Dataset, evaluate, make_ranking
from linrank.lowrank import proximal, regularized
from linrank.lowrank.proximal import leading, svt
from linrank.lowrank.rectangles import Rectangles, check_memory
from linrank.lowrank.regularized import train_regularized
from linrank.pairs import Pairs, choose_pairs
from linrank.ranksvm.train import train
from papers import RegularizedRankSVM
from plain_regularized import PlainRegularized, plain_svt
from small_data import small
from strategies import datasets, scored_queries

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
    assume(ExplicitPairs.of(data).weight.any())
    result = train_regularized(data, gamma=gamma, lam=lam, C=C, tol=1e-5, max_iter=3000)
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


# ---- what does not matter, and what does --------------------------------------------------------


def test_neither_threads_nor_a_factor_change_the_optimum(monkeypatch):
    """Threads change no bit; sparse text has a diagonal instead of a factor."""
    data, options = small(11, n_levels=3), {"gamma": 0.2, "lam": 0.5, "tol": 1e-7}
    monkeypatch.setattr(regularized, "_WORTHWHILE", 0.0)  # threads even for small blocks
    one, many = (train_regularized(data, n_jobs=n, **options) for n in (1, 3))
    assert_array_equal(one.w, many.w)
    assert_array_equal(one.duals.values, many.duals.values)
    monkeypatch.setattr(proximal, "_MATRIX", 0)
    assert_allclose(train_regularized(data, **options).value, one.value, rtol=2e-7)


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


def test_a_decomposition_that_fails_names_its_query(monkeypatch):
    def fail(M, threshold):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(regularized, "leading", fail)
    data = Dataset.of([[0.0], [1.0], [2.0]], [0, 1, 1], qid=["a", "a", "a"])
    with pytest.raises(np.linalg.LinAlgError, match=r"2x1 block of query 'a' do not converge"):
        train_regularized(data, gamma=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_features_beyond_double_precision():
    data = Dataset.of([[0.0], [1e200], [2e200]], [0, 1, 2])
    with pytest.raises(ValueError, match=r"divide|overflow"):
        train_regularized(data)


# ---- rectangles --------------------------------------------------------------------------------


@given(scored_queries(max_rows=14), st.integers(0, 10**6))
@examples(60)
def test_sums_of_the_certificate(case, seed):
    """Over all entries, and over the pairs ``{(i, j): Cω}`` of queries that weigh something."""
    rng, queries = np.random.default_rng(seed), case.queries
    u = rng.integers(1, 4, queries.n_rows) / 2
    c = rng.integers(0, 3, queries.n_queries) / 2
    by_row = queries.scatter(np.repeat(c, np.diff(queries.offsets)))
    at = Rectangles(Pairs(queries, queries.gather(u), c), 0.7)
    assume(at.n_blocks > 0)
    upper = {(i, j): 0.7 * by_row[i] * u[i] * u[j] for i, j in case.pairs() if by_row[i] > 0}
    alpha, a, y = (rng.normal(size=at.n_entries) for _ in range(3))
    rho = rng.uniform(0.2, 3.0, at.n_blocks)
    found = np.array([np.asarray(s) for s in at.core.sums(case.z, alpha, a, y, rho, 1)])
    expected, n_pairs = np.zeros_like(found), 0
    for k in range(at.n_blocks):
        blocks = (at.block_of(values, k) for values in (alpha, a, y))
        places = [(i, j) for i in at.rows(k) for j in at.columns(k)]
        for place, x, b, d in zip(places, *(block.flat for block in blocks), strict=True):
            Z = rho[k] * (b - d)
            expected[1:4, k] += (x - b) ** 2, Z * (x - b), Z * Z
            if place in upper:
                i, j = place
                g = case.scores[i] - case.scores[j] - 1.0 + Z
                moved = x - min(max(x - g, 0.0), upper[place])
                expected[[0, 4, 5], k] += x, upper[place] * max(0.0, -g), moved**2
        bounds = [upper[place] for place in places if place in upper]
        n_pairs += len(bounds)
        assert_allclose(at.mean_bounds()[k], np.mean(bounds), rtol=1e-12)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert n_pairs == len(upper)


def test_memory_is_refused_before_it_is_taken():
    """Two hundred million rows in two levels would make 10¹⁶ pairs; only counts are looked at."""
    data = small()
    pairs = choose_pairs(data)
    n_bytes = 32 * Rectangles(pairs, 1.0).n_entries
    check_memory(pairs, n_bytes)
    check_memory(pairs, None)
    with pytest.raises(MemoryError, match=rf"{pairs.n_pairs:,} pairs .* FactorizedRankSVM"):
        check_memory(pairs, n_bytes - 1)
    rows = np.arange(600_000) % 2
    long = choose_pairs(Dataset.of(np.zeros((600_000, 1), dtype=np.float32), rows))
    with pytest.raises(MemoryError, match=r"2\.9 TB but .* available"):
        check_memory(long, None)
    with pytest.raises(MemoryError, match=r"1.0 kB, is too small: .* pairs .* or use Factor"):
        train_regularized(data, memory_limit=1000)


# ---- the estimator -----------------------------------------------------------------------------

DATA = make_ranking(n_queries=15, rows_per_query=(4, 9), n_features=6, n_levels=3, random_state=3)


def fit(gamma=1.0, lam=0.1, C=1.0, weight=None, **params):
    ranker = RegularizedRankSVM(gamma, lam, C, **params)
    return ranker.fit(DATA.X, DATA.y, qid=DATA.qid, sample_weight=weight)


def check_duals(ranker, data):
    """``coef_`` is ``Σ α_ij (x_i - x_j)``."""
    w = np.zeros(data.n_features)
    for k in range(ranker.duals_.n_blocks):
        block = ranker.duals_.block(k)
        w += block.sum(1) @ data.X[ranker.duals_.rows(k)]
        w -= block.sum(0) @ data.X[ranker.duals_.columns(k)]
    assert_allclose(ranker.coef_, w, atol=1e-6)


def test_attributes_belong_together():
    ranker = fit(keep_duals=True)
    assert ranker.duality_gap_ <= 1e-4 * abs(ranker.objective_)
    assert len(ranker.ranks_) == ranker.n_queries_ == 15
    told, ranks = ranker.model_.training, ranker.ranks_[DATA.queries.n_levels > 1]
    assert (told["mean_rank"], told["largest_rank"]) == (ranks.mean(), ranks.max())
    check_duals(ranker, DATA)
    ranker.set_params(keep_duals=False).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert not hasattr(ranker, "duals_")


def test_early_stopping_keeps_the_last_iterate_where_that_is_best():
    """Not the one of the least objective, which is what a fit without validation data keeps."""
    rows, other = small(5, n_levels=3), small(55, n_levels=3)
    stopping = {"early_stopping": True, "n_iter_no_change": 9, "keep_duals": True}
    ranker = RegularizedRankSVM(1.0, 10.0, 10.0, max_iter=4, tol=1e-12, **stopping)
    with pytest.warns(ConvergenceWarning):
        ranker.fit(rows.X, rows.y, qid=rows.qid, eval_set=(other.X, other.y), eval_qid=other.qid)
    assert ranker.best_iteration_ == 4 > np.argmin(ranker.history_["objective"])
    found = evaluate(other.y, ranker.predict(other.X), qid=other.qid, metrics=["ndcg@10"])
    assert_allclose(found["ndcg@10"], ranker.history_["val_ndcg@10"][4], rtol=1e-12)
    check_duals(ranker, rows)


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), deepcopy])
def test_kept_duals_can_be_copied(copied):
    ranker = fit(0.1, keep_duals=True, weight=np.linspace(0.0, 2.0, DATA.n_rows))
    check_duals(copied(ranker), DATA)
    check_duals(ranker, DATA)


@pytest.mark.parametrize(
    "params", [{"C": 5e-324}, {"C": 1e-300}, {"gamma": 1e300}, {"gamma": 1e300, "lam": 10.0}]
)
@pytest.mark.filterwarnings("error")
def test_the_ends_of_the_range(params):
    ranker = fit(**params)
    assert ranker.converged_
    assert not ranker.ranks_.any()
    if "C" not in params:  # no singular value reaches γ/2λ: λ‖α‖² is the penalty, whatever γ is
        assert_array_equal(ranker.coef_, fit(1e6, params.get("lam", 0.1)).coef_)


@pytest.mark.parametrize("params", [{"C": 1e300}, {"lam": 1e300}])
@pytest.mark.filterwarnings("error")
def test_numbers_out_of_range_are_told(params):
    with pytest.raises(ValueError, match=r"sum to .* use a smaller C or lam, or smaller weigh"):
        fit(**params)


# ---- singular value thresholding ----------------------------------------------------------------


def matrix(m, n, rank=None, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    rank = min(m, n) if rank is None else rank
    return scale * rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))


def check_thresholding(M, threshold):
    largest = np.linalg.norm(M, 2)
    found = svt(M, threshold)
    assert_allclose(found, plain_svt(M, threshold), rtol=0, atol=2e-10 * max(largest, 1e-300))
    values = np.linalg.svd(M, compute_uv=False)
    is_clear = np.abs(values - threshold).min() > 1e-9 * largest
    if is_clear:
        assert leading(M, threshold).rank == np.count_nonzero(values > threshold)


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from([0.0, 1e-9, 1e-4, 0.1, 0.5, 0.999, 1.0, 2.0]),
    st.sampled_from([1e-200, 1e-12, 1.0, 1e12, 1e200]),
    st.integers(0, 10**6),
)
@examples(150)
def test_thresholding_is_the_definition(m, n, rank, share, scale, seed):
    """Any shape, rank, threshold and scale, squares beyond the range of doubles included."""
    M = matrix(m, n, rank, scale, seed)
    check_thresholding(M, share * np.linalg.norm(M, 2))


@pytest.mark.parametrize("shape", [(20, 33), (36, 25)])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_large_blocks_compute_some_eigenvectors_only(shape, share, monkeypatch):
    monkeypatch.setattr(proximal, "_LARGE", 20)
    monkeypatch.setattr(np.linalg, "eigh", None)  # the way of small blocks would fail
    M = matrix(*shape) + 5.0 * matrix(*shape, rank=2, seed=1)
    check_thresholding(M, share * np.linalg.norm(M, 2))


def test_degenerate_blocks():
    assert_array_equal(svt(np.zeros((3, 5)), 0.5), np.zeros((3, 5)))
    assert_array_equal(svt(np.array([[2.0]]), 2.0), [[0.0]])  # at the threshold: nothing is above
    assert_allclose(svt(np.array([[-3.0]]), 2.0), [[-1.0]], rtol=1e-14)
    Q = np.linalg.qr(matrix(6, 6))[0]
    assert_allclose(svt(4.0 * Q, 1.0), 3.0 * Q, atol=1e-14)  # all singular values tie
    assert leading(Q, np.inf).rank == 0


def test_failed_eigenvectors_fall_back_on_the_decomposition_itself(monkeypatch):
    def fail(*args, **options):
        raise np.linalg.LinAlgError("no convergence")

    M = matrix(5, 8)
    expected = plain_svt(M, 1.0)
    monkeypatch.setattr(np.linalg, "eigh", fail)
    assert_allclose(svt(M, 1.0), expected, atol=1e-12)


def test_what_is_left_below_the_threshold_is_not_lost_to_rounding():
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (6, 9))
    M = (left * [1e8, 1e7, 1e-3, 1e-4]) @ right.T  # of the squares, doubles hold 16 digits
    found = leading(M, 1.0)
    assert (found.rank, found.n_others) == (2, 4)
    assert_allclose(found.rest(M), 1e-6 + 1e-8, rtol=1e-3)
    assert leading(M, 1e9).rest(M) == pytest.approx((M**2).sum())
