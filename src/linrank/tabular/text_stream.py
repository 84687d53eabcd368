"""The text of a file or stream, decompressed, as a stream of bytes that pyarrow reads."""

from __future__ import annotations

from typing import Any

from linrank.data.blocks import open_blocks
from linrank.data.byte_streams import OneWay
from linrank.errors import DataFormatError

__all__ = ["TextStream"]


class TextStream(OneWay):
    """Bytes of a text, the first of which can be looked at before they are read."""

    def __init__(self, source: Any) -> None:
        text = open_blocks(source)
        self.name, self.size = text.name, text.size
        self.n_done = 0  # bytes of the source, compressed if it is
        self._blocks = text.blocks
        self._ready = bytearray()
        self._error: DataFormatError | None = None
        self._is_over = False

    def peek(self, size: int) -> bytes:
        """The next bytes, at least ``size`` of them unless the text ends before."""
        self._fill(size)
        return bytes(self._ready)

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; none at the end."""
        self._fill(size if size >= 0 else 1 << 62)
        data = bytes(self._ready if size < 0 else self._ready[:size])
        del self._ready[: len(data)]
        if not data and self._error is not None:
            raise self._error
        return data

    def _fill(self, size: int) -> None:
        while len(self._ready) < size and not self._is_over:
            block, self.n_done = next(self._blocks, (None, self.n_done))
            if block is None:
                self._is_over = True
            elif isinstance(block, DataFormatError):
                self._is_over, self._error = True, block
            else:
                self._ready += block
