"""Scores of rows in blocks, so that the memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import Rows
from linrank.kernels.functions import Kernel

__all__ = ["cosine_scores", "in_blocks", "rows_of_bytes"]

Array = NDArray[Any]

_COSINE_BYTES = 1 << 24  # of cosine features at a time
_TILE = 1024  # a block is a whole number of tiles of so many rows


def cosine_scores(
    rows: Rows, frequencies: Rows, coef: Array, phases: Array, n_threads: int = 1
) -> Array:
    """``Σ_k coef_k cos(ω_k·x - δ_k)`` of every row x, with the ω_k as rows of ``frequencies``."""
    linear = Kernel("linear")

    def scores(block: Rows) -> Array:
        angles = linear.matrix(block, frequencies, n_threads)
        angles -= phases
        found: Array = np.cos(angles, out=angles) @ coef
        return found

    return in_blocks(rows, max(1, _COSINE_BYTES // (8 * len(coef))), scores)


def in_blocks(rows: Rows, step: int, scores: Callable[[Rows], Array]) -> Array:
    """``scores`` of all rows, ``step`` of them at a time."""
    found = np.empty(rows.shape[0])
    for begin in range(0, rows.shape[0], step):
        block = slice(begin, begin + step)
        found[block] = scores(rows.take(block))
    return found


def rows_of_bytes(rows: Rows, n_bytes: int) -> int:
    """How many rows have about so many bytes of values: whole tiles, one at least."""
    of_one = max(1, rows.values.nbytes // max(1, rows.shape[0]))
    return max(1, n_bytes // of_one // _TILE) * _TILE
