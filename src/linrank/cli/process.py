"""The process of the command: its standard streams, its signals and its end."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TextIO, cast

from linrank.cli.console import SteadyErrors

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


def begin() -> None:
    """Make the process fit for any standard streams, and for Ctrl-C and other ends at any time."""
    # Imports make 100,000 objects and no garbage: looking for some every 700, and once more at
    # exit, takes a tenth of the time of a small command.
    gc.set_threshold(50_000)
    if sys.stderr is None:  # else the next file to be opened would be standard error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # It stays to the end, when Python flushes it once more.
    sys.stderr = cast("TextIO", SteadyErrors(sys.stderr))
    if hasattr(sys.stdout, "reconfigure"):  # help has letters that a terminal may not have
        sys.stdout.reconfigure(errors="replace")
    for number in (signal.SIGINT, *SIGNALS):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, interrupt)
    sys.unraisablehook = _unraisable


def end() -> None:
    """Leave nothing for Python to complain about when it ends."""
    # All is done: no traceback from here on, and the status stays what it is if a signal to end
    # comes twice. Python would take a handler of ours away before it is through.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):  # its reader is gone, or the disk is full: we have said so
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.freeze()


def _unraisable(unraisable: Any) -> None:
    """A signal that came in a destructor or a callback, where Python drops it, comes again."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        send_again(getattr(unraisable.exc_value, "number", signal.SIGINT))
    else:
        sys.__unraisablehook__(unraisable)
