"""Chunks that do not fit into memory: read pass after pass, the next while one is worked on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from linrank.data.dataset import Dataset
from linrank.parts.chunk import Chunk, Task, tree_sum
from linrank.parts.recipes import Recipe
from linrank.system.resources import describe_bytes

# What a row may take beside its features, from above: the sorted scores and what a sweep found of
# them (40 bytes measured), twice while they are made anew, and levels, labels and weights.
STATE_OF_A_ROW = 80
WORK_OF_A_ROW = 120


class Range(Protocol):
    """Where a chunk lies, and the bytes of its features."""

    @property
    def rows(self) -> slice: ...
    @property
    def nbytes(self) -> int: ...


class Source(Protocol):
    """Chunks by number, to be read one at a time: a `linrank.Store`."""

    @property
    def n_rows(self) -> int: ...
    @property
    def chunks(self) -> Sequence[Range]: ...
    def buffer(self) -> Any:
        """Memory for the features of any chunk."""

    def read(self, i: int, *, into: Any = None) -> Dataset:
        """Chunk i; its features in ``into``, if that is given, until the next one is read there."""


@dataclass(frozen=True)
class Budget:
    """How a limit on memory is shared out: what is kept between passes, and what is not.

    Attributes
    ----------
    n_buffers : int
        Chunks in memory at a time: one that is worked on and those that are read ahead.
    n_states : int
        Chunks, the first ones, whose scores and sorted state are kept from pass to pass.
    n_kept : int
        Chunks, the first ones, whose features are.
    """

    n_buffers: int
    n_states: int
    n_kept: int

    @staticmethod
    def least(source: Source, copies: int = 1, row_bytes: int = 0) -> int:
        """Bytes that passes need.

        One chunk is read while ``copies`` of another are worked on; a sample is as large as one,
        and twice that while its pieces are put together. ``row_bytes`` are those of a recipe.
        """
        largest, work = max(chunk.nbytes for chunk in source.chunks), WORK_OF_A_ROW + row_bytes
        return (3 + copies) * largest + work * max(map(_length, source.chunks))

    @classmethod
    def of(cls, source: Source, n_bytes: int, copies: int = 1, row_bytes: int = 0) -> Budget:
        """What ``n_bytes`` allow; the rest is as in `least`.

        State comes before features: it saves a sort in every pass at a tenth of the memory.
        """
        n_bytes_of = [chunk.nbytes for chunk in source.chunks]
        n_rows_of = [_length(chunk) for chunk in source.chunks]
        largest, least = max(n_bytes_of), cls.least(source, copies, row_bytes)
        if n_bytes < least:
            raise MemoryError(
                f"{describe_bytes(max(0, n_bytes))} are left for training, and chunks of "
                f"{describe_bytes(largest)} need {describe_bytes(least)}"
            )
        free, n_buffers = n_bytes - least, 2
        if len(n_bytes_of) > 2 and free >= largest:
            n_buffers, free = 3, free - largest
        state = STATE_OF_A_ROW + row_bytes
        n_states, free = _first([state * n_rows for n_rows in n_rows_of], free)
        n_kept, free = _first(n_bytes_of[:n_states], free)
        return cls(n_buffers, n_states, n_kept)


def sample_capacity(source: Source) -> int:
    """Rows of a sample: as many as the largest chunk has bytes for.

    It must not depend on the memory at hand, or the result would: another sample is another way to
    the optimum, and ends elsewhere within the tolerance.
    """
    largest = max(chunk.nbytes for chunk in source.chunks)
    n_bytes = sum(chunk.nbytes for chunk in source.chunks)
    return max(1, largest * source.n_rows // max(1, n_bytes))


def _length(chunk: Range) -> int:
    return int(chunk.rows.stop - chunk.rows.start)


def _without_rows(chunk: Chunk) -> Chunk:
    """Terms and state, as they are now: rows are a copy where they are scaled by query."""
    return replace(chunk, rows=chunk.rows.take(np.empty(0, np.int64)))


def _first(sizes: Sequence[int], free: int) -> tuple[int, int]:
    """How many of the first sizes fit, and what is left."""
    for i, size in enumerate(sizes):
        if size > free:
            return i, free
        free -= size
    return len(sizes), free


class Passes:
    """A gathering of chunks that are read in every pass, in order, by a thread that reads ahead.

    The next pass begins where this one ends: its first chunks are read while the solver thinks.
    What is kept, features or state, changes nothing but the time: the same bits for any budget.

    Parameters
    ----------
    source : Source
        The chunks.
    recipe : Recipe or None
        What makes chunks of what is read; None leaves it as it is, and nothing can be kept.
    budget : Budget
        What may be kept.
    n_threads : int
        Threads of every task.
    kept : sequence of arrays of bool, optional
        The queries of each chunk that count; all if None.
    """

    def __init__(
        self,
        source: Source,
        recipe: Recipe | None,
        budget: Budget,
        n_threads: int = 1,
        kept: Sequence[Any] | None = None,
    ) -> None:
        self.source, self.recipe, self.budget = source, recipe, budget
        self.n_threads = n_threads
        self.kept = kept
        self.n_read = 0  # bytes of features, all passes together
        self._kept: dict[int, Chunk] = {}
        self._buffers = [source.buffer() for _ in range(min(budget.n_buffers, len(source.chunks)))]
        from concurrent.futures import Future, ThreadPoolExecutor

        self._reader = ThreadPoolExecutor(1, thread_name_prefix="linrank-read")
        self._ahead: deque[tuple[int, Any, Future[Dataset]]] = deque()

    @property
    def n_chunks(self) -> int:
        return len(self.source.chunks)

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading, and free what was read: the memory is wanted for the next passes."""
        for _, _, future in self._ahead:
            future.cancel()
        self._reader.shutdown(wait=True)
        for held in (self._ahead, self._kept, self._buffers):
            held.clear()

    def total(self, task: Task, *args: Any) -> Any:
        chunks = self._pass(range(self.n_chunks))
        return tree_sum(task(chunk, *args, n_threads=self.n_threads) for chunk in chunks)

    def each(
        self, task: Task, *args: Any, per_chunk: Sequence[tuple[Any, ...] | None] | None = None
    ) -> list[Any]:
        own = [()] * self.n_chunks if per_chunk is None else list(per_chunk)
        asked = [i for i, mine in enumerate(own) if mine is not None]
        found: list[Any] = [None] * self.n_chunks
        for i, chunk in zip(asked, self._pass(asked), strict=True):
            found[i] = task(chunk, *(own[i] or ()), *args, n_threads=self.n_threads)
        return found

    def _pass(self, numbers: Sequence[int]) -> Iterator[Chunk]:
        """These chunks, ascending, each until the next one is asked for."""
        pending = self._pending(numbers)
        for i in numbers:
            if self._is_here(i):
                yield self._kept[i]
                continue
            self._fill(pending)
            _, buffer, reading = self._ahead.popleft()
            try:
                chunk = self._made(i, reading.result())
                yield chunk
                if i < self.budget.n_states:
                    self._kept[i] = chunk if i < self.budget.n_kept else _without_rows(chunk)
            finally:
                if buffer is not None:
                    self._buffers.append(buffer)
            self._fill(pending)
        self._fill(self._pending(range(self.n_chunks)))

    def _is_here(self, i: int) -> bool:
        return i < self.budget.n_kept and i in self._kept

    def _pending(self, numbers: Sequence[int]) -> Iterator[int]:
        """What is still to be read of these chunks; what was read ahead in vain is let go."""
        wanted = [i for i in numbers if not self._is_here(i)]
        n_ready = 0
        while n_ready < len(self._ahead):
            i, buffer, reading = self._ahead[n_ready]
            if n_ready < len(wanted) and wanted[n_ready] == i:
                n_ready += 1
                continue
            reading.result()  # it writes into the buffer until then
            del self._ahead[n_ready]
            if buffer is not None:
                self._buffers.append(buffer)
        return iter(wanted[n_ready:])

    def _fill(self, pending: Iterator[int]) -> None:
        """Have the next chunks read while there is a buffer for them."""
        while self._buffers and len(self._ahead) < self.budget.n_buffers:
            i = next(pending, None)
            if i is None:
                return
            # What is to be kept gets memory of its own.
            buffer = None if i < self.budget.n_kept else self._buffers.pop()
            reading = self._reader.submit(self.source.read, i, into=buffer)
            self._ahead.append((i, buffer, reading))
            self.n_read += self.source.chunks[i].nbytes

    def _made(self, i: int, data: Dataset) -> Any:
        """The chunk of what was read; its terms and state are those of the last pass, if kept."""
        if self.recipe is None:
            return data
        known = self._kept.get(i)
        if known is not None:
            return replace(known, rows=self.recipe.prepared(data, self.n_threads).rows)
        return self.recipe.chunk(data, self.n_threads, None if self.kept is None else self.kept[i])
