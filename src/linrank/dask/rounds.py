"""What runs on a worker: a task on each chunk that lies there, with all its threads.

Workers import this module and not those that use it: that takes a worker a part of the time.

Sums are pieces of the tree that `linrank.parts.chunk.tree_sum` adds by, each summed where its parts
are. The tree of n parts has a node for every aligned run ``[k·2^m, (k+1)·2^m)`` of them. A worker
that has all parts of such a run adds them by itself; joined in order, the pieces give the same bits
as the sum of all parts in one place.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dask.sizeof import sizeof
from distributed import get_worker

from linrank.data.dataset import Dataset
from linrank.parts.chunk import Chunk, SharedChunk, Task, tree_sum
from linrank.parts.recipes import Recipe


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all its processes, to the command that started them.

    Dask calls it in the main thread of a worker that has this module as a preload.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def make_chunk(data: Dataset, kept: Any, recipe: Recipe, is_shared: bool) -> Chunk:
    """The chunk of the queries ``kept`` of a partition, all if None.

    ``is_shared`` says that the partition stays beside it.
    """
    chunk = recipe.chunk(data, 1, kept)
    if not is_shared or chunk.rows is not data.rows:  # scaled within queries, in a copy
        return chunk
    return SharedChunk(chunk.rows, chunk.terms, chunk.sizes)


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


# ---- sums ---------------------------------------------------------------------------------------

Piece = tuple[int, int, Any]  # first part, number of parts (a power of two), their sum


def pieces(indices: Sequence[int], values: Iterable[Any]) -> list[Piece]:
    """The largest nodes of the tree whose parts are all among ``indices``, which ascend.

    Values are taken one at a time and added as soon as a node is whole, so that few are kept.

    Examples
    --------
    >>> pieces([1, 2, 3, 4, 5, 6], "bcdefg")
    [(1, 1, 'b'), (2, 2, 'cd'), (4, 2, 'ef'), (6, 1, 'g')]
    """
    stack: list[Piece] = []
    for start, value in zip(indices, values, strict=True):
        _push(stack, (start, 1, value))
    return stack


def joined(found: Iterable[Piece]) -> Any:
    """The sum over all parts, of pieces that cover them.

    Examples
    --------
    >>> joined([(2, 1, "c"), (0, 2, "ab")])
    'abc'
    """
    stack: list[Piece] = []
    end = 0
    for piece in sorted(found, key=lambda piece: piece[0]):
        if piece[0] != end:
            raise ValueError(f"part {end} is missing or doubled in a sum")
        end += piece[1]
        _push(stack, piece)
    if not stack:
        raise ValueError("a sum over no part; there must be at least one")
    total = stack.pop()[2]
    while stack:
        total = stack.pop()[2] + total
    return total


def _push(stack: list[Piece], piece: Piece) -> None:
    """Put a piece on top, and join neighbours as long as they make a node of the tree."""
    start, size, total = piece
    while stack and stack[-1][1] == size and stack[-1][0] == start - size:
        if stack[-1][0] % (2 * size):
            break  # neighbours, but children of two nodes
        start, _, left = stack.pop()
        total = left + total
        size *= 2
    stack.append((start, size, total))


# ---- sizes --------------------------------------------------------------------------------------
# Dask sends a task to where most of its bytes lie. Without these a dataset counts as the 56 bytes
# of a bare object: its rows would travel for nothing, and a worker would never spill them.

_BY_ROW = 32  # bytes of a chunk for each row beside its features: levels, weights, scores, order


@sizeof.register(Dataset)  # type: ignore[untyped-decorator]
def bytes_of_dataset(data: Dataset) -> int:
    """Bytes of the rows, the vectors beside them and the queries, as far as these are grouped."""
    arrays: list[Any] = [data.labels, data.qid, data.weight]
    if (queries := data.__dict__.get("queries")) is not None:
        arrays += [queries.offsets, queries.order, queries.levels, queries.n_levels, queries.ids]
    return data.rows.nbytes + sum(int(a.nbytes) for a in arrays if a is not None)


@sizeof.register(Chunk)  # type: ignore[untyped-decorator]
def bytes_of_chunk(chunk: Chunk) -> int:
    """Bytes of the rows and of what a chunk keeps by row."""
    return chunk.rows.nbytes + _BY_ROW * chunk.sizes.n_rows


@sizeof.register(SharedChunk)  # type: ignore[untyped-decorator]
def bytes_of_shared_chunk(chunk: SharedChunk) -> int:
    """What a chunk keeps by row; its rows count where the partition does."""
    return _BY_ROW * chunk.sizes.n_rows
