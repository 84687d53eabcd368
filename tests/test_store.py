"""Stores: what is written comes back, chunk by chunk and mapped."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from linrank.store.store import Store
from strategies import datasets


def dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def assert_same(found, data):
    """The rows of a dataset, in any order of queries and storage of indices."""
    order = data.queries.order
    expected = data if order is None else data.select(order)
    assert_array_equal(dense(found.X), dense(expected.X))
    assert found.rows.dtype == expected.rows.dtype
    assert_array_equal(found.labels, expected.labels)
    assert_array_equal(found.qid, expected.qid)
    assert (found.weight is None) == (expected.weight is None)
    if found.weight is not None:
        assert_array_equal(found.weight, expected.weight)
    for name in ("offsets", "levels", "n_levels", "ids"):
        assert_array_equal(getattr(found.queries, name), getattr(data.queries, name))
    assert found.queries.n_pairs == data.queries.n_pairs


@given(data=datasets(weights=True), chunk_bytes=st.sampled_from([1, 50, 200, 1 << 20]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_comes_back(data, chunk_bytes, tmp_path):
    store = Store.of(tmp_path / "store", data, chunk_bytes=chunk_bytes, overwrite=True)
    assert_same(store.dataset(), data)
    assert (store.n_rows, store.n_features) == (data.n_rows, data.n_features)
    assert (store.n_queries, store.n_pairs) == (data.queries.n_queries, data.queries.n_pairs)
    order = data.queries.order
    grouped = data if order is None else data.select(order)
    for i, chunk in enumerate(store.chunks):
        assert_same(store.read(i), grouped.select(chunk.rows))
