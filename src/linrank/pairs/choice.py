"""Which pairs a training compares, by name: swept where they can be, listed where they must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.errors import NoPairsError
from linrank.options import SELECTED_PAIRS
from linrank.pairs.selection import Selection
from linrank.pairs.weighted import (
    Pairs,
    check_total,
    no_pairs_message,
    plain_pairs,
    query_factors,
)

Array = NDArray[Any]


def chosen(
    data: Dataset,
    *,
    pairs: str = "all",
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    seed: int = 0,
    pair_weighting: str = "uniform",
    query_weight: Array | None = None,
    query_normalization: str | None = None,
) -> tuple[Pairs | None, Preferences | None]:
    """The pairs to learn from, with their weights: those to sweep and those that are listed.

    Parameters
    ----------
    data : Dataset
        Labels and queries, and the row weights u of ``ω_ij = c_q u_i u_j (g_i - g_j)``.
    pairs : {"all", "adjacent", "closest", "pruned"}
        ``"closest"``: the `n_closest` pairs of the closest labels; ``"pruned"``: `n_random` of the
        others beside them. All pairs and those of neighbouring labels are swept, not listed.
    n_closest, n_random : int or "auto"
        As in :func:`linrank.pairs.pruned`.
    seed : int
        Of the pairs drawn at random.
    pair_weighting, query_weight, query_normalization
        The factors g and c, as in :func:`linrank.pairs.choose_pairs`; ``"pairs"`` divides c_q by
        the weights of the pairs chosen, swept and listed together.

    Returns
    -------
    swept : Pairs or None
    listed : Preferences or None
        At least one of the two; no pair is in both.
    """
    _check_sizes(pairs, n_closest, n_random)
    queries = data.queries
    if queries.n_pairs == 0:
        raise NoPairsError(no_pairs_message(queries))
    swept, listed = _select(data, pairs, n_closest, n_random, seed, pair_weighting)

    def totals() -> Array:
        total = np.zeros(queries.n_queries) if swept is None else swept.weight_by_query()
        return total if listed is None else total + _weight_by_query(listed, queries)

    weight = query_factors(totals, query_weight, query_normalization)
    if swept is not None:
        swept = replace(swept, query_weight=weight)
    if listed is not None and weight is not None:
        listed = _times(listed, weight[_query_by_row(queries)[listed.winners]])
    parts = (part.total_weight() for part in (swept, listed) if part is not None)
    check_total(sum(parts), pair_weighting)
    return swept, listed


def chosen_sizes(
    queries: Queries,
    pairs: str = "all",
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
) -> dict[str, int]:
    """How many pairs `chosen` takes, ``n_pairs``, and how many of each kind, without finding them.

    Examples
    --------
    >>> chosen_sizes(Queries.of([0, 1, 2, 3, 4, 5]), "pruned", n_random=2)
    {'n_closest': 5, 'n_random': 2, 'n_pairs': 7}
    """
    if pairs not in SELECTED_PAIRS or queries.n_pairs == 0:
        return {"n_pairs": Pairs(queries, adjacent=pairs == "adjacent").n_pairs}
    selection = _selection(queries, pairs, n_closest, n_random)
    sizes = {"n_closest": selection.n_closest}
    if pairs == "pruned":
        sizes["n_random"] = selection.n_random
    return {**sizes, "n_pairs": selection.n_chosen}


def _check_sizes(pairs: str, n_closest: int | str, n_random: int | str) -> None:
    """Raise ValueError for a number of pairs that the choice of pairs does not take."""
    if n_closest != "auto" and pairs not in SELECTED_PAIRS:
        raise ValueError(
            f"n_closest={n_closest} belongs to pairs='closest' and 'pruned', got pairs={pairs!r}"
        )
    if n_random != "auto" and pairs != "pruned":
        raise ValueError(f"n_random={n_random} belongs to pairs='pruned', got pairs={pairs!r}")


def _select(
    data: Dataset,
    pairs: str,
    n_closest: int | str,
    n_random: int | str,
    seed: int,
    pair_weighting: str,
) -> tuple[Pairs | None, Preferences | None]:
    """The two parts without the factors of the queries."""
    every = plain_pairs(data, pair_weighting)
    adjacent = replace(every, adjacent=True)
    if pairs not in SELECTED_PAIRS:
        return (adjacent if pairs == "adjacent" else every), None
    selection = _selection(data.queries, pairs, n_closest, n_random, seed)
    if selection.is_all:
        return every, None
    if selection.n_closest != selection.n_adjacent:
        return None, _weighted_as(every, selection.listed())
    if selection.n_random == 0:
        return adjacent, None
    return adjacent, _weighted_as(every, selection.listed_random())


def _selection(
    queries: Queries, pairs: str, n_closest: int | str, n_random: int | str, seed: int = 0
) -> Selection:
    """What is chosen where ``pairs`` is closest or pruned."""
    drawn = ("n_random", n_random) if pairs == "pruned" else None
    return Selection.of(queries, closest=("n_closest", n_closest), drawn=drawn, seed=seed)


def _weighted_as(pairs: Pairs, listed: Preferences) -> Preferences:
    """The listed pairs with ``u_i u_j (g_i - g_j)`` of ``pairs``."""
    queries = pairs.queries
    if pairs.row_weight is not None:
        u = queries.scatter(pairs.row_weight)
        with np.errstate(over="ignore"):  # `check_total` refuses such weights
            listed = _times(listed, u[listed.winners] * u[listed.losers])
    if pairs.gain is not None:
        g = queries.scatter(pairs.gain)
        listed = _times(listed, g[listed.winners] - g[listed.losers])
    return listed


def _times(listed: Preferences, factor: Array) -> Preferences:
    weight = factor if listed.weight is None else listed.weight * factor
    return replace(listed, weight=weight)


def _weight_by_query(listed: Preferences, queries: Queries) -> Array:
    """``Σ ω_ij`` over the listed pairs of each query."""
    query = _query_by_row(queries)[listed.winners]
    total: Array = np.bincount(query, weights=listed.weight, minlength=queries.n_queries)
    return total.astype(np.float64)


def _query_by_row(queries: Queries) -> Array:
    return queries.scatter(np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets)))
