"""Datasets: names, labels, ids and weights come through, and rows can be selected."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows, as_rows
from linrank.data.words import Words
from strategies import datasets


def some_matrix(dtype="float32", shape=(7, 4)):
    rng = np.random.default_rng(0)
    return (rng.integers(-8, 9, shape) / 4).astype(dtype)


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


def test_names_that_are_not_strings_are_no_names():
    assert Dataset.of(pd.DataFrame(some_matrix()), np.arange(7)).feature_names is None


def test_qid_column_is_harmless_once_qid_is_given():
    frame = pd.DataFrame({"qid": [1, 1, 2], "a": [0.5, 1, 2]})
    assert Dataset.of(frame, [0, 1, 0], qid=frame["qid"]).n_features == 2
    assert Dataset.of(frame, [0, 1, 0], group=[2, 1]).n_features == 2


def test_a_dataset_is_shown_in_one_line():
    data = Dataset.of(some_matrix(), np.arange(7), qid=list("aabbbcc"))
    assert repr(data) == "<Dataset <array>: 3 queries; dense float32, 7 × 4>"
    assert "one query" in repr(Dataset.of(some_matrix(), np.arange(7)))


def test_inputs_may_be_read_only_and_are_not_written_to():
    X, y, qid, w = some_matrix(), np.arange(7.0), np.arange(7) % 3, np.ones(7)
    for a in (X, y, qid, w):
        a.flags.writeable = False
    data = Dataset.of(X, y, qid=qid, sample_weight=w)
    assert data.queries.n_queries == 3
    assert np.shares_memory(data.y, y)
    assert np.shares_memory(data.weight, w)


@given(datasets(), st.data())
def test_select_takes_rows(data, draw):
    n = data.n_rows
    index = draw.draw(
        st.one_of(
            st.lists(st.integers(-n, n - 1), min_size=1),
            st.lists(st.booleans(), min_size=n, max_size=n),
            st.slices(n),
        )
    )
    picked = np.arange(n)[index if isinstance(index, slice) else np.asarray(index)]
    part = data.select(index)
    dense = data.X if isinstance(data.rows, DenseRows) else data.X.toarray()
    got = part.X if isinstance(part.rows, DenseRows) else part.X.toarray()
    np.testing.assert_array_equal(got, dense[picked])
    np.testing.assert_array_equal(part.labels, data.labels[picked])
    np.testing.assert_array_equal(part.qid, data.qid[picked])
    assert part.rows.core.shape == (len(picked), data.n_features)


@pytest.mark.parametrize("index", [[False] * 7, [], slice(5, 2), slice(None, None, -1)])
def test_no_rows_and_rows_backwards_can_be_selected(index):
    """An empty selection once had strides that the core refused."""
    for X in (some_matrix(), sparse.csr_array(some_matrix())):
        part = Dataset.of(X, np.arange(7)).select(index)
        assert part.rows.core.shape == part.rows.shape == (len(part.labels), 4)


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


def test_no_scipy_until_it_is_needed():
    import subprocess
    import sys

    code = (
        "import sys, numpy as np\n"
        "from linrank.data.dataset import Dataset\n"
        "from linrank.data.synthetic import make_ranking\n"
        "Dataset.of(np.ones((2, 2)), [0, 1]).queries, make_ranking(2)\n"
        "heavy = {'scipy', 'sklearn', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
