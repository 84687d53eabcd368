"""Log: the history of a run, iterate by iterate, and who looks at it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from linrank.data.frames import read_only
from linrank.solvers.result import Callback


class Log:
    """Numbers by iterate under their names, ``objective`` and ``seconds`` always among them.

    Parameters
    ----------
    callback : callable or None
        Called with the numbers of every iterate, ``w`` and ``n_iter``; stops by returning True.
    started : float
        When the seconds began, by ``time.perf_counter``.
    """

    def __init__(self, callback: Callback | None, started: float) -> None:
        self.history: dict[str, list[float]] = {"objective": []}
        self._callback, self._started = callback, started

    @property
    def n_iter(self) -> int:
        """Iterates after the first."""
        return len(self.history["objective"]) - 1

    def add(self, weights: Callable[[], Any], **numbers: float) -> bool:
        """Add an iterate; True if the callback asks to stop. Only a callback needs its weights."""
        if not math.isfinite(numbers["objective"]):
            raise ValueError(
                f"the objective is {numbers['objective']:g}: features, weights or C are too large "
                "for double precision; divide them by a common factor"
            )
        numbers["seconds"] = time.perf_counter() - self._started
        for key, number in numbers.items():
            self.history.setdefault(key, []).append(float(number))
        if self._callback is None:
            return False
        w = read_only(weights())
        return bool(self._callback({**numbers, "w": w, "n_iter": self.n_iter}))
