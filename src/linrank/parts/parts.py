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
    lengths : sequence of int64 arrays
        The rows of each query, part by part.
    query_numbers : sequence of int64 arrays, optional
        The number of each query in order of first appearance in the input, part by part; counted
        part after part if None.
    n_threads : int
        For the work on samples.
    """

    where: ClassVar[str]  # what the data are, for messages: "a store", "a cluster"
    capacity: int = 1 << 62  # rows that a sample may have
    index_base: int | None = None  # the number of the first feature in the file
    statistics: ColumnStatistics | None = None  # of all columns, where they are known already

    def __init__(
        self,
        columns: Dataset,
        lengths: Sequence[Array],
        query_numbers: Sequence[Array] | None = None,
        n_threads: int = 1,
    ) -> None:
        self.columns, self.lengths, self.n_threads = columns, lengths, n_threads
        self.n_rows = sum(int(part.sum()) for part in lengths)
        self.n_queries = sum(map(len, lengths))
        if query_numbers is None:
            ends = np.cumsum([len(part) for part in lengths])[:-1]
            query_numbers = np.split(np.arange(self.n_queries), ends)
        self.query_numbers = query_numbers

    @abstractmethod
    def opened(
        self, recipe: Recipe | None, kept: Sequence[Array] | None = None
    ) -> AbstractContextManager[Gathering]:
        """Chunks by ``recipe``, or the data sets themselves, for a while.

        ``kept`` are masks of the queries that count, part by part.
        """
