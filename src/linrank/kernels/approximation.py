"""Kernel rankers for many rows: a linear RankSVM on features that approximate the kernel."""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np

from linrank.data import Array, Dataset, DenseRows, Extents, Rows, StreamedRows
from linrank.errors import check_natural
from linrank.kernels.functions import Kernel
from linrank.kernels.landmarks import Landmarks
from linrank.kernels.matrices import BlockedMatrix, check_kernel_matrix, may_be_indefinite
from linrank.ranksvm.train import train
from linrank.solvers.result import Result
from linrank.system.resources import allowed, resolve, too_small

_PIVOT = 1e-12  # pivot, of the largest k(x, x): T⁻¹ then costs six of sixteen digits
_COLUMNS = 128  # features that are computed together
_CHECKED = 500  # rows of which a kernel that may be none is tried


@dataclass(frozen=True, eq=False)
class NystroemMap:
    """``z(x) = T⁻¹ k(landmarks, x)`` with ``K(landmarks, landmarks) = T T'``.

    ``z(a)·z(b)`` is ``k(a, b)`` where one of the two is a landmark, and for others what is left of
    it in the span of the landmarks. A ranker ``w·z(x)`` is ``Σ c_k k(x_k, x)`` with ``c = T⁻ᵀw``:
    a product with all rows needs their kernel with the landmarks, but not their features.

    Attributes
    ----------
    kernel : Kernel
        k.
    rows : DenseRows or CsrRows
        The landmarks.
    inverse : float64 array (m, m)
        ``T⁻¹``, lower triangular.
    support : int64 array (m,)
        The landmarks by number of row.
    """

    kernel: Kernel
    rows: Rows
    inverse: Array
    support: Array

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: Rows,
        n_components: int,
        n_candidates: int,
        *,
        seed: int = 0,
        n_threads: int = 1,
    ) -> NystroemMap:
        """Landmarks drawn from these rows: fewer than ``n_components`` where rows are alike.

        By randomly pivoted Cholesky on ``n_candidates`` rows, drawn uniformly: a pivot that its
        predecessors explain up to rounding is no landmark, so that T needs no lift.
        """
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.choice(rows.shape[0], n_candidates, replace=False, shuffle=False))
        if may_be_indefinite(kernel):
            some = rows.take(drawn[:: 1 + n_candidates // _CHECKED])  # from all over the data
            what = f"{kernel.describe()} of {some.shape[0]} rows"
            check_kernel_matrix(kernel.matrix(some, some, n_threads), n_threads, what=what)
        candidates = BlockedMatrix(kernel, rows.take(drawn), n_threads)
        landmarks = Landmarks.of(
            candidates, n_components, seed=int(rng.integers(2**63)), least=_PIVOT
        )
        if len(landmarks) == 0:
            raise ValueError(
                f"{kernel.describe()} is 0 of all {n_candidates} rows that landmarks are chosen "
                "from: there is nothing to rank by; check that not all features are 0"
            )
        support = drawn[landmarks.rows]
        return cls(kernel, rows.take(support), np.ascontiguousarray(landmarks.back.T), support)

    @property
    def n_components(self) -> int:
        return len(self.support)

    def features(self, block: Rows, out: Array) -> None:
        """``z`` of a block of rows, into float32 ``out``."""
        K = self.kernel.matrix(block, self.rows)
        for begin in range(0, self.n_components, _COLUMNS):
            end = begin + _COLUMNS  # of T⁻¹ only what is not zero
            out[:, begin:end] = K[:, :end] @ self.inverse[begin:end, :end].T

    def scores(self, block: Rows, w: Array) -> Array:
        """``z(x)·w`` of a block of rows."""
        return self.kernel.product(block, self.rows, self.coef(w))

    def gradient(self, block: Rows, r: Array) -> Array:
        """``Σ r_i z(x_i)`` over a block of rows."""
        return np.asarray(self.inverse @ self.kernel.product(self.rows, block, r))

    def coef(self, w: Array) -> Array:
        """``c = T⁻ᵀw``."""
        return np.asarray(w @ self.inverse)


T = TypeVar("T")

BLOCK = 1024  # rows of a block
_ROUNDING = 1e-10  # of the features themselves, relative to the length of a row


@dataclass(eq=False)
class MappedRows(StreamedRows):
    """``Z``, row i of which is ``z(x_i)``.

    Blocks go to threads; what they add up to is added in their order, so that the result does not
    depend on the number of threads.

    Parameters
    ----------
    rows : DenseRows or CsrRows
        The rows x.
    features : NystroemMap
        z.
    capacity : int
        Rows of Z that may be stored at a time.
    block : int
        Rows that a thread computes at a time.
    n_blocks : int, optional
        Blocks that may be computed at a time, however many threads there are.
    """

    rows: Rows
    features: NystroemMap
    capacity: int = 0
    block: int = BLOCK
    n_blocks: int | None = None
    _extents: Extents | None = field(default=None, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows.shape[0], self.features.n_components)

    def scores(self, w: Array, order: Array | None, n_threads: int) -> Array:
        found = self._by_block(lambda rows, _: self.features.scores(rows, w), order, n_threads)
        return np.concatenate(list(found))

    def gradient(self, r: Array, order: Array | None, n_threads: int) -> Array:
        parts = self._by_block(
            lambda rows, at: self.features.gradient(rows, r[at]), order, n_threads
        )
        return functools.reduce(operator.iadd, parts, np.zeros(self.shape[1]))

    def extents(self, n_threads: int = 1) -> Extents:
        if self._extents is None:
            rounding = _ROUNDING + 2.0**-53 * (self.block + self.shape[1])

            def measure(rows: Rows, _: slice) -> Extents:
                values = np.empty((rows.shape[0], self.shape[1]), dtype=np.float32)
                self.features.features(rows, values)
                found = DenseRows(values).extents()
                return replace(found, score_rounding=rounding, slope_rounding=rounding)

            parts = self._by_block(measure, None, n_threads)
            self._extents = functools.reduce(operator.add, parts)
        return self._extents

    def stored(self, index: Array | slice, n_threads: int) -> DenseRows:
        wanted = np.arange(self.shape[0])[index]
        values = np.empty((len(wanted), self.shape[1]), dtype=np.float32)
        deque(
            self._by_block(
                lambda rows, at: self.features.features(rows, values[at]), wanted, n_threads
            ),
            maxlen=0,
        )
        return DenseRows(values)

    def _by_block(
        self, work: Callable[[Rows, slice], T], order: Array | None, n_threads: int
    ) -> Iterator[T]:
        """``work(rows, positions)`` of each block of positions, in order."""
        n = self.shape[0] if order is None else len(order)
        slices = [slice(i, min(i + self.block, n)) for i in range(0, n, self.block)]

        def work_on(at: slice) -> T:
            return work(self.rows.take(at if order is None else order[at]), at)

        n_threads = min(n_threads, len(slices), self.n_blocks or n_threads)
        if n_threads < 2:
            yield from map(work_on, slices)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            yield from pool.map(work_on, slices)


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
    n_candidates : int
        Rows that landmarks are chosen from.
    is_streamed : bool
        Whether the features of all rows are too many.
    capacity : int
        Rows whose features may be stored at a time.
    n_blocks : int
        Blocks that there is room for at a time.
    """

    n_candidates: int
    is_streamed: bool
    capacity: int
    n_blocks: int

    @classmethod
    def of(cls, memory_limit: Any, rows: Rows, n_components: int) -> Room:
        """Room by the limit, half of what is free if None; MemoryError where it is too small."""
        n_rows, of_row, square = rows.shape[0], 4 * n_components, 8 * n_components**2
        n_candidates = min(n_rows, _CANDIDATES * n_components)
        limit = allowed(memory_limit)
        limit = _UNKNOWN if limit is None else limit
        if memory_limit is not None:
            # Their factor is there twice, in double.
            n_candidates = min(n_candidates, max(n_components, limit // (16 * n_components)))
        block = BLOCK * (12 * n_components + rows.nbytes // n_rows)  # while it is computed
        # Hessians, their factors, and the parts that they are summed from.
        hessians = (6 + min(16, max(2, _PART // square))) * square
        beside = limit - limit // 4
        is_streamed = hessians + n_rows * of_row > beside
        least = min(n_rows, _LEAST * n_components)
        needed = max(4 * block, (hessians + 2 * least * of_row) * 4 // 3 + 4)
        if is_streamed and limit < needed:
            raise too_small(
                limit,
                f"n_components={n_components}, even where features are computed block by block,",
                needed,
                "use fewer components",
            )
        # Half of what there is room for: samples of queries may be larger than they were asked for.
        capacity = (beside - hessians) // (2 * of_row) if is_streamed else n_rows
        return cls(n_candidates, is_streamed, capacity, max(1, limit // 4 // block))


_COMPONENTS = 512  # unless told


@dataclass(frozen=True, eq=False)
class ApproximateResult(Result):
    """The outcome of a fit on approximate features; ``w`` are the weights of the features.

    Attributes
    ----------
    rows : DenseRows or CsrRows
        The landmarks ``x_k``.
    coef : float64 array
        ``c`` of the ranker ``Σ c_k k(x_k, x)``.
    support : int64 array
        The landmarks by number of row.
    is_streamed : bool
        Whether the features were computed for every product, for want of memory.
    """

    rows: Rows
    coef: Array
    support: Array
    is_streamed: bool


def train_approximate(
    data: Dataset,
    *,
    kernel: Kernel,
    n_components: int | None = None,
    seed: int = 0,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> ApproximateResult:
    """Train a linear RankSVM on features z with ``z(a)·z(b) ≈ k(a, b)``.

    Parameters
    ----------
    data : Dataset
        Scaled rows, labels, queries.
    kernel : Kernel
        k, any but "precomputed".
    n_components : int, optional
        Number of features; 512 if None, or as many as there are rows.
    seed : int
        Of landmarks, and of random pairs.
    memory_limit : int, float or str, optional
        Bytes for features and Hessians beside the data; half of what is free if None. Features
        that do not fit are computed again for every product.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    **options
        C, loss, pairs, tol, ... of `linrank.ranksvm.train.train`.
    """
    n_components = _check_components(data, kernel, n_components)
    n_threads = resolve(n_jobs)
    room = Room.of(memory_limit, data.rows, n_components)
    candidates = (n_components, room.n_candidates)
    features = NystroemMap.of(kernel, data.rows, *candidates, seed=seed, n_threads=n_threads)
    mapped = MappedRows(data.rows, features, room.capacity, n_blocks=room.n_blocks)
    rows = mapped if room.is_streamed else mapped.stored(slice(None), n_threads)
    # `train` asks no more of rows than streamed ones have; a data set in general is stored.
    mapped_data = replace(data, rows=cast(Any, rows), feature_names=None)
    result = train(mapped_data, seed=seed, n_jobs=n_jobs, **options)
    return ApproximateResult(
        **vars(result),
        rows=features.rows,
        coef=features.coef(result.w),
        support=features.support,
        is_streamed=room.is_streamed,
    )


def _check_components(data: Dataset, kernel: Kernel, n_components: Any) -> int:
    """The number of features, checked."""
    if kernel.name == "precomputed":
        raise ValueError(
            "approximation='nystroem' computes the kernel of rows with landmarks; "
            "kernel='precomputed' leaves no rows to do so: use approximation=None"
        )
    if n_components is None:
        return min(_COMPONENTS, data.n_rows)
    check_natural("n_components", n_components, " or None")
    if n_components > data.n_rows:
        raise ValueError(
            f"n_components={n_components} landmarks are more than the {data.n_rows} rows they are "
            "chosen from; use at most so many, or approximation=None"
        )
    return int(n_components)
