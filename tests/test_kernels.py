"""Kernels: blocks and products are the formula, entry by entry, whatever the storage."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hypothesis_profiles import examples
from linrank import _core
from linrank.data.rows import DenseRows, as_rows
from linrank.kernels.functions import Kernel

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
    np.testing.assert_allclose(matrix, expected, rtol=1e-12, atol=1e-13 * scale)
    np.testing.assert_array_equal(kernel.matrix(B, A), matrix.T)
    image = kernel.product(A, B, v)
    np.testing.assert_allclose(image, expected @ v, rtol=1e-10, atol=1e-12 * scale * len(Y))


@examples(40)
@given(kernels(), blocks())
def test_the_same_rows_twice_are_computed_once(kernel, case):
    """Half of the entries and their mirror image are what all of them are."""
    (_, (Y, B)), v = case
    again = type(B)(*B.__reduce__()[1])
    matrix = kernel.matrix(B, B)
    np.testing.assert_array_equal(matrix, kernel.matrix(B, again))
    np.testing.assert_array_equal(matrix.diagonal(), kernel.diagonal(B))
    scale = 1.0 + np.abs(matrix).max()
    product = kernel.product(B, again, v)
    np.testing.assert_allclose(
        kernel.product(B, B, v), product, rtol=1e-10, atol=1e-12 * scale * len(Y)
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["dense", "csr"])
def test_bits_do_not_depend_on_threads(name, how):
    rng = np.random.default_rng(1)
    kept = 1.0 if how == "dense" else 0.2
    A, B = (stored(rng.normal(size=(n, 6)) * (rng.random((n, 6)) < kept), how) for n in (530, 611))
    v, kernel = rng.normal(size=611), Kernel.of(name, gamma=0.2, coef0=0.1)
    for call in (
        lambda t: _core.kernel_matrix(kernel.core, A.core, B.core, t),
        lambda t: _core.kernel_matrix(kernel.core, B.core, B.core, t),
        lambda t: _core.kernel_product(kernel.core, A.core, B.core, v, t),
        lambda t: _core.kernel_product(kernel.core, B.core, B.core, v, t),
        lambda t: _core.kernel_diagonal(kernel.core, B.core, t),
    ):
        one = call(1)
        for n_threads in (2, 3, 7):
            np.testing.assert_array_equal(call(n_threads), one)


@pytest.mark.parametrize("how", ["dense", "csr"])
def test_rbf_of_a_row_with_itself_is_one(how):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 93)) * 1e3
    rows = stored(X if how == "dense" else X * (rng.random(X.shape) < 0.2), how)
    matrix = Kernel.of("rbf", gamma=1.0).matrix(rows, rows)
    np.testing.assert_array_equal(matrix.diagonal(), 1.0)
    np.testing.assert_array_equal(matrix, matrix.T)


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
    for call in (
        lambda: kernel.matrix(rows, rows),
        lambda: kernel.product(rows, rows, np.ones(2)),
    ):
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
        ({"gamma": -1}, "gamma must be .* got -1"),
        ({"gamma": math.inf}, "gamma must be .* got inf"),
        ({"gamma": "large"}, "gamma must be 'scale' or 'auto', got 'large'"),
        ({"kernel": "linear", "gamma": 0}, "gamma must be .* got 0"),
        ({"degree": 0}, "degree must be an integer >= 1, got 0"),
        ({"degree": 2.5}, "degree must be an integer >= 1, got 2.5"),
        ({"coef0": math.nan}, "coef0 must be a finite number, got nan"),
        ({"coef0": "1"}, "coef0 must be a finite number, got '1'"),
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
        np.testing.assert_array_equal(kernel.matrix(rows, rows), K)
        np.testing.assert_allclose(
            kernel.product(rows, as_rows(np.ones((4, 4))), np.ones(4)), K.sum(1)
        )


@pytest.mark.parametrize("how", ["dense", "csr"])
def test_callable_sees_arrays(how):
    seen = []

    def cubic(A, B):
        seen.extend([A, B])
        return (A @ B.T) ** 3 if how == "dense" else (A @ B.T).power(3)

    X = np.random.default_rng(4).normal(size=(70, 3))
    rows, v, kernel = stored(X, how), np.ones(70), Kernel.of(cubic)
    expected = (X @ X.T) ** 3
    np.testing.assert_allclose(kernel.matrix(rows, rows), expected, atol=1e-12)
    for block_bytes in (1, 8 * 70 * 11, 1 << 24):
        image = kernel.product(rows, rows, v, block_bytes=block_bytes)
        np.testing.assert_allclose(image, expected @ v, rtol=1e-10)
    np.testing.assert_allclose(kernel.diagonal(rows), expected.diagonal())
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
