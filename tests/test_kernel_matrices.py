"""Q = K(X, X), stored or not: the same products, never more memory than said, no wrong matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hypothesis_profiles import examples
from linrank import _core
from linrank.data.rows import as_rows
from linrank.kernels.functions import Kernel
from linrank.kernels.matrices import (
    BlockedMatrix,
    StoredMatrix,
    check_kernel_matrix,
    kernel_matrix,
    lowest_values,
)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(0, 3))
@examples(40)
def test_symmetric_product_is_the_product(seed, n, gap):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(n, n + gap))[:, :n]
    Q += Q.T.copy()
    v = rng.normal(size=n)
    product = _core.symmetric_product(Q, v, 1)
    np.testing.assert_allclose(product, Q @ v, rtol=1e-9, atol=1e-12 * n)
    for n_threads in (2, 5):
        np.testing.assert_array_equal(_core.symmetric_product(Q, v, n_threads), product)


def test_what_symmetric_product_refuses():
    with pytest.raises(ValueError, match="not square"):
        _core.symmetric_product(np.ones((2, 3)), np.ones(3), 1)
    with pytest.raises(ValueError, match="v has length 2, expected 3"):
        _core.symmetric_product(np.ones((3, 3)), np.ones(2), 1)
    with pytest.raises(ValueError, match="contiguous"):
        _core.symmetric_product(np.ones((6, 6))[::2, ::2], np.ones(3), 1)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_stored_and_blocked_are_the_same_matrix(name, storage):
    X = normal(150, 9) * (normal(150, 9, seed=2) > 1.0)
    rows, kernel = as_rows(storage(X)), Kernel.of(name, gamma=0.3, coef0=1.0)
    stored, blocked = StoredMatrix(kernel.matrix(rows, rows)), BlockedMatrix(kernel, rows)
    v, index = normal(150, seed=1), np.array([3, 149, 0, 7])
    assert stored.n == blocked.n == 150
    np.testing.assert_array_equal(stored.diagonal, blocked.diagonal)
    np.testing.assert_allclose(stored.product(v), blocked.product(v), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(stored.columns(index), blocked.columns(index))
    np.testing.assert_array_equal(stored.columns(index), stored.values[:, index])
    u, parts = v[:4], (stored.submatrix(index), blocked.submatrix(index))
    expected = stored.values[np.ix_(index, index)] @ u
    for part in parts:
        np.testing.assert_allclose(part.product(u), expected, rtol=1e-9, atol=1e-12)


# ---- memory --------------------------------------------------------------------------------------


def test_stored_where_it_fits():
    rows, kernel = as_rows(normal(1000, 3)), Kernel.of("rbf", gamma=1.0)
    assert isinstance(kernel_matrix(kernel, rows), StoredMatrix)
    assert isinstance(kernel_matrix(kernel, rows, memory_limit=8_000_000), StoredMatrix)
    assert isinstance(kernel_matrix(kernel, rows, memory_limit=7_999_999), BlockedMatrix)
    assert isinstance(kernel_matrix(kernel, rows, memory_limit=7.5e6), BlockedMatrix)


@pytest.mark.parametrize(
    ("free", "kind"), [(16_000_000, StoredMatrix), (15_999_998, BlockedMatrix)]
)
def test_by_default_half_of_what_is_free(monkeypatch, free, kind):
    monkeypatch.setattr("linrank.system.resources.available", lambda: free)
    rows = as_rows(normal(1000, 3))
    assert isinstance(kernel_matrix(Kernel.of("rbf", gamma=1.0), rows), kind)


def test_not_even_tiles_fit(monkeypatch):
    rows, kernel = as_rows(normal(1000, 3)), Kernel.of("rbf", gamma=1.0)
    message = (
        r"memory_limit=100000, 100\.0 kB, is too small: the kernel matrix of 1000 rows, .* even in "
        r"tiles \(8\.0 MB in full\), takes 1\.2 MB .*approximation='nystroem'"
    )
    with pytest.raises(MemoryError, match=message):
        kernel_matrix(kernel, rows, memory_limit=100_000)
    with pytest.raises(MemoryError, match=r"memory_limit=1, 1 B, .* of 30 rows.* takes 7\.2 kB"):
        kernel_matrix(kernel, as_rows(normal(30, 3)), memory_limit=1)
    monkeypatch.setattr("linrank.system.resources.available", lambda: 200_000)
    with pytest.raises(MemoryError, match=r"half of the free memory, 100\.0 kB, is too small"):
        kernel_matrix(kernel, rows)


def test_tiles_of_sparse_rows_take_by_the_fullest_row():
    X = np.eye(1000, 5)
    X[0] = 1.0  # the fullest: five values
    rows, kernel = as_rows(sparse.csr_array(X)), Kernel.of("rbf", gamma=1.0)
    needed = BlockedMatrix.bytes_needed(rows, 2)
    assert needed - BlockedMatrix.bytes_needed(rows, 1) == (1 << 20) + 500_000
    found = kernel_matrix(kernel, rows, memory_limit=needed, n_threads=2)
    assert isinstance(found, BlockedMatrix)
    with pytest.raises(MemoryError, match="matrix of 1000 rows"):
        kernel_matrix(kernel, rows, memory_limit=needed - 1, n_threads=2)


def test_blocks_of_a_callable_keep_to_the_limit():
    sizes = []

    def linear(A, B):
        sizes.append(8 * len(A) * len(B))
        return A @ B.T

    rows, limit = as_rows(normal(600, 3)), 2_000_000
    matrix = kernel_matrix(Kernel.of(linear), rows, memory_limit=limit)
    assert isinstance(matrix, BlockedMatrix)
    tracemalloc.start()
    matrix.product(np.ones(600))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(sizes) < limit / 4
    assert peak < limit
    with pytest.raises(MemoryError, match="nystroem"):
        kernel_matrix(Kernel.of(linear), rows, memory_limit=400_000)


# ---- what is no kernel matrix --------------------------------------------------------------------


def semidefinite(n, rank, seed=0):
    V = normal(n, rank, seed=seed)
    return V @ V.T


@pytest.mark.parametrize("n", [1, 2, 60, 700])
def test_gram_matrices_pass(n):
    check_kernel_matrix(semidefinite(n, 5))
    check_kernel_matrix(np.zeros((n, n)))
    check_kernel_matrix(semidefinite(n, 5).astype(np.float32))


@pytest.mark.parametrize("shape", [(2, 3), (3,), (0, 2)])
def test_not_square(shape):
    with pytest.raises(ValueError, match="must be square"):
        check_kernel_matrix(np.ones(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("n", [5, 1500])
def test_not_finite(bad, n):
    Q = np.eye(n)
    Q[n - 2, 1] = bad
    with pytest.raises(ValueError, match=f"got {bad} at row {n - 2}, column 1"):
        check_kernel_matrix(Q)


@pytest.mark.parametrize("n", [5, 1500])
def test_not_symmetric(n):
    Q = 4 * np.eye(n)
    Q[n - 1, 2], Q[2, n - 1] = 0.5, 0.25
    Q[0, 1] = 1e-3
    message = rf"({n - 1}, 2) is 0.5 and (2, {n - 1}) is 0.25; they differ by 0.25"
    other = rf"(2, {n - 1}) is 0.25 and ({n - 1}, 2) is 0.5; they differ by 0.25"
    with pytest.raises(ValueError, match="must be symmetric") as caught:
        check_kernel_matrix(Q)
    assert message in str(caught.value) or other in str(caught.value)
    assert "largest entry is 4" in str(caught.value)
    Q[n - 1, 2], Q[0, 1] = 0.25, 1e-6  # no more than rounding
    check_kernel_matrix(Q)


@pytest.mark.parametrize("n", [3, 300, 600])
def test_not_semidefinite(n):
    """The value is the eigenvalue, or above it and still negative."""
    Q = semidefinite(n, 2 + n // 4)
    u = normal(n, seed=5)
    largest = np.linalg.eigvalsh(Q)[-1]
    Q -= 0.3 * largest * np.outer(u, u) / (u @ u)
    lowest = np.linalg.eigvalsh(Q)[0]
    with pytest.raises(ValueError, match="positive semidefinite") as caught:
        check_kernel_matrix(Q)
    said = float(str(caught.value).split("at most ")[1].split(",")[0])
    assert lowest - 1e-5 * largest <= said < 0.5 * lowest


@given(st.integers(0, 2**32), st.integers(1, 80))
@examples(30)
def test_lanczos_values_are_quotients(seed, n):
    """Within the spectrum always; its ends where the steps exhaust the space."""
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(n, n))
    Q += Q.T
    values = np.linalg.eigvalsh(Q)
    lowest, largest = lowest_values(n, lambda v: Q @ v)
    slack = 1e-9 * np.abs(values).max()
    assert values[0] - slack <= lowest
    assert largest <= np.abs(values).max() + slack
    if n <= 60:
        assert lowest == pytest.approx(values[0], abs=1e-8 * np.abs(values).max())


def test_kernels_that_may_be_indefinite_are_checked():
    rows = as_rows(normal(40, 3))
    for kernel in (
        Kernel.of("sigmoid", gamma=1.0, coef0=-1.0),
        Kernel.of("poly", gamma=1.0, degree=2, coef0=-1.0),
        Kernel.of(lambda A, B: -(A @ B.T)),
    ):
        with pytest.raises(ValueError, match=r"matrix of kernel '\w+'.* positive semidefinite"):
            kernel_matrix(kernel, rows)
    for kernel in (
        Kernel.of("sigmoid", gamma=1e-4, coef0=0.0),
        Kernel.of("poly", gamma=1.0, degree=2, coef0=1.0),
        Kernel.of(lambda A, B: A @ B.T),
    ):
        kernel_matrix(kernel, rows)


def test_kernels_in_tiles_are_checked_as_well():
    rows = as_rows(normal(600, 3))
    indefinite = Kernel.of("sigmoid", gamma=1.0, coef0=-1.0)
    with pytest.raises(ValueError, match="positive semidefinite"):
        kernel_matrix(indefinite, rows, memory_limit=2_000_000)
    lopsided = Kernel.of(lambda A, B: A[:, :1] + 0 * B[:, :1].T)
    with pytest.raises(ValueError, match="must be symmetric"):
        kernel_matrix(lopsided, as_rows(normal(40, 3)))


def test_precomputed():
    Q, kernel = semidefinite(30, 4), Kernel.of("precomputed")
    matrix = kernel_matrix(kernel, as_rows(Q))
    assert isinstance(matrix, StoredMatrix)
    assert np.shares_memory(matrix.values, Q)
    # Its own memory is the user's: no limit refuses it, but a copy counts.
    assert kernel_matrix(kernel, as_rows(Q), memory_limit=10).n == 30
    with pytest.raises(MemoryError, match=r"as dense float64 takes 7\.2 kB"):
        kernel_matrix(kernel, as_rows(Q.astype(np.float32)), memory_limit=1000)
    with pytest.raises(ValueError, match=r"must be square, .* got 30 × 29"):
        kernel_matrix(kernel, as_rows(Q[:, :29]))
    with pytest.raises(ValueError, match="positive semidefinite"):
        kernel_matrix(kernel, as_rows(-Q))
