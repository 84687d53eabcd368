"""Files and pipes: ``-`` is a standard stream, a file appears whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable

from linrank.durable import check_place, naming, recover, replacing

__all__ = [
    "STANDARD",
    "check_apart",
    "check_readable",
    "check_writable",
    "read_text",
    "write_lines",
    "write_standard",
]

STANDARD = "-"


def check_readable(path: str) -> None:
    """Raise OSError now if the file or store at `path` could not be opened later."""
    recover(path)
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # does not wait for a writer of a pipe


def check_writable(path: str) -> None:
    """Raise OSError now if a file could not be created at `path` later.

    Training may take an hour; a misspelt folder must not be found out after it.
    """
    if path != STANDARD:
        check_place(path)


def check_apart(output: str, *inputs: str | None) -> None:
    """Raise ValueError if writing `output` would destroy one of the files that are read."""
    for path in inputs:
        if path is None or STANDARD in (path, output) or not os.path.isfile(output):
            continue
        if os.path.exists(path) and os.path.samefile(path, output):
            raise ValueError(f"{output}: is read and would be overwritten; name another output")


def write_lines(path: str, blocks: Iterable[str]) -> None:
    """Write blocks of whole lines to a file (atomically) or, for ``-``, to standard output.

    Each block is passed on before the next one is asked for: a pipe may lead to who wants it first.
    """
    if path == STANDARD:
        for block in blocks:
            write_standard(block)
            sys.stdout.flush()
        return
    with replacing(path) as file:
        for block in blocks:
            file.write(block.encode())
            file.flush()


def write_standard(text: str) -> None:
    """Write all of `text` to standard output.

    With PYTHONUNBUFFERED the text stream sits on the bare descriptor and drops what a short write
    to a pipe leaves over: 64 kB arrive, the rest is lost without an error.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    raw = getattr(sys.stdout, "buffer", None)
    with naming("standard output"):
        if not isinstance(raw, io.RawIOBase):
            sys.stdout.write(text)
            return
        rest = memoryview(text.encode(sys.stdout.encoding, sys.stdout.errors or "strict"))
        while rest:
            rest = rest[raw.write(rest) or 0 :]


def read_text(path: str) -> str:
    """The whole text of a small file or of standard input."""
    if path == STANDARD:
        return sys.stdin.read()
    with naming(path), open(path, encoding="utf-8") as file:
        return file.read()
