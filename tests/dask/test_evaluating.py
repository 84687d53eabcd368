"""Measures of distributed scores: to the last bit those of memory."""

from __future__ import annotations

import re

import dask
import dask.array as da
import numpy as np
import pytest
from distributed_data import as_dask_arrays, as_dataframe, as_delayed, ranking
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal, assert_equal

import linrank
from linrank.dask import evaluate
from linrank.metrics.evaluate import mean_of

METRICS = (
    *("ndcg@3", "mean_ndcg", "map", "mrr", "p@2", "err", "err(y_max=4)@2", "auc", "kendall_tau"),
    *("pairwise_accuracy", "pairwise_accuracy(over=queries)", "gamma", "all_pairs_error"),
    *("domination_error", "dominated_error(over=queries)"),
)


def plain(evaluation):
    """All of an evaluation, in its order, as plain values and arrays."""
    ids, counts = evaluation.query_ids, ("pairs", "dominating", "dominated")
    found = [getattr(evaluation, name) for name in counts]
    return {
        "means": list(evaluation.items()),
        "per_query": dict(evaluation.per_query),
        "ids": None if ids is None else ids.tolist(),
        "counts": [(type(c).__name__, None if c is None else vars(c)) for c in found],
        "convention": evaluation.convention,
    }


def assert_same(found, expected):
    """Equal in every bit, NaN included, and in the order of everything."""
    assert_equal(plain(found), plain(expected))


def scored(seed=0, *, shuffled=False):
    data = ranking(25, seed=seed, shuffled=shuffled)
    rng = np.random.default_rng(seed)
    return data, np.round(rng.normal(size=len(data.y)), 1)  # some ties


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("shuffled", [False, True])
def test_measures_are_those_in_memory(client, n_parts, shuffled):
    data, scores = scored(n_parts, shuffled=shuffled)
    lazy = as_dask_arrays(data, n_parts)
    found = evaluate(lazy.y, da.from_array(scores, chunks=9), qid=lazy.qid, metrics=METRICS)
    expected = linrank.evaluate(data.y, scores, qid=data.qid, metrics=METRICS)
    assert_same(found, expected)


@pytest.mark.parametrize("convention", ["letor", "trec_eval", "xgboost", "sklearn"])
def test_conventions_break_ties_as_in_memory(client, convention):
    data, scores = scored(3, shuffled=True)
    lazy = as_dask_arrays(data, 4)
    options = {"metrics": ["ndcg@5", "map"], "convention": convention}
    whole = linrank.evaluate(data.y, scores, qid=data.qid, **options)
    assert_same(evaluate(lazy.y, scores, qid=lazy.qid, **options), whole)


def test_without_ids_all_rows_are_one_query(client):
    data, scores = scored(4)
    found = evaluate(data.y, da.from_array(scores, chunks=10), metrics=METRICS)
    assert_same(found, linrank.evaluate(data.y, scores, metrics=METRICS))


def test_blocks_infinite_scores_and_columns_of_a_dataframe(client):
    data, scores = scored(6, shuffled=True)
    scores[::7], scores[3::7] = np.inf, -np.inf
    expected = linrank.evaluate(data.y, scores, qid=data.qid)
    lazy = as_delayed(data._replace(weight=scores), 3)
    assert_same(evaluate(lazy.y, lazy.weight, qid=lazy.qid, client=client), expected)
    lazy = as_dataframe(data._replace(weight=scores), 4).X
    assert_same(evaluate(lazy["label"], lazy["u"], qid=lazy["query"]), expected)


def test_empty_partitions_take_no_part(client):
    data, scores = scored(7)
    lazy = as_dask_arrays(data._replace(weight=scores), 3)
    kept, mine = lazy.qid == data.qid[-1], data.qid == data.qid[-1]
    found = evaluate(lazy.y[kept], lazy.weight[kept], qid=lazy.qid[kept])
    assert_same(found, linrank.evaluate(data.y[mine], scores[mine], qid=data.qid[mine]))


Y, S, Q = [np.array([0, 1])] * 2, [np.array([0.5, 1.5])] * 2, [np.array([1, 1])] * 2
BAD = {
    "partition 1: scores has nan at row 1 (1 such rows)": (Y, [S[0], np.array([0, np.nan])], Q),
    "partition 0: Input y contains NaN at row 0": ([np.array([np.nan, 1]), Y[1]], S, Q),
    "partition 1: inconsistent lengths: y has 2 rows but scores has 1": (Y, [S[0], S[1][:1]], Q),
    "partition 1: qid has 3 elements but there are 2 rows": (Y, S, [Q[0], np.arange(3)]),
    "partition 1: y has the negative label -1 at row 0": ([Y[0], Y[1] - 1], S, Q),
    "y has 2 partitions but scores has 1, and where": (Y, S[:1], Q),
}


@pytest.mark.parametrize("message", BAD)
def test_what_cannot_be_evaluated_is_refused_by_partition(client, message):
    y, s, q = ([dask.delayed(block) for block in v] for v in BAD[message])
    with pytest.raises(ValueError, match=re.escape(message)):
        evaluate(y, s, qid=q)


def test_arrays_in_memory_are_for_linrank_evaluate(client):
    with pytest.raises(TypeError, match=r"y is a numpy\.ndarray, which is not distributed; use"):
        evaluate(Y[0], S[0], qid=Q[0])


@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")) | st.floats(-1, 1), max_size=30))
def test_the_mean_has_the_bits_of_the_core(values):
    """The loop of the core, written out."""
    total = lost = 0.0
    taken = [v for v in values if v == v]
    for v in taken:
        after = total + v
        lost += (total - after) + v if abs(total) >= abs(v) else (v - after) + total
        total = after
    expected = (total + lost) / len(taken) if taken else float("nan")
    assert_array_equal(mean_of(np.array(values, float)), expected)
