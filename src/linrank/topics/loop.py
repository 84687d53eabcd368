"""for_each: work on many items by a few threads that stop together."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
import time
from collections.abc import Callable

__all__ = ["for_each"]

_TICK = 0.1  # seconds between two looks at the threads, and so the answer to Ctrl-C


class _Stop(BaseException):
    """Sent to a thread whose result nobody waits for; no `except Exception` may stop it."""


def for_each(
    n_items: int,
    work: Callable[[int], None],
    n_threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Call ``work(i)`` for every i below `n_items`, on `n_threads` threads.

    Items are begun in order. When one fails no other is begun, those on their way are finished, and
    the error of the lowest item is raised: the same one on any number of threads. Ctrl-C stops the
    threads in the midst of their work, between two calls of the core as on the main thread, and is
    raised once they have ended.

    Parameters
    ----------
    n_items : int
        How many there are.
    work : callable
        Keeps its result itself. It may run in several threads at once.
    n_threads : int
        1 works in the calling thread.
    progress : callable, optional
        Called in the calling thread, now and then, with the number of items that are done.
    """
    n_threads = min(n_threads, n_items)
    if n_threads <= 1:
        for i in range(n_items):
            work(i)
            if progress is not None:
                progress(i + 1)
        return
    crew = _Crew(n_items, work)
    crew.run(n_threads, progress)
    if crew.errors:
        raise min(crew.errors, key=lambda failed: failed[0])[1]


class _Crew:
    """Threads that take one item after the other from a common queue."""

    def __init__(self, n_items: int, work: Callable[[int], None]) -> None:
        self.errors: list[tuple[int, BaseException]] = []
        self._work = work
        # A queue and lists of C: a thread that is stopped at any place leaves no lock behind.
        self._items: queue.SimpleQueue[int] = queue.SimpleQueue()
        for i in range(n_items):
            self._items.put(i)
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._done: list[int] = []
        self._stopping = False

    def run(self, n_threads: int, progress: Callable[[int], None] | None) -> None:
        threads = [threading.Thread(target=self._take, daemon=True) for _ in range(n_threads)]
        try:
            for thread in threads:
                thread.start()
            n_left = n_threads
            while n_left > 0:
                # Not by joining: Python 3.11 takes a thread for dead when Ctrl-C comes meanwhile.
                with contextlib.suppress(queue.Empty):
                    self._ended.get(timeout=_TICK)
                    n_left -= 1
                if progress is not None and self._done:
                    progress(len(self._done))
        except BaseException:  # Ctrl-C, or an error of `progress`
            self._stop(threads)
            raise
        for thread in threads:
            thread.join()

    def _take(self) -> None:
        try:
            while not self._stopping:
                self._do(self._items.get_nowait())
        except (queue.Empty, _Stop):
            pass
        finally:
            self._ended.put(None)

    def _do(self, i: int) -> None:
        try:
            self._work(i)
        except _Stop:
            raise
        except BaseException as error:  # even SystemExit, which would end the thread in silence
            self.errors.append((i, error))
            self._stopping = True
        else:
            self._done.append(i)

    def _stop(self, threads: list[threading.Thread]) -> None:
        """End the threads in the midst of their work."""
        self._stopping = True
        for thread in threads:
            while thread.is_alive():
                # Sent again until the thread is gone: an exception that strikes in a destructor
                # is swallowed there.
                ident = ctypes.c_ulong(thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Stop))
                time.sleep(_TICK)
