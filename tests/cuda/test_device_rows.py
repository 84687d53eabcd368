"""Rows on a device: products and statistics as on the host; arrays that lie there stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from linrank.data.device_rows import on_device
from linrank.data.rows import Scan, as_rows, check_values
from linrank.system import device as device_module
from linrank.system.device import Device

SHAPES = [(1, 1), (37, 3), (300, 136), (70, 1100), (2000, 5)]


def matrix(shape: tuple[int, int], dtype: Any, storage: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape).astype(dtype)
    if storage == "csr":
        X[rng.random(shape) < 0.8] = 0.0
        return sparse.csr_array(X)
    return X[:, : shape[1]] if storage == "dense" else np.asfortranarray(X)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("is_ordered", [False, True])
def test_products(device, shape, dtype, storage, is_ordered):
    rows = as_rows(matrix(shape, dtype, storage))
    there, rng, n = on_device(rows, device), np.random.default_rng(1), shape[0]
    order = np.sort(rng.permutation(n)[: 1 + n // 2]) if is_ordered else None
    w, r = rng.normal(size=shape[1]), rng.normal(size=n if order is None else len(order))
    np.testing.assert_allclose(
        there.scores(w, order, 1), rows.scores(w, order, 1), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        there.gradient(r, order, 1), rows.gradient(r, order, 1), rtol=0, atol=1e-11
    )
    index = np.array([0, n - 1])
    assert np.array_equal(_dense(there.stored(index, 1)), _dense(rows.take(index)))
    columns = device.get(there.turn(None, n, 0, shape[1])).T
    assert np.array_equal(columns, _dense(rows).astype(np.float64))


def _dense(rows: Any) -> Any:
    found = rows.to_user()
    return found.toarray() if rows.is_sparse else found


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_statistics(device, storage, is_weighted):
    X = matrix((500, 7), np.float64, storage)
    if storage == "csr":
        X = sparse.csr_array(sparse.hstack([X, sparse.csr_array((500, 1))]))  # a column of zeros
    rows = as_rows(X)
    weight = np.random.default_rng(2).integers(0, 3, 500).astype(float) if is_weighted else None
    found, expected = on_device(rows, device).scan(weight), Scan.of(rows, weight, 1)
    for name in ("weight", "mean", "variance", "low", "high", "n_nonzero"):
        one, other = getattr(found.statistics, name), getattr(expected.statistics, name)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(found.extents.norms, expected.extents.norms, rtol=1e-13)
    assert np.array_equal(found.extents.largest, expected.extents.largest)
    assert found.extents.score_rounding >= 2.0**-53 * 7
    assert found.checksum is None


@pytest.mark.parametrize(("value", "is_finite"), [(1.0, True), (np.nan, False), (np.inf, False)])
def test_what_is_not_finite_is_found(device, value, is_finite):
    X = np.ones((300, 3))
    X[299, 2] = value
    rows = on_device(as_rows(X, check="later"), device)
    assert rows.is_finite(None, 1) is is_finite
    if not is_finite:
        what = "NaN" if np.isnan(value) else r"infinity \(inf\)"
        with pytest.raises(ValueError, match=f"contains {what} at row 299, column 2"):
            check_values(rows)


def test_large_arrays_go_up_in_pieces(device, monkeypatch):
    monkeypatch.setattr(device_module, "_LARGE", 1000)
    monkeypatch.setattr(device_module, "_PIECE", 64)
    for n in (250, 251, 1000):
        X = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        assert np.array_equal(device.get(device.put(X)), X)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, bool])
def test_arrays_of_the_device_are_taken_in_place(device, dtype):
    X = (np.random.default_rng(0).normal(size=(20, 3)) > 0).astype(dtype)
    there = device.put(X)
    rows = as_rows(there)
    assert rows.device is device
    assert np.array_equal(device.get(rows.values), X.astype(rows.dtype))
    is_same = rows.values.data.ptr == there.data.ptr
    assert is_same == (dtype in (np.float32, np.float64))


def test_matrices_that_are_none_are_refused(device):
    for X, message in ((np.ones(3), "Expected 2D array, got 1D"), (np.ones((0, 3)), "0 sample")):
        with pytest.raises(ValueError, match=message):
            as_rows(device.put(X))


def test_rows_that_do_not_fit_are_refused(device, monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", 100)
    with pytest.raises(MemoryError, match=r"rows dense float64, 50 × 3 would take .* on cuda:0"):
        on_device(as_rows(np.ones((50, 3))), device)
