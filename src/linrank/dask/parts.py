"""The partitions of a cluster as a place to train on: the solver runs here, every pass there.

A checkpoint has the weights of the last outer iteration, to go on from when a cluster is lost. The
file has the format of `linrank.stochastic.checkpoint`: whole or not there, and nothing of it is
executed. It holds ``w`` in the scaled space, and what the fit was: sizes of the data and options. A
fit that goes on begins at that ``w``, which is all that Newton's method needs to remember.
"""

from __future__ import annotations

import copy
import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank.dask import rounds
from linrank.dask.clients import Watch, release
from linrank.dask.partitions import Partitions
from linrank.dask.rounds import DaskChunks
from linrank.data.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.errors import CheckpointError, ClusterError
from linrank.methods.base import Method, Task, Trained
from linrank.parts.gathered_rows import gathered
from linrank.parts.parts import Parts
from linrank.parts.recipes import Recipe
from linrank.solvers.result import Callback
from linrank.stochastic.checkpoint import check_replaceable, load, save
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
        As in `linrank.dask.parts.Keeper`, of a training.
    keep : bool, default=False
        Whether the partitions are needed after a training. Its last chunks take the rows over
        otherwise: the datasets are forgotten at once, and the partitions are used up.

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
        self.data, self.keep, self._is_used_up = data, keep, False
        self.watch = Watch(data.client, patience)
        self.checkpoint, self.resume = checkpoint, resume
        self.n_rounds = self.n_repeated = self.n_before = 0
        self.capacity = sample_capacity(data)
        self.row_bytes = max(1.0, data.nbytes / max(1, data.n_rows))
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
        self, recipe: Recipe | None, kept: Sequence[Array] | None = None, is_last: bool = False
    ) -> Iterator[DaskChunks]:
        if self._is_used_up:
            raise RuntimeError("the partitions were released when a training opened them last")
        data, keep = self.data, self.keep or not is_last
        futures = data.futures if recipe is None else self._chunks(recipe, kept, keep)
        numbers = [summary.number for summary in data.summaries]
        chunks = DaskChunks(self.watch, futures, numbers, is_shared=recipe is None)
        if not keep:
            self._is_used_up = True
            release(data.futures)
        try:
            yield chunks
        finally:
            self.n_rounds += chunks.n_rounds
            self.n_repeated += chunks.n_repeated
            chunks.release()

    def _chunks(self, recipe: Recipe, kept: Sequence[Array] | None, keep: bool) -> list[Any]:
        data, name = self.data, f"linrank-chunk-{uuid.uuid4().hex}"
        futures: list[Any] = data.client.map(
            rounds.make_chunk,
            data.futures,
            [None] * len(data.futures) if kept is None else kept,
            recipe=recipe,
            is_shared=keep,
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


# ---- checkpoints ---------------------------------------------------------------------------------
# The parameters that decide on the objective, as far as a method has them.
_OBJECTIVE = (
    *("C", "loss", "pairs", "pair_weighting", "n_rounds", "query_normalization"),
    *("alpha", "layers", "margin", "scale"),
    *("curves", "n_knots", "interactions", "increasing", "decreasing"),
)
_KIND = "weights of a fit on a cluster"
_SAME = 1e-6  # relative difference of objectives at one w that rounding and partitions explain


class Keeper:
    """Saves the iterates of a fit, and starts it from the last one saved.

    Parameters
    ----------
    path : str, os.PathLike or None
        None keeps nothing.
    resume : bool
        Whether to begin with what the file holds, where there is one.
    fit : mapping of str to JSON values
        What the fit is: a file of another one is refused.
    compares : bool, default=True
        Whether the objective at the saved ``w`` has to be what it was; one that is smoothed on the
        way cannot be compared.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        resume: bool,
        fit: Mapping[str, Any],
        compares: bool = True,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self.fit, self.compares = dict(fit), compares
        self.w0: Array | None = None
        self.n_before = 0  # iterations of the fits that this one goes on from
        self.n_saved: int | None = None  # iterations, with those before, of what the file holds
        self._objective: float | None = None
        if self.path is None:
            if resume:
                raise ValueError("resume=True needs checkpoint=, the file to go on from")
            return
        check_replaceable(self.path)  # now, not after hours of reading
        if resume and os.path.exists(self.path):
            self._read(self.path)

    def callback(self, inner: Callback | None) -> Callback | None:
        """A callback that saves each iterate, and calls another one."""
        if self.path is None:
            return inner

        def keep(state: dict[str, Any]) -> bool | None:
            self._check(state)
            self._write(state)
            return None if inner is None else inner(state)

        return keep

    @contextmanager
    def advising(self) -> Iterator[None]:
        """Let a `ClusterError` inside say where the weights are, and how to go on."""
        try:
            yield
        except ClusterError as error:
            raise ClusterError(f"{error}. {self._advice()}") from error

    def _advice(self) -> str:
        if self.path is None:
            return (
                "Nothing was saved; fit anew on another cluster, with checkpoint=FILE to be able "
                "to go on the next time"
            )
        if self.n_saved is None:
            return f"No iteration was finished, and {self.path} was not written; fit anew"
        return (
            f"The weights of iteration {self.n_saved} are in {self.path}; on another cluster, fit "
            "with the same checkpoint and resume=True (on the command line: --resume) to go on "
            "from there"
        )

    def _read(self, path: str) -> None:
        state = load(path)
        if state.get("kind") != _KIND:
            raise CheckpointError(
                f"{path}: is no checkpoint of a fit on a cluster; name another file"
            )
        self._check_fit(path, dict(state["fit"]))
        self.w0 = np.array(state["w"], dtype=np.float64)
        self.n_before = self.n_saved = int(state["n_iter"])
        self._objective = float(state["objective"])

    def _check_fit(self, path: str, was: Mapping[str, Any]) -> None:
        for name in sorted(self.fit.keys() | was.keys()):
            here, there = self.fit.get(name), was.get(name)
            if here != there:
                raise CheckpointError(
                    f"{path}: is of a fit with {name}={there!r}, this one has {here!r}; give the "
                    "same data and options, name another file, or start anew without resume"
                )

    def _check(self, state: Mapping[str, Any]) -> None:
        """At the first iterate after a start: whether the data are those of the file."""
        before, self._objective = self._objective, None
        if before is None or not self.compares:
            return
        here = float(state["objective"])
        if abs(here - before) > _SAME * abs(before):
            raise CheckpointError(
                f"{self.path}: the objective at its weights was {before:.9g}, on these data it is "
                f"{here:.9g}: they are not the same; give the data that the fit began with, or "
                "start anew without resume"
            )

    def _write(self, state: Mapping[str, Any]) -> None:
        assert self.path is not None  # no callback without
        n_iter = self.n_before + int(state["n_iter"])
        contents = {
            "kind": _KIND,
            "fit": self.fit,
            "n_iter": n_iter,
            "objective": float(state["objective"]),
            "w": np.asarray(state["w"], dtype=np.float64),
        }
        save(self.path, contents)
        self.n_saved = n_iter


def fingerprint(method: str, task: Task, data: Partitions) -> dict[str, Any]:
    """What says of which fit a checkpoint is; how its data are partitioned does not matter."""
    p = task.parameters
    bounds = None
    if hasattr(p, "coef_bounds"):
        bounds = weight_bounds(p.positive, p.coef_bounds, data.columns)
    names = [name for name in _OBJECTIVE if hasattr(p, name)]
    return {
        "method": method,
        "n_rows": data.n_rows,
        "n_features": data.n_features,
        "n_queries": data.n_queries,
        "query_weight": digest(task.query_weight),
        "bounds": None if bounds is None else digest(*bounds),
        **{name: _plain(getattr(p, name)) for name in names},
    }


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if callable(value):
        return "function"
    is_number = isinstance(value, int | float | np.number)
    return float(value) if is_number else value if value is None else str(value)


def digest(*parts: Any) -> str | None:
    """A short name for values too large to be listed: arrays, mappings; None for None."""
    if all(part is None for part in parts):
        return None
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, Mapping):
            pairs = sorted((repr(key), float(value)) for key, value in part.items())
            found.update(repr(pairs).encode())
        else:
            array = np.ascontiguousarray(part, dtype=np.float64)
            found.update(repr(array.shape).encode() + array.tobytes())
    return found.hexdigest()[:16]
