"""Paths on a cluster: the models of the same rows in memory."""

from __future__ import annotations

import pytest
from distributed_data import as_dask_arrays, as_delayed, ranking
from numpy.testing import assert_allclose

import linrank
from linrank.dask import ranksvm_path

GRID = [1e-3, 0.05, 1.0]


def in_memory(data, **options):
    return linrank.ranksvm_path(
        data.X, data.y, data.qid, sample_weight=data.weight, Cs=GRID, tol=1e-12, **options
    )


@pytest.mark.parametrize(
    ("n_parts", "options"),
    [
        (1, {}),
        (2, {"scale": "standard"}),
        (5, {"scale": "query", "pairs": "adjacent"}),
        (5, {"positive": True, "scale": "minmax"}),
    ],
    ids=str,
)
def test_a_path_is_that_in_memory(client, n_parts, options):
    data = ranking(15)
    there = as_dask_arrays(data, n_parts)
    found = ranksvm_path(
        there.X, there.y, there.qid, sample_weight=there.weight, Cs=GRID, tol=1e-12, **options
    )
    truth = in_memory(data, **options)
    assert found.converged.all()
    assert_allclose(found.coefs, truth.coefs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"scale": "standard"}, {"pairs": "pruned", "random_state": 3}], ids=str
)
def test_split_queries_by_gathered_scores(client, options):
    """Rows stay where they are: every query of shuffled rows lies in all partitions."""
    data = ranking(9, shuffled=True)
    there = as_delayed(data, 4)
    found = ranksvm_path(
        there.X,
        there.y,
        there.qid,
        sample_weight=there.weight,
        Cs=GRID,
        tol=1e-12,
        on_split="gather",
        **options,
    )
    assert_allclose(found.coefs, in_memory(data, **options).coefs, rtol=1e-7, atol=1e-9)


def test_pairs_that_need_all_queries_are_refused(client):
    there = as_dask_arrays(ranking(), 2)
    with pytest.raises(ValueError, match=r"pairs='pruned'.*a cluster"):
        ranksvm_path(there.X, there.y, there.qid, pairs="pruned")
