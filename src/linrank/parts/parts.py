"""Data in parts, wherever they are: what chunks are made of, of a store for one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import ColumnStatistics
from linrank.io.store.outline import columns_of
from linrank.io.store.store import Store
from linrank.parts.chunk import Gathering
from linrank.parts.passes import Budget, Passes, sample_capacity
from linrank.parts.recipes import Recipe
from linrank.parts.risk import LARGEST_MATRIX
from linrank.ranksvm.train import MOST_FACTORED
from linrank.system.resources import allowed, cached_property, describe_bytes, resident

Array = NDArray[Any]


class Parts(ABC):
    """Data sets of whole queries that have the same columns.

    Parameters
    ----------
    columns : Dataset
        Their columns, without a row.
    n_rows, n_queries : int
        Of all parts.
    n_threads : int
        For the work on samples.
    """

    where: ClassVar[str]  # what the data are, for messages: "a store", "a cluster"
    capacity: int = 1 << 62  # rows that a sample may have
    index_base: int | None = None  # the number of the first feature in the file
    statistics: ColumnStatistics | None = None  # of all columns, where they are known already

    def __init__(self, columns: Dataset, n_rows: int, n_queries: int, n_threads: int = 1) -> None:
        self.columns, self.n_threads = columns, n_threads
        self.n_rows, self.n_queries = n_rows, n_queries

    @property
    @abstractmethod
    def lengths(self) -> Sequence[Array]:
        """The rows of each query, part by part."""

    @property
    def query_numbers(self) -> Sequence[Array]:
        """The number of each query in order of first appearance in the input, part by part."""
        ends = np.cumsum([len(part) for part in self.lengths])[:-1]
        return np.split(np.arange(self.n_queries), ends)

    @abstractmethod
    def opened(
        self, recipe: Recipe | None, kept: Sequence[Array] | None = None
    ) -> AbstractContextManager[Gathering]:
        """Chunks by ``recipe``, or the data sets themselves, for a while.

        ``kept`` are masks of the queries that count, part by part.
        """


# ---- training from a store within a limit on memory ---------------------------------------------

# What the process may take beside all that is counted: stacks of threads, arrays of the solver.
_SPARE = 64 << 20


def passes_over(
    store: Store, recipe: Recipe | None, memory_limit: Any, n_threads: int, kept: Any = None
) -> Passes:
    """Passes over a store within ``memory_limit`` bytes of memory of this process in all.

    What the process has in memory already counts, so that a limit on the process, or on its
    container, can be given as it is.
    """
    limit = allowed(memory_limit)
    assert limit is not None  # a limit that was given
    matrices = _matrix_bytes(store.n_features, store.n_chunks)
    used = resident()
    sizes = (1, 0) if recipe is None else (2 if recipe.by_query else 1, recipe.row_bytes)
    free, least = limit - used - _SPARE - matrices, Budget.least(store, *sizes)
    if free < least:
        raise MemoryError(
            f"memory_limit={memory_limit!r} is too small for {store.path}: the process has "
            f"{describe_bytes(used)} in memory already, and passes over chunks of "
            f"{describe_bytes(max(chunk.nbytes for chunk in store.chunks))} take "
            f"{describe_bytes(limit - free - used + least)} more; allow "
            f"{describe_bytes(limit - free + least)}, or write the store with smaller chunks "
            "(--chunk-size, chunk_bytes=)"
        )
    budget = Budget.of(store, free, *sizes)
    if recipe is None:  # data sets are read once
        budget = replace(budget, n_states=0, n_kept=0)
    return Passes(store, recipe, budget, n_threads, kept)


def _matrix_bytes(n_features: int, n_chunks: int) -> int:
    """Bytes of what has the size of a Hessian, and of the products that are remembered.

    Two Hessians, that of a sample, their factor and a copy of each that is being made; those of the
    chunks that wait for their turn in the sum, one a level of its tree; and the parts that a kernel
    adds up, 64 MB of them or two (see `PaddedSquare` in `core/products.hpp`).
    """
    remembered = 64 * 8 * n_features
    if n_features > MOST_FACTORED:
        return remembered
    square = 8 * n_features**2
    n_levels = n_chunks.bit_length() + 1 if n_features <= LARGEST_MATRIX else 0
    parts = min(64 * square, max(64 << 20, 2 * square))
    return remembered + (6 + n_levels) * square + parts


class StoreParts(Parts):
    """The chunks of a store, read within a limit on memory."""

    where: ClassVar[str] = "a store within memory_limit"

    def __init__(self, store: Store, memory_limit: Any, n_threads: int = 1) -> None:
        super().__init__(columns_of(store), store.n_rows, store.n_queries, n_threads)
        self.store, self.memory_limit = store, memory_limit
        self.capacity = sample_capacity(store)
        self.statistics, self.index_base = store.statistics, store.index_base

    @cached_property
    def lengths(self) -> Sequence[Array]:
        return [self.store.query_lengths(i) for i in range(self.store.n_chunks)]

    def opened(self, recipe: Recipe | None, kept: Sequence[Array] | None = None) -> Passes:
        return passes_over(self.store, recipe, self.memory_limit, self.n_threads, kept)
