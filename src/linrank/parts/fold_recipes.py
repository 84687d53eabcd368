"""Chunks without the queries that a fold holds out: the same rows, fewer queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import ColumnStatistics
from linrank.parts.chunk import Chunk
from linrank.parts.recipes import RankRecipe

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class FoldRecipe(RankRecipe):
    """Chunks of the queries of a fold's training part.

    Rows that are held out are neither copied nor swept: the queries left are a selection of
    positions. So a chunk has the samples, and the sums, of a data set of these queries alone.
    """

    def chunk(self, data: Dataset, n_threads: int = 1, factor: Array | None = None) -> Chunk:
        """The chunk of the queries whose ``factor`` is not 0; all if it is None."""
        if factor is None or factor.all():
            return super().chunk(data, n_threads)
        kept = np.flatnonzero(factor)
        prepared = with_queries(self.prepared(data, n_threads), kept)
        plain = RankRecipe(
            self.loss,
            self.pairs,
            self.pair_weighting,
            self.query_normalization,
            self.query_weight,
        )
        chunk = plain.chunk(prepared, n_threads)
        n_rows, n_before = prepared.queries.n_rows, max(1, data.n_rows)
        sizes = replace(
            chunk.sizes, n_rows=n_rows, n_bytes=chunk.sizes.n_bytes * n_rows // n_before
        )
        return replace(chunk, sizes=sizes)

    @classmethod
    def of(cls, recipe: RankRecipe) -> FoldRecipe:
        """The recipe with the same parameters."""
        return cls(
            recipe.loss,
            recipe.pairs,
            recipe.pair_weighting,
            recipe.query_normalization,
            recipe.query_weight,
            recipe.by_query,
        )


class SharedChunk(Chunk):
    """A chunk whose rows are those of a data set that is kept beside it: they count once."""


def with_queries(data: Dataset, kept: Array) -> Dataset:
    """The same rows, of which only those of the queries ``kept``, ascending, have a position."""
    queries = data.queries
    positions, offsets = _positions(queries, kept)
    part = replace(data)
    part.__dict__["queries"] = Queries(
        offsets,
        positions if queries.order is None else queries.order[positions],
        queries.levels[positions],
        queries.n_levels[kept],
        None if queries.ids is None else queries.ids[kept],
    )
    return part


def only_queries(data: Dataset, kept: Array) -> Dataset:
    """The rows of the queries ``kept``, ascending, in order of position: a copy."""
    queries = data.queries
    positions, offsets = _positions(queries, kept)
    order = positions if queries.order is None else queries.order[positions]
    part = data.select(order)
    ids = None if queries.ids is None else queries.ids[kept]
    part.__dict__["queries"] = Queries(
        offsets, None, queries.levels[positions], queries.n_levels[kept], ids
    )
    return part


def statistics_of_queries(
    data: Dataset, kept: Array | None = None, *, n_threads: int = 1
) -> ColumnStatistics:
    """The moments of the columns over the rows of the queries ``kept``, all if None."""
    if kept is None or len(kept) == data.queries.n_queries:
        return ColumnStatistics.of(data.rows, data.weight, n_threads)
    part = only_queries(data, kept)
    return ColumnStatistics.of(part.rows, part.weight, n_threads)


def highest_label(data: Dataset, kept: Array, *, n_threads: int = 1) -> float:
    """The largest label of the queries ``kept``; -inf where there are none."""
    queries = data.queries
    positions, _ = _positions(queries, kept)
    return float(queries.gather(data.labels)[positions].max(initial=-np.inf))


def _positions(queries: Queries, kept: Array) -> tuple[Array, Array]:
    """The positions of some queries, one after the other, and where each of these begins."""
    begins = queries.offsets[kept]
    sizes = queries.offsets[kept + 1] - begins
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    positions = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)
    return positions.astype(np.int64, copy=False), offsets
