"""Data for the tests of stores, and what it means that they hold the same."""

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


def assert_rows(found, data):
    """The same data in the same order, to the bit, in whatever storage."""
    x, expected = dense(found.X), dense(data.X)
    assert (x.dtype, x.shape) == (expected.dtype, expected.shape)
    if found.rows.is_sparse or data.rows.is_sparse:  # which have no -0
        x, expected = x + 0.0, expected + 0.0
    assert x.tobytes() == expected.tobytes()
    assert found.labels.tobytes() == data.labels.tobytes()
    for name in ("qid", "weight"):
        mine, other = getattr(found, name), getattr(data, name)
        assert (mine is None) == (other is None)
        assert_array_equal(mine, other)
    assert found.docids == data.docids


def assert_same(found, data):
    """The same data, the rows of the first query by query."""
    assert_rows(found, grouped(data))
    for name in ("offsets", "levels", "n_levels", "ids"):
        assert_array_equal(getattr(found.queries, name), getattr(data.queries, name))
    assert found.queries.order is None
    assert found.queries.n_pairs == data.queries.n_pairs


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
