"""Methods on the partitions of a cluster, and checkpoints of what they learn there.

A checkpoint has the weights of the last outer iteration, to go on from when a cluster is lost. The
file has the format of `linrank.stochastic.checkpoint`: whole or not there, and nothing of it is
executed. It holds ``w`` in the scaled space, and what the fit was: sizes of the data and options. A
fit that goes on begins at that ``w``, which is all that Newton's method needs to remember.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from linrank.dask.partitions import Partitions
from linrank.data import Array, weight_bounds
from linrank.errors import CheckpointError, ClusterError
from linrank.methods.base import Method, Task, Trained
from linrank.solvers.result import Callback
from linrank.stochastic.checkpoint import check_replaceable, load, save


def on_cluster(method: Method) -> Method:
    """The method for tasks whose data are `Partitions`."""
    return replace(method, train=partial(_train, method))


def _train(method: Method, task: Task) -> Trained:
    """Train, each iterate being kept in the file ``checkpoint``."""
    place: Partitions = task.data
    known = fingerprint(method.name, task, place)
    compares = getattr(task.parameters, "loss", None) != "hinge"
    keeper = Keeper(place.checkpoint, place.resume, known, compares)
    parameters = copy.copy(task.parameters)
    parameters.callback = keeper.callback(parameters.callback)
    start = task.start if keeper.w0 is None else keeper.w0
    place.n_before = keeper.n_before
    with keeper.advising(), place.open_data() as data:
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
        self, path: Any, resume: bool, fit: Mapping[str, Any], compares: bool = True
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
            state = load(self.path)
            if state.get("kind") != _KIND:
                raise CheckpointError(
                    f"{self.path}: is no checkpoint of a fit on a cluster; name another file"
                )
            self._check_fit(state["fit"])
            self.w0 = np.array(state["w"], dtype=np.float64)
            self.n_before = self.n_saved = int(state["n_iter"])
            self._objective = float(state["objective"])

    def callback(self, inner: Callback | None) -> Callback | None:
        """A callback that saves each iterate, and calls another one."""
        if self.path is None:
            return inner

        def keep(state: dict[str, Any]) -> bool | None:
            self._check(float(state["objective"]))
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

    def _check_fit(self, was: Mapping[str, Any]) -> None:
        for name in sorted(self.fit.keys() | was.keys()):
            here, there = self.fit.get(name), was.get(name)
            if here != there:
                raise CheckpointError(
                    f"{self.path}: is of a fit with {name}={there!r}, this one has {here!r}; give "
                    "the same data and options, name another file, or start anew without resume"
                )

    def _check(self, here: float) -> None:
        """At the first iterate after a start: whether the data are those of the file."""
        before, self._objective = self._objective, None
        if before is not None and self.compares and abs(here - before) > _SAME * abs(before):
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
        "n_features": data.columns.n_features,
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
