"""What happens on the way of a stochastic fit: milestones, history, tolerance, callback."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from linrank.stochastic.run import Course

    Callback = Callable[[dict[str, Any]], bool | None]

__all__ = ["Objective", "Watch", "milestones"]

_PATIENCE = 2  # milestones without progress that `tol` takes for the end


class Objective(Protocol):
    """How good weights are."""

    at_zero: float

    def __call__(self, w: NDArray[Any]) -> tuple[float, float]:
        """(objective, certified bound on what it is above the minimum, or nan)."""


def milestones(n_steps: int) -> Iterator[int]:
    """100, 178, 316, 562, 1000, ...: four a decade, the last step last."""
    k, step = 0, 100
    while step < n_steps:
        yield step
        k += 1
        step = round(100 * 10 ** (k / 4))
    yield n_steps


class Watch:
    """What happens at a milestone: history, tolerance, callback."""

    def __init__(
        self,
        objective: Objective | None,
        watched: Objective | None,
        tol: float | None,
        callback: Callback | None,
    ) -> None:
        self._objective, self._watched = objective, watched
        self._tol, self._callback = tol, callback
        self._start = time.perf_counter()
        self._best, self._n_stalled = math.inf, 0
        self.history: dict[str, list[float]] = {
            key: [] for key in ("n_steps", "objective", "gap", "loss", "seconds")
        }

    @property
    def latest(self) -> dict[str, float]:
        return {key: values[-1] for key, values in self.history.items() if values}

    def __call__(self, run: Course) -> tuple[str, str] | None:
        """Why to stop, if so."""
        seconds = time.perf_counter() - self._start
        w, loss = run.weights()[0], float(run.mean_losses()[0])
        value, gap = (math.nan, math.nan) if self._objective is None else self._objective(w)
        for key, entry in zip(self.history, (run.n_steps, value, gap, loss, seconds), strict=True):
            self.history[key].append(entry)
        state = {"n_iter": len(self.history["n_steps"]), **self.latest, "w": w}
        if self._callback is not None and self._callback(state):
            return "callback", f"stopped by the callback after {run.n_steps:,} steps"
        if self._tol is None or self._objective is None or self._watched is None:
            return None
        # Long first steps lead far away, and the objective may rise for some milestones before it
        # falls: weights worse than none are not the end of a descent, nor is a stop of a first
        # rule.
        is_lost = value > (1 + self._tol) * self._objective.at_zero or run.changes
        if self._watched is not self._objective:
            value = self._watched(w)[0]
        if value < (1 - self._tol) * self._best or is_lost:
            self._best, self._n_stalled = min(value, self._best), 0
            return None
        self._n_stalled += 1
        if self._n_stalled < _PATIENCE:
            return None
        return (
            "tolerance",
            f"the objective fell by less than {self._tol:g} of it for {_PATIENCE} milestones",
        )
