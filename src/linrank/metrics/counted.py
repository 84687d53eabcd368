"""Measures that are shares of what is counted: of the pairs, or of the rows, of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.metrics.conventions import Convention
from linrank.metrics.measures import (
    AllPairsError,
    ConcordanceIndex,
    DominationError,
    Gamma,
    Measure,
    PairwiseAccuracy,
    RowError,
    SomersD,
)

Array = NDArray[Any]
_OF_PAIRS = (PairwiseAccuracy, AllPairsError, ConcordanceIndex, Gamma, SomersD)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Pairs of each query by the order of their scores; int64 arrays (n_queries,).

    Attributes
    ----------
    concordant, discordant, tied : int64 array (n_queries,)
        Pairs ``y_i > y_j`` with ``s_i > s_j``, ``s_i < s_j`` and ``s_i = s_j``.
    """

    concordant: Array
    discordant: Array
    tied: Array

    def totals(self) -> tuple[int, int, int]:
        """Return the counts over all queries, as exact integers."""
        return _sum(self.concordant), _sum(self.discordant), _sum(self.tied)


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Rows of each query that have rows to stand above, or below; int64 arrays (n_queries,).

    Attributes
    ----------
    total : int64 array (n_queries,)
        The rows with a row of lower label in their query (dominating), or of higher (dominated).
    wrong : int64 array (n_queries,)
        Of these, the rows with one of those strictly on the wrong side of their score.
    tied : int64 array (n_queries,)
        The rows with none there, but one at the same score.
    """

    total: Array
    wrong: Array
    tied: Array

    def totals(self) -> tuple[int, int, int]:
        """Return the counts over all queries, as exact integers."""
        return _sum(self.total), _sum(self.wrong), _sum(self.tied)


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted of each query, as far as a measure needs it."""

    pairs: PairCounts | None
    dominating: RowCounts | None
    dominated: RowCounts | None

    @staticmethod
    def needed(measures: list[Measure]) -> tuple[bool, bool]:
        """Whether pairs are to be counted, and rows."""
        return (
            any(isinstance(m, _OF_PAIRS) for m in measures),
            any(isinstance(m, RowError) for m in measures),
        )

    @classmethod
    def of(cls, pairs: Array, rows: Array) -> Counts:
        """From the flat arrays of the core; an empty one was not asked for."""
        by_query = rows.reshape(-1, 6).T
        return cls(
            PairCounts(*pairs.reshape(-1, 3).T) if pairs.size else None,
            RowCounts(*by_query[:3]) if rows.size else None,
            RowCounts(*by_query[3:]) if rows.size else None,
        )

    def measure(self, measure: Measure, chosen: Convention) -> tuple[float, Array] | None:
        """Mean and values by query, NaN where nothing is to be judged; None if not counted."""
        if isinstance(measure, _OF_PAIRS) and self.pairs is not None:
            twice, total = pair_share(measure, self.pairs, chosen)
            return _share(twice, 2 * total, measure.over)
        if not isinstance(measure, RowError):
            return None
        rows = self.dominating if isinstance(measure, DominationError) else self.dominated
        if rows is None:
            return None
        wrong = rows.wrong + (rows.tied if measure.ties == "error" else 0)
        return _share(wrong, rows.total, measure.over)


def pair_share(measure: Measure, counts: PairCounts, chosen: Convention) -> tuple[Array, Array]:
    """Twice the numerator of each query, and its denominator; int64.

    Twice: half a pair is then an integer, and sums are exact.
    """
    right, wrong, tied = counts.concordant, counts.discordant, counts.tied
    if isinstance(measure, Gamma):
        return 2 * (right - wrong), right + wrong
    if isinstance(measure, SomersD):
        return 2 * (right - wrong), right + wrong + tied
    if isinstance(measure, ConcordanceIndex):
        return 2 * right + tied, right + wrong + tied
    if not isinstance(measure, (PairwiseAccuracy, AllPairsError)):
        raise TypeError(f"{measure} is no share of pairs")
    ties, is_error = measure.ties or chosen.pair_ties, isinstance(measure, AllPairsError)
    credit = {"error": 2 * is_error, "half": 1, "skip": 0}[ties]
    twice = 2 * (wrong if is_error else right) + credit * tied
    return twice, right + wrong + (ties != "skip") * tied


def _share(part: Array, total: Array, over: str | None) -> tuple[float, Array]:
    """``part/total``: pooled, or the mean of the queries' own shares; and these."""
    values = np.full(len(total), np.nan)
    np.divide(part, total, out=values, where=total > 0)
    if over == "queries":
        judged = values[total > 0]
        return (float(np.sum(judged) / len(judged)) if len(judged) else float("nan")), values
    pooled = _sum(total)
    return (_sum(part) / pooled if pooled else float("nan")), values


def _sum(counts: Array) -> int:
    """Exact, whatever the size."""
    return sum(counts.tolist())
