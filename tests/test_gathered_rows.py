"""Rows that lie elsewhere: training by gathered scores is training."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows
from linrank.data.scaling import Scaling
from linrank.parts.gathered_rows import GatheredRows, gather_rows
from linrank.ranksvm.path import as_Cs
from linrank.ranksvm.train import Problem, train
from linrank.search.folds import deal
from path_searches import path_over, tune
from plain_gathering import PlainGathering, cut
from small_data import small, weighted
from strategies import datasets


def giant(n_rows: int = 400, n_features: int = 5, seed: int = 0) -> Dataset:
    """One query: labels of four grades that a linear function explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    utility = X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows)
    return Dataset.of(X, np.digitize(utility, [-1.0, 0.5, 2.0]))


def lazily(data: Dataset, n_blocks: int = 3) -> Dataset:
    return gather_rows(PlainGathering(cut(data, n_blocks)))


def rows_of(data: Dataset, n_blocks: int) -> GatheredRows:
    rows = lazily(data, n_blocks).rows
    assert isinstance(rows, GatheredRows)
    return rows


# ---- the products -------------------------------------------------------------------------------


@given(datasets(max_rows=20), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_products_are_those_of_the_rows_together(data, n_blocks, seed):
    rng = np.random.default_rng(seed)
    n_blocks = min(n_blocks, data.n_rows)
    rows = rows_of(data, n_blocks)
    order = rng.permutation(data.n_rows)[: rng.integers(1, data.n_rows + 1)]
    w, r = rng.standard_normal(data.n_features), rng.standard_normal(len(order))
    assert rows.shape == data.rows.shape
    assert_array_equal(rows.scores(w, order, 1), data.rows.scores(w, order, 1))
    assert_array_equal(rows.scores(w, None, 1), data.rows.scores(w, None, 1))
    assert_allclose(
        rows.gradient(r, order, 1), data.rows.gradient(r, order, 1), rtol=1e-12, atol=1e-12
    )


@given(datasets(max_rows=20), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_rows_taken_where_they_are_are_rows_taken(data, n_blocks, seed):
    rng = np.random.default_rng(seed)
    rows = rows_of(data, min(n_blocks, data.n_rows))
    index = rng.permutation(data.n_rows)[: rng.integers(1, data.n_rows + 1)]
    taken, truth = rows.take(index), data.rows.take(index)
    w, r = rng.standard_normal(data.n_features), rng.standard_normal(len(index))
    again = rng.permutation(len(index))
    assert_array_equal(taken.scores(w, None, 1), truth.scores(w, None, 1))
    assert_array_equal(taken.scores(w, again, 1), truth.scores(w, again, 1))
    assert_allclose(taken.gradient(r, again, 1), truth.gradient(r, again, 1), atol=1e-12)
    coefs = rng.standard_normal((3, data.n_features))
    assert_array_equal(
        taken.score_matrix(coefs, 1), [truth.scores(coef, None, 1) for coef in coefs]
    )
    stored = taken.stored(again, 1)
    assert isinstance(stored, type(data.rows))
    assert_array_equal(_dense(stored), _dense(truth.take(again)))


def _dense(rows):
    X = rows.to_user()
    return X.toarray() if isinstance(rows, CsrRows) else X


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_scaling_is_that_of_the_rows_together(kind):
    data = weighted(small(3))
    part = np.arange(5, data.n_rows, 2)
    for truth, lazy in [(data, lazily(data)), (data.select(part), lazily(data).select(part))]:
        expected = Scaling.fit(kind, truth.rows, weight=truth.weight).factors
        assert_allclose(Scaling.fit(kind, lazy.rows, weight=lazy.weight).factors, expected)


def test_scaling_by_query_is_refused():
    lazy = lazily(small())
    with pytest.raises(ValueError, match=r"scale='query'.*blocks elsewhere.*'standard'"):
        Scaling("query").transform(lazy.rows, lazy.queries)


# ---- training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_blocks", [1, 2, 7])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pairs": "adjacent"},
        {"pairs": "pruned", "seed": 3},
        {"pair_weighting": "gain_diff"},
        {"scale": np.linspace(0.5, 2.0, 5)},
        {"bounds": (np.zeros(5), np.full(5, np.inf))},
    ],
    ids=str,
)
def test_a_giant_query_is_learnt_as_in_memory(n_blocks, options):
    data = giant()
    truth = train(data, C=0.01, tol=1e-15, **options)
    found = train(lazily(data, n_blocks), C=0.01, tol=1e-15, **options)
    assert_allclose(found.w, truth.w, rtol=1e-9, atol=1e-11)
    assert_allclose(found.value, truth.value, rtol=1e-12)


