"""Pairs drawn once, to stand for all: what a plan and a recorded objective look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.data.rows import DenseRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.stochastic.samplers import PairSampler

    Array = NDArray[Any]

__all__ = ["PLANNED", "RECORDED", "Draw", "DrawnPairs"]


@dataclass(frozen=True)
class Draw:
    """How many pairs are drawn, from a stream other than that of the steps."""

    n_pairs: int
    salt: int

    def seed(self, seed: int) -> int:
        """The seed of this draw in a run of the given one."""
        return seed ^ self.salt


PLANNED = Draw(1024, 0x9E3779B9)  # for R²: an error of some per cent moves nothing
RECORDED = Draw(16_384, 0x5DEECE66D)  # for a sampled objective


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """Pair t is row ``winners[t]`` above row ``losers[t]``."""

    rows: Rows
    winners: Array
    losers: Array

    @classmethod
    def of(cls, rows: Rows, sampler: PairSampler, draw: Draw, seed: int) -> DrawnPairs:
        """The pairs of a draw in a run of this seed."""
        return cls(rows, *sampler.core.draw(_core.Random(draw.seed(seed)), draw.n_pairs))

    def mean_square(self) -> float:
        """``R²``: the mean of ``‖x_i - x_j‖²``."""
        with np.errstate(over="ignore"):  # infinite then, and the steps say so in their own words
            return float(_squares(self.rows, self.winners, self.losers).mean())


def _squares(rows: Rows, winners: Array, losers: Array) -> Array:
    """``‖x_i - x_j‖²`` for each pair of rows."""
    if isinstance(rows, DenseRows):
        x = rows.values[winners].astype(np.float64) - rows.values[losers]
        return np.asarray((x * x).sum(axis=1))
    above, below = rows.take(winners), rows.take(losers)
    pairs = [np.repeat(np.arange(len(winners)), np.diff(part.offsets)) for part in (above, below)]
    cells = [
        pair * rows.n_columns + part.columns
        for pair, part in zip(pairs, (above, below), strict=True)
    ]
    a, b = above.values.astype(np.float64), below.values.astype(np.float64)
    # Where both rows have an entry in a column, it is their difference that is squared. Cells
    # increase with the pair and, within it, with the column.
    place = np.searchsorted(cells[0], cells[1])
    shared = np.append(cells[0], -1)[place] == cells[1]
    a[place[shared]] -= b[shared]
    b[shared] = 0.0
    squares: Array = np.bincount(
        np.concatenate(pairs), weights=np.concatenate([a * a, b * b]), minlength=len(winners)
    )
    return squares
