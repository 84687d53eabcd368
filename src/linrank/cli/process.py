"""The process of the command: its standard streams, its Ctrl-C and its end."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import time
from types import FrameType
from typing import Any, TextIO, cast

from linrank.cli.console import SteadyErrors

__all__ = ["begin", "end"]


def begin() -> None:
    """Make the process fit for any standard streams and for Ctrl-C at any time."""
    # Imports make 100,000 objects and no garbage: looking for some every 700, and once more at
    # exit, takes a tenth of the time of a small command.
    gc.set_threshold(50_000)
    if sys.stderr is None:  # else the next file to be opened would be standard error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # It stays to the end, when Python flushes it once more.
    sys.stderr = cast("TextIO", SteadyErrors(sys.stderr))
    if hasattr(sys.stdout, "reconfigure"):  # help has letters that a terminal may not have
        sys.stdout.reconfigure(errors="replace")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as by nohup
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _unraisable


def end() -> None:
    """Leave nothing for Python to complain about when it ends."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: no traceback from here on
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):  # its reader is gone, or the disk is full: we have said so
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    gc.freeze()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C, put off while a module is being imported.

    A module that is struck while it sets itself up may end the process (compiled ones), or hide
    the interrupt behind an error of its own, as NumPy does.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _interrupt_again()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _unraisable(unraisable: Any) -> None:
    """Ctrl-C that came in a destructor or a callback, where Python drops it, comes again."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _interrupt_again()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_again() -> None:
    """Send Ctrl-C once more, soon: to the main thread, so that it wakes what that waits in."""
    main_thread = _thread.get_ident()

    def send() -> None:
        time.sleep(0.01)
        signal.pthread_kill(main_thread, signal.SIGINT)

    _thread.start_new_thread(send, ())
