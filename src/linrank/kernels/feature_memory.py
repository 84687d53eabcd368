"""What the features of a kernel may take of memory: whether they are stored, and how many rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linrank.data.rows import Rows
from linrank.kernels.mapped_rows import BLOCK
from linrank.memory import allowed, describe_bytes

__all__ = ["Room"]

_UNKNOWN = 4 << 30  # bytes to take where nobody knows how many are free
_CANDIDATES = 8  # rows for each landmark that are looked at, where memory allows
_LEAST = 10  # rows for each feature of a sample that is of any use as a preconditioner
_PART = 64 << 20  # bytes that the core takes for the parts of a sum of matrices, 2 to 16 of them


@dataclass(frozen=True)
class Room:
    """Memory for m features of n rows: a quarter for blocks, the rest for features and Hessians.

    What is decided here does not depend on the number of threads, lest results do.

    Attributes
    ----------
    limit : int
        Bytes that may be taken beside the data.
    n_rows, n_features : int
        Size of the data.
    n_components : int
        m.
    block : int
        Bytes of a block while its features are computed.
    n_candidates : int
        Rows that landmarks are chosen from.
    """

    limit: int
    n_rows: int
    n_features: int
    n_components: int
    block: int
    n_candidates: int

    @classmethod
    def of(cls, memory_limit: Any, rows: Rows, n_components: int) -> Room:
        """Room by the limit, half of what is free if None; MemoryError where it is too small."""
        n_rows, n_features = rows.shape
        n_candidates = min(n_rows, _CANDIDATES * n_components)
        limit = allowed(memory_limit)
        limit = _UNKNOWN if limit is None else limit
        if memory_limit is not None:
            # Their factor is there twice, in double.
            n_candidates = min(n_candidates, max(n_components, limit // (16 * n_components)))
        block = BLOCK * (12 * n_components + rows.nbytes // n_rows)
        room = cls(limit, n_rows, n_features, n_components, block, n_candidates)
        room._check()
        return room

    @property
    def _row(self) -> int:
        """Bytes of the features of a row."""
        return 4 * self.n_components

    @property
    def _hessians(self) -> int:
        """Bytes of Hessians, their factors, and the parts that they are summed from."""
        square = 8 * self.n_components**2
        return (6 + min(16, max(2, _PART // square))) * square

    @property
    def is_streamed(self) -> bool:
        """Whether the features of all rows are too many."""
        return self._hessians + self.n_rows * self._row > self.limit - self.limit // 4

    @property
    def capacity(self) -> int:
        """Rows whose features may be stored at a time.

        Half of what there is room for: samples of queries may be larger than they were asked for.
        """
        if not self.is_streamed:
            return self.n_rows
        return (self.limit - self.limit // 4 - self._hessians) // (2 * self._row)

    @property
    def n_blocks(self) -> int:
        """Blocks that there is room for at a time."""
        return max(1, self.limit // 4 // self.block)

    def _check(self) -> None:
        least = min(self.n_rows, _LEAST * self.n_components)
        needed = max(4 * self.block, (self._hessians + 2 * least * self._row) * 4 // 3 + 4)
        if not self.is_streamed or self.limit >= needed:
            return
        raise MemoryError(
            f"n_components={self.n_components} needs {describe_bytes(needed)} beside the data "
            f"even where features are computed block by block, but memory_limit allows "
            f"{describe_bytes(self.limit)}; raise it to {needed} bytes, or use fewer components"
        )

    def check_frequencies(self) -> None:
        """Raise MemoryError where random frequencies are too many."""
        needed = 4 * self.n_components * self.n_features
        if needed <= self.limit:
            return
        raise MemoryError(
            f"approximation='fourier' has {self.n_components // 2} frequencies of "
            f"{self.n_features} features: {describe_bytes(needed)}, but memory_limit allows "
            f"{describe_bytes(self.limit)}; use approximation='nystroem', whose landmarks are as "
            "sparse as the rows"
        )
