"""A chunk of whole queries, what was last found there, and sums over chunks wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import Rows
from linrank.losses.base import ScoreLoss

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Sizes:
    """What the whole has to know of a chunk.

    Attributes
    ----------
    n_features, n_rows, n_pairs : int
    n_bytes : int
        Of the rows.
    is_sparse : bool
    weight : float
        What the chunk's losses weigh in all: of pairs ``Σ ω_ij``, of the domination loss its value
        at ``w = 0``.
    lengths : int64 array (n_queries,)
        Rows of each query.
    n_levels : int32 array (n_queries,)
        Different labels, or layers, of each query.
    """

    n_features: int
    n_rows: int
    n_pairs: int
    n_bytes: int
    is_sparse: bool
    weight: float
    lengths: Array
    n_levels: Array

    @property
    def n_queries(self) -> int:
        return len(self.lengths)


class Terms(ABC):
    """The terms that a chunk adds to the objective: pairs of labels, or layers."""

    compared: Any  # Pairs or a Layering

    @abstractmethod
    def loss(self, epsilon: float, n_threads: int) -> ScoreLoss:
        """The loss of the chunk's scores, smoothed within ``epsilon`` where it has a kink."""

    @abstractmethod
    def weight(self) -> float:
        """What the losses weigh in all, as `Sizes` says."""


@dataclass(frozen=True, eq=False)
class State:
    """The loss at the scores of one ``w``: what a Hessian product there starts from."""

    w: Array
    epsilon: float
    loss: ScoreLoss
    point: Any


@dataclass(eq=False)
class Chunk:
    """What a task works on.

    The state is no part of the chunk's value: a chunk that comes from elsewhere has none, and what
    needs it computes it again, to the same bits.

    Attributes
    ----------
    rows : DenseRows or CsrRows
    terms : Terms or None
        None where the chunk has no pair: it adds zeros.
    sizes : Sizes
    state : State or None
        That of the last ``w``.
    """

    rows: Rows
    terms: Terms | None
    sizes: Sizes
    state: State | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": None}

    def at(self, w: Array, epsilon: float, n_threads: int) -> State:
        """The state at ``w``: the last one where that is of this ``w``, else a sweep."""
        last = self.state
        if last is not None and last.epsilon == epsilon and np.array_equal(last.w, w):
            return last
        assert self.terms is not None  # tasks return zeros before they come here
        loss = self.terms.loss(epsilon, n_threads)
        has_scores = w.any()  # of w = 0 they are known
        z = self.rows.scores(w, loss.order, n_threads) if has_scores else np.zeros(loss.n_positions)
        self.state = State(np.array(w), epsilon, loss, loss.at(z))
        return self.state


class SharedChunk(Chunk):
    """A chunk whose rows are those of a data set that is kept beside it: they count once."""


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


T = TypeVar("T")

GROUP = 8  # parts that a cluster adds in one task; a power of two


def tree_sum(parts: Iterable[T]) -> T:
    """The sum of the parts by a balanced binary tree, one part at a time.

    Of the parts seen so far only the complete subtrees are kept, at most log₂ n of them. A sum of
    sums over consecutive groups of `GROUP` parts has the same tree, hence the same bits.

    Examples
    --------
    >>> tree_sum("abcdefg")
    'abcdefg'
    """
    subtrees: list[tuple[int, Any]] = []
    for part in parts:
        size, total = 1, part
        while subtrees and subtrees[-1][0] == size:
            total = subtrees.pop()[1] + total
            size *= 2
        subtrees.append((size, total))
    if not subtrees:
        raise ValueError("a sum over no chunk; there must be at least one")
    total = subtrees.pop()[1]
    while subtrees:
        total = subtrees.pop()[1] + total
    return total
