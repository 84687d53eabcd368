"""Assembler: parsed pieces of a text become batches of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.store.batch import Batch, batch_of
from linrank.store.budget import Budget
from linrank.store.shape import Shape
from linrank.store.sinks import Sink

__all__ = ["Assembler"]

Array = NDArray[Any]


class Assembler:
    """Collects pieces until their rows fill a batch, and hands that to a sink."""

    def __init__(self, sink: Sink, table: _core.QueryTable, budget: Budget, n_threads: int) -> None:
        self._sink, self._table, self._budget = sink, table, budget
        self._n_threads = n_threads
        self._pieces: list[Any] = []
        self._numbers: list[Array] = []
        self._nbytes = 0

    def add(self, piece: Any, shape: Shape) -> None:
        """Add the next piece, which has rows."""
        numbers, sizes = self._table.runs(piece)
        self._budget.check_ids(self._table)
        n_bytes = piece.n_rows * shape.row_bytes()
        if n_bytes > 4 * self._budget.batch:
            self.flush(shape)
            for batch in self._cut(piece, np.repeat(numbers, sizes), shape):
                self._sink.add(batch, shape)
            return
        self._pieces.append(piece)
        self._numbers.append(np.repeat(numbers, sizes))
        self._nbytes += max(n_bytes, piece.n_bytes)
        if self._nbytes >= self._budget.batch:
            self.flush(shape)

    def flush(self, shape: Shape) -> None:
        """Hand on what has been collected."""
        if self._pieces:
            numbers = np.concatenate(self._numbers)
            batch = batch_of(self._pieces, numbers, shape, self._n_threads)
            self._pieces, self._numbers, self._nbytes = [], [], 0
            self._sink.add(batch, shape)

    def _cut(self, piece: Any, numbers: Array, shape: Shape) -> Iterator[Batch]:
        """Dense rows of a piece whose lines are short: far larger than the text, part by part."""
        sparse = batch_of([piece], numbers, replace(shape, is_dense=False), self._n_threads)
        step = max(1, self._budget.batch // shape.row_bytes())
        for begin in range(0, sparse.n_rows, step):
            part = sparse.cut(begin, min(begin + step, sparse.n_rows))
            spans = dict(part.spans)
            entries = spans.pop("entries")
            x = np.zeros((part.n_rows, shape.n_columns), shape.dtype)
            values, columns = entries.arrays
            x[np.repeat(np.arange(part.n_rows), np.diff(entries.offsets)), columns] = values
            yield Batch({**part.fixed, "values": x}, spans)
