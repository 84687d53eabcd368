"""What a log says of its lists and rows: who was shown how often, where, and clicked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.clicks.impressions import Impressions
from linrank.data.queries import Queries
from linrank.inner_product import dot

__all__ = ["ListedClicks", "RowWeights"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ListedClicks:
    """Records by list, lists by query.

    row : of each record; query, count : of each list; begins : the first record of each list;
    query_of_row : of each row; n_lists : of each query.
    """

    impressions: Impressions
    row: Array
    query: Array
    count: Array
    begins: Array
    query_of_row: Array
    n_lists: Array

    @classmethod
    def of(cls, impressions: Impressions, queries: Queries) -> ListedClicks:
        row = impressions.rows_needed("counterfactual_value")
        if impressions.offsets is None:
            raise ValueError("counterfactual_value needs to know the lists; pass session")
        if row.max() >= queries.n_rows:
            raise ValueError(f"row {row.max()} was shown, but there are {queries.n_rows} scores")
        numbers = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
        query_of_row = queries.scatter(numbers)
        begins = impressions.offsets[:-1]
        query = query_of_row[row[begins]]
        _check_lists(impressions, query_of_row[row], query)
        count = impressions.count[begins]
        n_lists = np.bincount(query, count, minlength=queries.n_queries)
        return cls(impressions, row, query, count, begins, query_of_row, n_lists)

    def per_list(self, of_record: Array) -> Array:
        """Sums over the records of each list."""
        sums: Array = np.add.reduceat(of_record, self.begins)
        return sums

    def per_query(self, of_row: Array) -> Array:
        """Sums over the rows of each query."""
        return np.bincount(self.query_of_row, of_row, minlength=len(self.n_lists))

    def per_row(self, of_record: Array) -> Array:
        """Sums over the showings of each row, counts included."""
        times = self.impressions.count * of_record
        return np.bincount(self.row, times, minlength=len(self.query_of_row))

    def coverage(self, discount: Array, is_shown: Array) -> float:
        """Share of the discounts, list by list, that falls to rows which were shown."""
        possible = dot(self.n_lists, self.per_query(discount))
        shown = dot(self.n_lists, self.per_query(discount * is_shown))
        return shown / possible if possible else 1.0


@dataclass(frozen=True, eq=False)
class RowWeights:
    """What the log says of each row.

    exposure : looks a list of its query; weight : ω; model : a, as the clicks or the model say.
    """

    exposure: Array
    weight: Array
    model: Array
    is_bounded: Array

    @classmethod
    def of(cls, log: ListedClicks, p: Array, bound: float, model: Array) -> RowWeights:
        looks = log.per_row(p[_positions(log, p)])
        is_shown = looks > 0
        n_lists = log.n_lists[log.query_of_row]
        exposure = np.divide(looks, n_lists, out=np.zeros(len(looks)), where=is_shown)
        free = np.divide(1.0, exposure, out=np.zeros(len(looks)), where=is_shown)
        # With a free weight, Σ_showings ω p a = N_q a, whatever a: it leaves the estimate
        # alone, but the spread of the lists, its error, is least for the right one.
        # Rows shown once must not explain their own click, so that one look is added.
        clicks, is_free = log.per_row(log.impressions.clicked), is_shown & (free <= bound)
        rate = np.divide(clicks, looks + p.max(), out=model.copy(), where=is_free)
        return cls(exposure, np.minimum(free, bound), rate, free > bound)

    def contributions(self, log: ListedClicks, p: Array, discount: Array) -> Array:
        """``Σ_i λ a_i + Σ ω λ (c - p a_i)`` of each list: over its query, and over its records."""
        surprise = log.impressions.clicked - p[_positions(log, p)] * self.model[log.row]
        known = log.per_query(discount * self.model)[log.query]
        return known + log.per_list((self.weight * discount)[log.row] * surprise)

    def trust(self, log: ListedClicks) -> tuple[float, float]:
        """How many clicks the estimate rests on, and the share that was bounded."""
        clicks = log.per_row(log.impressions.clicked)
        if not clicks.any():
            return 0.0, 0.0
        n_effective = dot(clicks, self.weight) ** 2 / dot(clicks, self.weight**2)
        return n_effective, float(clicks[self.is_bounded].sum() / clicks.sum())


def _check_lists(impressions: Impressions, query_of_record: Array, query: Array) -> None:
    offsets, lists = impressions.offsets, impressions.lists
    if offsets is None or lists is None:
        return
    sizes = np.diff(offsets)
    is_other = query_of_record != np.repeat(query, sizes)
    if is_other.any():
        i = int(np.argmax(is_other))
        at = int(np.searchsorted(offsets, i, side="right")) - 1
        raise ValueError(
            f"list {lists[at : at + 1].tolist()[0]!r} shows row {impressions.rows_needed('')[i]}, "
            "which is of another query than the row on top; a list answers one query"
        )


def _positions(log: ListedClicks, p: Array) -> Array:
    """Positions from 0; an error if one has no propensity."""
    if log.impressions.n_positions > len(p):
        raise ValueError(
            f"position {log.impressions.n_positions} occurs, but propensity has {len(p)} elements; "
            "give one for each position"
        )
    positions: Array = log.impressions.position - 1
    return positions
