"""A store within a limit on memory: its chunks are read pass after pass, the next ones ahead."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from linrank.data import Array, Dataset
from linrank.io.store.store import Store, columns_of
from linrank.parts.parts import Gathering, Parts
from linrank.parts.recipes import Chunk, Recipe
from linrank.parts.risk import LARGEST_MATRIX
from linrank.ranksvm.train import MOST_FACTORED
from linrank.system import Plan, Reader, Walk, cached_property

# What a row may take beside its features, as measured, from above: as it is read; kept from pass to
# pass (levels, weights, sorted scores, what a sweep found of them); and at work, where scores and
# what is found of them are made anew beside those. A recipe may add to it.
READ_OF_A_ROW = 64
STATE_OF_A_ROW = 64
WORK_OF_A_ROW = 96
OF_A_QUERY = 64  # sizes and levels, and what drawing a sample of queries makes of them
SPARE = 8 << 20  # what allocators do not give back, stacks of threads, blocks of kernels


class StoreParts(Parts):
    """The chunks of a store, read within a limit on memory.

    ``memory_limit`` are the bytes that training may take beyond what the process holds before.
    """

    where: ClassVar[str] = "a store within memory_limit"

    def __init__(self, store: Store, memory_limit: Any, n_threads: int = 1) -> None:
        super().__init__(columns_of(store), store.n_rows, store.n_queries, n_threads)
        self.store, self.memory_limit = store, memory_limit
        self.capacity = sample_capacity(store)
        self.statistics, self.index_base = store.statistics, store.index_base
        n_bytes = sum(chunk.nbytes for chunk in store.chunks)
        self.row_bytes = max(1.0, n_bytes / max(1, store.n_rows))

    @cached_property
    def lengths(self) -> Sequence[Array]:
        return [self.store.query_lengths(i) for i in range(self.store.n_chunks)]

    def check_room(self, recipe: Recipe) -> None:
        self._plan(recipe)

    def opened(self, recipe: Recipe | None, is_last: bool = False) -> Passes:
        return Passes(self.store, recipe, self._plan(recipe), self.n_threads, self.kept)

    def _plan(self, recipe: Recipe | None) -> Plan:
        return plan_passes(self.store, self.memory_limit, recipe, self.growth(recipe))


def sample_capacity(store: Store) -> int:
    """Rows of a sample: as many as the largest chunk has bytes for.

    It must not depend on the memory at hand, or the result would: another sample is another way to
    the optimum, and ends elsewhere within the tolerance.
    """
    largest = max(chunk.nbytes for chunk in store.chunks)
    n_bytes = sum(chunk.nbytes for chunk in store.chunks)
    return max(1, largest * store.n_rows // max(1, n_bytes))


def plan_passes(
    store: Store, memory_limit: Any, recipe: Recipe | None = None, growth: float = 0.0
) -> Plan:
    """What is kept of a store between passes; ``growth`` is that of `Parts`.

    One chunk is read while another, and copies of it where its rows are transformed, are worked
    on. Beside them there is a sample as large as a chunk: twice while its pieces are put together,
    once while it is worked on, or while Hessians are formed.
    """
    sizes = [chunk.nbytes for chunk in store.chunks]
    lengths = [chunk.rows.stop - chunk.rows.start for chunk in store.chunks]
    largest, longest = max(sizes), max(lengths)
    beside = SPARE + OF_A_QUERY * store.n_queries
    own = 0 if recipe is None else recipe.row_bytes
    if recipe is None:  # data sets are read once: nothing of them is kept
        beside += READ_OF_A_ROW * longest + largest
    else:
        n_columns = store.n_features if recipe.design is None else recipe.design.n_columns
        # Rows divided by query: a copy is made while that of the chunk before is still there.
        work = (WORK_OF_A_ROW + own) * longest + int((2 * recipe.by_query + growth) * largest)
        beside += largest + max(largest, work + _matrix_bytes(n_columns, store.n_chunks))
    plan = Plan.of(
        memory_limit,
        f"training in passes over chunks of {largest / 1e6:.3g} MB of {store.path}",
        beside=beside,
        n_buffers=2,
        buffer=largest,
        kept=[int(max(1.0, growth) * size) for size in sizes],
        states=[(STATE_OF_A_ROW + own) * n_rows for n_rows in lengths],
    )
    return plan if recipe is not None else replace(plan, n_states=0, n_kept=0)


def _matrix_bytes(n_features: int, n_chunks: int) -> int:
    """Bytes of what has the size of a Hessian, and of the products that are remembered.

    Two Hessians, that of a sample, their factor and a copy of each that is being made; those of the
    chunks that wait for their turn in the sum, one a level of its tree; and the parts that a kernel
    adds up, 64 MB of them, two at least and 16 at most (`PaddedSquare` in `core/products.hpp`).
    """
    remembered = 64 * 8 * n_features
    if n_features > MOST_FACTORED:
        return remembered
    square = 8 * n_features**2
    n_levels = n_chunks.bit_length() + 1 if n_features <= LARGEST_MATRIX else 0
    n_parts = min(16, max(2, (64 << 20) // max(1, square)))
    return remembered + (6 + n_levels + n_parts) * square


class Passes(Gathering):
    """A gathering of chunks that are read in every pass, in order.

    The next pass begins where this one ends: its first chunks are read while the solver thinks.

    Parameters
    ----------
    source : Store
        The chunks.
    recipe : Recipe or None
        What makes chunks of what is read; None leaves it as it is, and nothing can be kept.
    plan : Plan
        What is kept.
    n_threads : int
        Threads of every task.
    kept : sequence of arrays of bool, optional
        The queries of each chunk that count; all if None.
    """

    def __init__(
        self,
        source: Store,
        recipe: Recipe | None,
        plan: Plan,
        n_threads: int = 1,
        kept: Sequence[Any] | None = None,
    ) -> None:
        self.source, self.recipe, self.plan = source, recipe, plan
        self.n_threads, self.kept = n_threads, kept
        self.n_chunks = len(source.chunks)
        self.n_read = 0  # bytes of features, all passes together
        self._reader = Reader(self._read, source.buffer, self.n_chunks, plan)
        self._states: dict[int, Chunk] = {}  # of chunks whose features are not kept
        self._next = self._begin()

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._next.close()
        self._reader.close()
        self._states.clear()

    def _begin(self) -> Walk:
        """A walk that goes through all chunks again and again."""
        return self._reader.walk(itertools.cycle(range(self.n_chunks)))

    def walk(self, numbers: Sequence[int]) -> Iterator[Any]:
        walk = self._next
        if len(numbers) < self.n_chunks:
            walk.close()
            walk = self._reader.walk(numbers)
        try:
            for i, found in itertools.islice(walk, len(numbers)):
                chunk = self._made(i, found)
                yield chunk
                self._keep(i, chunk)
        except BaseException:
            walk.close()
            self._next = self._begin()
            raise
        if walk is not self._next:
            self._next = self._begin()
        self._next.let_go()

    def _read(self, i: int, buffer: Any) -> Dataset:
        self.n_read += self.source.chunks[i].nbytes
        return self.source.read(i, into=buffer)

    def _made(self, i: int, found: Any) -> Any:
        """The chunk of what was read; its terms and state are those of the last pass, if kept."""
        if self.recipe is None or isinstance(found, Chunk):
            return found
        known = self._states.get(i)
        if known is not None:
            return replace(known, rows=self.recipe.prepare(found, self.n_threads).rows)
        return self.recipe.chunk(found, self.n_threads, None if self.kept is None else self.kept[i])

    def _keep(self, i: int, chunk: Any) -> None:
        if i < self.plan.n_kept:
            self._reader.here[i] = chunk
        elif i < self.plan.n_states:  # rows may be a copy: they must not stay
            self._states[i] = replace(chunk, rows=chunk.rows.take(np.empty(0, np.int64)))
