"""All jobs of a contest, some at a time, each in a process of its own with a budget of time."""

from __future__ import annotations

import dataclasses
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import TimeoutExpired
from typing import Any

from linrank.data.dataset import Dataset
from linrank.judging.contest.methods import Method
from linrank.judging.contest.process import Outcome, Worker
from linrank.judging.contest.worker import write_subset
from linrank.metrics import Convention
from linrank.system.durable import Scratch


@dataclass(frozen=True)
class Fold:
    """Numbers of the subsets that make up each part."""

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Protocol:
    """Subsets of whole queries, and the folds that they make.

    Attributes
    ----------
    subsets : tuple of Dataset
        Queries of different subsets are different queries, whatever their ids.
    names : tuple of str
        What messages call them.
    folds : tuple of Fold
    """

    subsets: tuple[Dataset, ...]
    names: tuple[str, ...]
    folds: tuple[Fold, ...]

    def describe(self) -> str:
        """The protocol in a few words."""
        if len(self.folds) == 1:
            return "one split"
        fold = self.folds[0]
        return (
            f"{len(self.folds)} folds of {len(self.subsets)} subsets, {len(fold.train)} to train, "
            f"{len(fold.valid)} to choose, {len(fold.test)} to test"
        )


def three_parts(train: Dataset, valid: Dataset, test: Dataset) -> Protocol:
    """One split."""
    sources = [
        name if data.source.startswith("<") else data.source  # no file: known by its part
        for name, data in (("train", train), ("valid", valid), ("test", test))
    ]
    return Protocol((train, valid, test), tuple(sources), (Fold((0,), (1,), (2,)),))


def rotation(subsets: Sequence[Dataset]) -> Protocol:
    """LETOR's folds: fold k trains on all subsets from the k-th on but the last two of the circle.

    With five subsets, fold 1 trains on S1, S2, S3, chooses on S4 and tests on S5; fold 2 trains on
    S2, S3, S4, chooses on S5 and tests on S1; and so on. Every query is tested once.

    Examples
    --------
    >>> from linrank import make_ranking
    >>> parts = [make_ranking(n_queries=4, random_state=k) for k in range(5)]
    >>> rotation(parts).folds[1]
    Fold(train=(1, 2, 3), valid=(4,), test=(0,))
    """
    n = len(subsets)
    if n < 3:
        raise ValueError(
            f"folds need at least 3 subsets, one each to train, to choose and to test; got {n} "
            "(LETOR has 5)"
        )
    folds = []
    for k in range(n):
        circle = [(k + i) % n for i in range(n)]
        folds.append(Fold(tuple(circle[: n - 2]), (circle[n - 2],), (circle[n - 1],)))
    names = [
        f"S{k + 1}" if data.source.startswith("<") else data.source
        for k, data in enumerate(subsets)
    ]
    return Protocol(tuple(subsets), tuple(names), tuple(folds))


Progress = Callable[[dict[str, Any]], None]
_LOOK = 0.2  # seconds between two looks at the clock


@dataclasses.dataclass(frozen=True)
class Rules:
    """What is the same for all jobs.

    Attributes
    ----------
    scoring, convention, scale, seed
        As in `linrank.judging.contest.methods.Task`.
    budget : float
        Seconds on the clock for each job.
    """

    scoring: str
    convention: Convention
    scale: str
    seed: int
    budget: float


def run_all(
    protocol: Protocol,
    methods: Sequence[Method],
    rules: Rules,
    n_jobs: int,
    progress: Progress | None = None,
) -> dict[str, list[Outcome]]:
    """The outcomes of every method, by fold. However this ends, no process and no file is left."""
    outcomes: dict[str, list[Outcome]] = {
        m.name: [_missing(m)] * len(protocol.folds) for m in methods
    }
    present = [method for method in methods if not method.is_missing]
    with Scratch() as scratch:
        folder = scratch.path
        for number, data in enumerate(protocol.subsets):
            write_subset(folder, number, data)
        waiting = deque((k, method) for k in range(len(protocol.folds)) for method in present)
        board = _Board(waiting, progress, rules.scoring)
        running: list[tuple[int, Method, Worker]] = []
        try:
            while waiting or running:
                while waiting and len(running) < n_jobs:
                    k, method = waiting.popleft()
                    running.append((k, method, _start(folder, protocol, k, method, rules)))
                _wait([worker for _, _, worker in running])
                for entry in [e for e in running if _has_ended(e[2])]:
                    running.remove(entry)
                    k, method, worker = entry
                    outcomes[method.name][k] = _outcome(worker)
                    board.finished(k, method, worker, outcomes[method.name][k])
                board.show(running)
        finally:
            for _, _, worker in running:
                worker.stop()
    return outcomes


