"""Where chunks are, and sums over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from linrank.parts.chunk import Chunk, tree_sum

Task = Callable[..., Any]  # task(chunk, *args, n_threads=...)


class Gathering(Protocol):
    """Chunks here, on disk or on a cluster: what a solver may have done with them."""

    @property
    def n_chunks(self) -> int: ...

    def total(self, task: Task, *args: Any) -> Any:
        """``Σ task(chunk, *args)`` over the chunks, by `tree_sum`."""

    def each(
        self, task: Task, *args: Any, per_chunk: Sequence[tuple[Any, ...] | None] | None = None
    ) -> list[Any]:
        """``task(chunk, *own, *args)`` of each chunk, in order; ``per_chunk`` are its own.

        A chunk whose ``own`` is None is left out: its result is None.
        """


class MemoryChunks:
    """Chunks in memory.

    Parameters
    ----------
    chunks : sequence of Chunk
        At least one.
    n_threads : int
        Threads of every task.
    """

    def __init__(self, chunks: Sequence[Chunk], n_threads: int = 1) -> None:
        self.chunks = chunks
        self.n_threads = n_threads

    @property
    def n_chunks(self) -> int:
        return len(self.chunks)

    def total(self, task: Task, *args: Any) -> Any:
        return tree_sum(task(chunk, *args, n_threads=self.n_threads) for chunk in self.chunks)

    def each(
        self, task: Task, *args: Any, per_chunk: Sequence[tuple[Any, ...] | None] | None = None
    ) -> list[Any]:
        own = [()] * self.n_chunks if per_chunk is None else per_chunk
        return [
            None if mine is None else task(chunk, *mine, *args, n_threads=self.n_threads)
            for chunk, mine in zip(self.chunks, own, strict=True)
        ]
