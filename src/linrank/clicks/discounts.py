"""What a rank is worth: the discount of each row under a ranking."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.frames import as_array, as_float
from linrank.data.queries import Queries

__all__ = ["rank_discounts", "row_discounts"]

Array = NDArray[Any]
_NAME = re.compile(r"(clicks|dcg|precision)(?:@([1-9]\d{0,8}))?")


def rank_discounts(metric: Any, propensity: Array, n_ranks: int) -> Array:
    """λ of the ranks 1 to ``n_ranks``, of a metric given by name or by its own discounts.

    Parameters
    ----------
    metric : str or array
        ``"clicks"``: λ(k) = p(k); ``"dcg"``: 1 / log2(1 + k); ``"precision@K"``: 1/K. With ``@K``,
        0 below rank K. An array holds λ(1), λ(2), ...; 0 behind its end.
    propensity : float64 array (n_positions,)
        p, 0 behind its end.
    n_ranks : int
        The longest query.
    """
    if not isinstance(metric, str):
        return _padded(_given(metric), n_ranks)
    found = _NAME.fullmatch(metric)
    if found is None or metric == "precision":
        raise ValueError(
            f"metric must be 'clicks', 'dcg', 'dcg@K', 'precision@K' or an array of discounts, "
            f"rank 1 first; got {metric!r}"
        )
    ranks = np.arange(1, n_ranks + 1)
    cut = int(found[2]) if found[2] else n_ranks
    if found[1] == "clicks":
        discount = _padded(propensity, n_ranks)
    elif found[1] == "dcg":
        discount = 1.0 / np.log2(1.0 + ranks)
    else:
        discount = np.full(n_ranks, 1.0 / cut)
    return np.where(ranks <= cut, discount, 0.0)


def row_discounts(scores: Array, queries: Queries, discount: Array) -> Array:
    """λ of each row's rank by descending score; rows of equal score share the mean of their ranks.

    That mean is what a random order of the equal ones would give on average.
    """
    offsets = queries.offsets
    query = np.repeat(np.arange(queries.n_queries), np.diff(offsets))
    by_position = queries.gather(scores)
    order = np.lexsort((-by_position, query))
    rank = np.arange(len(order)) - offsets[query]  # `order` keeps the queries where they are
    descending = by_position[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (descending[1:] != descending[:-1]) | (query[1:] != query[:-1])
    tie = np.cumsum(is_new) - 1
    mean = np.bincount(tie, discount[rank]) / np.bincount(tie)
    shared = np.empty(len(order))
    shared[order] = mean[tie]
    return queries.scatter(shared)


def _given(metric: Any) -> Array:
    a = as_array(metric, "metric")
    if a.ndim != 1 or a.size == 0:
        raise ValueError(f"metric must hold a discount for each rank, got shape {a.shape}")
    a = as_float(a, "metric").astype(np.float64)
    is_bad = ~(np.isfinite(a) & (a >= 0))
    if is_bad.any():
        k = int(np.argmax(is_bad))
        raise ValueError(f"discount of rank {k + 1} is {a[k]:g}; it must be finite and >= 0")
    return a


def _padded(a: Array, n: int) -> Array:
    padded = np.zeros(n)
    padded[: len(a)] = a[:n]
    return padded
