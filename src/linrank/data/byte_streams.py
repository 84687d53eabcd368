"""Streams of bytes that are read once, from front to back."""

from __future__ import annotations

from typing import Any

from linrank.durable import naming

__all__ = ["OneWay", "Replay", "name_of"]


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
