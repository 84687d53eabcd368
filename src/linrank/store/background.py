"""Background: work that is done in order by one thread, while the caller prepares the next."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

__all__ = ["Background"]

Work = Callable[[], object]


class Background:
    """A thread that calls what it is given, in order; one call waits while another runs.

    Leaving the ``with`` block normally waits until all is done and raises what was raised there;
    leaving it with an exception drops the call that waits.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[Work | None] = queue.Queue(1)
        self._error: BaseException | None = None
        self._is_told = False  # that nothing follows
        self._thread = threading.Thread(target=self._work, name="linrank-convert", daemon=True)
        self._thread.start()

    def submit(self, work: Work) -> None:
        """Have ``work`` done; waits while two calls are under way, raises what one has raised."""
        self._check()
        self._queue.put(work)

    def wait(self) -> None:
        """Return when all calls have returned; raises what one has raised."""
        self._queue.join()
        self._check()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._drop()
        interrupt = self._end()
        if interrupt is not None:
            raise interrupt
        if kind is None:
            self._check()

    def _end(self) -> BaseException | None:
        """Wait for the thread, whatever is raised here meanwhile, as by Ctrl-C: returned.

        The caller closes the files that the thread writes to.
        """
        interrupt = None
        while self._thread.is_alive():
            try:
                if not self._is_told:
                    self._queue.put(None)
                    self._is_told = True
                self._thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
                if not self._is_told:
                    self._drop()
        return interrupt

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _drop(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._queue.get_nowait()
            self._queue.task_done()

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            if self._error is None:  # what follows a failure is not tried
                try:
                    work()
                except BaseException as error:  # raised again by who submits next
                    self._error = error
            del work  # the arrays that it holds
            self._queue.task_done()
