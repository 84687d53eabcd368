"""Progress: how far the topics are, and how long the rest may take."""

from __future__ import annotations

import time

from linrank.monitor import tell

__all__ = ["Progress"]

_EVERY = 1.0  # seconds between two lines


class Progress:
    """Told how many topics are done, says so now and then."""

    def __init__(self, n_topics: int) -> None:
        self._n_topics = n_topics
        self._start = self._last = time.perf_counter()
        self._n_told = 0

    def __call__(self, n_done: int) -> None:
        now = time.perf_counter()
        is_end = n_done == self._n_topics
        if n_done == self._n_told or (now - self._last < _EVERY and not is_end):
            return
        self._last, self._n_told = now, n_done
        took = now - self._start
        left = took / n_done * (self._n_topics - n_done)
        rest = "" if is_end else f", about {left:.0f} s left"
        tell(f"linrank: {n_done:,} of {self._n_topics:,} topics, {took:.1f} s{rest}")
