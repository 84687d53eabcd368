"""The process of the command: its standard streams, its signals and its end."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any, TextIO, cast

from linrank.cli.console import SteadyErrors
from linrank.cli.ending import SIGNALS, interrupt, send_again


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
