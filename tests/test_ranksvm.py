"""Training: both solvers reach the optimum of the definition and certify it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from explicit_pairs import ExplicitPairs
from linrank import Dataset, NoPairsError, Preferences, make_ranking
from linrank.choices import LOSSES
from linrank.data.queries import Queries
from linrank.data.rows import Priced
from linrank.losses.base import Dual
from linrank.pairs import Pairs
from linrank.ranksvm import train as problem_module
from linrank.ranksvm.train import Problem, plan, sample_queries, train
from linrank.solvers.conjugate import Diagonal, Explicit, Lanczos, Plain, Sampled, by_cholesky
from linrank.solvers.newton import newton
from linrank.solvers.result import duality_gap, lower_bound
from real_data import mq2008
from small_data import small, weighted


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_the_gap_is_certified_at_every_iterate(solver):
    data = small(6)
    truth, _ = ExplicitPairs.of(data).optimum(1.0)
    history = train(data, solver=solver, tol=1e-10, max_iter=1000).history
    distance = np.array(history["objective"]) - truth
    assert (np.array(history["gap"]) >= distance - 1e-7 * truth).all()
    assert history["gap"][-1] <= 1e-6 * truth
    assert (np.diff(history["objective"]) <= 1e-12 * truth).all()
    assert len({len(column) for column in history.values()}) == 1


@pytest.mark.parametrize("preconditioner", ["explicit", "sampled", "diagonal", "plain"])
@pytest.mark.parametrize("n_levels", [3, None])
def test_every_preconditioner_leads_to_the_same_optimum(preconditioner, n_levels):
    data = make_ranking(150, (5, 60), 12, n_levels, random_state=8)
    problem = Problem(data.rows, Pairs(data.queries), 1.0, None, 2)
    start = np.zeros(12)
    chosen = {
        "explicit": lambda: Explicit(patience=2),
        "sampled": lambda: Sampled(lambda m: problem.sample(m).objective(), 200, start, n_limit=4),
        "diagonal": Diagonal,
        "plain": Plain,
    }[preconditioner]()
    result = newton(problem.objective(), start, preconditioner=chosen, tol=1e-9)
    assert result.converged
    truth = newton(problem.objective(), start, preconditioner=Explicit(0), tol=1e-12).value
    assert_allclose(result.value, truth, rtol=1e-8)


REGIMES = {
    "explicit": {"n_queries": 40, "rows_per_query": (3, 30), "n_features": 20},
    "explicit from a sample": {"n_queries": 400, "rows_per_query": (5, 40), "n_features": 8},
    "diagonal": {"n_queries": 160, "rows_per_query": (5, 40), "n_features": 4500, "density": 0.005},
    "plain": {"n_queries": 30, "rows_per_query": (5, 40), "n_features": 4500, "density": 0.005},
    "few rows": {"n_queries": 10, "rows_per_query": (5, 40), "n_features": 400},
}


@given(st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.0, 10.0)), min_size=1, max_size=12))
def test_the_smallest_eigenvalue_of_conjugate_gradients(steps):
    """``T = L D L'`` with ``D = 1/α`` and ``L`` of ones and ``√β``: definite by construction."""
    lanczos = Lanczos()
    for alpha, beta in steps:
        lanczos.add(alpha, beta)
    alphas, betas = map(np.array, zip(*steps, strict=True))
    factor = np.eye(len(steps)) + np.diag(np.sqrt(betas[:-1]), -1)
    exact = min(1.0, np.linalg.eigvalsh(factor @ np.diag(1 / alphas) @ factor.T)[0])
    found = lanczos.smallest()
    assert 0.98 * exact - 1e-11 <= found <= exact * (1 + 1e-6) + 1e-11
    assert lanczos.confirms(found / 2, 1.0)
    assert not lanczos.confirms(2 * exact + 1e-9, 1.0)


def test_lifting_an_indefinite_matrix_spares_the_features_of_small_scale():
    collinear = 1e12 * np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]])  # negative by rounding
    matrix = np.block([[collinear, np.zeros((2, 1))], [np.zeros((1, 2)), np.ones((1, 1))]])
    assert_allclose(by_cholesky(matrix)(np.array([0.0, 0.0, 1.0])), [0, 0, 1], rtol=1e-5)


@pytest.mark.parametrize("diagonal", [[0.0, 0.0], [0.0, 3.0], [-1e-20, 1.0]])
def test_a_matrix_without_curvature_along_a_feature_is_lifted_too(diagonal):
    assert np.isfinite(by_cholesky(np.diag(diagonal))(np.ones(2))).all()


@pytest.mark.parametrize(("n_queries", "kind"), [(30, Plain), (160, Diagonal)])
def test_few_rows_of_many_features_take_no_preconditioner(n_queries, kind):
    data = make_ranking(n_queries, (5, 40), 4500, density=0.005, random_state=9)
    problem = Problem(data.rows, Pairs(data.queries), 1.0, None, 1)
    assert type(plan(problem, None)[1]) is kind


