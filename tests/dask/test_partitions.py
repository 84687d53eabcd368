"""Distributed data of every kind as whole queries on workers, and what a call leaves there."""

import itertools
import logging
import re
import shutil
from collections import Counter
from functools import partial

import dask
import numpy as np
import pytest
from distributed_data import FEATURES, FORMS, assert_forgotten, cuts, in_blocks, ranking
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from linrank.dask import RankSVM, RankSVMCV, evaluate, ranksvm_path
from linrank.dask.partitions import number_queries, partitions_of
from linrank.dask.repair import assign, join_datasets, split_queries
from linrank.data.dataset import Dataset, join_ids
from linrank.data.queries import Queries
from linrank.errors import NoPairsError
from linrank.io.store.store import Store

N_PARTS = 3


@pytest.fixture
def store(tmp_path):
    data = ranking(30, seed=5, shuffled=True)
    return Store.write(tmp_path / "store", *data[:2], qid=data.qid, chunk_bytes=400)


def datasets(client, found):
    return client.gather(list(found.futures))


def rows_by_query(parts):
    """{id: (rows, labels, weights)}, each query taken from the one dataset that has it."""
    found = {}
    for data in parts:
        for id_ in dict.fromkeys(data.qid.tolist()):
            mine = np.array([one == id_ for one in data.qid.tolist()])
            weight = None if data.weight is None else data.weight[mine].tolist()
            X = data.X.toarray() if sparse.issparse(data.X) else data.X
            assert id_ not in found, f"query {id_} is split"
            found[id_] = (X[mine].tolist(), data.labels[mine].tolist(), weight)
    return found


def assert_holds(client, found, data, weighted=True):
    """The partitions hold the rows of `data`, each query whole and in its order."""
    whole = Dataset.of(*data[:2], qid=data.qid, sample_weight=data.weight if weighted else None)
    assert rows_by_query(datasets(client, found)) == rows_by_query([whole])
    assert found.query_ids.tolist() == whole.queries.ids.tolist()
    for part, numbers in zip(datasets(client, found), found.query_numbers, strict=True):
        assert_array_equal(found.query_ids[numbers], part.queries.ids)
    assert (found.n_rows, found.columns.n_features) == whole.rows.shape
    assert sum(s.n_pairs for s in found.summaries) == whole.queries.n_pairs
    assert found.n_queries == whole.queries.n_queries
    assert [s.n_rows for s in found.summaries] == [d.n_rows for d in datasets(client, found)]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_queries(client, form):
    data, parts = ranking(), FORMS[form](ranking(), N_PARTS)
    found = partitions_of(*parts, client)
    assert_holds(client, found, data)
    assert len(found.futures) == N_PARTS
    has_names = hasattr(parts.X, "columns") or form == "tables"
    assert found.columns.feature_names == (tuple(FEATURES) if has_names else None)


@pytest.mark.parametrize("given", [lambda s: s, lambda s: s.path], ids=["store", "path"])
def test_every_chunk_of_a_store_is_a_partition(client, store, given):
    found = partitions_of(given(store), client=client)
    assert len(found.futures) == store.n_chunks > 3
    assert found.repair.n_queries == 0
    assert_holds(client, found, ranking(30, seed=5, shuffled=True), weighted=False)
    with pytest.raises(ValueError, match="holds labels, ids and weights; leave y, qid"):
        partitions_of(store, np.zeros(3), client=client)
    shutil.rmtree(store.path)
    with pytest.raises(FileNotFoundError, match=r"partition 0: .*all workers must see"):
        partitions_of(store, client=client)


def test_blocks_may_be_futures_or_datasets(client):
    data = ranking()
    pieces = in_blocks(data.X, 2), in_blocks(data.y, 2), in_blocks(data.qid, 2)
    futures = [client.scatter(list(v)) for v in pieces]
    assert_holds(client, partitions_of(*futures, client=client), data, weighted=False)
    whole = [Dataset.of(X, y, qid=q) for X, y, q in zip(*pieces, strict=True)]
    found = partitions_of(client.scatter(whole), client=client)
    assert_holds(client, found, data, weighted=False)


@pytest.mark.parametrize("n_parts", [1, 2, 5, 17])
@pytest.mark.parametrize("shuffled", [False, True])
def test_split_queries_are_made_whole(client, n_parts, shuffled):
    data = ranking(20, seed=1, shuffled=shuffled)
    found = partitions_of(*data.arrays(n_parts), client)
    assert_holds(client, found, data)
    if n_parts > 1:
        assert 0 < found.repair.n_rows < len(data.y)
    else:
        assert found.repair.n_queries == 0


