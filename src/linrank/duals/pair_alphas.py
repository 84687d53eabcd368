"""α of listed pairs, in place of whole matrices: the pairs of all queries, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import Queries
from linrank.duals.entries import BandEntries, Entries, HuberEntries, SquaredHingeEntries
from linrank.pairs import Pairs

__all__ = ["Listed", "alphas", "chunks", "weights"]

Array = NDArray[Any]
_CHUNK = 1 << 20  # pairs that are looked at together


@dataclass(frozen=True, eq=False)
class Listed:
    """Pairs (i above j) by position, the query of each and the difference of their levels."""

    query: Array
    i: Array
    j: Array
    difference: Array

    def __len__(self) -> int:
        return len(self.i)

    @classmethod
    def of_rows(cls, queries: Queries, winners: Array, losers: Array) -> Listed:
        """Pairs given by rows of the matrix."""
        position = queries.scatter(np.arange(queries.n_rows))
        i, j = position[winners], position[losers]
        query = np.searchsorted(queries.offsets, i, side="right") - 1
        return cls(query, i, j, (queries.levels[i] - queries.levels[j]).astype(np.int64))


def chunks(pairs: Pairs, size: int = _CHUNK) -> Iterator[Listed]:
    """All pairs, about ``size`` at a time: by query, by level of the winner, of the loser.

    With the rows of a query sorted by level, the losers of a row are a prefix of them, or of
    ``pairs.adjacent`` the rows of the level below.
    """
    queries = pairs.queries
    for q in np.flatnonzero(queries.n_levels > 1):
        begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
        level = queries.levels[begin:end]
        ascending = np.argsort(level, kind="stable")
        below = np.searchsorted(level[ascending], np.arange(int(queries.n_levels[q]) + 1))
        high = below[level[ascending]]
        low = below[np.maximum(level[ascending] - 1, 0)] if pairs.adjacent else np.zeros_like(high)
        until = np.cumsum(high - low)
        cuts = np.searchsorted(until, np.arange(size, int(until[-1]), size), side="left") + 1
        for winners in np.split(np.arange(end - begin), np.unique(cuts)):
            n_losers = (high - low)[winners]
            ends = np.cumsum(n_losers)
            i = ascending[np.repeat(winners, n_losers)]
            place = np.arange(len(i)) + np.repeat(low[winners] - (ends - n_losers), n_losers)
            j = ascending[place]
            difference = (level[i] - level[j]).astype(np.int64)
            yield Listed(np.full(len(i), q), begin + i, begin + j, difference)


def weights(pairs: Pairs, listed: Listed) -> Array:
    """``ω_ij = c_q u_i u_j (g_i - g_j)``."""
    weight: Array = np.ones(len(listed))
    if pairs.query_weight is not None:
        weight *= pairs.query_weight[listed.query]
    if pairs.row_weight is not None:
        weight *= pairs.row_weight[listed.i] * pairs.row_weight[listed.j]
    if pairs.gain is not None:
        weight *= pairs.gain[listed.i] - pairs.gain[listed.j]
    return weight


def alphas(entries: Entries, listed: Listed, weight: Array) -> Array:
    """α of the pairs: what ``entries`` has in their cells."""
    if not isinstance(entries, SquaredHingeEntries | HuberEntries | BandEntries):
        raise TypeError(f"α of {type(entries).__name__} is known by whole matrices only")
    slack = (1.0 - entries.z[listed.i]) + entries.z[listed.j]
    bound = entries.C * weight
    if isinstance(entries, SquaredHingeEntries):
        return np.asarray(2.0 * bound * np.maximum(slack, 0.0))
    if isinstance(entries, HuberEntries):
        return np.asarray(entries.length * bound * np.clip(slack / entries.epsilon, 0.0, 1.0))
    return _in_band(entries, listed, np.where(slack > 0.0, bound, 0.0))


def _in_band(entries: BandEntries, listed: Listed, alpha: Array) -> Array:
    """``alpha``, but for the pairs of the band, whose own are put there."""
    n_rows = len(entries.z)
    known = entries.winner * n_rows + entries.loser
    order = np.argsort(known)
    wanted = listed.i * n_rows + listed.j
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    found = order[place]
    is_known = known[found] == wanted
    return np.asarray(np.where(is_known, entries.alpha[found], alpha))
