"""Rows that are not stored: whatever needs them has them computed, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import Extents, Rows
from linrank.data.statistics import ColumnStatistics

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
    def extents(self, n_threads: int = 1) -> Extents:
        """How large the columns are, and how exact products, as of stored rows."""

    @property
    def has_matrix(self) -> bool:
        """Whether a Hessian of all features, from a sample of the rows, is worth its size."""
        return True

    @abstractmethod
    def stored(self, index: Array | slice, n_threads: int) -> Rows:
        """Some of the rows in memory, `capacity` at most."""

    def take(self, index: Array | slice) -> Rows | StreamedRows:
        """Some of the rows, as of stored rows: in memory, or left where all of them are."""
        return self.stored(index, 1)

    def score_matrix(self, coefs: Array, n_threads: int) -> Array:
        """``(n_models, n_rows)``: the scores of several models."""
        return np.array([self.scores(coef, None, n_threads) for coef in coefs])

    def statistics(self, weight: Array | None) -> ColumnStatistics:
        """The moments of the columns, of rows of these weights."""
        raise TypeError(f"rows {self.describe()} have no statistics of their columns")

    def describe(self) -> str:
        """Storage and size in words."""
        return f"computed by blocks, {self.dtype}, {self.shape[0]} × {self.shape[1]}"


Design = Rows | StreamedRows  # what training takes
