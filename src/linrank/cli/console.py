"""What a person sees while a command runs; all of it on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from linrank.system.words import bytes_text

State = dict[str, Any]


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

    def say(self, label: str, text: str) -> None:
        """A line of the summary."""
        if not self.quiet:
            self._line(f"{label:<10}{text}")

    def detail(self, text: str) -> None:
        """A line that only ``-v`` shows."""
        if self.verbose:
            self._line(text)

    def warn(self, text: str) -> None:
        """A line that even ``-q`` shows."""
        self._line(f"linrank: warning: {text}")

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

    def reading(self, source: str) -> Callable[[int, int | None], None] | None:
        """A progress callback for the reader; None where nobody would see it."""
        if not self.live:
            return None

        def show(done: int, total: int | None) -> None:
            share = f" of {bytes_text(total)} ({100 * done // max(total, 1)} %)" if total else ""
            self.status(f"reading {source}: {bytes_text(done)}{share}")

        return show

    def progress(self, line: Callable[[State], str]) -> Callable[[State], None] | None:
        """A callback that shows a line on the state of a run; None where nobody would see it.

        The lines are kept with ``-v``, else each is the status line until the next.
        """
        if not (self.verbose or self.live):
            return None

        def show(state: State) -> None:
            text = line(state)
            self.detail(text)
            self.status(text)

        return show

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
