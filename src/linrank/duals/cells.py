"""Cells: where the dual variables of one query stand in its matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.memory import check_fits
from linrank.pairs import Pairs

__all__ = ["Cells", "pair_weight"]

Array = NDArray[Any]
_ARRAYS = 4  # of 8 bytes a cell that are alive while a block is made and decomposed


@dataclass(frozen=True, eq=False)
class Cells:
    """The rectangle of one query: rows above its lowest level × rows below its highest level.

    All pairs (i above j) lie in it, and with two levels they fill it. Both sides are sorted by
    ascending level, so that the pairs of a row are a prefix of its columns (or, of
    ``pairs="adjacent"``, a range of them): the layout of `linrank.lowrank.rectangles`, one query at
    a time and for any choice and weighting of pairs.

    Attributes
    ----------
    query : int
        Number of the query.
    top, bottom : int64 arrays (m,) and (n,)
        Positions of the rows of the rectangle, and of its columns.
    is_pair : bool array (m, n)
        Which cells are pairs.
    weight : float64 array (m, n)
        ω of the pairs, 0 elsewhere.
    """

    query: int
    top: Array
    bottom: Array
    is_pair: Array
    weight: Array

    @classmethod
    def of(cls, pairs: Pairs, query: int) -> Cells:
        """The rectangle of query number ``query``, refused if it does not fit the memory."""
        queries = pairs.queries
        begin, end = int(queries.offsets[query]), int(queries.offsets[query + 1])
        level = queries.levels[begin:end]
        ascending = begin + np.argsort(level, kind="stable")
        highest = int(queries.n_levels[query]) - 1
        top = ascending[queries.levels[ascending] > 0]
        bottom = ascending[queries.levels[ascending] < highest]
        check_fits(
            _ARRAYS * 8 * len(top) * len(bottom),
            f"the dual matrix of a query of {end - begin} rows, {len(top)} × {len(bottom)},",
            "analyse a sample of its rows",
        )
        above = queries.levels[top][:, np.newaxis] - queries.levels[bottom]
        is_pair = above == 1 if pairs.adjacent else above > 0
        weight = pair_weight(pairs, query, top[:, np.newaxis], bottom)
        return cls(query, top, bottom, is_pair, np.where(is_pair, weight, 0.0))


def pair_weight(pairs: Pairs, query: int, i: Array, j: Array) -> Array:
    """``ω_ij = c_q u_i u_j (g_i - g_j)`` of positions of one query, which broadcast."""
    weight: Array = np.ones(np.broadcast_shapes(i.shape, j.shape))
    if pairs.query_weight is not None:
        weight *= pairs.query_weight[query]
    if pairs.row_weight is not None:
        weight *= pairs.row_weight[i] * pairs.row_weight[j]
    if pairs.gain is not None:
        weight *= pairs.gain[i] - pairs.gain[j]
    return weight
