"""Queries that two datasets share, by id and by rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from linrank import Dataset
from linrank.judging.inspect import shared_queries


def dataset(queries, sparse=False):
    """From {id: [(label, *features), ...]}."""
    rows = [(qid, row) for qid, lines in queries.items() for row in lines]
    X = np.array([row[1:] for _, row in rows], dtype=np.float64)
    y, qid = [row[0] for _, row in rows], [qid for qid, _ in rows]
    return Dataset.of(csr_array(X) if sparse else X, y, qid=qid)


small = st.dictionaries(
    st.integers(0, 5),
    st.lists(st.tuples(*(st.integers(0, 2) for _ in range(3))), min_size=1, max_size=3),
    min_size=1,
    max_size=4,
)


@given(small, small, st.booleans())
def test_it_finds_what_sets_of_rows_find(one, other, sparse):
    found = shared_queries(dataset(one), dataset(other, sparse))
    known = {tuple(sorted(rows)) for rows in other.values()}
    by_id = {qid for qid in one if qid in other}
    by_rows = {qid for qid, rows in one.items() if tuple(sorted(rows)) in known}
    assert (found.n_queries, found.n_ids, found.n_rows) == (len(one), len(by_id), len(by_rows))
    assert bool(found) == bool(by_id | by_rows)
    assert found.example is None or found.example in (by_id & by_rows or by_rows or by_id)


def test_a_query_is_found_under_another_id_in_another_order_and_width():
    one = dataset({"a": [(0, 1.0, 0.0), (1, 2.0, 3.0)]})
    other = dataset({"z": [(1, 2.0, 3.0, 0.0), (0, 1.0, 0.0, 0.0)]})
    assert shared_queries(one, other).n_rows == 1
    assert shared_queries(one, other).n_ids == 0


def test_other_labels_are_another_query():
    assert not shared_queries(
        dataset({1: [(0, 1.0), (1, 2.0)]}), dataset({2: [(1, 1.0), (0, 2.0)]})
    )


def test_data_without_ids_are_compared_by_rows():
    data = Dataset.of([[1.0], [2.0]], [0, 1])
    found = shared_queries(data, data)
    assert (found.n_ids, found.n_rows, found.example) == (0, 1, None)


def test_rows_of_a_query_need_not_be_together():
    """The same two queries, once row by row in turn."""
    apart = Dataset.of([[1.0], [3.0], [2.0], [4.0]], [0, 0, 1, 1], qid=[1, 2, 1, 2])
    together = Dataset.of([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], qid=[7, 7, 8, 8])
    assert shared_queries(apart, together).n_rows == 2
