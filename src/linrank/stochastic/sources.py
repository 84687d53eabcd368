"""Data in chunks of whole queries, of which a descent needs one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from linrank.errors import NoPairsError
from linrank.stochastic.samplers import pair_sampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.queries import Queries
    from linrank.stochastic.samplers import PairSampler

    Array = NDArray[Any]

__all__ = ["Parts", "Range", "Source", "chunk_sampler"]


class Range(Protocol):
    """Where in the whole a chunk is."""

    @property
    def rows(self) -> slice: ...
    @property
    def queries(self) -> slice: ...
    @property
    def nbytes(self) -> int: ...


class Source(Protocol):
    """What `linrank.Store` has that a descent needs; `Parts` has the same in memory."""

    @property
    def n_chunks(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def chunks(self) -> Sequence[Range]: ...

    def buffer(self) -> Any:
        """Memory that the values of any chunk can be read into."""

    def read(self, i: int, *, into: Any = None) -> Dataset:
        """Chunk i, in memory of its own or in a buffer."""

    def read_queries(self, i: int) -> Queries:
        """The queries of chunk i, without its features."""

    def read_weight(self, i: int) -> Array | None:
        """The weights of the rows of chunk i; None if rows have none."""


@dataclass(frozen=True)
class _Range:
    rows: slice
    queries: slice
    nbytes: int


class Parts:
    """Datasets of whole queries as the chunks of one: a `Source` in memory.

    A query must not be in two of them.
    """

    def __init__(self, parts: Sequence[Dataset]) -> None:
        self.parts = list(parts)
        row, query, chunks = 0, 0, []
        for part in self.parts:
            ends = row + part.n_rows, query + part.queries.n_queries
            chunks.append(_Range(slice(row, ends[0]), slice(query, ends[1]), part.rows.nbytes))
            row, query = ends
        self.chunks: Sequence[Range] = chunks
        self.n_rows, self.n_chunks = row, len(chunks)
        self.n_features = self.parts[0].n_features

    def buffer(self) -> None:
        """Nothing is read."""

    def read(self, i: int, *, into: Any = None) -> Dataset:
        return self.parts[i]

    def read_queries(self, i: int) -> Queries:
        return self.parts[i].queries

    def read_weight(self, i: int) -> Array | None:
        return self.parts[i].weight


def chunk_sampler(
    queries: Queries, weight: Array | None, sampling: str, query_weight: Array | None
) -> PairSampler | None:
    """The sampler of one chunk; None if it has no pair to draw."""
    for factors in (weight, query_weight):
        if factors is not None and not factors.any():
            return None
    try:
        return pair_sampler(queries, sampling, row_weight=weight, query_weight=query_weight)
    except NoPairsError:
        return None
