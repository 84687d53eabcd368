"""Statistics of columns: of a block, merged over blocks, and the scalings that follow from them."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank.data.rows import ColumnStatistics, as_rows
from linrank.data.scaling import Scaling
from strategies import datasets


def dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def definition(X, u):
    """Weight, mean, variance, range over the rows of positive weight, straight from the words."""
    kept = u > 0
    mean = (u[kept] @ X[kept]) / u.sum()
    variance = (u[kept] @ (X[kept] - mean) ** 2) / u.sum()
    return u.sum(), mean, variance, X[kept].min(axis=0), X[kept].max(axis=0)


@given(datasets(), st.data())
def test_blocks_merge_into_the_whole(data, draw):
    X, n = dense(data.X), data.n_rows
    u = np.array(draw.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n)))
    u[draw.draw(st.integers(0, n - 1))] = 2.0
    cuts = sorted(draw.draw(st.lists(st.integers(0, n), max_size=4)))
    bounds = [0, *cuts, n]
    blocks = [ColumnStatistics.of(data.rows.take(slice(a, b)), u[a:b]) for a, b in pairwise(bounds)]
    whole = reduce(ColumnStatistics.__add__, blocks)
    weight, mean, variance, low, high = definition(X, u)
    spread = np.abs(X).max(axis=0)
    assert whole.n_rows == n
    assert_allclose(whole.weight, weight)
    assert np.all(np.abs(whole.mean - mean) <= 1e-12 * spread)
    assert np.all(np.abs(whole.variance - variance) <= 1e-11 * spread**2)
    assert_array_equal(whole.low, low)
    assert_array_equal(whole.high, high)
    assert_array_equal(whole.n_nonzero, (X != 0).sum(axis=0))


@pytest.mark.parametrize("kind", ["none", "standard", "minmax", "query"])
@given(data=datasets())
def test_one_block_scales_as_its_rows_do(kind, data):
    factors = Scaling.of_statistics(kind, ColumnStatistics.of(data.rows)).factors
    expected = Scaling.fit(kind, data.rows).factors
    assert (factors is None) == (expected is None)
    if factors is not None:
        assert_array_equal(factors, expected)


def test_no_rows_are_neutral():
    block = ColumnStatistics.of(as_rows(np.random.default_rng(0).normal(size=(20, 3))))
    for both in (block + ColumnStatistics.empty(3), ColumnStatistics.empty(3) + block):
        assert (both.weight, both.n_rows) == (20.0, 20)
        for name in ("mean", "variance", "low", "high", "n_nonzero"):
            assert_array_equal(getattr(both, name), getattr(block, name))


def test_weights_of_zero_leave_counts_only():
    found = ColumnStatistics.of(as_rows(np.eye(3)), np.zeros(3))
    assert (found.weight, found.n_rows) == (0.0, 3)
    assert_array_equal(found.n_nonzero, [1, 1, 1])
    with pytest.raises(ValueError, match="no row of positive weight"):
        Scaling.of_statistics("standard", found)


def test_a_large_offset_survives_merging():
    X = np.random.default_rng(1).normal(size=(1000, 3)) + 1e8
    parts = [ColumnStatistics.of(as_rows(X[i : i + 10])) for i in range(0, 1000, 10)]
    assert_allclose(reduce(ColumnStatistics.__add__, parts).variance, X.var(axis=0), rtol=1e-6)


def test_blocks_of_other_columns_do_not_merge():
    with pytest.raises(ValueError, match="3 columns do not merge with those of 4"):
        _ = ColumnStatistics.empty(3) + ColumnStatistics.empty(4)


@pytest.mark.parametrize("weight", [None, np.array([0.5, 2.0, 0.0]), np.zeros(3)])
def test_widened_statistics_are_those_of_rows_with_columns_of_zeros(weight):
    x = np.array([[1.0, -2.0], [0.0, 3.0], [4.0, 0.0]])
    found = ColumnStatistics.of(as_rows(x), weight).widened(5)
    truth = ColumnStatistics.of(as_rows(np.pad(x, ((0, 0), (0, 3)))), weight)
    for name in ("weight", "n_rows", "mean", "variance", "low", "high", "n_nonzero"):
        assert_array_equal(getattr(found, name), getattr(truth, name))
    with pytest.raises(ValueError, match="n_columns must be at least 5, got 4"):
        found.widened(4)
