"""Where split queries go: laws of the assignment, without a cluster."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linrank.dask.partitions import number_queries
from linrank.dask.repair import assign, join_datasets, split_queries
from linrank.data.dataset import Dataset, join_ids
from linrank.data.queries import Queries


@st.composite
def held_queries(draw):
    """{partition: {query id: rows}} of 1 to 6 partitions; some hold nothing."""
    held = st.dictionaries(st.integers(0, 8), st.integers(1, 20), max_size=8)
    return draw(st.lists(held, min_size=1, max_size=6).filter(any))


def counted(held):
    """Numbers and rows of the queries of every partition, as summaries give them."""
    census = number_queries([np.array(list(part), np.int64) for part in held])
    return census, [np.array(list(part.values()), np.int64) for part in held]


def after(census, lengths, moves):
    """{query: {partition: rows}} when everything that leaves has arrived."""
    where = {}
    for p, (numbers, rows) in enumerate(zip(census[1], lengths, strict=True)):
        target = np.full(len(numbers), p)
        for (source, t), positions in moves.leaving.items():
            if source == p:
                target[positions] = t
        for q, t, n in zip(numbers.tolist(), target.tolist(), rows.tolist(), strict=True):
            parts = where.setdefault(q, {})
            parts[t] = parts.get(t, 0) + n
    return where


@given(held_queries())
def test_every_query_ends_whole_and_only_rows_of_split_ones_move(held):
    census, lengths = counted(held)
    moves = assign(census[1], lengths)
    totals, split = {}, {id_ for a in held for id_ in a if sum(id_ in b for b in held) > 1}
    for part in held:
        for id_, n in part.items():
            totals[id_] = totals.get(id_, 0) + n
    where = after(census, lengths, moves)
    assert {int(census[0][q]): list(parts.values()) for q, parts in where.items()} == {
        id_: [n] for id_, n in totals.items()
    }
    assert {int(census[0][q]) for q in split_queries(census[1])} == split
    moved = 0
    for (source, target), positions in moves.leaving.items():
        assert source != target
        ids = census[0][census[1][source][positions]].tolist()
        assert split.issuperset(ids)
        moved += sum(held[source][id_] for id_ in ids)
    assert moves.n_rows == moved
    gone = moves.departures()
    for source in gone:
        every = [a for (s, _), a in moves.leaving.items() if s == source]
        assert sorted(gone[source].tolist()) == sorted(np.concatenate(every).tolist())


@given(held_queries())
def test_the_owner_holds_most_rows_or_the_one_that_does_was_full(held):
    """A plain twin of the rule: queries by size, most rows first, equals by load."""
    census, lengths = counted(held)
    rows = [sum(part.values()) for part in held]
    capacity = [1.25 * max(n, np.mean(rows)) for n in rows]
    split = {id_ for a in held for id_ in a if sum(id_ in b for b in held) > 1}
    load = [sum(n for id_, n in part.items() if id_ not in split) for part in held]
    total = {id_: sum(part.get(id_, 0) for part in held) for id_ in split}
    numbers = {int(id_): q for q, id_ in enumerate(census[0])}
    expected = {}
    for id_ in sorted(split, key=lambda i: (-total[i], numbers[i])):
        holders = [p for p, part in enumerate(held) if id_ in part]
        roomy = [p for p in holders if load[p] + total[id_] <= capacity[p]] or holders
        most = max(held[p][id_] for p in roomy)
        best = [p for p in roomy if held[p][id_] == most]
        expected[numbers[id_]] = min(best, key=lambda p: (load[p], p))
        load[expected[numbers[id_]]] += total[id_]
    assert assign(census[1], lengths).owner == expected


@pytest.mark.parametrize("n_parts", [2, 17])
def test_shuffled_rows_end_in_partitions_of_like_size(n_parts):
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(1000), rng.integers(5, 40, 1000)))
    parts = [np.unique(a, return_counts=True) for a in np.array_split(qid, n_parts)]
    census = number_queries([ids for ids, _ in parts])
    where = after(census, [n for _, n in parts], assign(census[1], [n for _, n in parts]))
    load = np.zeros(n_parts)
    for held in where.values():
        for p, n in held.items():
            load[p] += n
    assert load.max() <= 1.25 * load.mean()


@given(st.lists(st.lists(st.integers(-3, 5), unique=True, max_size=6), min_size=1, max_size=5))
def test_the_census_numbers_queries_as_memory_does(parts):
    arrays = [np.array(a, np.int64) for a in parts]
    census = number_queries(arrays)
    every = np.concatenate(arrays)
    whole = Queries.of(np.zeros(len(every)), every)
    assert_array_equal(census[0], whole.ids)
    for ids, numbers in zip(arrays, census[1], strict=True):
        assert_array_equal(census[0][numbers], ids)
    backwards = [a[::-1] for a in arrays[::-1]]
    again = number_queries([census[0], *backwards])[1][1:]
    for ids, numbers in zip(backwards, again, strict=True):
        assert_array_equal(census[0][numbers], ids)


def test_ids_that_differ_stay_different():
    """NumPy would make one float64 of 2⁶³ and 2⁶³ + 1, and "1" of 1."""
    big = np.array([2**63, 2**63 + 1], np.uint64)
    assert len(number_queries([big, np.array([-1])])[0]) == 3
    assert len(number_queries([np.array([1]), np.array(["1"], object)])[0]) == 2
    assert join_ids([np.array([1], np.int32), np.array([2])]).dtype == np.int64


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.data())
def test_rows_of_queries_are_those_of_a_mask(qid, data):
    queries = Queries.of(np.zeros(len(qid)), qid)
    which = data.draw(st.lists(st.integers(0, queries.n_queries - 1), unique=True))
    expected = [i for q in which for i, id_ in enumerate(qid) if id_ == queries.ids[q]]
    assert queries.select(np.array(which, np.int64)).order.tolist() == expected


def test_joined_datasets_are_one_after_the_other():
    """Dense and sparse, float32 and float64: the values stay, whatever the storage."""
    from scipy import sparse

    X = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    y, qid, u = np.array([0, 1, 0, 2]), np.array([1, 1, 2, 1]), np.array([1.0, 2.0, 0.0, 1.0])
    whole = Dataset.of(X, y, qid=qid, sample_weight=u)
    forms = [np.array, sparse.csr_array, lambda a: a.astype(np.float32)]
    for pair in itertools.product(forms, forms):
        halves = zip(pair, (slice(2), slice(2, None)), strict=True)
        joined = join_datasets(
            [Dataset.of(make(X[s]), y[s], qid=qid[s], sample_weight=u[s]) for make, s in halves]
        )
        values = joined.X.toarray() if sparse.issparse(joined.X) else joined.X
        for found, expected in (
            (values, X),
            (joined.labels, whole.labels),
            (joined.weight, whole.weight),
            (joined.queries.levels, whole.queries.levels),
        ):
            assert_array_equal(found, expected)
        assert joined.rows.core is not None  # the core has checked it
