"""Singular value thresholding: every way of computing it is the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hypothesis_profiles import examples
from linrank.lowrank import proximal as thresholding
from linrank.lowrank.proximal import leading, svt
from plain_regularized import plain_svt


def matrix(m, n, rank=None, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    rank = min(m, n) if rank is None else rank
    return scale * rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))


def check(M, threshold):
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
    check(M, share * np.linalg.norm(M, 2))


@pytest.mark.parametrize("shape", [(20, 33), (36, 25)])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_large_blocks_compute_some_eigenvectors_only(shape, share, monkeypatch):
    monkeypatch.setattr(thresholding, "_LARGE", 20)
    monkeypatch.setattr(np.linalg, "eigh", None)  # the way of small blocks would fail
    M = matrix(*shape) + 5.0 * matrix(*shape, rank=2, seed=1)
    check(M, share * np.linalg.norm(M, 2))


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
    monkeypatch.setattr(thresholding.np.linalg, "eigh", fail)
    assert_allclose(svt(M, 1.0), expected, atol=1e-12)


def test_what_is_left_below_the_threshold_is_not_lost_to_rounding():
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (6, 9))
    M = (left * [1e8, 1e7, 1e-3, 1e-4]) @ right.T  # of the squares, doubles hold 16 digits
    found = leading(M, 1.0)
    assert (found.rank, found.n_others) == (2, 4)
    assert_allclose(found.rest(M), 1e-6 + 1e-8, rtol=1e-3)
    assert leading(M, 1e9).rest(M) == pytest.approx((M**2).sum())
