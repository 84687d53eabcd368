"""Sorted runs of rows in temporary files, merged by query: grouping beyond the memory.

Rows are collected until they fill their share of the memory, sorted by the number of their query
(stably) and written as a *run*. The queries from a to b then lie together in every run, so that
they are read with one pass over all runs, range of queries by range of queries: every row is
written once and read once, whatever the order of the input.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.store.batch import Batch, Span
from linrank.store.block import ends_of

__all__ = ["Run", "merge", "write_run"]

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
