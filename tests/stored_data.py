"""Data for the tests of stores, and what it means that they hold the same."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal
from scipy import sparse

from linrank.data.dataset import Dataset
from linrank.data.words import Comments, Words


def dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def grouped(data):
    """The rows query by query."""
    return data if data.queries.order is None else data.select(data.queries.order)


def assert_same(found, data):
    """The same data, but for the order of rows and the type of indices."""
    expected = grouped(data)
    assert_array_equal(dense(found.X), dense(expected.X))
    assert found.rows.dtype == expected.rows.dtype
    assert_array_equal(found.labels, expected.labels)
    assert_array_equal(found.qid, expected.qid)
    assert (found.weight is None) == (expected.weight is None)
    if found.weight is not None:
        assert_array_equal(found.weight, expected.weight)
    for name in ("offsets", "levels", "n_levels", "ids"):
        assert_array_equal(getattr(found.queries, name), getattr(data.queries, name))
    assert found.queries.order is None
    assert found.queries.n_pairs == data.queries.n_pairs
    assert found.docids == expected.docids


def example(n_queries=30, storage="dense", dtype="float32", **options):
    """Queries of 1 to 9 rows, with ids, weights and documents."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 10, n_queries)
    n = int(sizes.sum())
    X = rng.normal(size=(n, 7)).astype(dtype)
    X[rng.random(X.shape) < 0.6] = 0
    data = Dataset.of(
        sparse.csr_array(X) if storage == "csr" else X,
        rng.integers(0, 3, n),
        qid=np.repeat(rng.permutation(n_queries) * 10, sizes),
        sample_weight=rng.integers(1, 4, n) / 2,
        feature_names=[f"f{j}" for j in range(7)],
    )
    words = Words.of(f"docid = d{i} of λ" for i in range(n))
    return Dataset(
        data.rows,
        data.labels,
        data.qid,
        data.weight,
        data.feature_names,
        Comments(words.text, words.offsets),
        index_base=1,
    )
