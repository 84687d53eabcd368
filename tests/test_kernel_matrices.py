"""Q = K(X, X), stored or not: the same products, never more memory than said, no wrong matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
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

RBF = Kernel.of("rbf", gamma=1.0)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


ROWS = as_rows(normal(1000, 3))


@given(st.integers(0, 2**32), st.integers(1, 300), st.integers(0, 3))
@examples(40)
def test_symmetric_product_is_the_product(seed, n, gap):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(n, n + gap))[:, :n]
    Q += Q.T.copy()
    v = rng.normal(size=n)
    product = _core.symmetric_product(Q, v, 1)
    assert_allclose(product, Q @ v, rtol=1e-9, atol=1e-12 * n)
    for n_threads in (2, 5):
        assert_array_equal(_core.symmetric_product(Q, v, n_threads), product)


@pytest.mark.parametrize(
    ("Q", "n", "message"),
    [
        (np.ones((2, 3)), 3, "not square"),
        (np.ones((3, 3)), 2, "v has length 2, expected 3"),
        (np.ones((6, 6))[::2, ::2], 3, "contiguous"),
    ],
)
def test_what_symmetric_product_refuses(Q, n, message):
    with pytest.raises(ValueError, match=message):
        _core.symmetric_product(Q, np.ones(n), 1)


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
        (
            *(1000, 100_000),
            r"memory_limit=100000, 100\.0 kB, is too small: the kernel matrix of 1000 rows, .* "
            r"even in tiles \(8\.0 MB in full\), takes 1\.2 MB .*approximation='nystroem'",
        ),
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


@given(st.integers(0, 2**32), st.integers(1, 80))
@examples(30)
def test_lanczos_values_are_quotients(seed, n):
    """Within the spectrum always; its ends where the steps exhaust the space."""
    Q = np.random.default_rng(seed).normal(size=(n, n))
    Q += Q.T
    values = np.linalg.eigvalsh(Q)
    lowest, largest = lowest_values(n, lambda v: Q @ v)
    slack = 1e-9 * np.abs(values).max()
    assert values[0] - slack <= lowest
    assert largest <= np.abs(values).max() + slack
    if n <= 60:
        assert lowest == pytest.approx(values[0], abs=1e-8 * np.abs(values).max())


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