def _missing(method: Method) -> Outcome:
    return Outcome(
        "missing", f"the package {method.needs} is not installed; pip install linrank[compare]"
    )


def _start(folder: str, protocol: Protocol, k: int, method: Method, rules: Rules) -> Worker:
    fold = protocol.folds[k]
    place = os.path.join(folder, f"fold{k + 1}-{method.name.replace(os.sep, '_')}")
    os.mkdir(place)
    job = {
        "folder": folder,
        "method": dataclasses.asdict(method),
        "train": fold.train,
        "valid": fold.valid,
        "test": fold.test,
        "scoring": rules.scoring,
        "convention": dataclasses.asdict(rules.convention),
        "scale": rules.scale,
        "seed": rules.seed,
    }
    return Worker(job, os.path.join(place, "job"), rules.budget)


def _wait(workers: Sequence[Worker]) -> None:
    """Until a worker says something, or a moment has passed; what was said is taken in."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker, selectors.EVENT_READ, worker)
        for key, _ in selector.select(_LOOK):
            if not key.data.read():  # nothing more will come: it is about to end
                with suppress(TimeoutExpired):
                    key.data.process.wait(1.0)


def _has_ended(worker: Worker) -> bool:
    return worker.process.poll() is not None or worker.is_over_budget


def _outcome(worker: Worker) -> Outcome:
    over_budget = worker.process.poll() is None
    if over_budget:
        worker.kill()
    while worker.read():  # what it said last
        pass
    found = worker.outcome(over_budget=over_budget)
    worker.stop()
    return found


class _Board:
    """Tells of jobs that are done, and how long the others may take."""

    def __init__(
        self, waiting: deque[tuple[int, Method]], progress: Progress | None, scoring: str
    ) -> None:
        self._waiting, self._progress, self._scoring = waiting, progress, scoring
        self._n_total, self._n_done = len(waiting), 0
        self._seconds: dict[str, list[float]] = {}
        self._began = time.monotonic()

    def finished(self, fold: int, method: Method, worker: Worker, outcome: Outcome) -> None:
        self._n_done += 1
        self._seconds.setdefault(method.name, []).append(worker.seconds)
        self._tell(
            {
                "event": "finished",
                "fold": fold + 1,
                "method": method.name,
                "status": outcome.status,
                "why": outcome.why,
                "scoring": self._scoring,
                "score": outcome.score,
                "seconds": worker.seconds,
                "parameters": outcome.parameters,
            }
        )

    def show(self, running: Sequence[tuple[int, Method, Worker]]) -> None:
        names = [f"{method.name} (fold {k + 1})" for k, method, _ in running]
        left = [(method.name, worker.seconds) for _, method, worker in running]
        left += [(method.name, 0.0) for _, method in self._waiting]
        n_slots = max(1, len(running))
        self._tell(
            {"event": "running", "running": names, "seconds_left": self.estimate(left, n_slots)}
        )

    def estimate(self, left: Sequence[tuple[str, float]], n_slots: int) -> float | None:
        """Seconds that the jobs left may take: each as long as its method took on other folds.

        A method that has not ended yet is taken to need what the others did on average, and once
        it has taken longer, as long again; None while there is nothing to go by.
        """
        if not self._seconds:
            return None
        means = {name: sum(times) / len(times) for name, times in self._seconds.items()}
        usual = sum(means.values()) / len(means)
        rest = 0.0
        for name, spent in left:
            expected = means.get(name, usual)
            overdue = spent if name not in means and spent > expected else 0.0
            rest += max(overdue, expected - spent)
        return rest / n_slots

    def _tell(self, state: dict[str, Any]) -> None:
        if self._progress is not None:
            self._progress({**state, "n_done": self._n_done, "n_total": self._n_total})
