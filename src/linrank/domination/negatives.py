"""Training on a share of the rows that nothing is below of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import Queries
from linrank.layering import Layering

__all__ = ["sample_negatives"]

Array = NDArray[Any]


def sample_negatives(layering: Layering, share: float, rng: np.random.Generator) -> Layering:
    """The same layering with a share of the lowest layer of each query, drawn at random.

    ``ceil(share·n)`` of the n rows are kept, and each weighs ``n/kept`` times as much: sums over
    the layer keep their expectation, so that alpha means what it means on all rows.
    """
    queries = layering.queries
    lengths = np.diff(queries.offsets)
    query = np.repeat(np.arange(queries.n_queries), lengths)
    is_lowest = queries.levels == 0
    lowest = np.flatnonzero(is_lowest)
    shuffled = lowest[np.argsort(rng.random(len(lowest)), kind="stable")]
    by_query = shuffled[np.argsort(query[shuffled], kind="stable")]
    sizes = np.bincount(query[lowest], minlength=queries.n_queries)
    # A query of one layer has no part in the loss: none of its rows is needed, but one stays.
    quota = np.where(queries.n_levels > 1, np.ceil(share * sizes), np.minimum(sizes, 1))
    place = np.arange(len(by_query)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_kept = ~is_lowest
    is_kept[by_query[place < quota[query[by_query]]]] = True
    kept = np.flatnonzero(is_kept)
    weight = np.ones(len(kept)) if layering.row_weight is None else layering.row_weight[kept].copy()
    ratio = sizes / np.maximum(quota, 1.0)
    weight[is_lowest[kept]] *= ratio[query[kept[is_lowest[kept]]]]
    return replace(
        layering,
        queries=_sub_queries(queries, kept, query),
        shift=None if layering.shift is None else layering.shift[kept],
        row_weight=weight,
    )


def _sub_queries(queries: Queries, kept: Array, query: Array) -> Queries:
    """The queries of the kept positions; no layer has lost all of its rows."""
    sizes = np.bincount(query[kept], minlength=queries.n_queries)
    return replace(
        queries,
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        order=kept if queries.order is None else queries.order[kept],
        levels=np.ascontiguousarray(queries.levels[kept]),
    )
