"""Measures as ratios of sums over queries: what resampling of queries works on.

``mean = Σ_q num_q / Σ_q den_q``. A plain mean has ``den_q = 1``, and 0 where the query is left out.
A pooled share (all pairs, or all rows, in one pot) has the count of the query for ``den_q``: a
query of 10,000 pairs weighs as much as 1,000 queries of ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.metrics.conventions import Convention
from linrank.metrics.counted import PairCounts, RowCounts
from linrank.metrics.measures import Measure

__all__ = ["Counted", "joined_counts", "terms_of"]

Array = NDArray[Any]
Counted = tuple[PairCounts | None, RowCounts | None, RowCounts | None]
# Measures over pairs, and what those of equal scores are to them; None: an option decides.
_TIES_OF_PAIRS = {
    "pairwise_accuracy": None,
    "all_pairs_error": None,
    "concordance_index": "half",
    "somers_d": "half",
    "gamma": "skip",
}


def terms_of(
    measure: Measure, values: Array, counted: Counted, chosen: Convention
) -> tuple[Array, Array]:
    """Return (numerator, denominator) by query, float64, from the values and counts by query."""
    judged = ~np.isnan(values)
    pooled = _pooled_total(measure, counted, chosen)
    if pooled is None:
        return np.where(judged, values, 0.0), judged.astype(np.float64)
    # The value is a share of counts, whose halves (a tie may count ½) are exact in float64:
    # rounding to the nearest half takes back the rounding of the division.
    total = pooled.astype(np.float64)
    return np.rint(2.0 * np.where(judged, values, 0.0) * total) / 2.0, total


def _pooled_total(measure: Measure, counted: Counted, chosen: Convention) -> Array | None:
    """What a pooled measure divides by, of each query; None for a mean over queries."""
    if getattr(measure, "over", None) == "queries":
        return None
    pairs, dominating, dominated = counted
    if measure.name in _TIES_OF_PAIRS and pairs is not None:
        ties = _TIES_OF_PAIRS[measure.name] or getattr(measure, "ties", None) or chosen.pair_ties
        total: Array = pairs.concordant + pairs.discordant + (ties != "skip") * pairs.tied
        return total
    rows = {"domination_error": dominating, "dominated_error": dominated}.get(measure.name)
    return None if rows is None else rows.total


def joined_counts(parts: list[Any]) -> Any:
    """Counts of several evaluations, one after the other; None unless all of them have some."""
    if any(part is None for part in parts):
        return None
    kind = type(parts[0])
    return kind(
        **{name: np.concatenate([getattr(p, name) for p in parts]) for name in vars(parts[0])}
    )
