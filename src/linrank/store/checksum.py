"""The checksum of a range of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core

__all__ = ["checksum"]


def checksum(data: NDArray[Any], before: int = 0) -> int:
    """CRC-32C of the bytes of a C-ordered array, which continues that of what came before.

    Examples
    --------
    >>> f"{checksum(np.frombuffer(b'123456789', np.uint8)):08x}"
    'e3069283'
    """
    return _core.crc32c(data.reshape(-1).view(np.uint8), before)
