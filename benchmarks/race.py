"""Time that a solver takes to come within a stated distance of the optimum."""

from __future__ import annotations

import signal
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows
from linrank.ranksvm.train import train
from report import spread

GAP = 1e-5  # (F - F*)/F*


@dataclass(frozen=True)
class Run:
    """One fit until its goal; seconds and products when it got there, or at the limit."""

    seconds: float
    n_hvp: int
    n_iter: int
    objective: float
    is_there: bool


class TimeLimit(Exception):
    pass


@contextmanager
def time_limit(limit: float) -> Iterator[None]:
    """Raise `TimeLimit` after ``limit`` seconds, at the latest when the running kernel returns."""

    def stop(*_: Any) -> None:
        raise TimeLimit

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def optimum(data: Dataset, C: float = 1.0) -> float:
    """``F*``, as newton finds it when asked for ten digits."""
    return train(data, C=C, tol=1e-10).value


def run(
    data: Dataset,
    solver: str,
    goal: float,
    *,
    C: float = 1.0,
    n_jobs: int = 1,
    limit: float = 3600.0,
    **options: Any,
) -> Run:
    """Fit until the first iterate with ``F <= goal``."""
    seen, ended = follow(data, goal, C=C, solver=solver, n_jobs=n_jobs, limit=limit, **options)
    last = seen[-1]
    taken = last["seconds"] if ended else limit
    there = bool(last["objective"] <= goal)
    return Run(taken, int(last["n_hvp"]), len(seen) - 1, last["objective"], there)


def follow(
    data: Dataset, goal: float, *, limit: float, n_jobs: int = 1, **options: Any
) -> tuple[list[dict[str, Any]], bool]:
    """The states of the outer iterates of a fit, up to the first with ``F <= goal``.

    And whether the fit ended, by the goal or by itself, before ``limit`` seconds.
    """
    seen: list[dict[str, Any]] = []

    def watch(state: dict[str, Any]) -> bool:
        seen.append(state)
        return bool(state["objective"] <= goal)

    assert data.queries.n_pairs  # ranks the labels before the clock starts
    # The tolerance is out of reach: the callback alone decides, or the clock.
    options = {"tol": 1e-14, "max_iter": 100_000, **options}
    try:
        with time_limit(limit):
            train(data, n_jobs=n_jobs, callback=watch, **options)
    except TimeLimit:
        return seen, False
    return seen, True


def runs(data: Dataset, solver: str, goal: float, **options: Any) -> list[Run]:
    """Up to five runs, until they have taken 15 seconds together."""
    done: list[Run] = []
    while len(done) < 5 and sum(run.seconds for run in done) < 15:
        done.append(run(data, solver, goal, **options))
    return done


def as_published(data: Dataset) -> Dataset:
    """The same rows sparse and double, as tron works on them: its conversion is not timed."""
    from scipy.sparse import csr_array

    rows = data.rows
    if isinstance(rows, CsrRows):
        values, columns, offsets = rows.values, rows.columns, rows.offsets
    else:
        matrix = csr_array(rows.values)
        values, columns, offsets = matrix.data, matrix.indices, matrix.indptr
    offsets = offsets.astype(np.int64)
    return replace(data, rows=CsrRows(values.astype(np.float64), columns, offsets, data.n_features))


def median(done: list[Run]) -> float:
    return statistics.median(run.seconds for run in done)


def times(done: list[Run]) -> str:
    """Seconds of the runs, as a lower bound where the goal was not reached."""
    return bound(done) + spread([run.seconds for run in done])


def bound(done: list[Run]) -> str:
    return "" if all(run.is_there for run in done) else ">= "