@pytest.mark.parametrize("regime", REGIMES)
def test_every_regime_agrees_with_tron(regime):
    data = make_ranking(random_state=9, **REGIMES[regime])
    a = train(data, C=1e-3, tol=1e-9)
    b = train(data, C=1e-3, tol=1e-7, solver="tron", max_iter=2000)
    assert a.converged
    assert_allclose(a.value, b.value, rtol=1e-8)
    hinge = train(data, C=1e-3, loss="hinge")
    assert hinge.converged, hinge.message
    assert hinge.gap == hinge.history["gap"][-1] <= 1e-3 * hinge.value


def test_the_sampled_regime_agrees_with_the_explicit_one(monkeypatch):
    data = make_ranking(600, (5, 40), 10, random_state=10)
    truth = train(data, tol=1e-10).value
    monkeypatch.setattr(Priced, "hessian_price", 1000)
    assert_allclose(train(data, tol=1e-10).value, truth, rtol=1e-9)
    weights = weighted(data)
    query_weight = np.random.default_rng(0).uniform(0.5, 2, data.queries.n_queries)
    sampled = train(weights, tol=1e-10, query_weight=query_weight).value
    monkeypatch.undo()
    assert_allclose(sampled, train(weights, tol=1e-10, query_weight=query_weight).value, rtol=1e-9)


@pytest.mark.parametrize(
    "data",
    [
        make_ranking(300, (5, 60), 40, random_state=12),
        make_ranking(2000, (5, 60), 46, random_state=12),
        make_ranking(100, (5, 60), 2000, density=0.01, random_state=12),
    ],
)
def test_the_same_bits_on_any_number_of_threads(data, monkeypatch):
    monkeypatch.setattr(problem_module, "useful_threads", lambda n_bytes, n_threads: n_threads)
    for loss in LOSSES if data.n_features < 100 else LOSSES[:1]:
        results = [train(data, n_jobs=n, loss=loss) for n in (1, 2, 5)]
        for other in results[1:]:
            assert (other.w == results[0].w).all()
            assert other.history["objective"] == results[0].history["objective"]


def test_only_the_order_of_labels_and_differences_within_queries_count():
    data = small(13)
    truth = train(data, tol=1e-10).value
    for X, y in ((data.X + 7.0 * data.qid[:, None], data.y), (data.X, np.exp(data.y) - 40)):
        assert_allclose(train(Dataset.of(X, y, qid=data.qid), tol=1e-10).value, truth, rtol=1e-8)


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_query_weights_and_normalization_enter_as_documented(solver):
    data = weighted(small(16))
    queries = data.queries
    c = np.random.default_rng(3).uniform(0.5, 2.0, queries.n_queries)
    a = train(data, solver=solver, tol=1e-9, query_weight=c)
    truth, _ = ExplicitPairs.of(
        data, query_weight=dict(zip(queries.ids.tolist(), c, strict=True))
    ).optimum(1.0)
    assert_allclose(a.value, truth, rtol=1e-8)
    listed = ExplicitPairs.of(data)
    qid = data.qid[listed.winner]
    total = {q: listed.weight[qid == q].sum() for q in queries.ids.tolist()}
    inverse = {q: 1 / t if t else 0.0 for q, t in total.items()}
    truth, _ = ExplicitPairs.of(data, query_weight=inverse).optimum(5.0)
    b = train(data, C=5.0, solver=solver, tol=1e-9, query_normalization="pairs")
    assert_allclose(b.value, truth, rtol=1e-8)


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_the_limit_of_precision_is_not_an_endless_loop(solver):
    result = train(small(22), solver=solver, tol=1e-300, max_iter=500)
    assert result.stopped == "precision"
    truth, _ = ExplicitPairs.of(small(22)).optimum(1.0)
    assert_allclose(result.value, truth, rtol=1e-9)


def test_identical_rows_with_different_labels_cost_a_constant():
    data = Dataset.of(np.ones((4, 2)), [0, 1, 2, 3])
    result = train(data)
    assert result.converged
    assert_allclose(result.value, 6.0)
    assert (result.w == 0).all()


def test_no_weight_on_any_pair():
    data = Dataset.of(np.eye(3), [0, 1, 1], sample_weight=[0.0, 1.0, 1.0])
    with pytest.raises(NoPairsError, match=r"weight zero; check sample_weight and query_weight$"):
        train(data)
    with pytest.raises(NoPairsError, match="too small for pair_weighting='gain_diff'"):
        train(data, pair_weighting="gain_diff")


@pytest.mark.parametrize("normalization", [None, "pairs"])
@pytest.mark.parametrize("query_weight", [None, [1e308]])
@pytest.mark.filterwarnings("error")
def test_weights_of_pairs_that_overflow_are_told(normalization, query_weight):
    data = Dataset.of(np.eye(3), [0, 1, 1], sample_weight=[1e200, 1e200, 1e200])
    with pytest.raises(ValueError, match="divide sample_weight"):
        train(data, query_normalization=normalization, query_weight=query_weight)


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e150), ("float64", 1e300)])
def test_features_whose_gradient_overflows_are_refused(solver, dtype, size):
    data = small(29)
    wild = Dataset.of((data.X * size).astype(dtype), data.y, qid=data.qid)
    with pytest.raises(ValueError, match="features, weights or C are too large"):
        train(wild, solver=solver)


