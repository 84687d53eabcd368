"""All jobs of a contest, some at a time, each in a process of its own with a budget of time."""

from __future__ import annotations

import dataclasses
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import Any

from linrank.contest.methods import Method
from linrank.contest.process import Outcome, Worker
from linrank.contest.protocol import Protocol
from linrank.contest.store import write_subset
from linrank.metrics import Convention
from linrank.scratch import Scratch

__all__ = ["Progress", "Rules", "run_all"]

Progress = Callable[[dict[str, Any]], None]
_LOOK = 0.2  # seconds between two looks at the clock


@dataclasses.dataclass(frozen=True)
class Rules:
    """What is the same for all jobs.

    Attributes
    ----------
    scoring, convention, scale, seed
        As in `linrank.contest.task.Task`.
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
