"""To be told to end, or to lose the terminal, ends a command as Ctrl-C does.

Batch systems and containers send SIGTERM, a terminal that is closed SIGHUP. Left alone, both end
the process at once, with temporary files and processes of its own left behind.

None of them strikes while a module is being imported: one that is setting itself up may end the
process (compiled ones), or hide the interrupt behind an error of its own, as NumPy does.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

# Seconds in which a signal that comes again is the same one: timeout(1) sends it to the process and
# then to its group, and cleaning up must not be disturbed.
_TWICE = 1.0

_sent_again: set[int] = set()


class Ended(KeyboardInterrupt):
    """A signal other than that of Ctrl-C, for which everything is cleaned up alike."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def orderly_end() -> Iterator[None]:
    """Raise `Ended` in the main thread when one of the signals comes, KeyboardInterrupt for Ctrl-C.

    One that is ignored, as ``nohup`` has it, stays ignored, and so does a handler of someone else.
    Libraries may make an error of their own of either; it is told as what it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    usual = (signal.SIG_DFL, signal.default_int_handler, interrupt)
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *SIGNALS)}
    ours = {number: handler for number, handler in found.items() if handler in usual}
    came: list[tuple[int, float]] = []

    def end(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            send_again(number)
            return
        now = time.monotonic()
        is_new = number == signal.SIGINT or number in _sent_again
        _sent_again.discard(number)
        if is_new or not came or now - came[-1][1] > _TWICE:
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


def interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C or one of the signals, put off while a module is being imported."""
    if _is_importing(frame):
        send_again(number)
    else:
        raise _raised(number)


def send_again(number: int) -> None:
    """Send a signal once more, soon: to the main thread, so that it wakes what that waits in."""
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    _sent_again.add(number)

    def send() -> None:
        time.sleep(0.01)
        signal.pthread_kill(main_thread, number)

    _thread.start_new_thread(send, ())


def _is_importing(frame: FrameType | None) -> bool:
    """Whether the command is: who runs it may be a module that is being imported, for as long."""
    while frame is not None and frame.f_globals.get("__name__") != "linrank.cli.main":
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _raised(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Ended(number)
