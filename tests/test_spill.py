"""Sorted runs and what they are made of, against lists of rows."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linrank import _core
from linrank.io.store.batch import Batch, Span, ends_of
from linrank.io.store.spill import Background, merge, write_run


def batch_of_rows(rows):
    """Rows (number, value, entries) as a batch; entries are a list of small integers."""
    numbers, values, entries = zip(*rows, strict=True)
    flat = np.array([e for one in entries for e in one], np.int32)
    fixed = {"number": np.array(numbers, np.int64), "values": np.array(values).reshape(-1, 1)}
    offsets = ends_of(np.array([len(one) for one in entries]))
    return Batch(fixed, {"entries": Span(offsets, (flat, 2.0 * flat))})


def rows_of(batch):
    span = batch.spans["entries"]
    whole, doubled = (array.tolist() for array in span.arrays)
    assert doubled == [2.0 * e for e in whole]
    parts = [whole[a:b] for a, b in zip(span.offsets[:-1], span.offsets[1:], strict=True)]
    return list(
        zip(batch.numbers.tolist(), batch.fixed["values"][:, 0].tolist(), parts, strict=True)
    )


ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.floats(-9, 9), st.lists(st.integers(0, 99), max_size=4)),
    min_size=1,
    max_size=30,
)


@given(rows=ROWS, n_runs=st.integers(1, 5), most=st.integers(1, 400))
def test_a_merge_is_a_stable_sort(tmp_path_factory, rows, n_runs, most):
    """Whatever the runs and the memory; whole queries come together."""
    known = sorted({row[0] for row in rows})  # numbers without a gap, as a table gives them
    rows = [(known.index(number), value, entries) for number, value, entries in rows]
    folder = tmp_path_factory.mktemp("runs")
    cuts = np.array_split(np.arange(len(rows)), n_runs)
    parts = [[rows[i] for i in cut] for cut in cuts if len(cut)]
    runs = [write_run(batch_of_rows(part), str(folder / str(i))) for i, part in enumerate(parts)]
    sizes = np.bincount([row[0] for row in rows], weights=batch_of_rows(rows).row_bytes()).astype(
        np.int64
    )
    batches = list(merge(runs, sizes, most))
    found = [row for batch in batches for row in rows_of(batch)]
    assert found == sorted(rows, key=lambda row: row[0])
    queries = [set(batch.numbers.tolist()) for batch in batches]
    assert sum(map(len, queries)) == len(known)
    for batch, which in zip(batches, queries, strict=True):
        assert batch.nbytes <= most + 8 or len(which) == 1  # one offset more than rows


@given(rows=ROWS, data=st.data())
def test_cutting_taking_and_joining(rows, data):
    batch = batch_of_rows(rows)
    begin = data.draw(st.integers(0, len(rows)))
    order = data.draw(st.permutations(range(len(rows))))
    parts = [batch.cut(0, begin), batch.cut(begin, len(rows))]
    assert rows_of(Batch.joined(parts)) == rows
    taken = batch.take(np.array(order, np.int64))
    assert rows_of(taken) == [rows[i] for i in order]
    # A cut looks at a part of the array; what is taken from it is right all the same.
    reverse = np.arange(len(rows) - begin)[::-1].copy()
    assert rows_of(parts[1].take(reverse)) == rows[begin:][::-1]


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

    def fail():
        raise OSError("no room")

    def fail_later():
        with Background() as background:
            background.submit(fail)

    with pytest.raises(OSError, match="no room"):
        fail_later()

    def interrupt():
        with Background() as background:
            background.submit(lambda: seen.append("first"))
            background.submit(fail)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # not what went wrong behind it
        interrupt()


def test_an_impatient_interrupt_still_waits_for_the_thread(monkeypatch):
    """Who leaves closes the files; the thread must not write into others of the same number."""
    done, join = [], threading.Thread.join
    begun, go = threading.Event(), threading.Event()
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])

    def impatient(thread, timeout=None):
        if thread.name == "linrank-convert" and (interrupt := next(interrupts, None)) is not None:
            raise interrupt
        go.set()
        join(thread, timeout)

    def slow():
        begun.set()
        go.wait(10.0)
        done.append(1)

    monkeypatch.setattr(threading.Thread, "join", impatient)
    background = Background()
    background.submit(slow)
    begun.wait(10.0)
    with pytest.raises(KeyboardInterrupt):
        background.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert done == [1]
