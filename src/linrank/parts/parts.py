"""Data in parts, wherever they are: what chunks are made of, to be trained on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import ColumnStatistics
from linrank.parts.chunk import Gathering
from linrank.parts.recipes import Recipe

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
