"""Scaling by columns is folded into the model; scaling by query is a copy of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank.data.rows import as_rows
from linrank.data.scaling import Scaling
from linrank.ranksvm.train import train
from strategies import datasets


def dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def by_query(X, qid):
    """The definition: every row over the range of its query, constant features 0."""
    out = np.zeros_like(X)
    for q in np.unique(qid):
        block = X[qid == q]
        width = block.max(axis=0) - block.min(axis=0)
        out[qid == q] = np.divide(block, width, out=np.zeros_like(block), where=width > 0)
    return out


@given(datasets(), st.data())
def test_rows_of_weight_zero_are_absent_and_weight_two_counts_twice(data, draw):
    n = data.n_rows
    u = np.array(draw.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=np.float64)
    u[0] = 1.0
    repeated = data.rows.take(np.repeat(np.arange(n), u.astype(int)))
    for kind in ("standard", "minmax"):
        weighted = Scaling.fit(kind, data.rows, weight=u).factors
        assert_allclose(weighted, Scaling.fit(kind, repeated).factors, rtol=1e-9)


def test_factors_are_those_of_scikit_learn():
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = np.random.default_rng(0).lognormal(size=(200, 7))
    X[:, 3], is_varying = 2.5, np.arange(7) != 3
    for kind, factors in (
        ("standard", 1 / StandardScaler().fit(X).scale_),
        ("minmax", MinMaxScaler().fit(X).scale_),
    ):
        found = Scaling.fit(kind, as_rows(X)).factors
        assert_allclose(found, np.where(is_varying, factors, 0.0))


@pytest.mark.parametrize("kind", ["standard", "minmax"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_folded_equals_transformed(kind, make):
    """Training with factors equals training on columns multiplied by them."""
    from linrank import make_ranking

    data = make_ranking(n_queries=20, n_features=6, dtype="float64", random_state=4)
    data = replace(data, rows=as_rows(make(data.X)))
    scaling = Scaling.fit(kind, data.rows)
    folded = train(data, scale=scaling.factors, tol=1e-10)
    transformed = train(replace(data, rows=as_rows(dense(data.X) * scaling.factors)), tol=1e-10)
    assert_allclose(folded.value, transformed.value, rtol=1e-9)
    assert_allclose(folded.w, transformed.w, rtol=1e-5, atol=1e-7)
    scores = dense(data.X) @ scaling.fold(folded.w)
    assert_allclose(scores, dense(data.X) * scaling.factors @ folded.w)


@given(datasets(), st.sampled_from(["none", "standard", "minmax", "query"]))
def test_scaled_rows_equal_the_definition(data, kind):
    scaling, before = Scaling.fit(kind, data.rows), dense(data.X).copy()
    scaled = scaling.rows(data.rows, data.queries)
    expected = by_query(before, data.qid) if kind == "query" else before
    if scaling.factors is not None:
        expected = before * scaling.factors
    assert_allclose(dense(scaled.to_user()), expected, rtol=1e-6)
    assert scaled.dtype == data.rows.dtype
    assert (scaled is data.rows) == (kind == "none")
    assert type(scaled) is type(data.rows)
    assert_array_equal(dense(data.X), before)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_what_cannot_be_scaled_is_an_error(make):
    rows = as_rows(make(np.array([[1.0, 0.0], [2.0, 1e38]], dtype=np.float32)))
    factors = np.array([1.0, 100.0])
    with pytest.raises(ValueError, match=r"at row 1, column 1 by 100, .* too large for float32"):
        Scaling("standard", factors).rows(rows)
    with pytest.raises(ValueError, match="3 scaling factors for 2 features"):
        Scaling("minmax", np.ones(3)).rows(rows)
    with pytest.raises(ValueError, match="within a query: give the queries"):
        Scaling("query").rows(rows)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=9))
def test_unfold_inverts_fold_where_features_are_kept(factors):
    d = np.where(np.array(factors) < 1e-3, 0.0, factors)
    scaling, w = Scaling("standard", d), np.arange(1.0, len(d) + 1)
    assert_allclose(scaling.unfold(scaling.fold(w)), np.where(d > 0, w, 0.0))


@pytest.mark.parametrize("kind", ["standard", "minmax"])
@pytest.mark.parametrize("column", [[-1.7e308, 1.7e308], [0.0, 5e-324]])
def test_a_range_beyond_double_is_an_error(kind, column):
    X = np.column_stack([[1.0, 2.0], column])
    with pytest.raises(ValueError, match=r"feature 1 ranges from .* rescale it"):
        Scaling.fit(kind, as_rows(X))


@pytest.mark.parametrize(
    ("kind", "factors", "message"),
    [
        (
            "robust",
            None,
            "scale must be 'none', 'standard', 'minmax' or 'query', got 'robust'",
        ),
        ("standard", None, "needs factors"),
        ("query", np.ones(2), "takes no factors"),
        ("minmax", np.array([1.0, -1.0]), "finite and >= 0"),
        ("minmax", np.array([1.0, np.nan]), "finite and >= 0"),
    ],
)
def test_a_wrong_scaling_is_an_error(kind, factors, message):
    with pytest.raises(ValueError, match=message):
        Scaling(kind, factors)