def test_features_whose_hessian_overflows_are_refused():
    data = small(31)
    wild = Dataset.of((data.X * 1e25).astype("float32"), data.y, qid=data.qid)
    with pytest.raises(ValueError, match="the Hessian overflows"):
        train(wild, solver="newton")


@pytest.mark.parametrize("C", [1e-12, 1e10])
def test_huge_and_tiny_C_do_not_break_the_solver(C):
    result = train(small(23), C=C)
    assert np.isfinite(result.value)
    assert result.stopped in ("tolerance", "precision")


# ---- the hinge ----------------------------------------------------------------------------------


def graded(seed: int) -> Dataset:
    return make_ranking(8, (2, 12), 5, 4, random_state=seed)


@pytest.mark.parametrize("seed", [0, 1, 12, 14, 25])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize(("low", "high"), [(0.0, np.inf), (-0.05, 0.02), (0.3, 0.7)])
def test_bounds_do_not_keep_the_gap_open(seed, C, low, high):
    """Where a step within a band gains less than rounding, a narrower band goes on."""
    data, ends = graded(seed), (np.full(5, low), np.full(5, high))
    result = train(data, C=C, loss="hinge", tol=1e-6, bounds=ends)
    assert result.converged, result.message
    assert result.gap <= 1e-6 * result.value
    assert ((low <= result.w) & (result.w <= high)).all()
    listed = ExplicitPairs.of(data)
    assert_allclose(listed.objective(result.w, C, "hinge"), result.value, rtol=1e-10)


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
    data = graded(5)
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


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("how", ["plain", "scaled", "preferences"])
def test_few_rows_of_many_features_are_quickly_separated_by_a_large_C(layout, loss, how):
    """From w = 0 it took 33 to 64 iterations, and far more rows than these never converged."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 250)) * np.logspace(0, -2, 250)
    data = Dataset.of(layout(X), rng.integers(0, 3, 120), qid=np.repeat(np.arange(4), 30))
    more = {
        "plain": {},
        "scaled": {"scale": 1 / X.std(0)},
        "preferences": {"preferences": Preferences.of([(0, 40), (50, 9)], n_rows=120)},
    }
    found = train(data, C=1e3, loss=loss, **more[how])
    assert found.converged
    assert found.n_iter <= 20
    again = train(data, C=1e3, loss=loss, w0=found.w, **more[how])
    assert again.converged
    assert again.n_iter <= 20
    assert_allclose(again.value, found.value, rtol=2e-3)


# ---- the sample that stands for the whole -------------------------------------------------------


def pairs_of(levels, weight):
    """(i, j, u_i·u_j) of all pairs of one query, i above j."""
    above, below = np.nonzero(levels[:, np.newaxis] > levels)
    return above, below, weight[above] * weight[below]


def queries_of(sizes, n_labels, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.geometric(0.5, sum(sizes)).clip(max=n_labels)  # high levels are rare
    return Queries.of(labels, np.repeat(np.arange(len(sizes)), sizes))


def test_rows_of_a_long_query_stand_for_their_level():
    """Every level is there, and any two levels keep the weight of their pairs."""
    queries = queries_of([5000, 4000], 6)
    sample, _, weight = sample_queries(queries, 400, seed=0)
    assert sample.n_rows < 500
    for q in range(sample.n_queries):
        rows = slice(sample.offsets[q], sample.offsets[q + 1])
        whole = queries.levels[queries.offsets[q] : queries.offsets[q + 1]]
        stands_for = np.bincount(sample.levels[rows], weights=weight[rows])
        assert_allclose(stands_for, np.bincount(whole))
    of_sample, of_all = Pairs(sample, weight), Pairs(queries)
    assert_allclose(of_sample.weight_by_query, of_all.weight_by_query)


def test_levels_of_a_sample_are_ranked_anew():
    """The kernels' trees grow with the number of levels: few rows must not bring those of all."""
    queries = Queries.of(np.random.default_rng(3).permutation(3000))
    sample, positions, _ = sample_queries(queries, 200, seed=0)
    assert sample.n_levels.tolist() == [sample.n_rows]
    assert (np.argsort(sample.levels) == np.argsort(queries.levels[positions])).all()


def test_sums_over_the_sampled_pairs_are_unbiased():
    """The mean over samples of ``Σ u_i u_j h_ij`` is the sum of all h, for any fixed h."""
    queries = queries_of([600], 4)
    h = np.random.default_rng(2).exponential(size=(600, 600))
    above, below, _ = pairs_of(queries.levels, np.ones(600))
    truth = h[above, below].sum()
    found = []
    for seed in range(200):
        _, positions, weight = sample_queries(queries, 128, seed)
        above, below, product = pairs_of(queries.levels[positions], weight)
        found.append(product @ h[positions[above], positions[below]])
    error = np.std(found) / np.sqrt(len(found))
    assert error < 0.01 * truth
    assert abs(np.mean(found) - truth) < 4 * error
