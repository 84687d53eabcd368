"""Terminal and process: progress on standard error, results on standard output, signals."""

from __future__ import annotations

import _thread
import gc
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NamedTuple, TextIO, cast

from linrank.io.blocks import StandardOutput
from linrank.system.resources import bytes_text

State = dict[str, Any]


class Result(NamedTuple):
    """What a command has found: facts for ``--json``, else text on standard output."""

    facts: dict[str, Any]
    text: str = ""
    status: int = 0


def print_result(command: str, result: Result, *, as_json: bool) -> None:
    """Write the result of a command to standard output, for a program or for a person."""
    if as_json:
        write_standard(json_report(command, result.facts))
    elif result.text:
        # With ``?`` for what a terminal cannot spell.
        _write(result.text + "\n", getattr(sys.stdout, "encoding", None) or "utf-8", "replace")


def json_report(command: str, facts: dict[str, Any]) -> str:
    """A line of JSON: which command of which version has found what."""
    import json

    from linrank import __version__

    report = {"command": command, "linrank": __version__, **facts}
    return json.dumps(_plain(report), ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """What JSON can hold: NumPy's scalars as numbers, those that are not finite as null."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_standard(text: str) -> None:
    """Write text that programs read to standard output: in UTF-8, as into a file.

    Halves of surrogate pairs, as names of files may hold, become the escapes that JSON has.
    """
    _write(text, "utf-8", "backslashreplace")


def _write(text: str, encoding: str, errors: str) -> None:
    if sys.stdout is not None and not hasattr(sys.stdout, "buffer"):  # text only, in a notebook
        sys.stdout.write(text)
        return
    output = StandardOutput()
    output.write(text.encode(encoding, errors))
    output.flush()


def flush_standard() -> None:
    """Pass on what others wrote to standard output, as argparse its help."""
    if hasattr(sys.stdout, "buffer"):
        StandardOutput().flush()


class Clock:
    """The time of each stage of a command, in seconds."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._stages: dict[str, float] = {}

    def end(self, stage: str) -> float:
        """End a stage, and return how long it took."""
        now = time.perf_counter()
        self._stages[stage], self._last = now - self._last, now
        return self._stages[stage]

    def seconds(self) -> dict[str, float]:
        """All stages, and the total until now."""
        return {**self._stages, "total": time.perf_counter() - self._start}


class SteadyErrors:
    """Standard error that takes all that is written to it.

    What is closed, full, or read by nobody any more loses the lines, and never the work that they
    tell of: a disk for logs that fills up must not cost an hour of training.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):  # a ValueError: closed by someone in this process
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        with suppress(OSError, ValueError):
            return self._stream.isatty()
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def steady_errors() -> Iterator[None]:
    """Standard error that cannot fail, for all that write to it: us, argparse, warnings."""
    before = sys.stderr
    sys.stderr = cast("TextIO", SteadyErrors(before))
    try:
        yield
    finally:
        sys.stderr = before


class Console:
    """Lines for a person, and one status line that is redrawn in place on a terminal.

    Parameters
    ----------
    quiet : bool
        Only warnings.
    verbose : bool
        Also details. Progress is then kept as lines, on a terminal or not.
    """

    PATIENCE = 0.5  # seconds before the first status line: short work leaves no trace
    INTERVAL = 0.1  # seconds between two status lines

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.live = not quiet and not verbose and sys.stderr.isatty()
        self._next_status = time.perf_counter() + self.PATIENCE
        self._status_width = 0
        self._columns = ""

    def say(self, label: str, text: str) -> None:
        """A line of the summary."""
        if not self.quiet:
            self._line(f"{label:<10}{text}")

    def note(self, text: str) -> None:
        """What reading tells; which column is what, once for tables that are alike."""
        label, colon, rest = text.partition(": ")
        if not (colon and label == "columns"):
            self.say("note", text)
        elif rest != self._columns:
            self._columns = rest
            self.say(label, rest)

    def detail(self, text: str) -> None:
        """A line that only ``-v`` shows."""
        if self.verbose:
            self._line(text)

    def warn(self, text: str) -> None:
        """A line that even ``-q`` shows."""
        self._line(f"linrank: warning: {text}")

    @contextmanager
    def warnings(self, worded: Callable[[str], str] = str) -> Iterator[None]:
        """Warnings of the library as such lines, in the words of a command."""
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            # Python's own default: a signal may come between opening a file and its with block.
            warnings.simplefilter("ignore", ResourceWarning)
            warnings.showwarning = lambda message, *_, **__: self.warn(worded(str(message)))
            yield

    def status(self, text: str) -> None:
        """Redraw the status line, on a terminal and not too often."""
        now = time.perf_counter()
        if self.live and now >= self._next_status:
            self._next_status = now + self.INTERVAL
            text, width = _in_one_line(text, terminal_width(2))
            blanks = " " * (self._status_width - width)
            print(f"\r{text}{blanks}", end="", file=sys.stderr, flush=True)
            self._status_width = width

    def clear(self) -> None:
        """Remove the status line."""
        if self._status_width:
            print("\r" + " " * self._status_width + "\r", end="", file=sys.stderr, flush=True)
            self._status_width = 0

    def tell(self, text: str) -> None:
        """Show what is being done: a line that stays with ``-v``, else the status line."""
        self.detail(text)
        self.status(text)

    def byte_progress(self, what: str) -> Callable[[int, int | None], None]:
        """A progress callback that shows how many bytes of what there is are done."""

        def show(done: int, total: int | None) -> None:
            share = f" of {bytes_text(total)} ({100 * done // max(total, 1)} %)" if total else ""
            self.status(f"{what}: {bytes_text(done)}{share}")

        return show

    def reading_progress(self, source: str) -> Callable[[int, int | None], None] | None:
        """Such a callback for the reader; None where nobody would see it."""
        return self.byte_progress(f"reading {source}") if self.live else None

    def progress(self, line: Callable[[State], str]) -> Callable[[State], None] | None:
        """A callback that shows a line on the state of a run; None where nobody would see it.

        The lines are kept with ``-v``, else each is the status line until the next.
        """
        if not (self.verbose or self.live):
            return None

        return lambda state: self.tell(line(state))

    def _line(self, text: str) -> None:
        self.clear()
        print(text, file=sys.stderr, flush=True)


def terminal_width(descriptor: int) -> int | None:
    """Columns of the terminal behind standard output (1) or error (2); None if it is none."""
    try:
        return os.get_terminal_size(descriptor).columns or None
    except OSError:
        return None


def _in_one_line(text: str, width: int | None) -> tuple[str, int]:
    """The text and its columns, cut where it would wrap: such a line cannot be redrawn in place.

    Examples
    --------
    >>> _in_one_line("reading 漢字.txt", 12), _in_one_line("a\\nb", None)
    (('reading 漢', 10), ('a?b', 3))
    """
    from linrank.system.tables import text_width

    plain = "".join(c if c.isprintable() else "?" for c in text)
    while width is not None and text_width(plain) >= width:
        plain = plain[:-1]
    return plain, text_width(plain)


SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))

# Seconds in which a signal that comes again is the same one: timeout(1) sends it to the process and
# then to its group, and cleaning up must not be disturbed.
_TWICE = 1.0

_sent_again: set[int] = set()
_came: list[tuple[int, float]] = []  # during the command that is running


class Ended(KeyboardInterrupt):
    """A signal other than that of Ctrl-C, for which everything is cleaned up alike."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def orderly_end() -> Iterator[None]:
    """Raise `Ended` in the main thread when one of the signals comes, KeyboardInterrupt for Ctrl-C.

    One that is ignored, as ``nohup`` has it, stays ignored, and so does a handler of someone else.
    Libraries may turn either into another error; it is reported as what it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    usual = (signal.SIG_DFL, signal.default_int_handler, interrupt)
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *SIGNALS)}
    ours = {number: handler for number, handler in found.items() if handler in usual}
    _came.clear()
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    except Exception:
        if _came:
            raise _exception_of(_came[0][0]) from None
        raise
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextmanager
def hold_signals() -> Iterator[None]:
    """Let Ctrl-C and the signals of `orderly_end` come behind the block, whoever handles them."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, *SIGNALS)}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    held: list[int] = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: held.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in held:
            handlers[number](number, None)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C or one of the signals; put off while a module is imported."""
    if _is_importing(frame):
        send_again(number)
        return
    now = time.monotonic()
    is_new = number == signal.SIGINT or number in _sent_again
    _sent_again.discard(number)
    if is_new or not _came or now - _came[-1][1] > _TWICE:
        _came.append((number, now))
        raise _exception_of(number)


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


def _exception_of(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Ended(number)


@contextmanager
def own_process() -> Iterator[None]:
    """A process that is ours alone and short-lived: fit for any standard streams, and for Ctrl-C.

    At its end nothing is left for Python to complain about.
    """
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
    try:
        yield
    finally:
        # All is done: no traceback from here on, and the status stays what it is if a signal to
        # end comes twice. Python would take a handler of ours away before it is through.
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
