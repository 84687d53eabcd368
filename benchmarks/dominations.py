"""Sets and measures of the programs about Domination Rank."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from linrank.data.dataset import Dataset
from linrank.domination.descent import Descent, Log, descend
from linrank.domination.train import make_problem, train
from linrank.metrics import convention, evaluate
from linrank.solvers.result import Result

Array = NDArray[Any]

SETS = ("mq", "ohsumed", "msn", "clothing")  # the dense ones normalised by query
MEASURES = ("map", "p@10", "domination_error(ties=error)", "all_pairs_error")
# A sparse model ties rows: AP and P@10 are then those of a random order, on average.
TIES = convention("linrank", ties="average", empty="skip")


def load(name: str) -> Dataset:
    if name == "clothing":
        return problems._read("text_graded/womens_clothing_tfidf.txt.xz")
    return problems.load(name)


def thinned(data: Dataset, n_rows: int) -> Dataset:
    """Rows spread over the whole set, for a quick run."""
    step = max(1, data.n_rows // n_rows)
    return data.select(np.arange(data.n_rows) % step == 0)


@dataclass(frozen=True)
class Timed:
    """A fit and the CPU seconds it took."""

    result: Result
    seconds: float
    is_there: bool

    @property
    def n_nonzero(self) -> int:
        return int(np.count_nonzero(self.result.w))

    @property
    def all_epochs(self) -> Array:
        """Columns moved up to each certificate, by the number of features.

        A sweep of l1 goes over a working set only.
        """
        history = self.result.history
        moved = np.diff(history["n_sweeps"]) * np.array(history["n_working"][:-1])
        return np.concatenate([[0.0], np.cumsum(moved)]) / len(self.result.w)

    @property
    def epochs(self) -> float:
        return float(self.all_epochs[-1])

    def epochs_to(self, value: float) -> float:
        """Epochs until ``F <= value``; those of the first certificate after the start at least."""
        there = np.flatnonzero(np.array(self.result.history["objective"]) <= value)
        return float(self.all_epochs[max(1, there[0]) if len(there) else -1])


def timed(data: Dataset, limit: float = np.inf, goal: float = -np.inf, **options: Any) -> Timed:
    """Fit on one thread until the tolerance, ``F <= goal`` or the limit of CPU seconds."""
    watch = Watch(limit, goal)
    result = train(data, n_jobs=1, max_iter=10**6, callback=watch, **options)
    return watch.timed(result)


def swept(data: Dataset, limit: float, curvature: str, tol: float, **options: Any) -> Timed:
    """The same by sweeps alone, without the Newton steps that `train` makes between them."""
    watch = Watch(limit)
    descent = Descent(make_problem(data, n_jobs=1, **options), curvature=curvature)
    result = descend(descent, tol=tol, max_iter=10**6, log=Log(watch))
    return watch.timed(result)


class Watch:
    """A callback that ends a fit at a goal or after so many CPU seconds."""

    def __init__(self, limit: float, goal: float = -np.inf) -> None:
        self.start, self.limit, self.goal = time.process_time(), limit, goal
        self.reached = False

    def __call__(self, state: dict[str, Any]) -> bool:
        self.reached = state["objective"] <= self.goal
        return self.reached or time.process_time() - self.start > self.limit

    def timed(self, result: Result) -> Timed:
        return Timed(result, time.process_time() - self.start, self.reached or result.converged)


def part_of(data: Dataset, shares: tuple[float, ...] = (0.5, 0.25, 0.25)) -> Array:
    """Part 0, 1, ... of every row, by a hash of its number: the same on every machine."""
    digests = (hashlib.sha256(str(i).encode()).digest()[:8] for i in range(data.n_rows))
    place = np.array([int.from_bytes(d, "big") / 2.0**64 for d in digests])
    return np.searchsorted(np.cumsum(shares)[:-1], place, side="right")


def measured(data: Dataset, w: Array) -> Array:
    """The measures of a model, in the order of MEASURES."""
    found = evaluate(
        data.labels, data.X @ w, qid=data.qid, metrics=MEASURES, convention=TIES, n_jobs=1
    )
    return np.array([float(found[name]) for name in MEASURES])