def test_the_hinge_of_a_giant_query():
    data = giant()
    truth = train(data, C=0.01, loss="hinge", tol=1e-5)
    found = train(lazily(data), C=0.01, loss="hinge", tol=1e-5)
    assert found.converged
    assert abs(found.value - truth.value) <= found.gap + truth.gap


@pytest.mark.parametrize("data", [small(1), weighted(small(2))])
def test_queries_that_are_cut_by_blocks_are_whole_again(data):
    rng = np.random.default_rng(0)
    shuffled = data.select(rng.permutation(data.n_rows))
    truth = train(shuffled, C=0.3, tol=1e-13)
    found = train(lazily(shuffled, 5), C=0.3, tol=1e-13)
    assert_allclose(found.w, truth.w, rtol=1e-9)


def test_sparse_rows_of_many_features_need_no_hessian(monkeypatch):
    rng = np.random.default_rng(0)
    from scipy import sparse

    X = sparse.random_array((60, 5000), density=0.01, rng=rng, format="csr")
    data = Dataset.of(X, rng.integers(0, 3, 60))
    lazy = lazily(data)
    truth, found = (train(d, C=0.1, tol=1e-12) for d in (data, lazy))
    assert_allclose(found.w, truth.w, rtol=1e-7, atol=1e-10)
    Cs = as_Cs([0.01, 0.1])
    assert_allclose(
        path_over(lazy, Cs, tol=1e-10)[0].coefs,
        path_over(data, Cs, tol=1e-10)[0].coefs,
        rtol=1e-4,
        atol=1e-7,
    )


def test_a_product_costs_a_gather_and_a_scatter():
    gathering = PlainGathering(cut(giant(), 4))
    data = gather_rows(gathering)
    point = Problem.of(data, 1.0).objective().at(np.ones(5))
    _ = point.gradient
    gathering.asked.clear()
    point.hvp(np.ones(5))
    assert gathering.asked == {"block_score_matrix": 1, "block_slopes": 1}


def test_a_path_of_a_giant_query():
    data, Cs = giant(), as_Cs([1e-4, 1e-3, 1e-2])
    truth, _ = path_over(data, Cs, tol=1e-9, scale="standard")
    found, _ = path_over(lazily(data), Cs, tol=1e-9, scale="standard")
    assert found.converged.all()
    assert_allclose(found.coefs, truth.coefs, rtol=1e-4)


def test_cross_validation_of_a_giant_query():
    data, Cs = giant(), as_Cs([1e-4, 1e-2])
    truth, found = (
        tune(d, deal(d, 3), Cs, scoring="ndcg@10", scale="minmax", tol=1e-10, n_jobs=1)
        for d in (data, lazily(data))
    )
    assert_allclose(found.scores, truth.scores, rtol=1e-12)


# ---- what cannot be put together ----------------------------------------------------------------


def test_ids_of_blocks_of_several_types_are_not_merged() -> None:
    ids = [np.array([2**53, 2**53 + 1]), np.array([0.0, 2.0**53]), np.array([1, 2], np.uint64)]
    blocks = [Dataset.of(np.eye(2), [0, 1], qid=qid) for qid in ids]
    together = gather_rows(PlainGathering(blocks))
    assert together.queries.ids is not None
    assert together.queries.ids.tolist() == [2**53, 2**53 + 1, 0.0, 1, 2]
