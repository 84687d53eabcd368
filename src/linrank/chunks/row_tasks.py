"""What is asked of a block of rows whose queries may go on in other blocks.

A block is a `Dataset`; nothing here looks at its queries. Every task is a pure function of the
block and of its arguments, so that a lost one can be run again, anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import Extents, Rows
from linrank.data.statistics import ColumnStatistics

__all__ = [
    "BlockFacts",
    "block_extents",
    "block_facts",
    "block_rows",
    "block_score_matrix",
    "block_scores",
    "block_slopes",
    "block_statistics",
]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class BlockFacts:
    """All of a block but its rows."""

    shape: tuple[int, int]
    nbytes: int
    dtype: str
    is_sparse: bool
    labels: Array
    qid: Array | None
    weight: Array | None
    feature_names: tuple[str, ...] | None


def block_facts(block: Dataset, *, n_threads: int = 1) -> BlockFacts:
    """What the client needs to know of a block: 8 to 24 bytes a row."""
    rows = block.rows
    return BlockFacts(
        rows.shape,
        rows.nbytes,
        str(rows.dtype),
        rows.is_sparse,
        block.labels,
        block.qid,
        block.weight,
        block.feature_names,
    )


def block_scores(block: Dataset, w: Array, *, n_threads: int = 1) -> Array:
    """``X w`` of the block: 8 bytes a row to travel."""
    return block.rows.scores(w, None, n_threads)


def block_slopes(block: Dataset, r: Array, *, n_threads: int = 1) -> Array:
    """``Xᵀ r`` of the block, r by row of the block."""
    return block.rows.gradient(r, None, n_threads)


def block_extents(block: Dataset, *, n_threads: int = 1) -> Extents:
    """How large the columns of the block are."""
    return block.rows.extents(n_threads)


def block_rows(block: Dataset, index: Array, *, n_threads: int = 1) -> Rows:
    """Some rows of the block, copied."""
    return block.rows.take(index)


def block_score_matrix(block: Dataset, coefs: Array, *, n_threads: int = 1) -> Array:
    """``(n_models, n_rows)``: the scores of several models, the block read from memory once."""
    return np.array([block.rows.scores(coef, None, n_threads) for coef in coefs])


def block_statistics(
    block: Dataset, kept: Array | None = None, *, n_threads: int = 1
) -> ColumnStatistics:
    """The moments of the columns over the rows ``kept``, all if None."""
    if kept is None:
        return ColumnStatistics.of(block.rows, block.weight, n_threads)
    weight = None if block.weight is None else block.weight[kept]
    return ColumnStatistics.of(block.rows.take(kept), weight, n_threads)
