"""Partitions on a cluster as parts, of which paths and folds make their chunks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from numpy.typing import NDArray

from linrank.dask import rounds
from linrank.dask.gathering import DaskChunks
from linrank.dask.partitions import Partitions
from linrank.dask.training import datasets_on, sample_capacity
from linrank.parts.parts import Opened
from linrank.parts.recipes import RankRecipe

Array = NDArray[Any]


class DaskParts:
    """The partitions of a cluster, every query in one of them: `linrank.parts.parts.Parts`.

    Parameters
    ----------
    data : Partitions
        The data.
    patience : float
        Seconds for which no worker may be there, or the scheduler silent.
    n_threads : int
        For the work on samples, which is done here.
    """

    where: ClassVar[str] = "a cluster"
    statistics: ClassVar[None] = None
    n_at_a_time: ClassVar[int] = 1  # one has all workers busy, and its state takes their memory

    def __init__(self, data: Partitions, patience: float = 60.0, n_threads: int = 1) -> None:
        self.data, self.patience, self.n_threads = data, patience, n_threads
        self.n_features = data.n_features
        self.feature_names = data.feature_names
        self.has_ids = data.query_ids is not None
        self.lengths = [summary.lengths for summary in data.summaries]
        self.query_numbers = data.query_numbers

    @contextmanager
    def opened(
        self, recipe: RankRecipe | None, factors: Sequence[Array] | None = None
    ) -> Iterator[Opened]:
        if recipe is None:
            with datasets_on(self.data, self.patience) as datasets:
                yield Opened(datasets, n_threads=self.n_threads)
            return
        chunks = self._chunks(recipe, factors)
        try:
            yield Opened(chunks, sample_capacity(self.data), self.n_threads)
        finally:
            chunks.release()

    def _chunks(self, recipe: RankRecipe, factors: Sequence[Array] | None) -> DaskChunks:
        data = self.data
        name = f"linrank-fold-chunk-{uuid.uuid4().hex}"
        futures = data.client.map(
            rounds.make_fold_chunk,
            data.futures,
            [None] * len(data.futures) if factors is None else factors,
            recipe=recipe,
            key=[f"{name}-{i}" for i in range(len(data.futures))],
        )
        numbers = [summary.number for summary in data.summaries]
        return DaskChunks(data.client, futures, self.patience, numbers)
