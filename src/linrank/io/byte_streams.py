"""Streams of bytes that are read or written once, from front to back."""

from __future__ import annotations

import sys
from typing import Any

from linrank.system.durable import naming


def standard_input() -> Any:
    """The bytes of standard input; OSError where the process was started without one."""
    if sys.stdin is None:
        raise OSError("standard input is closed; name a file in place of -")
    return sys.stdin.buffer


class StandardOutput:
    """Standard output for bytes: it stays open, and all bytes arrive, behind text written before.

    With PYTHONUNBUFFERED its binary stream is the bare descriptor, which may take a part only: of
    a pipe, 64 kB would arrive and the rest be lost without an error.
    """

    closed = False

    def __init__(self) -> None:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        self._n_bytes = 0
        with naming("standard output"):
            sys.stdout.flush()
        self._raw = sys.stdout.buffer

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        with naming("standard output"):
            while rest:
                rest = rest[self._raw.write(rest) or 0 :]
        self._n_bytes += size
        return size

    def tell(self) -> int:
        return self._n_bytes

    def flush(self) -> None:
        with naming("standard output"):
            self._raw.flush()

    def close(self) -> None:
        """It belongs to the process."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def name_of(stream: Any) -> str:
    """What a file object is called in messages; one opened by its number has no words for it."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "<stream>"


class OneWay:
    """What Python and pyarrow ask of a stream beside ``read``, for one that cannot seek."""

    closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing is held: a stream that was handed over belongs to who opened it."""


class Replay(OneWay):
    """A stream whose first bytes were looked at; reading starts with them.

    Parameters
    ----------
    raw : binary file object
        The stream.
    name : str
        What it is called in messages.
    n_head : int
        Bytes to look at.
    whole_line : bool
        Whether a line end among them is enough: someone may wait for an answer to a line before
        writing the next.

    Attributes
    ----------
    head : bytes
        The first bytes, fewer where the stream is shorter.
    """

    def __init__(self, raw: Any, name: str, n_head: int, whole_line: bool = False) -> None:
        self.raw, self.name = raw, name
        self.head = b""
        while len(self.head) < n_head and not (whole_line and b"\n" in self.head):
            with naming(name):
                more = raw.read(n_head - len(self.head))
            if not more:
                break
            if not isinstance(more, bytes):
                raise TypeError(
                    f"the file object must give bytes, got {type(more).__name__}; "
                    "open it in binary mode, 'rb'"
                )
            self.head += more
        self._ahead = self.head

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; all of them where it is negative."""
        with naming(self.name):
            if not self._ahead:
                data: bytes = self.raw.read(size)
            elif size < 0:
                data, self._ahead = self._ahead + self.raw.read(), b""
            else:
                data, self._ahead = self._ahead[:size], self._ahead[size:]
        return data
