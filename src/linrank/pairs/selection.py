"""Fewer pairs: the closest ones, random ones, or both, found without listing all."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.errors import NoPairsError, TooFewPairsError
from linrank.pairs.weighted import no_pairs_message
from linrank.system.memory import check_fits
from linrank.system.threads import cached_property

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


Asked = tuple[str, Any]  # the name of a number of pairs, and what was given for it

_BYTES_OF_A_PAIR = 96  # its rows and weight, here and in the loss, and what finding it takes


def closest(y: Any, qid: Any = None, n: int | str = "auto", *, seed: int = 0) -> Preferences:
    """The ``n`` pairs of a query whose labels are closest, in order of closeness.

    The closeness of a pair (i above j) is the difference r of the dense ranks of its labels within
    the query, so that equal labels count as one. First come all pairs with r = 1 of all queries,
    then those with r = 2, and so on; of the last r, as many as are left are drawn at random.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Real labels.
    qid : array of shape (n_rows,)
        Query of each row; None: all rows are one query.
    n : int or "auto", default="auto"
        Pairs, from 1 to the number of all pairs. ``"auto"`` is all pairs with r = 1:
        ``S = Σ_q Σ_r n_qr n_q,r+1`` with ``n_qr`` rows of query q at level r.
    seed : int, default=0
        Of the draw from the last r.

    Returns
    -------
    Preferences
        Winners and losers by row of `y`, each pair once, without weights.

    Examples
    --------
    >>> from linrank.pairs import closest
    >>> closest([10.0, 30.0, 20.0, 20.0]).pairs.tolist()
    [[2, 0], [3, 0], [1, 2], [1, 3]]
    """
    return Selection.of(Queries.of(y, qid), closest=("n", n), seed=seed).listed()


def random(y: Any, qid: Any = None, n: int | str = "auto", *, seed: int = 0) -> Preferences:
    """``n`` different pairs of all; every set of ``n`` pairs has the same chance.

    The pairs of all queries are numbered, not listed: memory is that of the ``n`` pairs.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Real labels.
    qid : array of shape (n_rows,)
        Query of each row; None: all rows are one query.
    n : int or "auto", default="auto"
        Pairs, from 1 to the number of all pairs. ``"auto"`` is as many as have neighbouring
        labels, as in :func:`closest`.
    seed : int, default=0
        Of the draw.

    Returns
    -------
    Preferences
        Winners and losers by row of `y`, each pair once, without weights.

    Examples
    --------
    >>> from linrank.pairs import random
    >>> len(random(range(100_000), n=5)), len(random([0, 1, 2], n=3))
    (5, 3)
    """
    return Selection.of(Queries.of(y, qid), drawn=("n", n), seed=seed).listed()


def pruned(
    y: Any,
    qid: Any = None,
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    *,
    seed: int = 0,
) -> Preferences:
    """The ``n_closest`` closest pairs, then ``n_random`` of all others drawn uniformly.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Real labels.
    qid : array of shape (n_rows,)
        Query of each row; None: all rows are one query.
    n_closest : int or "auto", default="auto"
        Closest pairs, as in :func:`closest`.
    n_random : int or "auto", default="auto"
        Pairs drawn from the rest, whatever their query, none twice. ``"auto"`` is as many as the
        closest. Where the rest has no more than that, it is taken whole.
    seed : int, default=0
        Of both draws.

    Returns
    -------
    Preferences
        Winners and losers by row of `y`, each pair once, without weights.

    Examples
    --------
    >>> from linrank.pairs import pruned
    >>> chosen = pruned(range(1000), n_random=10)
    >>> len(chosen), chosen.pairs[:2].tolist()
    (1009, [[1, 0], [2, 1]])
    """
    closest, drawn = ("n_closest", n_closest), ("n_random", n_random)
    return Selection.of(Queries.of(y, qid), closest=closest, drawn=drawn, seed=seed).listed()


@dataclass(frozen=True, eq=False)
class Selection:
    """How many pairs of which closeness: the sizes are known, the pairs are not listed yet.

    Attributes
    ----------
    cells : Cells
        The rows by query and level.
    n_pairs, n_adjacent : int
        All pairs, and those of neighbouring levels.
    n_closest, n_random : int
        Closest pairs and random ones of the rest that are chosen.
    seed : int
        Of the random ones, and of the cut among the closest.
    """

    cells: Cells
    n_pairs: int
    n_adjacent: int
    n_closest: int
    n_random: int
    seed: int

    @classmethod
    def of(
        cls,
        queries: Queries,
        *,
        closest: Asked | None = None,
        drawn: Asked | None = None,
        seed: int = 0,
    ) -> Selection:
        """Check the sizes, each given with its name; None chooses none of that kind."""
        if queries.n_pairs == 0:
            raise NoPairsError(no_pairs_message(queries))
        cells = Cells.of(queries)
        total, adjacent = queries.n_pairs, cells.at(1).n_pairs
        n_closest = 0 if closest is None else _size(*closest, adjacent, total)
        n_random = 0 if drawn is None else _size(*drawn, n_closest or adjacent, total)
        return cls(cells, total, adjacent, n_closest, min(n_random, total - n_closest), seed)

    @property
    def n_chosen(self) -> int:
        """Pairs chosen in all."""
        return self.n_closest + self.n_random

    @property
    def is_all(self) -> bool:
        """Whether every pair is chosen."""
        return self.n_chosen == self.n_pairs

    def listed(self) -> Preferences:
        """The pairs chosen, the closest first."""
        self._check_memory(self.n_chosen)
        rng = np.random.default_rng(self.seed)
        parts, difference, cut = self._closest(rng)
        if self.n_random:
            parts.append(self._others(difference, cut, rng))
        return self._preferences(parts)

    def listed_random(self) -> Preferences:
        """The random pairs alone, where the closest are all those of neighbouring levels."""
        self._check_memory(self.n_random)
        none_cut = np.zeros(0, dtype=np.int64)
        return self._preferences([self._others(1, none_cut, np.random.default_rng(self.seed))])

    def _closest(self, rng: np.random.Generator) -> tuple[list[tuple[Array, Array]], int, Array]:
        """Places of the closest pairs, the last difference of levels, and its numbers if cut."""
        parts, difference, left = [], 0, self.n_closest
        cut = np.zeros(0, dtype=np.int64)
        for blocks in self.cells.by_difference() if left else ():
            difference += 1
            if blocks.n_pairs <= left:
                chosen = np.arange(blocks.n_pairs)
            else:
                chosen = cut = distinct(blocks.n_pairs, left, rng)
            parts.append(blocks.pairs(chosen))
            left -= len(chosen)
            if left == 0:
                break
        return parts, difference, cut

    def _others(self, difference: int, cut: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Places of the random pairs.

        They are drawn from the pairs beyond ``difference`` and, where that one was cut, from what
        was left of it.
        """
        far = self.cells.beyond(difference)
        near = self.cells.at(difference) if len(cut) else None
        n_near = 0 if near is None else near.n_pairs - len(cut)
        drawn = distinct(far.n_pairs + n_near, self.n_random, rng)
        n_far = int(np.searchsorted(drawn, far.n_pairs))
        winners, losers = far.pairs(drawn[:n_far])
        if near is None:
            return winners, losers
        more = near.pairs(without(cut, drawn[n_far:] - far.n_pairs))
        return np.concatenate([winners, more[0]]), np.concatenate([losers, more[1]])

    def _preferences(self, parts: list[tuple[Array, Array]]) -> Preferences:
        """Rows of the pairs of places."""
        rows = self.cells.rows
        winners, losers = (np.concatenate(side) for side in zip(*parts, strict=True))
        return Preferences(rows[winners], rows[losers])

    def _check_memory(self, n: int) -> None:
        check_fits(
            n * _BYTES_OF_A_PAIR,
            f"a list of {n} pairs",
            "choose fewer of them, or use pairs='all' or 'adjacent', which list none",
        )


def _size(name: str, n: Any, auto: int, total: int) -> int:
    """A number of pairs, checked against that of all."""
    if isinstance(n, str) and n == "auto":
        return auto
    if not isinstance(n, numbers.Integral) or isinstance(n, bool):
        raise TypeError(f"{name} must be an integer or 'auto', got {n!r}")
    size = int(n)
    if size < 1:
        raise ValueError(f"{name} must be >= 1, got {n}")
    if size > total:
        raise TooFewPairsError(
            f"{name} is {n}, but the labels make only {total} pairs; lower it, or use all pairs"
        )
    return size
