"""Queries: grouping is a stable sort by first appearance, levels are dense ranks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linrank import _core
from linrank.data.queries import Queries
from strategies import label_vectors, query_ids, scored_queries


def grouped_by_definition(labels, qid):
    """Queries in order of first appearance, each a list of rows, and their dense ranks."""
    ids = list(dict.fromkeys(qid.tolist()))
    rows = [[i for i in range(len(qid)) if qid[i] == id_] for id_ in ids]
    ranks = [[sorted(set(labels[r])).index(labels[i]) for i in r] for r in rows]
    return ids, rows, ranks


@given(scored_queries(max_rows=40))
def test_equals_definition(case):
    queries = case.queries
    ids, rows, ranks = grouped_by_definition(case.labels, case.qid)
    order = np.arange(len(case.qid)) if queries.order is None else queries.order
    assert queries.ids.tolist() == ids
    assert order.tolist() == [i for r in rows for i in r]
    assert queries.offsets.tolist() == np.cumsum([0] + [len(r) for r in rows]).tolist()
    assert queries.levels.tolist() == [level for r in ranks for level in r]
    assert queries.n_levels.tolist() == [max(r) + 1 for r in ranks]
    assert queries.n_pairs == len(case.pairs())
    per_query = [sum(case.qid[i] == id_ for i, _ in case.pairs()) for id_ in ids]
    assert queries.pairs_per_query.tolist() == per_query
    runs = 1 + int(np.count_nonzero(case.qid[1:] != case.qid[:-1]))
    assert (queries.order is None) == (runs == len(ids))


@given(scored_queries(max_rows=30))
def test_scatter_undoes_gather(case):
    queries, one = case.queries, Queries.of(case.labels)
    np.testing.assert_array_equal(queries.scatter(queries.gather(case.scores)), case.scores)
    if queries.order is None:
        assert queries.gather(case.scores) is case.scores
    assert (one.ids, one.order, one.n_queries) == (None, None, 1)  # without ids


@given(scored_queries(max_rows=30))
def test_any_type_of_id_groups_alike(case):
    expected = case.queries
    names = np.array([f"query {code}" for code in case.qid])
    for qid in [
        case.qid.astype(np.int8),
        case.qid.astype(np.uint64) + np.uint64(2**63),
        case.qid.astype(np.float32),
        case.qid[:, None],
        case.qid.tolist(),
        names,
        names.astype("S"),
        names.astype(object),
        names.tolist(),
        [("a", int(code)) for code in case.qid],
        case.qid.astype("datetime64[D]"),
        pd.Series(names).astype("category"),
        pd.Series(case.qid, dtype="Int64"),
        pl.Series(names.tolist(), dtype=pl.Categorical),
        pa.array(names.tolist()).dictionary_encode(),
        pa.chunked_array([pa.array(case.qid)]),
    ]:
        queries = Queries.of(case.labels, qid)
        np.testing.assert_array_equal(queries.offsets, expected.offsets)
        np.testing.assert_array_equal(queries.levels, expected.levels)
        assert (queries.order is None) == (expected.order is None)
        if expected.order is not None:
            np.testing.assert_array_equal(queries.order, expected.order)


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(label_vectors(n), query_ids(n))))
def test_group_equals_qid(case):
    labels, qid = case[0], np.sort(case[1])
    sizes = np.unique(qid, return_counts=True)[1]
    a, b = Queries.of(labels, qid), Queries.of(labels, group=sizes)
    np.testing.assert_array_equal(a.offsets, b.offsets)
    np.testing.assert_array_equal(a.levels, b.levels)
    assert b.order is None
    assert b.ids.tolist() == list(range(len(sizes)))


def test_mixed_ids_stay_apart():
    assert Queries.of([0, 1, 2], qid=[1, "1", 1.5]).n_queries == 3
    assert Queries.of([0, 1], qid=[2**70, 2**70 + 1]).n_queries == 2
    assert Queries.of([0, 1], qid=np.array([0.0, -0.0])).n_queries == 1
    assert Queries.of([0.0, -0.0]).n_pairs == 0


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 5])
@pytest.mark.parametrize("n_values", [3, 17, 1000, 10**9])
def test_large_queries_rank_as_unique_does(n_jobs, n_values):
    """The sorted path, chunked and merged, on one giant query beside small ones."""
    rng = np.random.default_rng(n_values)
    labels = rng.integers(0, n_values, 210_000) / 7
    qid = np.repeat([0, 1, 2], [150_000, 10, 59_990])
    queries = Queries.of(labels, qid, n_jobs=n_jobs)
    for q in range(3):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        values, ranks = np.unique(labels[rows], return_inverse=True)
        np.testing.assert_array_equal(queries.levels[rows], ranks)
        assert queries.n_levels[q] == len(values)


def test_pairs_of_a_giant_query_need_64_bits():
    n = 200_000
    queries = Queries.of(np.arange(n) % 100_000)
    assert queries.n_pairs == (n**2 - 100_000 * 2**2) // 2 > 2**33


def test_sum_of_pairs_does_not_overflow():
    queries = Queries.of(np.arange(4), qid=[0, 0, 1, 1])
    object.__setattr__(queries, "pairs_per_query", np.array([2**62 + 1, 2**62 + 1, 2**62 + 1]))
    assert queries.n_pairs == 3 * 2**62 + 3


def test_integer_ids_survive_a_growing_table():
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.arange(-30_000, 30_000) * 2**40)
    codes, first = _core.factorize(np.concatenate([ids, ids[::-1]]))
    np.testing.assert_array_equal(codes[:60_000], np.arange(60_000))
    np.testing.assert_array_equal(codes[60_000:], np.arange(60_000)[::-1])
    np.testing.assert_array_equal(first, np.arange(60_000))


def test_what_the_core_works_by_is_read_only():
    queries = Queries.of([0.0, 1.0, 2.0, 0.0], qid=[1, 2, 1, 2])
    for shown in (queries.offsets, queries.order, queries.levels, queries.n_levels):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 9
