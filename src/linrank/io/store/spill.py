"""Where the rows of a text go: straight into a store, or by way of sorted runs."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.io.comments import Words
from linrank.io.store.batch import Batch, Growing, Shape, Span, ends_of
from linrank.io.store.budget import Budget
from linrank.io.store.writer import StoreWriter
from linrank.system.resources import describe_bytes

Array = NDArray[Any]
_GATHER = 4 << 20  # bytes that are sorted into the file at a time
_AHEAD = 1 << 13  # numbers of queries that are looked at in one go


@dataclass(frozen=True)
class _Region:
    """Elements of one array in the file of a run."""

    begin: int
    dtype: np.dtype[Any]
    width: tuple[int, ...] = ()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.width, dtype=np.int64))

    def read(self, descriptor: int, first: int, last: int) -> Array:
        found = np.empty((last - first, *self.width), self.dtype)
        view = found.reshape(-1).view(np.uint8).data
        place = self.begin + first * self.itemsize
        while view:
            n_read = os.preadv(descriptor, [view], place)
            if n_read == 0:
                raise OSError("a temporary file of the conversion was truncated; convert again")
            view, place = view[n_read:], place + n_read
        return found


@dataclass(frozen=True)
class _SpanRegion:
    """Sizes of the rows, and the elements of each array."""

    sizes: _Region
    arrays: tuple[_Region, ...]


@dataclass
class Run:
    """Rows sorted by query in a file, read once from the first to the last."""

    path: str
    n_rows: int
    fixed: dict[str, _Region] = field(default_factory=dict)
    spans: dict[str, _SpanRegion] = field(default_factory=dict)
    n_taken: int = 0
    elements_taken: dict[str, int] = field(default_factory=dict)

    def take_until(self, number: int) -> Batch | None:
        """The rows not yet taken whose query is below ``number``; None if there are none."""
        descriptor = os.open(self.path, os.O_RDONLY)  # not kept: there may be many runs
        try:
            end = self._end(descriptor, number)
            if end == self.n_taken:
                return None
            return self._take(descriptor, end)
        finally:
            os.close(descriptor)

    def _end(self, descriptor: int, number: int) -> int:
        """The first row whose query is ``number`` or a later one."""
        end = self.n_taken
        while end < self.n_rows:
            some = self.fixed["number"].read(descriptor, end, min(end + _AHEAD, self.n_rows))
            n_before = int(np.searchsorted(some, number))
            end += n_before
            if n_before < len(some):
                break
        return end

    def _take(self, descriptor: int, end: int) -> Batch:
        begin, self.n_taken = self.n_taken, end
        fixed = {name: part.read(descriptor, begin, end) for name, part in self.fixed.items()}
        spans = {}
        for name, part in self.spans.items():
            offsets = ends_of(part.sizes.read(descriptor, begin, end))
            first = self.elements_taken.get(name, 0)
            last = self.elements_taken[name] = first + int(offsets[-1])
            arrays = tuple(array.read(descriptor, first, last) for array in part.arrays)
            spans[name] = Span(offsets, arrays)
        return Batch(fixed, spans)


def write_run(batch: Batch, path: str) -> Run:
    """Write the rows of a batch, sorted by query, to a new file."""
    order = np.argsort(batch.numbers, kind="stable")
    run = Run(path, batch.n_rows)
    with open(path, "xb", buffering=0) as file:
        for name, array in batch.fixed.items():
            run.fixed[name] = _Region(file.tell(), array.dtype, array.shape[1:])
            for part in _parts(order, array.nbytes):
                _write(file, array[part])
        for name, span in batch.spans.items():
            run.spans[name] = _write_span(file, span, order)
    return run


def _write_span(file: Any, span: Span, order: Array) -> _SpanRegion:
    sizes = _Region(file.tell(), np.dtype(np.int64))
    _write(file, np.diff(span.offsets)[order])
    arrays = []
    for array in span.arrays:
        arrays.append(_Region(file.tell(), array.dtype))
        alone = Span(span.offsets, (array,))
        for part in _parts(order, array.nbytes):
            _write(file, alone.take(part).arrays[0])
    return _SpanRegion(sizes, tuple(arrays))


def _parts(order: Array, nbytes: int) -> Iterator[Array]:
    """The order in parts, each of about `_GATHER` bytes of an array of ``nbytes``."""
    n_parts = max(1, min(len(order), nbytes // _GATHER))
    yield from np.array_split(order, n_parts)


def _write(file: Any, array: Array) -> None:
    view = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while view:
        view = view[file.write(view) :]


def merge(runs: list[Run], query_bytes: Array, most: int) -> Iterator[Batch]:
    """Batches of whole queries in the order of their numbers, each of at most ``most`` bytes or of
    a single query; rows of a query are in the order of the runs.

    Parameters
    ----------
    runs : list of Run
        In the order in which their rows came.
    query_bytes : int64 array (n_queries,)
        Bytes of the rows of each query.
    most : int
        Bytes.
    """
    ends = np.cumsum(query_bytes)
    first, n_queries = 0, len(ends)
    while first < n_queries:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
        parts = [part for run in runs if (part := run.take_until(last)) is not None]
        whole = Batch.joined(parts)
        del parts
        taken = whole.take(np.argsort(whole.numbers, kind="stable"))
        del whole
        yield taken
        del taken
        first = last


Work = Callable[[], object]


class Background:
    """A thread that calls what it is given, in order; one call waits while another runs.

    Leaving the ``with`` block normally waits until all is done and raises what was raised there;
    leaving it with an exception drops the call that waits.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[Work | None] = queue.Queue(1)
        self._error: BaseException | None = None
        self._is_told = False  # that nothing follows
        self._thread = threading.Thread(target=self._work, name="linrank-convert", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> None:
        """Have ``work`` done; waits while two calls are under way, raises what one has raised."""
        self._check()
        self._queue.put(work)

    def wait(self) -> None:
        """Return when all calls have returned; raises what one has raised."""
        self._queue.join()
        self._check()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._drop()
        interrupt = self._end()
        if interrupt is not None:
            raise interrupt
        if kind is None:
            self._check()

    def _end(self) -> BaseException | None:
        """Wait for the thread, whatever is raised here meanwhile, as by Ctrl-C: returned.

        The caller closes the files that the thread writes to.
        """
        interrupt = None
        while self._thread.is_alive():
            try:
                if not self._is_told:
                    self._queue.put(None)
                    self._is_told = True
                self._thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
                if not self._is_told:
                    self._drop()
        return interrupt

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _drop(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._queue.get_nowait()
            self._queue.task_done()

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            if self._error is None:  # what follows a failure is not tried
                try:
                    work()
                except BaseException as error:  # raised again by who submits next
                    self._error = error
            del work  # the arrays that it holds
            self._queue.task_done()


class Apart(Exception):
    """Rows of a query are not together."""


class Sink(Protocol):
    """Takes rows in the order of the text."""

    def add(self, batch: Batch, shape: Shape) -> None: ...
    def finish(self, shape: Shape) -> None: ...


@dataclass
class Output:
    """The writer, and the thread that it works in."""

    writer: StoreWriter
    table: _core.QueryTable
    background: Background

    def put(self, batch: Batch, shape: Shape) -> None:
        """Write whole queries, whose numbers follow those of the batch before."""
        starts = batch.query_starts()
        sizes = np.diff(np.append(starts, batch.n_rows))
        first = int(batch.numbers[0])
        ids = _ids(self.table, first, first + len(sizes)) if shape.has_ids else None
        self.background.submit(lambda: self._append(batch, shape, sizes, ids))

    def _append(self, batch: Batch, shape: Shape, sizes: Array, ids: Array | Words | None) -> None:
        if not shape.is_dense:
            self.writer.widen(shape.n_columns)
        rows, weight = batch.rows(shape.n_columns), batch.fixed.get("weight")
        self.writer.append(rows, batch.fixed["label"], weight, sizes, ids, batch.comments())


def _ids(table: _core.QueryTable, first: int, last: int) -> Array | Words:
    """Ids as `linrank.load` gives them: integers if all are, else text."""
    if table.all_integers:
        return table.integers(first, last)
    return Words.of(t.decode("utf-8", "backslashreplace") for t in table.tokens(first, last))


class Together:
    """Rows whose queries come together: written as they come; `Apart` where they do not."""

    def __init__(self, output: Output, budget: Budget) -> None:
        self._output, self._budget = output, budget
        self._open: list[Batch] = []  # rows of the last query, which may go on
        self._last = -1

    def add(self, batch: Batch, shape: Shape) -> None:
        numbers = batch.numbers
        steps = np.diff(numbers, prepend=self._last)
        if (steps < 0).any() or (steps > 1).any():  # numbers are given by first appearance
            raise Apart
        begin = 0
        if self._open and numbers[0] == self._last:
            begin = int(np.searchsorted(numbers, self._last, side="right"))
        end = int(np.searchsorted(numbers, numbers[-1]))
        if self._open:
            self._open += [batch.cut(0, begin)] if begin else []
            if end < begin:  # all of the batch is that query
                self._check_open()
                return
            self._output.put(Batch.joined(self._open), shape)
        if end > begin:
            self._output.put(batch.cut(begin, end), shape)
        rest = batch.cut(end, batch.n_rows)
        self._open, self._last = [rest.take(np.arange(rest.n_rows))], int(numbers[-1])

    def finish(self, shape: Shape) -> None:
        if self._open:
            self._output.put(Batch.joined(self._open), shape)

    def _check_open(self) -> None:
        n_bytes = sum(batch.nbytes for batch in self._open)
        if n_bytes > self._budget.query:
            n_rows = sum(batch.n_rows for batch in self._open)
            raise _too_large(
                self._output.table, self._last, f"{n_rows:,} rows or more", self._budget
            )


class Grouped:
    """Rows in any order: sorted by query in runs, then merged."""

    def __init__(self, output: Output, budget: Budget, new_file: Callable[[], str]) -> None:
        self._output, self._budget, self._new_file = output, budget, new_file
        self._held: list[Batch] = []
        self._runs: list[Run] = []
        self._query_bytes = Growing(np.int64)

    def add(self, batch: Batch, shape: Shape) -> None:
        self._held.append(batch)
        n_new = len(self._output.table) - len(self._query_bytes)
        self._query_bytes.extend(np.zeros(n_new, np.int64))
        np.add.at(self._query_bytes.view(), batch.numbers, batch.row_bytes())
        if sum(held.nbytes for held in self._held) >= self._budget.run:
            self._spill()

    def finish(self, shape: Shape) -> None:
        if self._held:
            self._spill()
        sizes = self._query_bytes.view()
        largest = int(np.argmax(sizes))
        if sizes[largest] > self._budget.query:
            size = describe_bytes(int(sizes[largest]))
            raise _too_large(self._output.table, largest, size, self._budget)
        self._output.background.wait()  # for the last run
        for batch in merge(self._runs, sizes, self._budget.merged):
            self._output.put(batch, shape)

    def _spill(self) -> None:
        held, self._held = self._held, []
        path = self._new_file()
        self._output.background.submit(lambda: self._runs.append(_write_run(held, path)))


def _write_run(held: list[Batch], path: str) -> Run:
    whole = Batch.joined(held)
    held.clear()
    return write_run(whole, path)


def _too_large(table: _core.QueryTable, number: int, size: str, budget: Budget) -> MemoryError:
    (name,) = table.tokens(number, number + 1)
    which = f"query {name.decode('utf-8', 'backslashreplace')}" if name else "the only query"
    return MemoryError(
        f"{which} has {size}; with memory_limit={describe_bytes(budget.limit)} a query may take "
        f"{describe_bytes(budget.query)}, a sixth: give a larger memory_limit"
    )
