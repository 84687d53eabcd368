"""Rows: no silent copy, no silent upcast, the user's arrays stay as they were."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from linrank import _core
from linrank.data.rows import CsrRows, as_rows


def some_matrix(dtype="float32", shape=(7, 4)):
    rng = np.random.default_rng(0)
    return (rng.integers(-8, 9, shape) / 4).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_c_ordered_arrays_are_not_copied(dtype):
    X = some_matrix(dtype)
    views = (X, X[::2], X[:, 1:3], X[2:5, :1], X[:1], X[::-1][::-1], np.broadcast_to(X[0], X.shape))
    for view in views:
        rows = as_rows(view)
        assert np.shares_memory(rows.to_user(), X)
        assert rows.dtype == dtype
        assert rows.core.shape == view.shape


@pytest.mark.parametrize(
    "view",
    [
        lambda X: np.asfortranarray(X),
        lambda X: X[:, ::2],
        lambda X: X[::-1],
        lambda X: X[:, ::-1],
        lambda X: X.T,
        lambda X: X.astype(">f4"),
        lambda X: np.frombuffer(b"\0" + X.tobytes(), "f4", offset=1).reshape(X.shape),
    ],
)
def test_other_layouts_are_copied_to_rows(view):
    X = view(some_matrix())
    rows = as_rows(X)
    assert rows.dtype == np.float32
    assert rows.dtype.isnative
    assert rows.values.flags.c_contiguous
    assert rows.values.flags.aligned
    np.testing.assert_array_equal(rows.values, X)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float16", "float32"),
        ("bool", "float64"),
        ("int8", "float64"),
        ("uint64", "float64"),
        ("longdouble", "float64"),
        ("object", "float64"),
    ],
)
def test_other_numbers_become_floats(given, expected):
    X = np.array([[0, 1], [1, 0]]).astype(given)
    rows = as_rows(X)
    assert rows.dtype == expected
    np.testing.assert_array_equal(rows.values, [[0, 1], [1, 0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_the_values_of_csr_are_not_copied_either_way(kind, index, dtype):
    X = kind(some_matrix(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rows = as_rows(X)
    assert isinstance(rows, CsrRows)
    assert rows.columns.dtype == np.int32
    user = rows.to_user()
    for a, b in [(rows.values, X.data), (user.data, X.data), (user.indices, rows.columns)]:
        assert np.shares_memory(a, b)
    assert user.indices.dtype == user.indptr.dtype
    np.testing.assert_array_equal(user.toarray(), X.toarray())
    np.testing.assert_array_equal(user @ np.ones(4), X @ np.ones(4))


def test_columns_that_32_bits_cannot_number_are_refused():
    wide = sparse.csr_array(([1.0, 2.0], ([0, 0], [3, 2**31 + 3])), shape=(1, 2**40))
    with pytest.raises(ValueError, match="at most 2,147,483,647 columns"):
        as_rows(wide)
    assert as_rows(wide[:, : 2**31 - 1]).columns.tolist() == [3]


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_indices_that_are_written_to_later_do_nothing(index):
    """The core trusts what it has checked, so nobody else has it to write to."""
    X = sparse.csr_array(some_matrix())
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rows, truth = as_rows(X), X.toarray()
    X.indices[:] = 2**31 - 1
    X.indptr[1:] = 2**31 - 1
    np.testing.assert_array_equal(rows.to_user().toarray(), truth)
    np.testing.assert_array_equal(_core.scores(rows.core, np.ones(4), None, 1), truth.sum(axis=1))
    user = rows.to_user()
    for shown in (rows.columns, rows.offsets, user.indices, rows.take(slice(0, 2)).columns):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 0


def test_indices_of_our_own_are_known_again_and_not_copied():
    rows = as_rows(sparse.csr_array(some_matrix()))
    user = rows.to_user()
    user.data = 2 * user.data
    again = as_rows(user)
    assert np.shares_memory(again.columns, rows.columns)
    np.testing.assert_array_equal(again.values, 2 * rows.values)
    user.indices = rows.columns.copy()  # somebody else's now
    assert not np.shares_memory(as_rows(user).columns, user.indices)
    forced = rows.to_user()
    forced.indices.flags.writeable = True
    assert not np.shares_memory(as_rows(forced).columns, rows.columns)
    back = pickle.loads(pickle.dumps(rows.to_user()))
    assert not np.shares_memory(as_rows(back).columns, back.indices)


@pytest.mark.parametrize("form", ["csc", "coo", "lil", "dok", "bsr", "dia"])
def test_other_sparse_forms_become_csr(form):
    X = sparse.coo_array(some_matrix()).asformat(form)
    rows = as_rows(X)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows.to_user().toarray(), X.toarray())


def test_disordered_csr_is_sorted_and_summed_in_a_copy():
    data = np.array([1, 2, 4, 8], np.float32)
    indices, indptr = np.array([2, 0, 2, 1], np.int32), np.array([0, 3, 4], np.int32)
    X = sparse.csr_array((data, indices, indptr), shape=(2, 3))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    rows = as_rows(X)
    assert rows.columns.tolist() == [0, 2, 1]
    assert rows.values.tolist() == [2, 5, 8]
    assert not np.shares_memory(rows.values, X.data)
    for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(a, b)


def test_unused_tail_of_csr_arrays_is_ignored():
    X = sparse.csr_array(np.eye(3, dtype=np.float32))
    X.data, X.indices = np.append(X.data, np.float32(np.nan)), np.append(X.indices, np.int32(9))
    assert as_rows(X).values.tolist() == [1, 1, 1]


def test_row_major_pandas_block_is_not_copied():
    X = some_matrix()
    frame = pd.DataFrame(X, columns=list("abcd"), copy=False)
    assert np.shares_memory(as_rows(frame).values, frame.to_numpy())


def test_mixed_columns_take_the_narrowest_exact_float():
    narrow = {"a": np.float32([0.5, 1]), "b": np.int16([1, 2]), "c": np.array([True, False])}
    wide = narrow | {"d": np.int32([1, 2])}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert as_rows(make(narrow)).dtype == np.float32
        assert as_rows(make(wide)).dtype == np.float64
        np.testing.assert_array_equal(as_rows(make(wide)).values, [[0.5, 1, 1, 1], [1, 2, 0, 2]])


def test_sparse_pandas_columns_become_csr():
    X = sparse.csr_array(np.diag(np.float32([1, 2, 3])))
    rows = as_rows(pd.DataFrame.sparse.from_spmatrix(X, columns=list("abc")))
    assert isinstance(rows, CsrRows)
    np.testing.assert_array_equal(rows.to_user().toarray(), X.toarray())


def test_descriptions():
    assert as_rows(some_matrix()).describe() == "dense float32, 7 × 4"
    assert as_rows(sparse.csr_array(np.eye(5))).describe() == "CSR float64, 5 × 5, 20 % non-zero"
