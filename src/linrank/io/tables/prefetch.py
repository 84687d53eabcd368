"""What an iterator yields, computed one step ahead by a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; the next one is made while the caller works on the last.

    At most two are held here. An exception comes where the item would have come; a caller that
    stops early stops the thread.
    """
    ready: queue.Queue[Callable[[], T] | None] = queue.Queue(1)
    stop = threading.Event()

    def give(item: Callable[[], T] | None) -> None:
        while not stop.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                give(lambda item=item: item)  # type: ignore[misc]
                del item  # held by who waits for it, not here
                if stop.is_set():
                    return
        except BaseException as error:  # raised again where the caller waits
            give(_raiser(error))
        give(None)

    thread = threading.Thread(target=work, name="linrank-read", daemon=True)
    thread.start()
    try:
        while (made := ready.get()) is not None:
            item = made()
            del made
            yield item
            del item
    finally:
        stop.set()
        thread.join()


def _raiser(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail
