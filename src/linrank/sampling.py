"""A sample of queries that stands for the whole in a preconditioner or a first guess."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import Queries

__all__ = ["pair_weights", "sample_queries"]

Array = NDArray[Any]
_ROWS_OF_A_QUERY = 128  # more rows of one query tell less than rows of another one


def pair_weights(queries: Queries, row_weight: Array | None) -> Array:
    """``Σ u_i u_j`` over the pairs of each query: ``½[(Σu)² - Σ_r (Σ_{level r} u)²]``."""
    if row_weight is None:
        return queries.pairs_per_query.astype(np.float64)
    sizes = np.diff(queries.offsets)
    query_of = np.repeat(np.arange(queries.n_queries), sizes)
    first_cell = np.concatenate([[0], np.cumsum(queries.n_levels)])
    cell = first_cell[query_of] + queries.levels
    per_cell = np.bincount(cell, weights=row_weight, minlength=int(first_cell[-1]))
    cell_query = np.repeat(np.arange(queries.n_queries), queries.n_levels)
    total = np.bincount(cell_query, weights=per_cell, minlength=queries.n_queries)
    squares = np.bincount(cell_query, weights=per_cell**2, minlength=queries.n_queries)
    return np.maximum(0.5 * (total**2 - squares), 0.0)


def sample_queries(queries: Queries, n_rows: int, seed: int) -> tuple[Queries, Array, Array]:
    """About ``n_rows`` rows of randomly chosen queries that have pairs.

    Returns
    -------
    sample : Queries
        The chosen queries, over the same matrix; long ones with a random part of their rows.
    positions : int64 array
        Position in ``queries`` of each position of the sample.
    factor : float64 array
        ``(rows / rows kept)²`` of each query: the weight that makes up for pairs left out.
    """
    rng = np.random.default_rng(seed)
    lengths = np.diff(queries.offsets)
    useful = np.flatnonzero(queries.n_levels > 1)
    limit = max(_ROWS_OF_A_QUERY, n_rows // max(1, len(useful)))
    chosen = rng.permutation(useful)
    kept = np.minimum(lengths[chosen], limit)
    n_chosen = int(np.searchsorted(np.cumsum(kept), n_rows)) + 1
    chosen = np.sort(chosen[:n_chosen])
    kept = np.minimum(lengths[chosen], limit)
    parts = []
    for q, n_kept in zip(chosen.tolist(), kept.tolist(), strict=True):
        begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
        if n_kept < end - begin:
            parts.append(begin + np.sort(rng.choice(end - begin, n_kept, replace=False)))
        else:
            parts.append(np.arange(begin, end))
    positions = np.concatenate(parts)
    sample = Queries(
        offsets=np.concatenate([[0], np.cumsum(kept)]),
        order=positions if queries.order is None else queries.order[positions],
        levels=queries.levels[positions],
        n_levels=queries.n_levels[chosen],
    )
    return sample, positions, (lengths[chosen] / kept) ** 2.0
