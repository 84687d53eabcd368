"""Sources: the texts of a conversion, one after the other, which can be read once more."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from stat import S_ISDIR, S_ISREG
from typing import Any

from linrank.data.blocks import LongLineError, Part, TextBlocks, open_blocks
from linrank.data.byte_streams import name_of, standard_input
from linrank.errors import DataFormatError

__all__ = ["Place", "Sources"]


@dataclass(frozen=True)
class Place:
    """Where a block ends: the name of its file, and the bytes of all files up to there."""

    name: str
    done: int


class Sources:
    """One or several texts: paths, ``"-"`` or binary file objects.

    What cannot be opened twice is rewound, or, if it is a pipe, kept in a temporary file as it is
    read: compressed, if it is.

    Parameters
    ----------
    source : path, "-", binary file object, or a sequence of them
        Read in this order, as if they were one file.
    spool : callable
        Returns the path of a new temporary file.
    block_size, longest_line : int
        Bytes.
    """

    def __init__(
        self, source: Any, spool: Callable[[], str], block_size: int, longest_line: int
    ) -> None:
        self._sources = list(source) if isinstance(source, (list, tuple)) else [source]
        if not self._sources:
            raise ValueError("source is empty; give at least one file to convert")
        if sum(isinstance(one, str) and one == "-" for one in self._sources) > 1:
            raise ValueError("'-', standard input, is given twice; it can be read only once")
        self._spool, self._block_size, self._longest = spool, block_size, longest_line
        self._streams: dict[int, _Rewound | _Spooled] = {}
        sizes = [_size(one) for one in self._sources]
        self.size = None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def first_name(self) -> str:
        """The first text in messages."""
        source = self._sources[0]
        if not hasattr(source, "read"):
            return "<stdin>" if source == "-" else os.fsdecode(source)
        return _name(source)

    def blocks(self) -> Iterator[tuple[Part, Place]]:
        """All blocks, from the beginning, every time that it is called."""
        before = 0
        for i in range(len(self._sources)):
            text, done = self._open(i), 0
            for block, done in text.parts:
                yield self._told(block, text.name), Place(text.name, before + done)
            before += done

    def _open(self, i: int) -> TextBlocks:
        source: Any = self._sources[i]
        if _size(source) is None:
            if i in self._streams:
                self._streams[i].rewind()
            else:
                self._streams[i] = self._stream(source)
            source = self._streams[i]
        return open_blocks(source, self._block_size, longest_line=self._longest)

    def _stream(self, source: Any) -> _Rewound | _Spooled:
        if not hasattr(source, "read"):
            source = standard_input() if source == "-" else open(source, "rb", buffering=0)  # noqa: SIM115
        if hasattr(source, "seekable") and source.seekable():
            return _Rewound(source)
        return _Spooled(source, self._spool())

    def _told(self, block: Part, name: str) -> Part:
        if not isinstance(block, LongLineError):
            return block
        return DataFormatError(
            f"{name}: {block.what}, the most that memory_limit allows; give a larger one, or check "
            "that the file is text with line ends"
        )

    def close(self) -> None:
        """Close what was opened here."""
        for stream in self._streams.values():
            stream.close()


def _size(source: Any) -> int | None:
    """Bytes of a regular file; None for anything that is not opened by a path, or is a pipe."""
    if hasattr(source, "read") or source == "-":
        return None
    status = os.stat(source)
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(
            errno.EISDIR,
            "is a folder, not text; give its files one by one (a store is trained from as it is)",
            os.fsdecode(source),
        )
    return status.st_size if S_ISREG(status.st_mode) else None


class _Rewound:
    """A file object that goes back to where it was."""

    def __init__(self, raw: Any) -> None:
        self.name, self._raw, self._start = _name(raw), raw, raw.tell()

    def read(self, size: int) -> bytes:
        data: bytes = self._raw.read(size)
        return data

    def rewind(self) -> None:
        self._raw.seek(self._start)

    def close(self) -> None:
        """It is the caller's."""


class _Spooled:
    """A pipe of which all that was read is kept in a file."""

    def __init__(self, raw: Any, path: str) -> None:
        self.name, self._raw = _name(raw), raw
        self._kept, self._is_back = open(path, "w+b"), False  # noqa: SIM115  (until close)

    def read(self, size: int) -> bytes:
        if self._is_back:
            if kept := self._kept.read(size):
                return kept
            self._is_back = False
        data: bytes = self._raw.read(size)
        if isinstance(data, bytes):  # else refused by who asked
            self._kept.write(data)
        return data

    def rewind(self) -> None:
        self._kept.seek(0)
        self._is_back = True

    def close(self) -> None:
        self._kept.close()


def _name(raw: Any) -> str:
    if raw is getattr(sys.stdin, "buffer", None):
        return "<stdin>"
    return name_of(raw)
