"""Growing: an array that is appended to, emptied and filled again, without new memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Growing"]

Array = NDArray[Any]


class Growing:
    """A vector; memory is kept when it is emptied."""

    def __init__(self, dtype: Any, capacity: int = 0) -> None:
        self._memory, self._size = np.empty(capacity, dtype), 0

    def __len__(self) -> int:
        return self._size

    def extend(self, values: Array) -> None:
        """Append a copy of the values."""
        end = self._size + len(values)
        if end > len(self._memory):
            grown = np.empty(max(end, self._size + self._size // 2), self._memory.dtype)
            grown[: self._size] = self._memory[: self._size]
            self._memory = grown
        self._memory[self._size : end] = values
        self._size = end

    def view(self) -> Array:
        """What was appended, valid until the next change."""
        return self._memory[: self._size]

    def clear(self) -> None:
        """Forget the values."""
        self._size = 0
