"""Features that approximate a kernel: what they are, how they are computed, what is learnt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank import Dataset, Preferences
from linrank.data.rows import DenseRows, as_rows
from linrank.kernels.approximation import MappedRows, NystroemMap, Room, train_approximate
from linrank.kernels.functions import Kernel
from linrank.kernels.train import train_kernel
from linrank.ranksvm.train import Problem, plan
from linrank.solvers.conjugate import Sampled
from linrank.system.resources import parse_bytes
from peaks import peak_of

RBF = Kernel("rbf", gamma=0.5)
KERNELS = {"rbf": RBF, "poly": Kernel("poly", gamma=0.5, degree=2, coef0=1.0)}


def curved(n: int = 120, seed: int = 0, n_queries: int | None = None, copies: int = 0) -> Dataset:
    """Labels that no linear ranker explains; ``copies`` rows are there twice."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    X[n - copies :] = X[:copies]
    y = np.round(2 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n), 1)
    qid = None if n_queries is None else rng.integers(0, n_queries, n)
    return Dataset.of(X, y, qid=qid)


def features(data: Dataset, m: int = 20, kernel: Kernel = RBF) -> NystroemMap:
    return NystroemMap.of(kernel, data.rows, m, data.n_rows, seed=1)


# ---- the features -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_nystroem_features_give_the_kernel_with_landmarks_exactly(name):
    data, kernel = curved(), KERNELS[name]
    mapped = features(data, 30, kernel)
    assert_array_equal(mapped.rows.values, data.X[mapped.support])
    Z = MappedRows(data.rows, mapped, data.n_rows).take(slice(None)).values.astype(np.float64)
    K = kernel.matrix(data.rows, data.rows)
    scale = K.diagonal().max()
    assert_allclose(Z @ Z[mapped.support].T, K[:, mapped.support], atol=1e-5 * scale)
    assert (np.einsum("ij,ij->i", Z, Z) <= K.diagonal() + 1e-5 * scale).all()


def test_landmarks_are_distinct_rows_and_no_more_than_the_rank():
    data = curved(100, copies=40)
    found = features(data, 100)
    assert len(np.unique(data.X[found.support], axis=0)) == found.n_components <= 60
    linear = features(data, 50, Kernel("linear"))
    assert linear.n_components == data.n_features


# ---- products block by block --------------------------------------------------------------------


@pytest.mark.parametrize("is_sparse", [False, True])
def test_streamed_products_are_those_of_the_stored_features(is_sparse):
    """Neither blocks nor threads change them."""
    data = curved(90)
    if is_sparse:
        data = replace(data, rows=as_rows(sparse.csr_array(data.X * (np.abs(data.X) > 0.5))))
    found, rng = features(data), np.random.default_rng(3)
    w = rng.standard_normal(found.n_components)
    whole = MappedRows(data.rows, found, 90)
    Z = whole.take(slice(None))
    assert (Z.dtype, Z.shape, Z.nbytes) == (np.float32, whole.shape, whole.nbytes)
    for block in (1, 7, 64):
        mapped = MappedRows(data.rows, found, 90, block=block)
        for order in (None, rng.permutation(90), np.array([5, 80, 3])):
            r = rng.standard_normal(90 if order is None else len(order))
            scores, products = mapped.scores(w, order, 2), mapped.gradient(r, order, 1)
            assert_allclose(scores, whole.scores(w, order, 1), rtol=1e-12, atol=1e-12)
            assert_allclose(scores, Z.scores(w, order, 1), atol=1e-5)
            assert_allclose(products, Z.gradient(r, order, 1), atol=1e-5)
            for n_threads in (2, 5):
                assert_array_equal(mapped.gradient(r, order, n_threads), products)
        one, three = (mapped.stored(slice(None), n).values for n in (1, 3))
        assert_array_equal(three, one)
    index = np.array([7, 7, 0])
    assert_allclose(whole.take(index).values, Z.values[index], atol=1e-7)


def test_streamed_products_hold_some_blocks_at_a_time():
    data = curved(20_000)
    mapped = MappedRows(data.rows, features(curved(500), 100), 0, block=256)
    w, r = np.ones(mapped.shape[1]), np.ones(data.n_rows)
    for product in (lambda: mapped.scores(w, None, 1), lambda: mapped.gradient(r, None, 1)):
        assert peak_of(product) < mapped.nbytes / 4


# ---- the problem on streamed rows ---------------------------------------------------------------


def streamed_and_stored(n_queries: int | None = None, **options) -> tuple[Problem, Problem]:
    """The same problem; the former may store 150 of its 600 rows."""
    data = curved(600, n_queries=n_queries)
    mapped = MappedRows(data.rows, features(data), 150, block=128)
    designs = (mapped, mapped.stored(slice(None), 1))
    return tuple(Problem.of(replace(data, rows=rows), 0.1, **options) for rows in designs)


