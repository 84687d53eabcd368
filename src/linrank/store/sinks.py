"""Where the rows of a text go: straight into a store, or by way of sorted runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.words import Words
from linrank.memory import describe_bytes
from linrank.store.background import Background
from linrank.store.batch import Batch
from linrank.store.budget import Budget
from linrank.store.growing import Growing
from linrank.store.shape import Shape
from linrank.store.spill import Run, merge, write_run
from linrank.store.writer import StoreWriter

__all__ = ["Apart", "Grouped", "Output", "Sink", "Together"]

Array = NDArray[Any]


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
        self._output.background.submit(lambda: self._runs.append(_write(held, path)))


def _write(held: list[Batch], path: str) -> Run:
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
