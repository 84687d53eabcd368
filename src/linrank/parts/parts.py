"""Data in parts, wherever they are: what chunks of paths and folds are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import ColumnStatistics
from linrank.parts.gather import Gathering, MemoryChunks
from linrank.parts.recipes import RankRecipe

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Opened:
    """Chunks to be trained on, for a while.

    Attributes
    ----------
    gathering : Gathering
        Of `linrank.parts.chunk.Chunk`, or of `Dataset` where no recipe was given.
    capacity : int
        Rows that a sample of them may have.
    n_threads : int
        For the work on samples.
    """

    gathering: Gathering
    capacity: int = 1 << 62
    n_threads: int = 1


class Parts(Protocol):
    """Data sets of whole queries that have the same columns."""

    @property
    def where(self) -> str:
        """What the data are, for messages: "a store", "a cluster"."""

    @property
    def n_features(self) -> int: ...
    @property
    def feature_names(self) -> tuple[str, ...] | None: ...
    @property
    def has_ids(self) -> bool: ...
    @property
    def n_at_a_time(self) -> int:
        """Folds that may be trained side by side."""

    @property
    def statistics(self) -> ColumnStatistics | None:
        """Those of all columns, where they are known already."""

    @property
    def lengths(self) -> Sequence[Array]:
        """The rows of each query, part by part."""

    @property
    def query_numbers(self) -> Sequence[Array]:
        """The number of each query in order of first appearance in the input, part by part."""

    def opened(
        self, recipe: RankRecipe | None, factors: Sequence[Array] | None = None
    ) -> AbstractContextManager[Opened]:
        """Chunks by ``recipe``, each with its factors, or the data sets themselves."""


class MemoryParts:
    """Parts in the memory of this process."""

    where: ClassVar[str] = "parts"
    n_at_a_time: ClassVar[int] = 1
    statistics: ClassVar[None] = None

    def __init__(self, parts: Sequence[Dataset], n_threads: int = 1) -> None:
        self.parts, self.n_threads = parts, n_threads
        self.n_features = parts[0].n_features
        self.feature_names = parts[0].feature_names
        self.has_ids = parts[0].qid is not None
        self.lengths = [np.diff(part.queries.offsets) for part in parts]
        self.query_numbers = consecutive(self.lengths)

    @contextmanager
    def opened(
        self, recipe: RankRecipe | None, factors: Sequence[Array] | None = None
    ) -> Iterator[Opened]:
        own = [None] * len(self.parts) if factors is None else factors
        chunks: Sequence[Any] = self.parts
        if recipe is not None:
            chunks = [
                recipe.chunk(part, self.n_threads, factor)
                for part, factor in zip(self.parts, own, strict=True)
            ]
        yield Opened(MemoryChunks(chunks, self.n_threads), n_threads=self.n_threads)


def consecutive(lengths: Sequence[Array]) -> list[Array]:
    """Numbers of queries that are numbered part after part."""
    ends = np.cumsum([len(part) for part in lengths])
    return [np.arange(end - len(part), end) for part, end in zip(lengths, ends, strict=True)]