def test_string_ids_and_ids_of_mixed_objects(client):
    data = ranking(shuffled=True)
    tuples = np.empty(len(data.qid), object)
    tuples[:] = [(int(q), "a") for q in data.qid]
    for ids in (data.qid.astype(str), tuples):
        found = partitions_of(*data._replace(qid=ids).arrays(N_PARTS), client)
        assert_holds(client, found, data._replace(qid=ids))


def blocks(*several):
    """Delayed blocks; of ids alone, rows and labels are made up."""
    return [
        dask.delayed(b if isinstance(b, tuple) else (np.eye(9)[: len(b)], np.arange(len(b)), b))
        for b in several
    ]


@pytest.mark.parametrize(
    ("ids", "whole", "numbers", "repair"),
    [
        ([[7, 7, 8, 8], [8, 9]], [[7, 7, 8, 8, 8], [9]], [0, 1], (1, 1, 2)),
        ([[1, 1], [1], [2, 2]], [[1, 1, 1], [2, 2]], [0, 2], (1, 1, 2)),
        ([np.empty(0, int), [1, 1], [2, 2]], [[1, 1], [2, 2]], [1, 2], (0, 0, 0)),
    ],
)
def test_only_rows_of_split_queries_move_and_it_is_told(
    client, caplog, ids, whole, numbers, repair
):
    with caplog.at_level(logging.INFO, logger="linrank.dask"):
        found = partitions_of(blocks(*ids), client=client)
    assert [d.qid.tolist() for d in datasets(client, found)] == whole
    assert [s.number for s in found.summaries] == numbers
    assert (found.repair.n_queries, found.repair.n_rows, found.repair.n_partitions) == repair
    moved = f"1 queries were split over partitions: 1 rows moved between 2 of {len(ids)}"
    assert (moved in caplog.text) == bool(repair[0])


def test_without_ids_all_rows_are_one_query(client):
    data = ranking()
    lazy = data.arrays(N_PARTS)
    found = partitions_of(lazy.X, lazy.y, client=client)
    assert found.one_query
    assert found.n_queries == 1
    assert [s.n_rows for s in found.summaries] == list(cuts(len(data.y), N_PARTS))
    assert not partitions_of(lazy.X.rechunk(-1), lazy.y.rechunk(-1), client=client).one_query


def test_on_split_error_names_the_query_and_its_partitions(client):
    split = blocks([5, 6], [7, 7], [6, 5])
    message = r"query 5 is in partitions 0, 2 \(2 queries are split\); .* on_split='repair'"
    with pytest.raises(ValueError, match=message):
        partitions_of(split, client=client, on_split="error")
    with pytest.raises(ValueError, match="on_split must be 'repair' or 'error', got 'drop'"):
        partitions_of(split, client=client, on_split="drop")


