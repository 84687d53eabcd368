"""The problem of chunks as `linrank.planning` wants it: objectives, and samples held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.bounds import Box
from linrank.chunks import tasks
from linrank.chunks.chunk import Chunk, Sizes
from linrank.chunks.gathering import Gathering
from linrank.chunks.recipes import Piece, Recipe
from linrank.chunks.risk import ChunkedRisk, Whole
from linrank.errors import NoPairsError
from linrank.lazy import cached_property
from linrank.objective import Ridge, Sum
from linrank.planning import Plannable
from linrank.sampling import choose_queries
from linrank.solvers.smoothing import Sharpening

__all__ = ["LARGEST_MATRIX", "ChunkedProblem", "Extent", "sizes_of"]

Array = NDArray[Any]

LARGEST_MATRIX = 1024  # features up to which chunks may send their Hessians


@dataclass(frozen=True)
class Extent:
    """Shape and storage of rows that are elsewhere."""

    shape: tuple[int, int]
    nbytes: int
    is_sparse: bool


@dataclass(frozen=True, eq=False)
class ChunkedProblem:
    """``½‖w‖² + C Σ_chunks L(X D w)`` and samples of it: `linrank.planning.Plannable`.

    Attributes
    ----------
    gathering : Gathering
        The chunks.
    recipe : Recipe
        What they were made by.
    sizes : sequence of Sizes
        Of each of them.
    C : float
    scale : float64 array (n_features,) or None
        The diagonal of D.
    box : Box or None
        Where ``w`` has to be.
    capacity : int
        Rows that a sample may have.
    n_threads : int
        Of the work on samples.
    """

    gathering: Gathering
    recipe: Recipe
    sizes: Sequence[Sizes]
    C: float
    scale: Array | None = None
    box: Box | None = None
    capacity: int = 1 << 62
    n_threads: int = 1
    largest_matrix = LARGEST_MATRIX

    @property
    def loss(self) -> str:
        return self.recipe.loss

    @cached_property
    def rows(self) -> Extent:
        first = self.sizes[0]
        n_bytes = sum(size.n_bytes for size in self.sizes)
        return Extent((self.n_rows, first.n_features), n_bytes, first.is_sparse)

    @cached_property
    def n_rows(self) -> int:
        return sum(size.n_rows for size in self.sizes)

    @cached_property
    def n_pairs(self) -> int:
        return sum(size.n_pairs for size in self.sizes)

    @cached_property
    def weight(self) -> float:
        """What the losses of all chunks weigh."""
        return float(sum(size.weight for size in self.sizes))

    @property
    def longest_query(self) -> int:
        return max(int(size.lengths.max(initial=0)) for size in self.sizes)

    @cached_property
    def _whole(self) -> Whole:
        mean_weight = self.weight / max(1, self.n_pairs)
        return Whole(mean_weight, self.recipe.loss == "hinge")

    def objective(self, epsilon: float = 1.0) -> Sum:
        """``F``, with the hinge smoothed within ``epsilon`` of its kink."""
        risk = ChunkedRisk(self.gathering, self.C, self._whole, self.scale, epsilon)
        return Sum(Ridge(self.box), risk)

    def sharpening(self, tol: float) -> Sharpening | None:
        """From the smoothed hinge to the hinge; None where nothing is smoothed."""
        return Sharpening(self.objective, tol) if self.loss == "hinge" else None

    def check(self) -> None:
        """Raise NoPairsError where there is nothing to learn from."""
        if self.n_pairs == 0 or not self.weight > 0.0:
            n_queries = sum(size.n_queries for size in self.sizes)
            raise NoPairsError(
                f"none of the {n_queries} queries in {len(self.sizes)} chunks has two different "
                "labels whose rows have a weight; check that qid is not a row id, that labels vary "
                "inside a query, and the weights"
            )

    def sample(self, n_rows: int) -> Plannable:
        """The same problem on about ``n_rows`` rows, `capacity` at most, held in memory.

        The rows are those that a sample of the whole in memory would have.
        """
        pieces = self.drawn(min(n_rows, self.capacity), self.recipe.seed)
        return self.recipe.problem(
            pieces, self.C, self.weight, self.scale, self.box, self.n_threads
        )

    def drawn(self, n_rows: int, seed: int) -> list[Piece]:
        """Rows of queries chosen at random, by chunk."""
        lengths = np.concatenate([size.lengths for size in self.sizes])
        n_levels = np.concatenate(
            [size.n_levels if size.n_pairs else np.zeros_like(size.n_levels) for size in self.sizes]
        )
        queries, limit = choose_queries(lengths, n_levels, n_rows, seed)
        ends = np.cumsum([size.n_queries for size in self.sizes])
        per_chunk: list[tuple[Array, int] | None] = []
        for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            mine = queries[np.searchsorted(queries, begin) : np.searchsorted(queries, end)] - begin
            per_chunk.append((mine, begin) if len(mine) else None)
        found = self.gathering.each(draw, self.recipe, limit, seed, per_chunk=per_chunk)
        return [piece for piece in found if piece is not None]


def draw(
    chunk: Chunk,
    queries: Array,
    first: int,
    recipe: Recipe,
    limit: int,
    seed: int,
    n_threads: int = 1,
) -> Piece:
    """The task that draws a chunk's part of a sample."""
    return recipe.sample(chunk, queries, limit, seed, first)


def sizes_of(gathering: Gathering) -> list[Sizes]:
    """The sizes of all chunks."""
    return gathering.each(tasks.sizes)
