"""Sums over resampled queries: the bootstrap, and random exchanges of two methods.

Both are products of a random matrix (resamples × queries) with the terms (queries × columns), taken
block by block. A block draws from a generator of its own, and fixed-point terms have exact sums
(see `linrank.comparison.terms`), so that results are the same bits on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.threads import resolve

__all__ = ["all_exchanges", "bootstrap_sums", "exchange_sums"]

Array = NDArray[Any]
_BLOCK = 2**20  # entries of the random matrix in a block: 8 MB; a part of the result, do not change
_BOOTSTRAP, _EXCHANGE = 0, 1


def bootstrap_sums(columns: Array, n_resamples: int, seed: int, n_jobs: int | None = None) -> Array:
    """Sums of each column over n queries drawn with replacement, (n_resamples, n_columns)."""
    n = len(columns)

    def draw(rng: np.random.Generator, counts: Array) -> None:
        for row in counts:
            row[:] = np.bincount(rng.integers(n, size=n), minlength=n)

    return _blockwise(columns, n_resamples, (seed, _BOOTSTRAP), draw, n_jobs)


def exchange_sums(columns: Array, n_resamples: int, seed: int, n_jobs: int | None = None) -> Array:
    """Sums of each column over the queries of random subsets, each query in with chance ½."""
    n = len(columns)

    def draw(rng: np.random.Generator, chosen: Array) -> None:
        bits = np.frombuffer(rng.bytes(len(chosen) * ((n + 7) // 8)), dtype=np.uint8)
        chosen[:] = np.unpackbits(bits.reshape(len(chosen), -1), axis=1, count=n)

    return _blockwise(columns, n_resamples, (seed, _EXCHANGE), draw, n_jobs)


def all_exchanges(columns: Array) -> Array:
    """Sums of each column over every subset of the queries but the first, (2^(n-1), n_columns).

    Exchanging the other queries instead of these turns the sign of a difference, so that the first
    query may stay: half of the subsets have every size of a difference.
    """
    sums = np.zeros((1, columns.shape[1]))
    for row in columns[1:]:
        sums = np.concatenate([sums, sums + row])
    return sums


def _blockwise(
    columns: Array,
    n_resamples: int,
    key: tuple[int, int],
    draw: Callable[[np.random.Generator, Array], None],
    n_jobs: int | None,
) -> Array:
    """``matrix @ columns`` for the random matrix that ``draw`` fills, by blocks of its rows."""
    size = max(1, _BLOCK // max(1, len(columns)))
    result = np.empty((n_resamples, columns.shape[1]))

    def block(start: int) -> None:
        stop = min(start + size, n_resamples)
        matrix = np.empty((stop - start, len(columns)))
        draw(np.random.default_rng([*key, start]), matrix)
        np.matmul(matrix, columns, out=result[start:stop])

    starts = range(0, n_resamples, size)
    with ThreadPoolExecutor(max_workers=min(resolve(n_jobs), len(starts))) as pool:
        list(pool.map(block, starts))
    return result