X2, Y2, Q2 = np.eye(2), np.array([0, 1]), np.array([1, 1])
X3 = np.arange(6.0).reshape(2, 3)
NAN = np.array([[0.0, 1.0], [2.0, np.nan]])
ONE, OTHER = (X2, Y2, Q2), (X2, Y2 * 0, Q2 + 1)
TABLE, NEXT = in_blocks(ranking().table(), 2)
SWAPPED = NEXT[["f1", "f0", *NEXT.columns[2:]]]
BAD_BLOCKS = {
    "partition 0 has 2 features but partition 1 has 3; all part": [ONE, (X3, Y2, Q2 + 1)],
    "partition 0 has qid but partition 1 has no qid; give qid with all": [ONE, (X2, Y2)],
    "partition 0 has no sample_weight but partition 1 has sample_weight": [ONE, (*ONE, Y2)],
    "partition 0 has column names but partition 1 has no column names": [
        *((TABLE[FEATURES], TABLE["label"]), (NEXT[FEATURES].to_numpy(), NEXT["label"]))
    ],
    "partition 1: Input X contains NaN at row 1, column 1": [ONE, (NAN, Y2, Q2)],
    "partition 1: qid of row 1 is missing": [ONE, (X2, Y2, [1, None])],
    "partition 1: inconsistent lengths: X has 2 rows but y has 3": [ONE, (X2, [0, 1, 2], Q2)],
    "partition 0: qid has 1 elements but there are 2 rows": [(X2, Y2, [1]), ONE],
    "partition 0 has qid of int64 but partition 1 has qid of <U1": [ONE, (X2, Y2, ["1", "1"])],
    "partition 1: the block is a tuple of 5 elements": [ONE, (*ONE, Y2, Y2)],
    "partition 0: linrank requires y": [(X2, None, Q2)],
    "sample_weight is zero everywhere": [(*ONE, Y2 * 0), (*OTHER, Y2 * 0)],
    "partition 0: sample_weight must be >= 0, got -1.0 at row 1": [(*ONE, -Y2)],
    "there are no rows in any of the 2 partitions": [(X2[:0], [], [])] * 2,
    "none of the 2 queries in 2 partitions has two different labels": [(X2, Y2 * 0, Q2), OTHER],
    "none of the 1 queries in 2 partitions": [(X2, Y2 * 0), (X2, Y2 * 0)],
}
LAZY, UNKNOWN = ranking().arrays(N_PARTS), ranking().unknown_chunks(3)
OTHERS, DELAYED = ranking().unknown_chunks(2), ranking().delayed(3)
BAD_INPUTS = {
    **{message: (blocks(*several),) for message, several in BAD_BLOCKS.items()},
    "partition 0 has the column 'f0' at 0 but partition 1 has 'f1' there": (
        *([dask.delayed(TABLE), dask.delayed(SWAPPED)], "label", "query"),
    ),
    "partition 1: there is no column 'query'; there are f0": (
        *([dask.delayed(TABLE), dask.delayed(NEXT.drop(columns="query"))], "label", "query"),
    ),
    "X is a numpy.ndarray, which is not distributed": (ranking().X, LAZY.y, LAZY.qid),
    "X is a list, which is not distributed": ([[1.0]], LAZY.y, LAZY.qid),
    "X is an empty list; give at least one delayed block": ([], LAZY.y, LAZY.qid),
    "X is a NoneType, which is not distributed": (None, LAZY.y, LAZY.qid),
    "X must be a 2-D dask array, got 1 dimensions": (LAZY.y, LAZY.y, LAZY.qid),
    "X has 61 rows but y has 60": (LAZY.X, LAZY.y[1:], LAZY.qid),
    "X has 61 rows but qid has 3": (LAZY.X, LAZY.y, [1, 2, 3]),
    "qid='query' names a column, but X is an array": (LAZY.X, LAZY.y, "query"),
    "y must be 1-D, one element per row; got shape (61, 4)": (LAZY.X, LAZY.X, LAZY.qid),
    "y must hold one element per row, got int": (LAZY.X, 1, LAZY.qid),
    "X has 3 partitions but y has 2, and where their rows meet": (UNKNOWN.X, OTHERS.y, LAZY.qid),
    "qid is a ndarray in memory but the number of rows": (UNKNOWN.X, LAZY.y, ranking().qid),
    "partition 0: 'query' names a column, but the block is a ndarray": (*DELAYED[:2], "query"),
    "partition 0: the block is a tuple (X, y)": (ranking().tuples(3).X, LAZY.y, LAZY.qid),
    "qid is a table; pass one column of it": (LAZY.X, LAZY.y, ranking().table()),
    "qid='topic' is no column of X; there are f0, f1": (*ranking().dataframe(2)[:2], "topic"),
}


