"""Rows as a feature map makes them, stored or computed block by block."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import DenseRows, Extents, Rows, StreamedRows
from linrank.system.resources import allowed, too_small

Array = NDArray[Any]
T = TypeVar("T")

BLOCK = 1024  # rows of a block
_ROUNDING = 1e-10  # of the features themselves, relative to the length of a row


class FeatureMap(Protocol):
    """Features z(x) of a row x."""

    @property
    def rows(self) -> Rows:
        """What the features are made of: landmarks or frequencies."""

    @property
    def n_components(self) -> int: ...
    @property
    def support(self) -> Array | None:
        """``rows`` by their numbers among the training rows, if that is what they are."""

    def features(self, block: Rows, out: Array) -> None:
        """``z`` of a block of rows, into float32 ``out``."""

    def scores(self, block: Rows, w: Array) -> Array:
        """``z(x)·w`` of a block of rows."""

    def gradient(self, block: Rows, r: Array) -> Array:
        """``Σ r_i z(x_i)`` over a block of rows."""

    def coef(self, w: Array) -> Array:
        """Coefficients of the ranker ``w·z(x)`` as a sum over ``rows``."""


class MappedRows(StreamedRows):
    """``Z``, row i of which is ``z(x_i)``.

    Blocks go to threads; what they add up to is added in their order, so that the result does not
    depend on the number of threads.

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows x.
    features : FeatureMap
        z.
    capacity : int
        Rows of Z that may be stored at a time.
    block : int
        Rows that a thread computes at a time.
    n_blocks : int, optional
        Blocks that may be computed at a time, however many threads there are.
    """

    def __init__(
        self,
        rows: Rows,
        features: FeatureMap,
        capacity: int,
        *,
        block: int = BLOCK,
        n_blocks: int | None = None,
    ) -> None:
        self.rows = rows
        self.features = features
        self._capacity = capacity
        self._block = block
        self._n_blocks = n_blocks
        self._extents: Extents | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows.shape[0], self.features.n_components)

    @property
    def capacity(self) -> int:
        return self._capacity

    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        def block(positions: slice) -> Array:
            return self.features.scores(self._taken(order, positions), w)

        return np.concatenate(list(self._mapped(block, self._n_positions(order), n_threads)))

    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        def block(positions: slice) -> Array:
            return self.features.gradient(self._taken(order, positions), r[positions])

        total = np.zeros(self.shape[1])
        for part in self._mapped(block, self._n_positions(order), n_threads):
            total += part
        return total

    def extents(self, n_threads: int = 1) -> Extents:
        if self._extents is None:
            rounding = _ROUNDING + 2.0**-53 * (self._block + self.shape[1])

            def block(positions: slice) -> Extents:
                part = self._taken(None, positions)
                values = np.empty((part.shape[0], self.shape[1]), dtype=np.float32)
                self.features.features(part, values)
                found = DenseRows(values).extents()
                return replace(found, score_rounding=rounding, slope_rounding=rounding)

            self._extents = functools.reduce(
                operator.add, self._mapped(block, self.shape[0], n_threads)
            )
        return self._extents

    def stored(self, index: Array | slice, n_threads: int) -> DenseRows:
        wanted = np.arange(self.shape[0])[index]
        values = np.empty((len(wanted), self.shape[1]), dtype=np.float32)

        def block(positions: slice) -> None:
            self.features.features(self._taken(wanted, positions), values[positions])

        for _ in self._mapped(block, len(wanted), n_threads):
            pass
        return DenseRows(values)

    def _n_positions(self, order: Array | None) -> int:
        return self.shape[0] if order is None else len(order)

    def _taken(self, order: Array | None, positions: slice) -> Rows:
        return self.rows.take(positions if order is None else order[positions])

    def _mapped(self, block: Callable[[slice], T], n: int, n_threads: int) -> Iterator[T]:
        """``block`` of all positions, in order."""
        slices = [slice(i, min(i + self._block, n)) for i in range(0, n, self._block)]
        n_threads = min(n_threads, len(slices), self._n_blocks or n_threads)
        if n_threads < 2:
            yield from map(block, slices)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            yield from pool.map(block, slices)


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
        raise too_small(
            self.limit,
            f"n_components={self.n_components}, even where features are computed block by block,",
            needed,
            "use fewer components",
        )

    def check_frequencies(self) -> None:
        """Raise MemoryError where random frequencies are too many."""
        needed = 4 * self.n_components * self.n_features
        if needed <= self.limit:
            return
        raise too_small(
            self.limit,
            f"approximation='fourier' with {self.n_components // 2} frequencies of "
            f"{self.n_features} features",
            needed,
            "use approximation='nystroem', whose landmarks are as sparse as the rows",
        )
