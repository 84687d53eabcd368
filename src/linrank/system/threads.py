"""How many threads a call may use."""

from __future__ import annotations

import functools
import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

MOST = 10_000  # threads: more is a slip of the pen


def resolve(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` asks for.

    Parameters
    ----------
    n_jobs : int or None
        ``None`` and -1 mean every core that this process may run on (its affinity mask, not the
        cores of the machine); an integer >= 1 means that many.

    Examples
    --------
    >>> resolve(3)
    3
    >>> resolve(-1) == resolve(None) >= 1
    True
    """
    if n_jobs is None or n_jobs == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be >= 1, or -1 or None for all cores, got {n_jobs}")
    if n_jobs > MOST:
        raise ValueError(f"n_jobs must be at most {MOST:,}, or -1 for all cores, got {n_jobs}")
    return int(n_jobs)


def useful_threads(n_bytes: float, n_threads: int) -> int:
    """One thread where a product with so many bytes takes less than half a millisecond.

    Starting others costs more than that.
    """
    return n_threads if n_bytes >= 4_000_000 else 1


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """That of Python 3.12 for the versions before it.

        Theirs holds a lock while it computes, one for all objects of a class: fits that run side
        by side would wait for each other at every value and gradient.
        """

        def __init__(self, func: Any) -> None:
            super().__init__(func)
            self.lock = nullcontext()
