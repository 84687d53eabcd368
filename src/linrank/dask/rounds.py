"""What runs on a worker: a task on each chunk that lies there, with all its threads.

Workers import this module and not those that use it: that takes a worker a part of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from distributed import get_worker

from linrank.dask.subtrees import pieces
from linrank.data.dataset import Dataset
from linrank.data.rows import ColumnStatistics
from linrank.parts.chunk import Chunk, tree_sum
from linrank.parts.fold_recipes import SharedChunk
from linrank.parts.recipes import Recipe

Task = Callable[..., Any]


def make_chunk(data: Dataset, recipe: Recipe) -> Chunk:
    """The chunk of a partition."""
    return recipe.chunk(data)


def make_fold_chunk(data: Dataset, factor: Any, recipe: Recipe) -> Chunk:
    """The chunk of the queries of a partition whose factor is not 0, beside the partition."""
    chunk = recipe.chunk(data, 1, factor)
    if chunk.rows is not data.rows:  # scaled within queries, in a copy
        return chunk
    return SharedChunk(chunk.rows, chunk.terms, chunk.sizes)


def column_statistics(data: Dataset, n_threads: int = 1) -> ColumnStatistics:
    """What a partition adds to the statistics of the columns."""
    return ColumnStatistics.of(data.rows, data.weight, n_threads)


def sum_here(
    chunks: Sequence[Any], indices: Sequence[int], task: Task, args: Sequence[Any]
) -> tuple[str, list[Any]]:
    """Where this ran, and the sums of ``task(chunk, *args)`` over runs of these chunks."""
    own = [()] * len(chunks)
    return _address(), pieces(indices, _results(task, chunks, own, args))


def list_here(
    chunks: Sequence[Any], own: Sequence[tuple[Any, ...]], task: Task, args: Sequence[Any]
) -> tuple[str, list[Any]]:
    """Where this ran, and ``task(chunk, *own, *args)`` of each chunk."""
    return _address(), list(_results(task, chunks, own, args))


def one(chunk: Any, task: Task, args: Sequence[Any], n_neighbours: int) -> Any:
    """``task(chunk, *args)``, with a share of the threads: that of one of ``n_neighbours``."""
    return task(chunk, *args, n_threads=max(1, _threads() // n_neighbours))


def add_group(parts: Sequence[Any], task: Task) -> Any:
    """The sum of a group of results of ``task``, by the tree that all sums have."""
    return tree_sum(parts)


def _results(
    task: Task, chunks: Sequence[Any], own: Sequence[tuple[Any, ...]], args: Sequence[Any]
) -> Iterator[Any]:
    """The results in order, chunk by chunk with all threads, or where chunks are many side by side.

    A chunk is best left to one thread: threads that share one wait for each other at its end.
    """
    n_threads = _threads()
    if len(chunks) < n_threads or n_threads == 1:
        for chunk, mine in zip(chunks, own, strict=True):
            yield task(chunk, *mine, *args, n_threads=n_threads)
        return

    def alone(chunk: Any, mine: tuple[Any, ...]) -> Any:
        return task(chunk, *mine, *args, n_threads=1)

    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(alone, chunks, own)


def _threads() -> int:
    return int(get_worker().state.nthreads)


def _address() -> str:
    return str(get_worker().address)
