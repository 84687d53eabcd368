"""Rows that are not stored: whatever needs them has them computed, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import DenseRows, Rows

__all__ = ["Design", "StreamedRows"]

Array = NDArray[Any]


class StreamedRows(ABC):
    """A matrix by its two products, and by the few rows at a time that may be stored."""

    is_sparse: ClassVar[bool] = False

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Rows that there is memory for at a time."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """What the matrix would take."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def core(self) -> Any:
        """There is none: the kernels of the core read whole matrices."""
        raise TypeError(f"rows {self.describe()} have no view for the core")

    def to_user(self) -> Any:
        """Not to be had either."""
        raise TypeError(f"rows {self.describe()} are no array")

    @abstractmethod
    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        """``X w`` by position, as of stored rows."""

    @abstractmethod
    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        """``Xᵀ r``, r by position, as of stored rows."""

    @abstractmethod
    def stored(self, index: Array | slice, n_threads: int) -> DenseRows:
        """Some of the rows in memory, `capacity` at most."""

    def take(self, index: Array | slice) -> DenseRows:
        """Some of the rows in memory, as of stored rows."""
        return self.stored(index, 1)

    def describe(self) -> str:
        """Storage and size in words."""
        return f"computed by blocks, {self.dtype}, {self.shape[0]} × {self.shape[1]}"


Design = Rows | StreamedRows  # what training takes
