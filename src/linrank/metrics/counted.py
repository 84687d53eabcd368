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


class _Totals:
    """Counts by query, and their sums."""

    def totals(self) -> tuple[int, int, int]:
        """Return the counts over all queries, as exact integers."""
        first, second, third = map(_sum, vars(self).values())
        return first, second, third


@dataclass(frozen=True, eq=False)
class PairCounts(_Totals):
    """Pairs of each query by the order of their scores; int64 arrays (n_queries,).

    Attributes
    ----------
    concordant, discordant, tied : int64 array (n_queries,)
        Pairs ``y_i > y_j`` with ``s_i > s_j``, ``s_i < s_j`` and ``s_i = s_j``.
    """

    concordant: Array
    discordant: Array
    tied: Array


@dataclass(frozen=True, eq=False)
class RowCounts(_Totals):
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

    def shares(self, measure: Measure, chosen: Convention) -> tuple[Array, Array] | None:
        """Twice the numerator of each query, and twice its denominator; None if not counted.

        Twice: half a pair is then an integer, and sums are exact.
        """
        if isinstance(measure, RowError):
            rows = self.dominating if isinstance(measure, DominationError) else self.dominated
            if rows is None:
                return None
            wrong = rows.wrong + (rows.tied if measure.ties == "error" else 0)
            return 2 * wrong, 2 * rows.total
        if not isinstance(measure, _OF_PAIRS) or self.pairs is None:
            return None
        right, wrong, tied = self.pairs.concordant, self.pairs.discordant, self.pairs.tied
        if isinstance(measure, Gamma):
            return 2 * (right - wrong), 2 * (right + wrong)
        if isinstance(measure, SomersD):
            return 2 * (right - wrong), 2 * (right + wrong + tied)
        if isinstance(measure, ConcordanceIndex):
            return 2 * right + tied, 2 * (right + wrong + tied)
        ties, is_error = measure.ties or chosen.pair_ties, isinstance(measure, AllPairsError)
        credit = {"error": 2 * is_error, "half": 1, "skip": 0}[ties]
        twice = 2 * (wrong if is_error else right) + credit * tied
        return twice, 2 * (right + wrong + (ties != "skip") * tied)

    def measure(self, measure: Measure, chosen: Convention) -> tuple[float, Array] | None:
        """Mean and values by query, NaN where nothing is to be judged; None if not counted.

        The mean is pooled, or that of the queries' own shares.
        """
        shares = self.shares(measure, chosen)
        if shares is None:
            return None
        part, total = shares
        values = np.full(len(total), np.nan)
        np.divide(part, total, out=values, where=total > 0)
        if getattr(measure, "over", None) == "queries":
            judged = values[total > 0]
            return (float(np.sum(judged) / len(judged)) if len(judged) else float("nan")), values
        pooled = _sum(total)
        return (_sum(part) / pooled if pooled else float("nan")), values


def _sum(counts: Array) -> int:
    """Exact, whatever the size."""
    return sum(counts.tolist())
