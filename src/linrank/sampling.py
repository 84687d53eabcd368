"""Samples of queries or preferences, to stand for the whole in a preconditioner or first guess."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries

__all__ = ["choose_queries", "draw_rows", "sample_preferences", "sample_queries"]

Array = NDArray[Any]
_ROWS_OF_A_QUERY = 128  # more rows of one query tell less than rows of another one


def sample_queries(queries: Queries, n_rows: int, seed: int) -> tuple[Queries, Array, Array]:
    """About ``n_rows`` rows of randomly chosen queries that have pairs.

    Of a long query the same number of rows is drawn from each level, so that the few relevant rows
    among many others are all kept; without levels to speak of, any rows. The weights make up for
    the rows left out: by the product rule the pairs of two levels keep their weight.

    Returns
    -------
    sample : Queries
        The chosen queries, over the same matrix.
    positions : int64 array
        Position in ``queries`` of each position of the sample.
    weight : float64 array
        Rows that each row of the sample stands for.
    """
    chosen, limit = choose_queries(np.diff(queries.offsets), queries.n_levels, n_rows, seed)
    return draw_rows(queries, chosen, limit, seed)


def choose_queries(lengths: Array, n_levels: Array, n_rows: int, seed: int) -> tuple[Array, int]:
    """The queries of a sample of about ``n_rows`` rows, ascending, and the most rows of each.

    It looks at numbers of rows and levels only: the queries themselves may be elsewhere.
    """
    rng = np.random.default_rng(seed)
    useful = np.flatnonzero(n_levels > 1)
    limit = max(_ROWS_OF_A_QUERY, n_rows // max(1, len(useful)))
    chosen = rng.permutation(useful)
    n_chosen = int(np.searchsorted(np.cumsum(np.minimum(lengths[chosen], limit)), n_rows)) + 1
    return np.sort(chosen[:n_chosen]), limit


def draw_rows(
    queries: Queries, chosen: Array, limit: int, seed: int, first: int = 0
) -> tuple[Queries, Array, Array]:
    """Rows of the chosen queries, at most ``limit`` of each, as `sample_queries` returns them.

    ``first`` is the number of the first query in the whole that ``queries`` are a part of: what is
    drawn from a query does not depend on how the whole is cut into parts.
    """
    parts, weights = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for q in chosen.tolist():
        begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
        if end - begin <= limit:
            kept, weight = np.arange(end - begin), np.ones(end - begin)
        else:
            rng = np.random.default_rng((seed, first + q))
            kept, weight = _draw(queries.levels[begin:end], int(queries.n_levels[q]), limit, rng)
        parts.append(begin + kept)
        weights.append(weight)
    positions = np.concatenate(parts)
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts[1:]], dtype=np.int64)])
    # Ranked anew: the trees of the kernels are as large as the number of levels, and a few rows of
    # a query with a million labels have few levels.
    labels = queries.levels[positions].astype(np.float64)
    levels, n_levels = _core.rank_levels(labels, offsets, None)
    order = positions if queries.order is None else queries.order[positions]
    sample = Queries(offsets=offsets, order=order, levels=levels, n_levels=n_levels)
    return sample, positions, np.concatenate(weights)


def sample_preferences(
    preferences: Preferences, share: float, seed: int, factor: float = 1.0
) -> Preferences:
    """About ``share`` of the preferences, weighing together ``factor`` times as much as all."""
    n = len(preferences)
    n_kept = min(n, int(share * n) + 1)
    kept = np.sort(np.random.default_rng(seed).choice(n, n_kept, replace=False, shuffle=False))
    weight = np.ones(n_kept) if preferences.weight is None else preferences.weight[kept]
    total = float(weight.sum())
    if total > 0:
        weight = weight * (factor * preferences.total_weight() / total)
    return Preferences(preferences.winners[kept], preferences.losers[kept], weight)


def _draw(
    levels: Array, n_levels: int, limit: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Rows of one query to keep, ascending, and how many rows each stands for."""
    n = len(levels)
    if 8 * n_levels > limit:
        # Evenly from a random start: each row with the same chance, at a tenth of a choice's cost.
        kept = ((np.arange(limit) + rng.random()) * (n / limit)).astype(np.int64)
        return kept, np.full(limit, n / limit)
    if n >= _core.LONG_QUERY:
        return _draw_evenly(levels, n_levels, limit // n_levels, rng)
    shuffled = rng.permutation(n)
    by_level = shuffled[np.argsort(levels[shuffled], kind="stable")]
    sizes = np.bincount(levels, minlength=n_levels)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within its level
    quota = limit // n_levels
    kept = by_level[place < quota]
    weight = np.maximum(sizes / quota, 1.0)[levels[kept]]
    ascending = np.argsort(kept)
    return kept[ascending], weight[ascending]


def _draw_evenly(
    levels: Array, n_levels: int, quota: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The same for a query so long that a shuffle, out of cache, would cost as much as a product.

    The rows of a level are taken at equal distances from a random start: each with the same chance.
    """
    narrow = np.uint16 if n_levels <= 1 << 16 else np.uint32  # 16 bits: numpy sorts by counting
    by_level = np.argsort(levels.astype(narrow), kind="stable")
    sizes = np.bincount(levels, minlength=n_levels)
    share = np.maximum(sizes / quota, 1.0)  # rows that each row drawn stands for
    drawn = np.minimum(sizes, quota)
    level = np.repeat(np.arange(n_levels), drawn)
    place = np.arange(len(level)) - np.repeat(np.cumsum(drawn) - drawn, drawn)
    shift = np.where(share > 1.0, rng.random(n_levels), 0.0)[level]
    within = np.minimum(((place + shift) * share[level]).astype(np.int64), sizes[level] - 1)
    kept = by_level[(np.cumsum(sizes) - sizes)[level] + within]
    ascending = np.argsort(kept)
    return kept[ascending], share[level][ascending]
