"""Kernels and their matrices: the formula, entry by entry, whatever the storage and the memory."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from hypothesis_profiles import examples
from linrank.data.rows import DenseRows, as_rows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import (
    BlockedMatrix,
    StoredMatrix,
    check_kernel_matrix,
    kernel_matrix,
)
from peaks import peak_of

NAMES = ("rbf", "poly", "sigmoid", "linear")


def value(kernel, a, b):
    """k(a, b) from exact sums."""
    pairs = [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b, strict=True)]
    product = float(sum((x * y for x, y in pairs), Fraction(0)))
    if kernel.name == "rbf":
        return math.exp(-kernel.gamma * float(sum(((x - y) ** 2 for x, y in pairs), Fraction(0))))
    if kernel.name == "linear":
        return product
    inner = kernel.gamma * product + kernel.coef0
    return inner**kernel.degree if kernel.name == "poly" else math.tanh(inner)


def definition(kernel, A, B):
    return np.array([[value(kernel, a, b) for b in B] for a in A]).reshape(len(A), len(B))


def stored(X, how):
    """The rows of X: in place, apart from each other, every other one of more, or sparse."""
    if how == "dense":
        return as_rows(X)
    if how == "apart":
        wide = np.full((X.shape[0], X.shape[1] + 3), np.nan, X.dtype)
        wide[:, : X.shape[1]] = X
        return DenseRows(wide[:, : X.shape[1]])
    if how == "skipped":
        return DenseRows(np.repeat(X, 2, axis=0)[::2])
    rows = as_rows(sparse.csr_array(X))
    if how == "csr64":
        return type(rows)(rows.values, rows.columns.astype(np.int64), rows.offsets, X.shape[1])
    return rows


@st.composite
def kernels(draw):
    number = st.floats(-2, 2).map(lambda x: round(x, 3))
    return Kernel.of(
        draw(st.sampled_from(NAMES)),
        gamma=draw(st.sampled_from([0.01, 0.3, 2.0])),
        degree=draw(st.integers(1, 5)),
        coef0=draw(number),
    )


@st.composite
def blocks(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_a, n_b, d = draw(st.integers(1, 19)), draw(st.integers(1, 40)), draw(st.integers(1, 9))
    density = draw(st.sampled_from([0.0, 0.15, 0.6, 1.0]))
    made = []
    for n in (n_a, n_b):
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
        X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
        how = draw(st.sampled_from(["dense", "apart", "skipped", "csr", "csr64"]))
        made.append((X, stored(X, how)))
    return made, rng.normal(size=n_b)


@examples(60)
@given(kernels(), blocks())
def test_matrix_and_product_are_the_formula(kernel, case):
    ((X, A), (Y, B)), v = case
    expected = definition(kernel, X, Y)
    scale = 1.0 + np.abs(expected).max()
    matrix = kernel.matrix(A, B)
    assert matrix.dtype == np.float64
    assert_allclose(matrix, expected, rtol=1e-12, atol=1e-13 * scale)
    assert_array_equal(kernel.matrix(B, A), matrix.T)
    image = kernel.product(A, B, v)
    assert_allclose(image, expected @ v, rtol=1e-10, atol=1e-12 * scale * len(Y))


def test_distances_of_dense_rows_do_not_cancel():
    """Two rows far from zero and 1e-3 apart; norms and products leave nothing of that."""
    X = np.full((2, 3), 1e8)
    X[1, 1] += 1.0 / 1024
    matrix = Kernel.of("rbf", gamma=1e6).matrix(as_rows(X), as_rows(X))
    assert matrix[0, 1] == pytest.approx(math.exp(-(1e6 / 2**20)), rel=1e-12)


@pytest.mark.parametrize("name", ["poly", "linear", "rbf"])
def test_overflow_is_said(name):
    rows = as_rows(sparse.csr_array(([1e200, 1.0, 2e200], [0, 9, 0], [0, 2, 3]), shape=(2, 10)))
    kernel = Kernel.of(name, gamma=1.0)
    for call in (lambda: kernel.matrix(rows, rows), lambda: kernel.product(rows, rows, np.ones(2))):
        with pytest.raises(ValueError, match=f"kernel '{name}'.* overflows .*scale the columns"):
            call()
    if name != "rbf":
        with pytest.raises(ValueError, match="overflows"):
            kernel.diagonal(rows)


def test_rows_of_different_width():
    with pytest.raises(ValueError, match="rows of 2 and of 3 columns"):
        Kernel.of("linear").matrix(as_rows(np.ones((1, 2))), as_rows(np.ones((1, 3))))


# ---- parameters ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.2, 1.0]), st.sampled_from([0.0, 1e4]))
@examples(30)
def test_gamma_scale_is_that_of_scikit_learn(seed, density, offset):
    from sklearn.svm import SVC

    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(9, 4)) + offset) * (rng.random((9, 4)) < density)
    y = np.arange(9) % 2
    for one in (X, sparse.csr_array(X)):
        gamma = Kernel.of("rbf", rows=as_rows(one)).gamma
        theirs = SVC().fit(sparse.csr_matrix(X) if sparse.issparse(one) else X, y)._gamma
        # Theirs of sparse rows is a mean of squares less the square of the mean, which cancels.
        assert gamma == pytest.approx(theirs, rel=1e-5 if sparse.issparse(one) else 1e-12)
        assert gamma == pytest.approx(Kernel.of("rbf", rows=as_rows(X)).gamma, rel=1e-12)


def test_gamma_of_features_alone():
    assert Kernel.of("rbf", gamma="auto", rows=as_rows(np.ones((2, 4)))).gamma == 0.25
    assert Kernel.of("rbf", rows=as_rows(np.ones((2, 4)))).gamma == 1.0  # no variance
    with pytest.raises(ValueError, match="gamma='scale' is taken from the rows"):
        Kernel.of("rbf")


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"kernel": "rbg"}, "got 'rbg'; did you mean 'rbf'"),
        ({"kernel": "Poly"}, "did you mean 'poly'"),
        ({"kernel": "zzz"}, "kernel must be one of 'rbf', 'poly'.* or a callable, got 'zzz'$"),
        ({"kernel": None}, "got None"),
        ({"gamma": 0.0}, "gamma must be a finite number > 0, got 0.0; or use 'scale' or 'auto'"),
        ({"gamma": "large"}, "gamma must be 'scale' or 'auto', got 'large'"),
        ({"kernel": "linear", "gamma": 0}, "gamma must be .* got 0"),
    ],
)
def test_parameters_at_fault(settings_, message):
    with pytest.raises(ValueError, match=message):
        Kernel.of(**{"kernel": "rbf", "gamma": 1.0} | settings_)


# ---- kernels of others ---------------------------------------------------------------------------


def test_precomputed_rows_are_the_matrix():
    K = np.arange(12, dtype=np.float32).reshape(3, 4)
    kernel = Kernel.of("precomputed")
    for rows in (as_rows(K), as_rows(sparse.csr_array(K))):
        assert_array_equal(kernel.matrix(rows, rows), K)
        assert_allclose(kernel.product(rows, as_rows(np.ones((4, 4))), np.ones(4)), K.sum(1))


@pytest.mark.parametrize("how", ["dense", "csr"])
def test_callable_sees_arrays(how):
    seen = []

    def cubic(A, B):
        seen.extend([A, B])
        return (A @ B.T) ** 3 if how == "dense" else (A @ B.T).power(3)

    X = np.random.default_rng(4).normal(size=(70, 3))
    rows, v, kernel = stored(X, how), np.ones(70), Kernel.of(cubic)
    expected = (X @ X.T) ** 3
    assert_allclose(kernel.matrix(rows, rows), expected, atol=1e-12)
    for block_bytes in (1, 8 * 70 * 11, 1 << 24):
        image = kernel.product(rows, rows, v, block_bytes=block_bytes)
        assert_allclose(image, expected @ v, rtol=1e-10)
    assert_allclose(kernel.diagonal(rows), expected.diagonal())
    assert {type(one) for one in seen} == {np.ndarray if how == "dense" else sparse.csr_array}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.ones((1, 2)), r"\(3, 3\) for blocks of 3 and 3 rows, got shape \(1, 2\)"),
        (lambda A, B: A @ B.T * np.nan, "returned nan for rows 0 and 0"),
        (lambda A, B: "none", "must return a matrix of real numbers, got str"),
        (lambda A, B: A @ B.T * 1j, "must return a matrix of real numbers, got ndarray: complex"),
        (lambda A, B: None, "kernel '<lambda>'"),
    ],
)
def test_callable_at_fault(function, message):
    rows = as_rows(np.ones((3, 2)))
    with pytest.raises(ValueError, match=message):
        Kernel.of(function).matrix(rows, rows)


# ---- matrices: stored or not, never more memory than said, no wrong one -------------------------


RBF = Kernel.of("rbf", gamma=1.0)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


ROWS = as_rows(normal(1000, 3))


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_stored_and_blocked_are_the_same_matrix(name, storage):
    X = normal(150, 9) * (normal(150, 9, seed=2) > 1.0)
    rows, kernel = as_rows(storage(X)), Kernel.of(name, gamma=0.3, coef0=1.0)
    stored, blocked = StoredMatrix(kernel.matrix(rows, rows)), BlockedMatrix(kernel, rows)
    v, index = normal(150, seed=1), np.array([3, 149, 0, 7])
    assert stored.n == blocked.n == 150
    assert_array_equal(stored.diagonal, blocked.diagonal)
    assert_allclose(stored.product(v), blocked.product(v), rtol=1e-9, atol=1e-9)
    assert_array_equal(stored.columns(index), blocked.columns(index))
    assert_array_equal(stored.columns(index), stored.values[:, index])
    expected = stored.values[np.ix_(index, index)] @ v[:4]
    for part in (stored.submatrix(index), blocked.submatrix(index)):
        assert_allclose(part.product(v[:4]), expected, rtol=1e-9, atol=1e-12)


# ---- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "free", "kind"),
    [
        (8_000_000, None, StoredMatrix),
        (7_999_999, None, BlockedMatrix),
        (7.5e6, None, BlockedMatrix),
        (None, 16_000_000, StoredMatrix),  # by default half of what is free
        (None, 15_999_998, BlockedMatrix),
    ],
)
def test_stored_where_it_fits(monkeypatch, limit, free, kind):
    if free is not None:
        monkeypatch.setattr("linrank.system.resources.available", lambda: free)
    assert isinstance(kernel_matrix(RBF, ROWS, memory_limit=limit), kind)


@pytest.mark.parametrize(
    ("n", "limit", "message"),
    [
        (1000, 100_000, r"100\.0 kB, is too small: .* 1000 rows, .* takes 1\.2 MB .*='nystroem'"),
        (1000, 100_000, r"memory_limit=100000, .* the kernel matrix .* even in tiles \(8\.0 MB in"),
        (30, 1, r"memory_limit=1, 1 B, .* of 30 rows.* takes 7\.2 kB"),
        (1000, None, r"half of the free memory, 100\.0 kB, is too small"),
    ],
)
def test_not_even_tiles_fit(monkeypatch, n, limit, message):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 200_000)
    with pytest.raises(MemoryError, match=message):
        kernel_matrix(RBF, as_rows(normal(n, 3)), memory_limit=limit)


def test_tiles_of_sparse_rows_take_by_the_fullest_row():
    X = np.eye(1000, 5)
    X[0] = 1.0  # the fullest: five values
    rows = as_rows(sparse.csr_array(X))
    needed = BlockedMatrix.bytes_needed(rows, 2)
    assert needed - BlockedMatrix.bytes_needed(rows, 1) == (1 << 20) + 500_000
    found = kernel_matrix(RBF, rows, memory_limit=needed, n_threads=2)
    assert isinstance(found, BlockedMatrix)
    with pytest.raises(MemoryError, match="matrix of 1000 rows"):
        kernel_matrix(RBF, rows, memory_limit=needed - 1, n_threads=2)


def test_blocks_of_a_callable_keep_to_the_limit():
    sizes = []

    def linear(A, B):
        sizes.append(8 * len(A) * len(B))
        return A @ B.T

    rows, limit = as_rows(normal(600, 3)), 2_000_000
    matrix = kernel_matrix(Kernel.of(linear), rows, memory_limit=limit)
    assert isinstance(matrix, BlockedMatrix)
    assert peak_of(lambda: matrix.product(np.ones(600))) < limit
    assert max(sizes) < limit / 4
    with pytest.raises(MemoryError, match="nystroem"):
        kernel_matrix(Kernel.of(linear), rows, memory_limit=400_000)


# ---- what is no kernel matrix --------------------------------------------------------------------


def semidefinite(n, rank, seed=0):
    V = normal(n, rank, seed=seed)
    return V @ V.T


@pytest.mark.parametrize("n", [1, 60, 700])
def test_gram_matrices_pass(n):
    for Q in (semidefinite(n, 5), np.zeros((n, n)), semidefinite(n, 5).astype(np.float32)):
        check_kernel_matrix(Q)


@pytest.mark.parametrize("shape", [(2, 3), (3,), (0, 2)])
def test_not_square(shape):
    with pytest.raises(ValueError, match="must be square"):
        check_kernel_matrix(np.ones(shape))


@pytest.mark.parametrize("n", [5, 1500])
def test_not_finite_or_not_symmetric(n):
    Q = np.eye(n)
    Q[n - 2, 1] = np.inf
    with pytest.raises(ValueError, match=f"got inf at row {n - 2}, column 1"):
        check_kernel_matrix(Q)
    Q = 4 * np.eye(n)
    Q[n - 1, 2], Q[2, n - 1], Q[0, 1] = 0.5, 0.25, 1e-3
    one, other = rf"\({n - 1}, 2\)", rf"\(2, {n - 1}\)"
    places = rf"({one} is 0.5 and {other} is 0.25|{other} is 0.25 and {one} is 0.5)"
    message = rf"must be symmetric: .*{places}; they differ by 0.25.*largest entry is 4"
    with pytest.raises(ValueError, match=message):
        check_kernel_matrix(Q)
    Q[n - 1, 2], Q[0, 1] = 0.25, 1e-6  # no more than rounding
    check_kernel_matrix(Q)


@pytest.mark.parametrize("n", [3, 200, 600])
def test_not_semidefinite(n):
    """The value is the eigenvalue, or above it and still negative."""
    Q, u = semidefinite(n, 2 + n // 4), normal(n, seed=5)
    largest = np.linalg.eigvalsh(Q)[-1]
    Q -= 0.3 * largest * np.outer(u, u) / (u @ u)
    lowest = np.linalg.eigvalsh(Q)[0]
    with pytest.raises(ValueError, match="positive semidefinite") as caught:
        check_kernel_matrix(Q)
    said = float(str(caught.value).split("at most ")[1].split(",")[0])
    assert lowest - 1e-5 * largest <= said < 0.5 * lowest


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (Kernel("sigmoid", 1.0, coef0=-1.0), Kernel("sigmoid", 1e-4)),
        (Kernel("poly", 1.0, 2, coef0=-1.0), Kernel("poly", 1.0, 2, coef0=1.0)),
        (Kernel.of(lambda A, B: -(A @ B.T)), Kernel.of(lambda A, B: A @ B.T)),
    ],
)
def test_kernels_that_may_be_indefinite_are_checked(bad, good):
    rows = as_rows(normal(40, 3))
    with pytest.raises(ValueError, match=r"matrix of kernel '\w+'.* positive semidefinite"):
        kernel_matrix(bad, rows)
    kernel_matrix(good, rows)


def test_kernels_in_tiles_are_checked_as_well():
    indefinite = Kernel("sigmoid", gamma=1.0, coef0=-1.0)
    with pytest.raises(ValueError, match="positive semidefinite"):
        kernel_matrix(indefinite, as_rows(normal(600, 3)), memory_limit=2_000_000)
    lopsided = Kernel.of(lambda A, B: A[:, :1] + 0 * B[:, :1].T)
    with pytest.raises(ValueError, match="must be symmetric"):
        kernel_matrix(lopsided, as_rows(normal(40, 3)))


def test_precomputed():
    Q, kernel = semidefinite(30, 4), Kernel.of("precomputed")
    # Its own memory is the user's: no limit refuses it, but a copy counts.
    matrix = kernel_matrix(kernel, as_rows(Q), memory_limit=10)
    assert np.shares_memory(matrix.values, Q)
    with pytest.raises(MemoryError, match=r"as dense float64 takes 7\.2 kB"):
        kernel_matrix(kernel, as_rows(Q.astype(np.float32)), memory_limit=1000)
    with pytest.raises(ValueError, match=r"must be square, .* got 30 × 29"):
        kernel_matrix(kernel, as_rows(Q[:, :29]))
    with pytest.raises(ValueError, match="positive semidefinite"):
        kernel_matrix(kernel, as_rows(-Q))
