"""Pairs by number: the k-th pair of a set that is never listed, and distinct random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import Queries
from linrank.lazy import cached_property

__all__ = ["Blocks", "Cells", "distinct", "without"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sets of pairs, each all of a run of winners times all of a run of losers.

    Attributes
    ----------
    winners, losers : int64 arrays
        Where the two runs of each block begin.
    n_winners, n_losers : int64 arrays
        How long they are, >= 1.
    """

    winners: Array
    n_winners: Array
    losers: Array
    n_losers: Array

    @cached_property
    def ends(self) -> Array:
        """Pairs of the blocks up to each, itself included."""
        ends: Array = np.cumsum(self.n_winners * self.n_losers)
        return ends

    @property
    def n_pairs(self) -> int:
        """Pairs of all blocks."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def pairs(self, numbers: Array) -> tuple[Array, Array]:
        """Winner and loser of the pairs of these numbers: block by block, winner by winner."""
        block = np.searchsorted(self.ends, numbers, side="right")
        width = self.n_losers[block]
        within = numbers - (self.ends[block] - self.n_winners[block] * width)
        row, column = np.divmod(within, width)
        return self.winners[block] + row, self.losers[block] + column


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows sorted by query and level: a cell is a run of rows of one level of one query.

    Attributes
    ----------
    rows : int64 array (n_rows,)
        Row at each place of the sorted order.
    start : int64 array (n_cells + 1,)
        Where each cell begins in that order.
    level : int64 array (n_cells,)
        Level of each cell within its query.
    """

    rows: Array
    start: Array
    level: Array

    @classmethod
    def of(cls, queries: Queries) -> Cells:
        """The cells of these queries; levels are dense, so that none is empty."""
        n_levels = queries.n_levels.astype(np.int64)
        first = np.cumsum(n_levels) - n_levels
        cell = queries.levels + np.repeat(first, np.diff(queries.offsets))
        order = np.argsort(cell, kind="stable")
        n_cells = int(n_levels.sum())
        start = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_cells))])
        level = np.arange(n_cells) - np.repeat(first, n_levels)
        return cls(order if queries.order is None else queries.order[order], start, level)

    @cached_property
    def size(self) -> Array:
        """Rows of each cell."""
        size: Array = np.diff(self.start)
        return size

    def at(self, difference: int) -> Blocks:
        """The pairs whose levels differ by exactly this much, >= 1."""
        return self._below(np.flatnonzero(self.level >= difference), difference)

    def by_difference(self) -> Iterator[Blocks]:
        """The pairs whose levels differ by 1, by 2, and so on; a step costs no more than its pairs.

        Queries without such pairs are dropped on the way: one long query among many short ones
        does not pay for them.
        """
        winner, difference = np.flatnonzero(self.level >= 1), 1
        while len(winner):
            yield self._below(winner, difference)
            difference += 1
            winner = winner[self.level[winner] >= difference]

    def _below(self, winner: Array, difference: int) -> Blocks:
        """The pairs of these cells with those a difference below."""
        loser, size = winner - difference, self.size
        return Blocks(self.start[winner], size[winner], self.start[loser], size[loser])

    def beyond(self, difference: int) -> Blocks:
        """The pairs whose levels differ by more; all pairs for 0.

        The losers of a row are a prefix of its query's sorted rows, and the close ones among them
        the end of that prefix.
        """
        winner = np.flatnonzero(self.level > difference)
        first = self.start[winner - self.level[winner]]
        n_losers = self.start[winner - difference] - first
        return Blocks(self.start[winner], self.size[winner], first, n_losers)


def distinct(end: int, n: int, rng: np.random.Generator) -> Array:
    """``n`` different integers below ``end``, ascending; every set of ``n`` has the same chance.

    Examples
    --------
    >>> distinct(10**12, 3, np.random.default_rng(0)).size
    3
    """
    if 2 * n > end:  # at most 2n numbers in all: draw those that are left out
        is_kept = np.ones(end, dtype=bool)
        is_kept[distinct(end, end - n, rng)] = False
        return np.flatnonzero(is_kept)
    # The different values among independent draws are, given how many they are, a uniform set;
    # so is a uniform part of it. At most half of the draws are repeats.
    found = np.zeros(0, dtype=np.int64)
    while len(found) < n:
        more = int((1 + n / end) * (n - len(found))) + 8
        found = np.sort(np.concatenate([found, rng.integers(end, size=more)]))
        found = found[np.diff(found, prepend=-1) > 0]  # as np.unique, which hashes and is slower
    excess = len(found) - n
    if excess:
        is_kept = np.ones(len(found), dtype=bool)
        is_kept[rng.choice(len(found), excess, replace=False, shuffle=False)] = False
        found = found[is_kept]
    return found


def without(taken: Array, numbers: Array) -> Array:
    """The ``numbers``-th of the integers from 0 that are not in ``taken``, which ascends.

    ``taken[t] - t`` of them lie below ``taken[t]``, so the k-th is k plus the number of t with
    ``taken[t] - t <= k``.

    Examples
    --------
    >>> without(np.array([0, 2, 3]), np.arange(4)).tolist()
    [1, 4, 5, 6]
    """
    gaps = taken - np.arange(len(taken))
    moved: Array = numbers + np.searchsorted(gaps, numbers, side="right")
    return moved
