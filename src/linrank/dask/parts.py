"""The partitions of a cluster as a place to train on: the solver runs here, every pass there."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from numpy.typing import NDArray

from linrank.dask import rounds
from linrank.dask.clients import release
from linrank.dask.gathering import DaskChunks
from linrank.dask.keeper import Keeper, fingerprint
from linrank.dask.partitions import Partitions
from linrank.data.dataset import Dataset
from linrank.methods.base import Method, Task, Trained
from linrank.parts.gathered_rows import gathered
from linrank.parts.parts import Parts
from linrank.parts.recipes import Recipe
from linrank.system.resources import resolve

Array = NDArray[Any]

# Of the rows that come to the client to find a start from. Ten times as many save no round on
# MSLR's shape, and cost the client as much as three products of two workers.
_SAMPLE_BYTES = 32 << 20
_SAMPLE_ROWS = 50  # for each feature: as many as a preconditioner wants, whatever their bytes


class DaskParts(Parts):
    """The partitions of a cluster.

    Parameters
    ----------
    data : Partitions
        The data.
    patience : float
        Seconds for which no worker may be there, or the scheduler silent.
    n_jobs : int or None
        Threads of the work on samples, which is done here.
    checkpoint, resume
        As in `linrank.dask.keeper.Keeper`, of a training.
    keep : bool, default=False
        Whether the partitions are needed after chunks were made of them. A chunk shares the rows of
        its dataset, but Dask would count them twice and spill them to disk too early: unless they
        are kept, the datasets are forgotten at once, and the partitions are used up.

    Attributes
    ----------
    n_rounds, n_repeated : int
        Rounds of tasks so far, and those of them that had to be repeated.
    n_before : int
        Iterations of the fits that a training went on from.
    """

    where: ClassVar[str] = "a cluster"

    def __init__(
        self,
        data: Partitions,
        patience: float = 60.0,
        n_jobs: int | None = None,
        *,
        checkpoint: Any = None,
        resume: bool = False,
        keep: bool = False,
    ) -> None:
        super().__init__(data.columns, data.n_rows, data.n_queries, resolve(n_jobs))
        self.data, self.patience, self.keep = data, patience, keep
        self.checkpoint, self.resume = checkpoint, resume
        self.n_rounds = self.n_repeated = self.n_before = 0
        self.capacity = sample_capacity(data)
        if data.store is not None:
            self.statistics, self.index_base = data.store.statistics, data.store.index_base

    @property
    def lengths(self) -> Sequence[Array]:
        return [summary.lengths for summary in self.data.summaries]

    @property
    def query_numbers(self) -> Sequence[Array]:
        return self.data.query_numbers

    @contextmanager
    def opened(
        self, recipe: Recipe | None, kept: Sequence[Array] | None = None
    ) -> Iterator[DaskChunks]:
        data = self.data
        futures = data.futures if recipe is None else self._chunks(recipe, kept)
        numbers = [summary.number for summary in data.summaries]
        chunks = DaskChunks(data.client, futures, self.patience, numbers)
        if recipe is not None and not self.keep:
            release(data.futures)
        try:
            yield chunks
        finally:
            self.n_rounds += chunks.n_rounds
            self.n_repeated += chunks.n_repeated
            chunks.forget() if recipe is None else chunks.release()

    def _chunks(self, recipe: Recipe, kept: Sequence[Array] | None) -> list[Any]:
        data, name = self.data, f"linrank-chunk-{uuid.uuid4().hex}"
        futures: list[Any] = data.client.map(
            rounds.make_chunk,
            data.futures,
            [None] * len(data.futures) if kept is None else kept,
            recipe=recipe,
            is_shared=self.keep,
            key=[f"{name}-{i}" for i in range(len(data.futures))],
        )
        return futures

    @contextmanager
    def reached(self) -> Iterator[Parts | Dataset]:
        """The parts, or all rows by gathered scores where queries lie in several of them."""
        if not self.data.is_split:
            yield self
            return
        with self.opened(None) as blocks:
            yield gathered(blocks)


def sample_capacity(data: Partitions) -> int:
    """Rows that may come to the client as a sample; a twentieth of them all would not fit there.

    It depends on the data alone: with the number of workers in it, the result would.
    """
    row = max(1, data.nbytes // max(1, data.n_rows))
    return max(_SAMPLE_ROWS * data.n_features, _SAMPLE_BYTES // row)


def on_cluster(method: Method) -> Method:
    """The method for tasks whose data are `DaskParts`."""
    return replace(method, train=partial(_train, method))


def _train(method: Method, task: Task) -> Trained:
    """Train, each iterate being kept in the file ``checkpoint``."""
    place: DaskParts = task.data
    known = fingerprint(method.name, task, place.data)
    compares = getattr(task.parameters, "loss", None) != "hinge"
    keeper = Keeper(place.checkpoint, place.resume, known, compares)
    parameters = copy.copy(task.parameters)
    parameters.callback = keeper.callback(parameters.callback)
    start = task.start if keeper.w0 is None else keeper.w0
    place.n_before = keeper.n_before
    with keeper.advising(), place.reached() as data:
        return method.train(replace(task, data=data, parameters=parameters, start=start))
