"""The buffer of a stream: which pairs a batch makes, what is forgotten, within which memory."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hypothesis_profiles import examples
from linrank import _core
from linrank.data.rows import CsrRows, DenseRows
from linrank.stochastic.reservoir import ROW_COST, Buffer, CsrArena, DenseArena
from test_descent import check_refuses_threads


def dense(values):
    return DenseRows(np.asarray(values, np.float32).reshape(len(values), -1))


def sparse(values, n_columns=None):
    """Row i has value values[i] in column i % n_columns, and a 1 in the last column."""
    n = len(values)
    n_columns = n_columns or 3
    columns = np.array([[i % (n_columns - 1), n_columns - 1] for i in range(n)], np.int32)
    entries = np.array([[v, 1] for v in values], np.float32)
    return CsrRows(entries.ravel(), columns.ravel(), np.arange(0, 2 * n + 1, 2), n_columns)


def integers(a):
    return np.array(a, np.int64)


def listed_pairs(cells):
    """The pairs of cells, one by one; twice the same pair would be a fault."""
    order, winner, winner_end, loser, loser_end, _, n_pairs = cells
    pairs = [
        (int(order[i]), int(order[j]))
        for a, b, c, d in zip(winner, winner_end, loser, loser_end, strict=True)
        for i in range(a, b)
        for j in range(c, d)
    ]
    assert len(pairs) == len(set(pairs)) == n_pairs
    return set(pairs)


class Twin:
    """The same by the definition: a list of rows (number, id, label, size), oldest first."""

    def __init__(self, rows_per_level, rows_per_query):
        self.bounds = rows_per_level, rows_per_query
        self.rows, self.seen, self.n = [], [], 0

    def touch(self, ids):
        for q in ids:
            if q in self.seen:
                self.seen.remove(q)
                self.seen.append(q)

    def evict(self, max_rows, max_size):
        def too_many():
            return len(self.rows) > max_rows or sum(r[3] for r in self.rows) > max_size

        while too_many() and len(self.seen) > 1:
            gone = self.seen.pop(0)
            self.rows = [r for r in self.rows if r[1] != gone]
        while too_many():
            self.rows.pop(0)
        self.seen = [q for q in self.seen if any(r[1] == q for r in self.rows)]

    def add(self, ids, labels, sizes):
        numbers = range(self.n, self.n + len(ids))
        new = list(zip(numbers, ids, labels, sizes, strict=True))
        self.n += len(new)
        self.rows += new
        for q in ids:
            self.seen = [p for p in self.seen if p != q] + [q]
        pairs = {
            (a[0], b[0])
            for a in self.rows
            for b in self.rows
            if a[1] == b[1] and a[2] > b[2] and (a in new or b in new)
        }
        for key, bound in ((lambda r: (r[1], r[2]), 0), (lambda r: r[1], 1)):
            counts, kept = Counter(), []
            for row in reversed(self.rows):
                counts[key(row)] += 1
                if counts[key(row)] <= self.bounds[bound]:
                    kept.append(row)
            self.rows = kept[::-1]
        return pairs


batch = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=8
)


@examples(200)
@given(
    st.lists(st.tuples(batch, st.integers(0, 12), st.integers(0, 20), st.booleans()), max_size=12),
    st.integers(1, 4),
    st.integers(1, 8),
)
def test_the_index_equals_its_definition(batches, rows_per_level, rows_per_query):
    """New pairs, rows that are kept, rows that are forgotten, wherever gaps are closed."""
    index = _core.StreamIndex(rows_per_level, rows_per_query)
    twin = Twin(rows_per_level, rows_per_query)
    numbers = []  # by position: the number of the row in the stream
    for rows, max_rows, max_size, closes in batches:
        ids, labels, sizes = (list(column) for column in zip(*rows, strict=True))
        index.touch(integers(ids))
        twin.touch(ids)
        index.evict(max_rows, max_size)
        twin.evict(max_rows, max_size)
        if closes:
            numbers = [numbers[k] for k in index.compact()]
            assert numbers == [row[0] for row in twin.rows]
        numbers += range(twin.n, twin.n + len(ids))
        found = listed_pairs(index.add(integers(ids), np.array(labels, float), integers(sizes)))
        assert {(numbers[i], numbers[j]) for i, j in found} == twin.add(ids, labels, sizes)
        assert index.n_rows == len(twin.rows)
        assert index.size == sum(row[3] for row in twin.rows)
        assert index.n_queries == len({row[1] for row in twin.rows})
        assert index.n_forgotten == twin.n - len(twin.rows)
    kept = index.compact()
    assert [numbers[k] for k in kept] == [row[0] for row in twin.rows]
    state = index.state()
    assert state[0].tolist() == [row[1] for row in twin.rows]
    assert state[3].tolist() == twin.seen


# ---- what is drawn ------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["pairs", "query", "roc"])
def test_new_pairs_are_drawn_as_documented(sampling):
    """Of pairs with a row of the second batch; with "query" each of its two queries as often."""
    buffer = Buffer(1_000_000, sampling=sampling)
    for values, labels, ids in (
        ([0, 1], [0, 1], [7, 7]),
        ([10, 11, 12, 13, 14], [2, 0, 0, 1, 1], [7, 8, 8, 8, 8]),
    ):
        pairs = buffer.add(dense(values), np.array(labels, float), integers(ids))
    weight = {(10, 0): 2, (10, 1): 2} | dict.fromkeys(product((13, 14), (11, 12)), 1)
    if sampling == "pairs":
        weight = dict.fromkeys(weight, 1)
    elif sampling == "roc":
        weight = dict.fromkeys(product((1, 10, 13, 14), (0, 11, 12)), 1)
        del weight[1, 0]
    assert pairs.n_pairs == len(weight)
    values = buffer.rows.values[:, 0]
    winners, losers = (values[rows].tolist() for rows in pairs.core.draw(_core.Random(3), 20_000))
    drawn = Counter(zip(winners, losers, strict=True))
    assert set(drawn) == set(weight)
    expected = np.array([weight[pair] for pair in drawn])
    observed = list(drawn.values())
    assert stats.chisquare(observed, expected / expected.sum() * 20_000).pvalue > 1e-3


# ---- what is kept -------------------------------------------------------------------------------


def contents(buffer):
    """The value of every row that is kept, with its id and label."""
    index = buffer.state()["index"]
    values = buffer.rows.values
    first = values[:, 0] if isinstance(buffer.rows, DenseRows) else values[::2]
    return list(zip(first.tolist(), index["ids"].tolist(), index["labels"].tolist(), strict=True))


@pytest.mark.parametrize("make", [dense, sparse], ids=["dense", "sparse"])
def test_rows_stay_themselves_while_gaps_are_closed(make):
    """Rows of random queries; the value of a row is its number."""
    rng, buffer, n = np.random.default_rng(0), Buffer(60_000), 3000
    ids, labels = rng.integers(0, 1000, n), rng.integers(0, 3, n).astype(float)
    for part in np.array_split(np.arange(n), 60):
        buffer.add(make(part + 1), labels[part], ids[part])
    assert buffer.n_forgotten > 2000
    kept = contents(buffer)
    assert len(kept) == buffer.n_rows > 50
    numbers = np.array([value for value, _, _ in kept], int) - 1
    assert (np.diff(numbers) > 0).all()
    assert [row[1:] for row in kept] == [(ids[k], labels[k]) for k in numbers]


@pytest.mark.parametrize("memory", [20_000, 100_000, 1_000_000])
def test_the_memory_is_within_its_bound(memory):
    """Arrays and 128 bytes a row: the index of a row that is alone in its query takes fewer."""
    for arena in (DenseArena(memory, 46, 46), CsrArena(memory, 1000, 7)):
        taken = sum(each.nbytes for each in vars(arena).values() if isinstance(each, np.ndarray))
        assert 0.95 * memory < taken + arena.capacity * ROW_COST <= memory + 8


@pytest.mark.parametrize("make", [dense, sparse], ids=["dense", "sparse"])
def test_a_batch_that_pushes_out_everything(make):
    buffer = Buffer(40 * (ROW_COST + 40))
    buffer.parts(make(np.ones(100)), 8192)
    arena = buffer._arena
    most = arena.most_rows if make is dense else min(arena.most_rows, arena.most_size // 2)
    for k in range(5):
        buffer.add(make(np.full(most, k + 1)), np.zeros(most), np.full(most, k))
        assert {query for _, query, _ in contents(buffer)} == {k}
    buffer.clear()
    assert (buffer.n_rows, buffer.n_queries, buffer.n_forgotten) == (0, 0, 4 * most)
    assert buffer.add(make([1, 2]), np.array([0.0, 1.0]), integers([1, 1])).n_pairs == 1


def test_columns_may_grow():
    buffer, rng, rows = Buffer(200_000), np.random.default_rng(0), {}
    for width in [3, 3, 4, 5, 5, 9, 40, 41]:
        x = rng.random((20, width)).astype(np.float32)
        rows |= {row[0]: np.append(row, np.zeros(41 - width)) for row in x}
        buffer.add(DenseRows(x), np.zeros(20), integers(range(20)))
    kept = buffer.rows.values
    assert len(kept) >= 40
    assert np.array_equal(kept, [rows[row[0]] for row in kept])
    assert np.array_equal(kept[-20:], x)


def test_dense_rows_give_way_to_sparse_ones_with_new_columns():
    buffer = Buffer(100_000)
    buffer.add(dense([1, 2]), np.array([0.0, 1.0]), integers([1, 1]))
    pairs = buffer.add(sparse([5, 6], 5000), np.array([0.0, 1.0]), integers([1, 1]))
    assert isinstance(buffer.rows, CsrRows)
    assert (buffer.n_rows, buffer.n_forgotten, pairs.n_pairs) == (2, 2, 1)
    buffer.add(dense([[7, 0, 8]]), np.array([0.0]), integers([1]))  # dense rows are welcome
    assert buffer.rows.to_user().toarray()[2, :4].tolist() == [7, 0, 8, 0]


# ---- what is refused ----------------------------------------------------------------------------


def test_memory_that_holds_nothing():
    with pytest.raises(MemoryError, match=r"holds 0 rows of 1000 features.*more memory"):
        Buffer(1000).add(dense(np.ones((2, 1000))), np.zeros(2), np.zeros(2, np.int64))
    buffer = Buffer(40 * (ROW_COST + 4))
    with pytest.raises(MemoryError, match=r"batch of 100 rows.*does not fit"):
        buffer.add(dense(np.ones(100)), np.zeros(100), np.zeros(100, np.int64))
    assert [p.stop - p.start for p in buffer.parts(dense(np.ones(100)), 8192)] == [15] * 6 + [10]


ONE, INDEX = integers([1]), _core.StreamIndex(4, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Buffer(9, "rejection"), "sampling must be one of pairs, query, roc.*'rej"),
        (lambda: INDEX.add(ONE, np.array([np.nan]), ONE), "a label is NaN"),
        (lambda: INDEX.add(ONE, np.zeros(2), ONE), "labels has length 2, expected 1"),
        (lambda: INDEX.add(ONE, np.zeros(1), -ONE), r"must lie in \[0, 2\^31\), got -1"),
        (lambda: _core.StreamIndex(0, 1), "must be >= 1"),
        (
            lambda: _core.StreamIndex(4, 4).restore(ONE, np.zeros(1), ONE, integers([1, 2]), 0),
            "do not fit together",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_second_thread_is_refused():
    """It could move the arrays that the first one reads."""
    index, n = _core.StreamIndex(10, 10), 300_000
    rows = np.arange(n) % 1000, np.arange(n) % 3 + 0.0, np.ones(n, np.int64)
    check_refuses_threads("StreamIndex", lambda: index.add(*rows), lambda: index.reserve(n))
    assert index.n_used == n