LISTED = Preferences(np.arange(300), np.arange(300, 600))


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("preferences", [None, LISTED])
@pytest.mark.parametrize("n_queries", [None, 40])
def test_objectives_and_samples_are_those_of_stored_rows(n_queries, preferences, loss):
    problems = streamed_and_stored(n_queries, loss=loss, preferences=preferences)
    w = np.random.default_rng(5).standard_normal(problems[0].rows.shape[1])
    points = [problem.objective().at(w) for problem in problems]
    assert_allclose(points[0].value, points[1].value, rtol=1e-6)
    assert_allclose(points[0].gradient, points[1].gradient, rtol=1e-5, atol=1e-4)
    products = [point.hvp(w)[0] for point in points]
    assert_allclose(products[0], products[1], rtol=1e-4, atol=1e-3)
    parts = [problem.sample(50) for problem in problems]
    assert isinstance(parts[0].rows, DenseRows)
    assert parts[0].rows.shape[0] < 300
    points = [part.objective().at(w) for part in parts]
    assert_allclose(points[0].value, points[1].value, rtol=1e-6)
    assert_allclose(points[0].hessian_matrix(), points[1].hessian_matrix(), rtol=1e-4, atol=1e-3)


def test_the_plan_for_streamed_rows_asks_for_a_sample_only():
    problem, _ = streamed_and_stored(30)
    whole, _ = streamed_and_stored()
    assert 130 <= whole.sample(500).rows.shape[0] <= 150  # no more than memory allows
    start, preconditioner = plan(problem, None)
    assert isinstance(preconditioner, Sampled)
    assert start.any()
    given, _ = plan(problem, np.ones(20))
    assert_array_equal(given, np.ones(20))


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n_queries", [None, 8])
def test_nystroem_with_all_rows_is_the_exact_solution(n_queries, name, loss):
    data, kernel = curved(n_queries=n_queries, copies=20), KERNELS[name]
    data = replace(data, weight=np.random.default_rng(1).integers(0, 4, data.n_rows) / 2)
    options = {"C": 0.3, "loss": loss, "tol": 1e-7 if loss == "squared_hinge" else 1e-4}
    exact = train_kernel(data, kernel=kernel, **options)
    found = train_approximate(data, kernel=kernel, n_components=data.n_rows, **options)
    assert len(found.coef) <= 100
    assert_allclose(found.value, exact.value, rtol=1e-5 + options["tol"])
    off = kernel.matrix(data.rows, found.rows) @ found.coef - exact.scores
    query = np.zeros(data.n_rows, int) if data.qid is None else data.qid
    off -= (np.bincount(query, off) / np.maximum(np.bincount(query), 1))[query]  # no pair sees it
    assert np.abs(off).max() <= 0.02 * exact.scores.std()


SMALL_ROOM = 2_200_000  # bytes: three quarters are less than features of 9000 rows and Hessians


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("n_queries", [None, 100])
def test_streamed_training_reaches_the_optimum_of_stored_features(n_queries, loss):
    data = curved(9000, n_queries=n_queries)
    options = {"n_components": 40, "C": 1e-2, "loss": loss, "tol": 1e-5, "n_jobs": 1}
    stored, streamed = (
        train_approximate(data, kernel=RBF, memory_limit=limit, **options)
        for limit in (None, SMALL_ROOM)
    )
    assert (stored.is_streamed, streamed.is_streamed) == (False, True)
    assert stored.converged
    assert streamed.converged
    assert_allclose(streamed.value, stored.value, rtol=2e-5)
    assert_allclose(streamed.w, stored.w, atol=5e-3 * np.abs(stored.w).max())


@pytest.mark.parametrize("limit", [None, SMALL_ROOM])
def test_the_seed_and_nothing_else_decides(limit):
    data = curved(9000, n_queries=100)
    options = {"n_components": 40, "memory_limit": limit}
    a, b, c = (
        train_approximate(data, kernel=RBF, seed=seed, n_jobs=n_jobs, **options)
        for seed, n_jobs in ((3, 1), (3, 2), (4, 1))
    )
    assert_array_equal(a.coef, b.coef)
    assert not np.array_equal(a.rows.values, c.rows.values)


# ---- bad input ----------------------------------------------------------------------------------


NONE = Dataset.of(np.zeros((6, 3)), np.arange(6.0))


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (None, {"n_components": 121}, r"n_components=121 landmarks.*120 rows.*at most so many"),
        (None, {"kernel": Kernel("precomputed")}, r"precomputed.*approximation=None"),
        (None, {"memory_limit": 0}, r"memory_limit must be a finite number > 0, got 0; .* bytes"),
        (NONE, {"kernel": Kernel("linear")}, "kernel 'linear' is 0 of all 6 rows that landmarks"),
    ],
)
def test_bad_input_is_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        train_approximate(data or curved(), **{"kernel": RBF, **options})


def test_too_little_memory_says_how_much_is_needed():
    data = curved(9000)
    with pytest.raises(MemoryError, match=r"memory_limit=1000, .*: n_components=40") as info:
        train_approximate(data, kernel=RBF, n_components=40, memory_limit=1000, n_jobs=1)
    needed = parse_bytes(str(info.value).split("; allow ")[1].split(",")[0])
    assert Room.of(needed, data.rows, 40).is_streamed
    with pytest.raises(MemoryError):
        Room.of(int(0.99 * needed), data.rows, 40)


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        (Kernel("sigmoid", gamma=1.0), "semidefinite"),
        (Kernel("callable", function=lambda A, B: -(A @ B.T)), "semidefinite"),
        (Kernel("callable", function=lambda A, B: A[:, :1] + 0 * B[:, 0]), "symmetric"),
    ],
)
def test_nystroem_refuses_what_is_no_kernel(kernel, what):
    """As an exact fit does; the rows that it looks at come from all over the data."""
    X = np.random.default_rng(3).normal(size=(900, 3))
    with pytest.raises(ValueError, match=what):
        train_approximate(Dataset.of(X, X[:, 0]), kernel=kernel, n_components=90)
