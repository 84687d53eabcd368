"""Sorted runs and what they are made of, against lists of rows."""

from __future__ import annotations

import tempfile
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows
from linrank.data.words import Comments
from linrank.io.store import grouping
from linrank.io.store.grouping import Background, SortedRuns


def data_of_rows(rows):
    """Rows (number, label, entries) as a data set; entries are a list of small integers."""
    numbers, labels, entries = zip(*rows, strict=True)
    flat = np.array([e for one in entries for e in one], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in entries])])
    sparse = CsrRows(2.0 * flat, flat, offsets, 100)
    comments = Comments.of("c" * len(one) for one in entries)
    return Dataset(sparse, np.array(labels), np.array(numbers, np.int64), None, None, comments)


def rows_of(data):
    sparse = data.rows
    assert sparse.values.tolist() == [2.0 * e for e in sparse.columns.tolist()]
    parts = [part.tolist() for part in np.split(sparse.columns, sparse.offsets[1:-1])]
    assert data.comments.tolist() == ["c" * len(part) for part in parts]
    return list(zip(data.qid.tolist(), data.labels.tolist(), parts, strict=True))


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.floats(-9, 9), st.lists(st.integers(0, 99), max_size=4)),
    min_size=1,
    max_size=30,
)


@given(rows=ROWS, n_runs=st.integers(1, 5), most=st.integers(1, 400))
def test_a_merge_is_a_stable_sort(rows, n_runs, most):
    """Whatever the runs and the memory; whole queries come together."""
    known = sorted({row[0] for row in rows})  # numbers without a gap, as a table gives them
    rows = [(known.index(number), value, entries) for number, value, entries in rows]
    cuts = np.array_split(np.arange(len(rows)), n_runs)
    parts = [[rows[i] for i in cut] for cut in cuts if len(cut)]
    sizes = np.bincount([row[0] for row in rows], minlength=len(known)) * 100
    with tempfile.TemporaryFile() as file:
        runs = SortedRuns(file)
        for part in parts:
            runs.add([data_of_rows(part)])
        found = list(runs.merge(sizes, most))
    assert [row for data in found for row in rows_of(data)] == sorted(rows, key=lambda row: row[0])
    queries = [set(data.qid.tolist()) for data in found]
    assert sum(map(len, queries)) == len(known)
    for data, which in zip(found, queries, strict=True):
        assert 100 * data.n_rows <= most or len(which) == 1


def test_gather_spans_checks_what_it_is_given():
    source, to = np.arange(8, dtype=np.uint8), np.empty(2, np.uint8)
    offsets, order = np.array([0, 1, 4]), np.array([0])
    _core.gather_spans(source, 2, offsets, order, to)
    assert_array_equal(to, [0, 1])
    for wrong in (
        (source, 0, offsets, order, to),
        (source, 3, offsets, order, to),
        (source, 2, offsets[::-1].copy(), order, to),
        (source, 2, np.array([-1, 1]), order, to),
        (source, 2, offsets[:0], order, to),
        (source, 2, offsets, np.array([2]), to),
        (source, 2, offsets, np.array([-1]), to),
        (source, 2, offsets, np.array([1]), to),
        (source, 2, offsets, np.array([2**62]), to),
    ):
        with pytest.raises(ValueError, match=r"offsets do not|does not exist|has length"):
            _core.gather_spans(*wrong)


def test_work_in_the_background_is_in_order_and_its_faults_are_raised():
    seen = []
    with Background() as background:
        for i in range(20):
            background.submit(lambda i=i: seen.append(i))
        background.wait()
        assert seen == list(range(20))

    def work(fault):
        with Background() as background:
            background.submit(lambda: (_ for _ in ()).throw(OSError("no room")))
            if fault:
                raise fault
            background.wait()

    with pytest.raises(OSError, match="no room"):
        work(None)
    with pytest.raises(KeyboardInterrupt):  # not what went wrong behind it
        work(KeyboardInterrupt())


def test_an_impatient_interrupt_still_waits_for_the_thread(monkeypatch):
    """Who leaves closes the files; the thread must not write into others of the same number."""
    done, wait = [], grouping.wait
    begun, go = threading.Event(), threading.Event()
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])

    def impatient(calls):
        if (interrupt := next(interrupts, None)) is not None:
            raise interrupt
        go.set()
        return wait(calls)

    def slow():
        begun.set()
        go.wait(10.0)
        done.append(1)

    monkeypatch.setattr(grouping, "wait", impatient)
    background = Background()
    background.submit(slow)
    begun.wait(10.0)
    with pytest.raises(KeyboardInterrupt):
        background.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert done == [1]