@pytest.mark.parametrize("message", BAD_INPUTS)
def test_bad_inputs_are_refused(client, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        partitions_of(*BAD_INPUTS[message], client=client)
    assert isinstance(caught.value, NoPairsError) == message.startswith("none of")


def test_a_client_must_be_one(monkeypatch):
    def no_client():  # clients of other tests may be in force
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr("linrank.dask.clients.get_client", no_client)
    with pytest.raises(TypeError, match=r"client must be a dask\.distributed\.Client, got str"):
        partitions_of(*LAZY, client="tcp://127.0.0.1:8786")
    with pytest.raises(ValueError, match="there is no Dask client; start one"):
        partitions_of(*LAZY)


def test_tasks_see_the_size_of_a_dataset(client):
    found = partitions_of(*ranking().arrays(2), client=client)
    sizes = client.run_on_scheduler(
        lambda dask_scheduler: {k: t.nbytes for k, t in dask_scheduler.tasks.items()}
    )
    for future, summary in zip(found.futures, found.summaries, strict=True):
        assert sizes[future.key] > summary.nbytes > 0


def test_nothing_stays_behind(client):
    found = partitions_of(*ranking(shuffled=True).arrays(4), client=client)
    assert_forgotten(client, len(found.futures))
    del found
    assert_forgotten(client)


def test_a_lost_worker_costs_nothing_but_time(client):
    data = ranking(20, seed=3, shuffled=True)
    found = partitions_of(*data.arrays(5), client)
    before = rows_by_query(datasets(client, found))
    client.restart_workers([next(iter(client.scheduler_info()["workers"]))])
    assert rows_by_query(datasets(client, found)) == before


# ---- where split queries go, without a cluster ---------------------------------------------------


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
            where.setdefault(q, Counter())[t] += n
    return where


@given(held_queries())
def test_split_queries_end_whole_where_the_rule_says_and_nothing_else_moves(held):
    """A plain twin of the rule: queries by size, most rows first, equals by load."""
    census, lengths = counted(held)
    moves, ids = assign(census[1], lengths), census[0].tolist()
    total = sum(map(Counter, held), Counter())
    holders = {id_: [p for p, part in enumerate(held) if id_ in part] for id_ in ids}
    split = {id_ for id_ in ids if len(holders[id_]) > 1}
    rows = [sum(part.values()) for part in held]
    capacity = [1.25 * max(n, np.mean(rows)) for n in rows]
    load = [sum(n for id_, n in part.items() if id_ not in split) for part in held]
    owner = {id_: parts[0] for id_, parts in holders.items()}
    for id_ in sorted(split, key=lambda i: (-total[i], ids.index(i))):
        roomy = [p for p in holders[id_] if load[p] + total[id_] <= capacity[p]] or holders[id_]
        most = max(held[p][id_] for p in roomy)
        owner[id_] = min((p for p in roomy if held[p][id_] == most), key=lambda p: (load[p], p))
        load[owner[id_]] += total[id_]
    assert {ids[q] for q in split_queries(census[1])} == split
    assert {ids[q]: p for q, p in moves.owner.items()} == {id_: owner[id_] for id_ in split}
    where = after(census, lengths, moves)
    assert {ids[q]: parts for q, parts in where.items()} == {i: {owner[i]: total[i]} for i in ids}
    assert moves.n_rows == sum(total[id_] - held[owner[id_]][id_] for id_ in ids)
    assert moves.departures().keys() == {source for source, _ in moves.leaving}
    for source, gone in moves.departures().items():
        every = [a for (s, _), a in moves.leaving.items() if s == source]
        assert sorted(gone.tolist()) == sorted(np.concatenate(every).tolist())


@pytest.mark.parametrize("n_parts", [2, 17])
def test_shuffled_rows_end_in_partitions_of_like_size(n_parts):
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(1000), rng.integers(5, 40, 1000)))
    parts = [np.unique(a, return_counts=True) for a in np.array_split(qid, n_parts)]
    census = number_queries([ids for ids, _ in parts])
    where = after(census, [n for _, n in parts], assign(census[1], [n for _, n in parts]))
    load = sum(map(Counter, where.values()), Counter())
    assert max(load.values()) <= 1.25 * len(qid) / n_parts


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


# ---- what a call leaves on the cluster: nothing, however it ends ---------------------------------

DATA = ranking(30, seed=3, shuffled=True)
PARTS = DATA.delayed(N_PARTS)
BROKEN = DATA.qid.astype(float)
BROKEN[len(in_blocks(DATA.qid, N_PARTS)[0])] = np.nan  # the first row of partition 1


def interrupt(state):
    raise KeyboardInterrupt


def fitted(client, parts=PARTS, **options):
    return parts.fit(RankSVM(client=client, **options))


def changed(**columns):
    return DATA._replace(**columns).delayed(N_PARTS)


ENDS = {
    "repair": (fitted, None, ""),
    "gather": (partial(fitted, on_split="gather"), None, ""),
    "choice": (lambda c: PARTS.fit(RankSVMCV([0.1], cv=2, client=c)), None, ""),
    "evaluation": (lambda c: evaluate(*PARTS[1::2], PARTS.qid, client=c), None, ""),
    "Ctrl-C": (partial(fitted, callback=interrupt), KeyboardInterrupt, ""),
    "sweep": (partial(fitted, on_split="gather", callback=interrupt), KeyboardInterrupt, ""),
    "path": (
        lambda c: ranksvm_path(*PARTS[:3], Cs=[0.1], client=c, callback=interrupt),
        *(KeyboardInterrupt, ""),
    ),
    "fault": (lambda c: fitted(c, changed(qid=BROKEN)), ValueError, "partition 1: qid of row 0"),
    "split": (partial(fitted, on_split="error"), ValueError, "on_split='repair'"),
    "no pairs": (lambda c: fitted(c, changed(y=DATA.y * 0)), NoPairsError, "two different labels"),
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left(client, end):
    call, error, message = ENDS[end]
    if error is None:
        call(client)
    else:
        with pytest.raises(error, match=message or None) as kept:
            call(client)
        assert kept.value.__traceback__ is not None  # which holds frames, and what they hold
    assert_forgotten(client)
