"""Training: both solvers reach the optimum of the definition and certify it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from explicit_pairs import ExplicitPairs
from linrank.choices import LOSSES
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.errors import NoPairsError
from linrank.pairs import Pairs
from linrank.ranksvm import train as planning
from linrank.ranksvm import train as problem_module
from linrank.ranksvm.train import Problem, plan, train
from linrank.solvers.conjugate import Diagonal, Explicit, Lanczos, Plain, Sampled, by_cholesky
from linrank.solvers.newton import newton
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
    monkeypatch.setattr(planning, "_hessian_price", lambda rows: 1000)
    assert_allclose(train(data, tol=1e-10).value, truth, rtol=1e-9)
    weights = weighted(data)
    query_weight = np.random.default_rng(0).uniform(0.5, 2, data.queries.n_queries)
    sampled = train(weights, tol=1e-10, query_weight=query_weight).value
    monkeypatch.undo()
    assert_allclose(sampled, train(weights, tol=1e-10, query_weight=query_weight).value, rtol=1e-9)


def test_one_query_longer_than_a_thread_takes_alone():
    data = make_ranking(1, 140_000, 6, None, random_state=11)
    a = train(data, C=1e-9, tol=1e-8)
    b = train(data, C=1e-9, tol=1e-6, solver="tron")
    assert_allclose(a.value, b.value, rtol=1e-7)


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
    for loss in LOSSES:
        results = [train(data, n_jobs=n, loss=loss) for n in (1, 2, 5)]
        for other in results[1:]:
            assert (other.w == results[0].w).all()
            assert other.history["objective"] == results[0].history["objective"]


def test_rows_in_any_order_and_storage_give_the_same_model():
    data = small(13)
    truth = train(data, tol=1e-10)
    shuffle = np.random.default_rng(1).permutation(data.n_rows)
    variants = [
        Dataset.of(data.X[shuffle], data.y[shuffle], qid=data.qid[shuffle]),
        Dataset.of(sparse.csr_array(data.X), data.y, qid=data.qid),
        Dataset.of(sparse.csr_array(data.X[shuffle]), data.y[shuffle], qid=data.qid[shuffle]),
        Dataset.of(data.X + 7.0 * data.qid[:, None], data.y, qid=data.qid),
        Dataset.of(data.X, np.exp(data.y) - 40, qid=data.qid),
    ]
    for variant in variants:
        assert_allclose(train(variant, tol=1e-10).value, truth.value, rtol=1e-8)
    narrow = Dataset.of(data.X.astype(np.float32), data.y, qid=data.qid)
    assert_allclose(train(narrow, tol=1e-10).value, truth.value, rtol=1e-5)


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
    u = data.weight
    weight = {
        q: sum(
            u[i] * u[j]
            for i in np.flatnonzero(data.qid == q)
            for j in np.flatnonzero(data.qid == q)
            if data.labels[i] > data.labels[j]
        )
        for q in queries.ids.tolist()
    }
    inverse = {q: 1 / w if w else 0.0 for q, w in weight.items()}
    truth, _ = ExplicitPairs.of(data, query_weight=inverse).optimum(5.0)
    b = train(data, C=5.0, solver=solver, tol=1e-9, query_normalization="pairs")
    assert_allclose(b.value, truth, rtol=1e-8)


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_scale_multiplies_the_columns(solver):
    data = small(17)
    d = np.array([2.0, 0.5, 1.0, 0.0, 3.0])
    scaled = Dataset.of(data.X * d, data.y, qid=data.qid)
    a = train(data, scale=d, solver=solver, tol=1e-9)
    b = train(scaled, solver=solver, tol=1e-9)
    assert_allclose(a.value, b.value, rtol=1e-9)
    assert a.w[3] == 0


def test_a_warm_start_at_the_optimum_takes_one_step():
    data = small(18)
    first = train(data, tol=1e-8)
    again = train(data, tol=1e-8, w0=first.w)
    assert again.n_iter <= 1
    assert_allclose(again.value, first.value, rtol=1e-10)


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


@pytest.mark.parametrize(
    ("labels", "qid", "message"),
    [
        ([1, 1, 1], None, "all 3 rows have the same label"),
        ([1, 2, 3], [1, 2, 3], "none of the 3 queries has two different labels; check that qid"),
    ],
)
def test_no_pairs_name_the_remedy(labels, qid, message):
    with pytest.raises(NoPairsError, match=message):
        train(Dataset.of(np.eye(3), labels, qid=qid))


def test_no_weight_on_any_pair():
    data = Dataset.of(np.eye(3), [0, 1, 1], sample_weight=[0.0, 1.0, 1.0])
    with pytest.raises(NoPairsError, match=r"weight zero; check sample_weight and query_weight$"):
        train(data)
    with pytest.raises(NoPairsError, match="too small for pair_weighting='gain_diff'"):
        train(data, pair_weighting="gain_diff")


@pytest.mark.parametrize("normalization", [None, "pairs"])
@pytest.mark.parametrize("query_weight", [None, [1e308]])
def test_weights_of_pairs_that_overflow_are_told(normalization, query_weight):
    data = Dataset.of(np.eye(3), [0, 1, 1], sample_weight=[1e200, 1e200, 1e200])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
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


def test_huge_and_tiny_C_and_features_do_not_break_the_solver():
    data = small(23)
    for C in (1e-12, 1e10):
        result = train(data, C=C)
        assert np.isfinite(result.value)
        assert result.stopped in ("tolerance", "precision")
    wild = Dataset.of(data.X * np.array([1e8, 1e-8, 1, 1, 1]), data.y, qid=data.qid)
    assert train(wild).converged
