"""Rows and data sets: no silent copy, no silent upcast, names, labels and ids come through."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank import Dataset, _core
from linrank.data.rows import CsrRows, DenseRows, as_rows
from linrank.data.words import Words
from stored_data import dense
from strategies import datasets


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


@pytest.mark.parametrize("given", ["float16", "bool", "int8", "uint64", "longdouble", "object"])
def test_other_numbers_become_floats(given):
    rows = as_rows(np.array([[0, 1], [1, 0]]).astype(given))
    assert rows.dtype == ("float32" if given == "float16" else "float64")
    assert_array_equal(rows.values, [[0, 1], [1, 0]])


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
    """What lies behind the last entry is ignored."""
    data, indptr = np.array([1, 2, 4, 8, np.nan], np.float32), np.array([0, 3, 4], np.int32)
    X = sparse.csr_array((2, 3), dtype=np.float32)
    X.data, X.indices, X.indptr = data, np.array([2, 0, 2, 1, 9], np.int32), indptr
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    rows = as_rows(X)
    assert rows.columns.tolist() == [0, 2, 1]
    assert rows.values.tolist() == [2, 5, 8]
    assert not np.shares_memory(rows.values, X.data)
    for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(a, b)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_bits_wherever_it_stands(dtype):
    """The kernels take four rows at a time, and rows of 8 to 23 numbers without a loop."""
    rng = np.random.default_rng(0)
    for n_columns in [*range(1, 42), 136]:
        X = rng.standard_normal((23, n_columns)).astype(dtype)
        w, order = rng.standard_normal(n_columns), rng.permutation(23)
        scores = _core.scores(DenseRows(X).core, w, None, 1)
        exact = [
            math.fsum(x * v for x, v in zip(row, w.tolist(), strict=True)) for row in X.tolist()
        ]
        bound = 1e-15 * n_columns * (abs(X) @ abs(w))
        assert (abs(scores - exact) <= bound).all(), n_columns
        alone = [_core.scores(DenseRows(X[i : i + 1]).core, w, None, 1)[0] for i in range(23)]
        assert_array_equal(scores, alone, str(n_columns))
        assert_array_equal(_core.scores(DenseRows(X).core, w, order, 1), scores[order])
        wide = np.pad(X, ((0, 0), (0, 3)))[:, :n_columns]  # rows that lie apart
        assert_array_equal(_core.scores(DenseRows(wide).core, w, None, 1), scores)


def test_scores_do_not_depend_on_threads_or_on_where_they_are_kept():
    """Those of more than 32 MB are in pages of their own, others from the allocator."""
    n_rows = (32 << 20) // 8 + 5
    X = np.random.default_rng(1).random((n_rows, 1), dtype=np.float32)
    w = np.array([3.0])
    scores = _core.scores(DenseRows(X).core, w, None, 2)
    assert_allclose(scores, 3.0 * X[:, 0].astype(np.float64), rtol=1e-15)
    half = n_rows // 2
    assert_array_equal(_core.scores(DenseRows(X[:half]).core, w, None, 1), scores[:half])


def frames_of(X, names):
    columns = {name: X[:, j] for j, name in enumerate(names)}
    return {
        "pandas": pd.DataFrame(columns),
        "pandas one block": pd.DataFrame(X, columns=list(names), copy=False),
        "pandas float index": pd.DataFrame(columns, index=np.arange(len(X)) / 2 - 1),
        "pandas nullable": pd.DataFrame(columns).astype(pd.Series(X[0]).dtype.name.capitalize()),
        "pandas arrow": pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.DataFrame(columns),
        "pyarrow": pa.table(columns),
        "pyarrow chunks": pa.concat_tables([pa.table(columns)[:3], pa.table(columns)[3:]]),
        "pyarrow batch": pa.table(columns).to_batches()[0],
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", list(frames_of(some_matrix(), "abcd")))
def test_frames_keep_type_and_names(kind, dtype):
    X = some_matrix(dtype, (9, 37))
    names = tuple(f"f{j}" for j in range(37))
    frame = frames_of(X, names)[kind]
    data = Dataset.of(frame, np.arange(9))
    assert data.rows.dtype == dtype
    assert data.feature_names == names
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, X)


def test_labels_and_ids_may_be_columns():
    y = np.array([1, 0, 2], np.int8)
    for make in (pd.Series, pl.Series, pa.array, lambda a: pa.chunked_array([a]), list, pd.array):
        data = Dataset.of(np.ones((3, 1)), make(y), qid=make(y > 0), sample_weight=make(y))
        assert data.y.tolist() == [1, 0, 2]
        assert data.weight.tolist() == [1, 0, 2]
        assert data.queries.n_queries == 2


def test_qid_column_is_harmless_once_qid_is_given():
    assert Dataset.of(pd.DataFrame(some_matrix()), np.arange(7)).feature_names is None
    frame = pd.DataFrame({"qid": [1, 1, 2], "a": [0.5, 1, 2]})
    assert Dataset.of(frame, [0, 1, 0], qid=frame["qid"]).n_features == 2
    assert Dataset.of(frame, [0, 1, 0], group=[2, 1]).n_features == 2


def test_a_dataset_is_shown_in_one_line():
    data = Dataset.of(some_matrix(), np.arange(7), qid=list("aabbbcc"))
    assert repr(data) == "<Dataset <array>: 3 queries; dense float32, 7 × 4>"
    assert "one query" in repr(Dataset.of(some_matrix(), np.arange(7)))


def test_inputs_may_be_read_only_and_are_not_written_to():
    X, y, qid, w = some_matrix(), np.arange(7.0), np.arange(7) % 3, np.ones(7)
    frame = pd.DataFrame(X, columns=list("abcd"), copy=False)  # of one block by rows
    for a in (X, y, qid, w):
        a.flags.writeable = False
    for rows in (X, frame):
        data = Dataset.of(rows, y, qid=qid, sample_weight=w)
        assert data.queries.n_queries == 3
        for own, source in ((data.y, y), (data.weight, w), (data.X, np.asarray(rows))):
            assert np.shares_memory(own, source)


@given(datasets(), st.data())
def test_select_takes_rows(data, draw):
    """None of them, too: an empty selection once had strides that the core refused."""
    n = data.n_rows
    numbers, mask = (
        st.lists(st.integers(-n, n - 1)),
        st.lists(st.booleans(), min_size=n, max_size=n),
    )
    index = draw.draw(numbers | mask | st.slices(n))
    picked = list(range(n))[index] if isinstance(index, slice) else np.arange(n)[index or slice(0)]
    part = data.select(index)
    for found, expected in (
        (dense(part.X), dense(data.X)),
        (part.labels, data.labels),
        (part.qid, data.qid),
    ):
        np.testing.assert_array_equal(found, expected[picked])
    assert part.rows.core.shape == part.rows.shape == (len(picked), data.n_features)


def test_a_slice_of_rows_is_a_view():
    for X in (some_matrix(), sparse.csr_array(some_matrix())):
        data = Dataset.of(X, np.arange(7))
        assert np.shares_memory(data.select(slice(2, 5)).rows.values, data.rows.values)


@given(datasets())
def test_pickle_keeps_everything(data):
    assert data.rows.core.shape == data.rows.shape
    again = pickle.loads(pickle.dumps(data))
    assert again.rows.core.shape == data.rows.shape
    np.testing.assert_array_equal(again.rows.values, data.rows.values)
    np.testing.assert_array_equal(again.queries.levels, data.queries.levels)


def test_comments_follow_selection():
    rows = as_rows(some_matrix())
    data = Dataset(rows, np.arange(7.0), comments=Words.of([*"abcdef", ""]))
    assert data.docids == [*"abcdef", None]
    assert data.select([6, 0]).docids == [None, "a"]
    assert Dataset(rows, np.arange(7.0)).docids is None


@pytest.mark.parametrize("n", [0, 1, 1000, 65_537, 200_001])
def test_vectors_of_weights_have_the_same_bits_on_any_threads(n):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(2, n))
    assert _core.dot(x, y) == pytest.approx(x @ y, abs=1e-9)
    for n_threads in (2, 5, 64):
        assert _core.dot(x, y, n_threads) == _core.dot(x, y)
        found = y.copy()
        _core.add_to(found, -0.3, x, n_threads)
        assert_array_equal(found, y + -0.3 * x)
        assert_array_equal(_core.add_scaled(y, -0.3, x, n_threads), found)
    with pytest.raises(ValueError, match="x"):
        _core.add_to(y, 1.0, np.zeros(n + 1), 1)
