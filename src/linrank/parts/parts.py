"""Data in parts, wherever they are: whole queries as data sets, and what chunks are made of."""

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
        self.row_bytes: float = max(1, columns.n_features * columns.rows.dtype.itemsize)

    def growth(self, recipe: Recipe | None) -> float:
        """Bytes of the columns of curves, and of the dense rows they are of, per byte of rows."""
        if recipe is None or recipe.design is None:
            return 0.0
        n_values = self.columns.n_features + recipe.design.n_columns
        return n_values * self.columns.rows.dtype.itemsize / self.row_bytes

    def sample_rows(self, recipe: Recipe) -> int:
        """Rows that a sample may have."""
        return max(1, int(self.capacity / max(1.0, self.growth(recipe))))

    def check_room(self, recipe: Recipe) -> None:
        """Raise MemoryError, before any pass, where a limit is too small for chunks by a recipe."""
        return  # there is none

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
        self, recipe: Recipe | None, kept: Sequence[Array] | None = None, is_last: bool = False
    ) -> AbstractContextManager[Gathering]:
        """Chunks by ``recipe``, or the data sets themselves, for a while.

        ``kept`` are masks of the queries that count, part by part. ``is_last`` promises that a
        training opens nothing after this, so that what only makes chunks may be forgotten.
        """
