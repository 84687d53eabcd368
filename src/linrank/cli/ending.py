"""To be told to end, or to lose the terminal, ends a command as Ctrl-C does.

Batch systems and containers send SIGTERM, a terminal that is closed SIGHUP. Left alone, both end
the process at once, with temporary files and processes of its own left behind.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SIGNALS", "Ended", "orderly_end"]

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

# Seconds in which a signal that comes again is the same one: timeout(1) sends it to the process and
# then to its group, and cleaning up must not be disturbed.
_TWICE = 1.0


class Ended(KeyboardInterrupt):
    """A signal other than that of Ctrl-C, for which everything is cleaned up alike."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def orderly_end() -> Iterator[None]:
    """Raise `Ended` in the main thread when one of the signals comes, KeyboardInterrupt for Ctrl-C.

    One that is ignored, as ``nohup`` has it, stays ignored, and so does a handler of someone else.
    Libraries that are being loaded may make an ImportError of either; it is told as what it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    usual = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(SIGNALS, signal.SIG_DFL)}
    ours = {
        number: handler for number, handler in usual.items() if signal.getsignal(number) is handler
    }
    came: list[tuple[int, float]] = []

    def end(number: int, _: object) -> None:
        now = time.monotonic()
        if not came or number == signal.SIGINT or now - came[-1][1] > _TWICE:
            came.append((number, now))
            raise _raised(number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    except Exception:
        if came:
            raise _raised(came[0][0]) from None
        raise
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


def _raised(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Ended(number)
