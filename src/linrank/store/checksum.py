"""The checksum of a range of bytes."""

from __future__ import annotations

import zlib
from typing import Any

from numpy.typing import NDArray

__all__ = ["checksum"]


def checksum(data: NDArray[Any], before: int = 0) -> int:
    """The checksum of the bytes of an array, which continues that of what came before."""
    return zlib.crc32(data.data.cast("B"), before) if data.nbytes else before
