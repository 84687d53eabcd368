"""Rank correlations and the concordance index: measures of all pairs of a query.

Of the pairs with different labels, ``n_c`` have their scores in the right order, ``n_d`` in the
wrong one and ``n_t`` equal; ``p = n_c + n_d + n_t``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from linrank.metrics.measures import Measure

__all__ = ["ConcordanceIndex", "Gamma", "KendallTau", "SomersD"]


@dataclass(frozen=True)
class KendallTau(Measure):
    """``τ_b = (n_c - n_d) / √(p · p_s)``, ``p_s`` being the pairs with different scores.

    The mean over queries. One without a pair of different labels, or with all scores equal, has
    no τ_b (0/0) and is left out.
    """

    name: ClassVar[str] = "kendall_tau"


@dataclass(frozen=True)
class Gamma(Measure):
    """Goodman and Kruskal's ``γ = (n_c - n_d) / (n_c + n_d)``: pairs of equal scores do not count.

    ``over`` pools all pairs ("pairs", the default) or averages the values of the queries that have
    such a pair ("queries").
    """

    name: ClassVar[str] = "gamma"
    over: Literal["pairs", "queries"] | None = None


@dataclass(frozen=True)
class SomersD(Measure):
    """Somers' ``D = (n_c - n_d) / p`` of scores given labels: pairs of equal scores count 0.

    ``over`` as in `Gamma`.
    """

    name: ClassVar[str] = "somers_d"
    over: Literal["pairs", "queries"] | None = None


@dataclass(frozen=True)
class ConcordanceIndex(Measure):
    """``(n_c + n_t/2) / p``: the pairwise accuracy with ties half right, whatever the convention.

    Of two labels it is the area under the ROC curve; `linrank.concordance_index` is that of
    censored times. ``over`` as in `Gamma`.
    """

    name: ClassVar[str] = "concordance_index"
    over: Literal["pairs", "queries"] | None = None
