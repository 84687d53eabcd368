"""Pairs weighted by a measure: what swapping the two rows of a pair would change in a ranking.

LambdaRank weighs a pair by the change of the measure when its rows swap places in the present
ranking, and so its weights move with the model. Here the ranking is that of a model trained before,
and stays: the problem is convex, and is solved and certified as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from linrank import _core
from linrank.data import Array, Queries
from linrank.losses.base import KINDS, CoreLoss, HingeKind, HuberKind, SquaredHingeKind
from linrank.metrics import Measure, measures, parse
from linrank.system.resources import PickledFields, cached_property

# Rows of a query up to which a measure without a cut-off is taken: its pairs are quadratic.
LONGEST = 20_000


def swap_measure(name: str) -> Measure:
    """The measure that weighs pairs, by name; ValueError for one that no swap of rows defines."""
    try:
        measure = parse(name)
    except (TypeError, ValueError):
        measure = None
    if type(measure) not in _EFFECTS:
        known = ", ".join(kind.name for kind in _EFFECTS)
        raise ValueError(
            f"pair_weighting must be 'uniform', 'grade_diff', 'gain_diff' or a measure that is "
            f"defined by the places of rows ({known}), as in 'ndcg@20'; got {name!r}"
        )
    assert measure is not None
    return measure


def check_longest(measure: Measure, n_rows: int) -> None:
    """Refuse a measure without a cut-off for a query of too many rows."""
    if getattr(measure, "k", None) is None and n_rows > LONGEST:
        raise ValueError(
            f"pair_weighting='{measure}' compares every row of a query with all others, and a "
            f"query has {n_rows} rows; name a cut-off, as in '{measure.name}@100'"
        )


@dataclass(frozen=True, eq=False)
class Swaps(PickledFields):
    """The pairs of a ranking: positions t < j of a query, ``t < depth``, with ``g_t != g_j``.

    The pair weighs ``ω = |g_t - g_j| f_t u_t u_j (a_t - b_j)``, the change of the measure when the
    two rows swap places; the row of the larger g is the winner.

    Attributes
    ----------
    queries : Queries
        Rows by query; here a position is the place in the ranking.
    depth : int32 array by query
        Places from the first on that pairs begin at: the cut-off of the measure.
    gain, first, second, factor : float64 arrays by position
        g, a, b and f.
    row_weight : float64 array by position, or None
        The factors u; None for ones.
    n_threads : int
        For the sums over pairs.
    """

    queries: Queries
    depth: Array
    gain: Array
    first: Array
    second: Array
    factor: Array
    row_weight: Array | None = None
    n_threads: int = 1

    @classmethod
    def of(
        cls,
        queries: Queries,
        labels: Array,
        scores: Array,
        measure: Measure,
        *,
        row_weight: Array | None = None,
        query_weight: Array | None = None,
        query_normalization: str | None = None,
        share: float | None = None,
        n_threads: int = 1,
    ) -> Swaps:
        """The pairs of the ranking by ``scores``; labels, scores and row weights are by row.

        All weights are scaled so that they sum to the weights of the queries that have any: a C
        means the same whatever the measure. With ``query_normalization="pairs"`` they do so in
        each query. Where the queries are a part of others, ``share`` is the scale that is common
        to all of them.
        """
        cutoff = getattr(measure, "k", None)
        lengths = np.diff(queries.offsets)
        check_longest(measure, int(lengths.max()))
        ranked = _rank_rows(queries, scores, n_threads)
        order = ranked.order if ranked.order is not None else np.arange(ranked.n_rows)
        depth = np.minimum(lengths, LONGEST if cutoff is None else cutoff).astype(np.int32)
        places = _Places(ranked, labels[order], n_threads)
        effect: Effect = _EFFECTS[type(measure)](measure, places)
        weight = None if row_weight is None else np.ascontiguousarray(row_weight[order])
        swaps = cls(ranked, depth, *effect, weight, n_threads)
        by_query = swaps.weight_by_query
        c = (by_query > 0).astype(np.float64)
        if query_weight is not None:
            c = c * query_weight
        if query_normalization == "pairs":
            c = c / np.where(by_query > 0, by_query, 1.0)
        elif share is None:
            total = float(by_query @ c)
            c = c * (c.sum() / total if total > 0 else 1.0)
        else:
            c = c * share
        return replace(swaps, factor=swaps.factor * np.repeat(c, lengths))

    @cached_property
    def problem(self) -> _core.SwapProblem:
        """The same for the core."""
        return _core.swap_problem(
            self.queries.offsets,
            self.depth,
            self.gain,
            self.first,
            self.second,
            self.factor,
            self.row_weight,
        )

    @cached_property
    def _totals(self) -> tuple[Array, Array]:
        return _core.swap_totals(self.problem, self.n_threads)

    @property
    def n_pairs(self) -> int:
        """Number of pairs whose weight is not 0."""
        return int(self._totals[1].sum())

    @property
    def weight_by_query(self) -> Array:
        """``Σ ω`` over the pairs of each query."""
        return self._totals[0]

    def total_weight(self) -> float:
        """``Σ ω`` over all pairs."""
        return float(self._totals[0].sum())

    def on(self, sample: Queries, positions: Array, row_weight: Array) -> Swaps:
        """The pairs of a sample of the rows, as `linrank.ranksvm.train.draw_rows` returns it."""
        if self.row_weight is not None:
            row_weight = row_weight * self.row_weight[positions]
        query = np.searchsorted(self.queries.offsets, positions, side="right") - 1
        is_first = positions - self.queries.offsets[query] < self.depth[query]
        depth = np.add.reduceat(is_first, sample.offsets[:-1]) if len(positions) else self.depth[:0]
        effect = (self.gain, self.first, self.second, self.factor)
        gain, first, second, factor = (np.ascontiguousarray(a[positions]) for a in effect)
        head, n_threads = depth.astype(np.int32), self.n_threads
        return Swaps(sample, head, gain, first, second, factor, row_weight, n_threads)


def _rank_rows(queries: Queries, scores: Array, n_threads: int) -> Queries:
    """The same queries, the rows of each by descending score; ties as they were given."""
    own = queries.gather(scores)
    by_position = _positions_by(own, queries.offsets, n_threads)
    order, levels = np.empty(queries.n_rows, dtype=np.int64), np.empty_like(queries.levels)
    order[by_position] = np.arange(queries.n_rows) if queries.order is None else queries.order
    levels[by_position] = queries.levels
    return replace(queries, order=order, levels=levels)


def _positions_by(values: Array, offsets: Array, n_threads: int) -> Array:
    """Where each goes if those of every query are sorted, largest first; ties stay in order."""
    place = _core.ranks_within_queries(values, offsets, None, n_threads) - 1
    return np.repeat(offsets[:-1], np.diff(offsets)) + place


class _Places:
    """Labels in the order of a ranking, and the places, from 1, and queries that they have."""

    def __init__(self, ranked: Queries, labels: Array, n_threads: int) -> None:
        self.n_threads = n_threads
        self.offsets, self.labels, lengths = ranked.offsets, labels, np.diff(ranked.offsets)
        self.place: Array = np.arange(1, ranked.n_rows + 1) - np.repeat(
            ranked.offsets[:-1], lengths
        )
        self.query = np.repeat(np.arange(ranked.n_queries), lengths)

    def total(self, a: Array) -> Array:
        """Sums over the rows of each query, by position."""
        return np.add.reduceat(a, self.offsets[:-1])[self.query]

    def descending(self, a: Array) -> Array:
        """The values of each query, largest first."""
        found = np.empty_like(a)
        found[_positions_by(a, self.offsets, self.n_threads)] = a
        return found

    def running(self, a: Array) -> Array:
        """Sums over the rows of a query up to each, itself included."""
        total = np.cumsum(a)
        before = np.concatenate([[0.0], total])[self.offsets[:-1]]
        return total - before[self.query]

    def is_relevant(self, measure: Any) -> Array:
        """1 where the label reaches the threshold of the measure, else 0."""
        threshold = 1.0 if measure.rel is None else measure.rel
        return (self.labels >= threshold).astype(np.float64)

    def within(self, k: int | None) -> Array:
        """1 at the first k places, else 0."""
        if k is None:
            return np.ones(len(self.place))
        return (self.place <= k).astype(np.float64)


Effect = tuple[Array, Array, Array, Array]  # g, a, b and f


def _of_ndcg(measure: measures.NDCG, at: _Places) -> Effect:
    """``|Δ| = |g_i - g_j| |d_i - d_j| / IDCG``, d the discount, 0 beyond the cut-off."""
    gain = _gains(measure, at.labels, measure.gain == "linear")
    floor = 2 if measure.discount == "letor" else 1
    discount = at.within(measure.k) / np.log2(np.maximum(at.place, floor) + (floor == 1))
    ideal = at.total(at.descending(gain) * discount)
    inverse = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    return gain, discount, discount, inverse


def _of_precision(measure: measures.Precision, at: _Places) -> Effect:
    """``|Δ| = 1/k`` for a relevant row and another one, one of them within the first k."""
    within = at.within(measure.k)
    return at.is_relevant(measure), within, within, np.full(len(within), 1.0 / (measure.k or 1))


def _of_recall(measure: measures.Recall, at: _Places) -> Effect:
    """The same, ``1/#relevant``."""
    relevant, within = at.is_relevant(measure), at.within(measure.k)
    return relevant, within, within, 1.0 / np.maximum(at.total(relevant), 1.0)


def _of_rbp(measure: measures.RankBiasedPrecision, at: _Places) -> Effect:
    """``|Δ| = (1 - p) |p^(i-1) - p^(j-1)|`` for a relevant row and another one."""
    p = 0.8 if measure.p is None else measure.p
    worth = at.within(measure.k) * p ** (at.place - 1.0)
    return at.is_relevant(measure), worth, worth, np.full(len(worth), 1.0 - p)


def _of_map(measure: measures.AveragePrecision, at: _Places) -> Effect:
    """With c the number of relevant rows and H the sum of 1/place of them, up to a place p.

    A relevant row that falls from r to s, where another one was, loses ``c(r)/r``, gains
    ``c(s)/s`` and takes ``1/p`` from every relevant row between: ``φ(r) - φ(s)`` with
    ``φ(p) = c(p)/p - H(p)``. One that rises from s to r does the same with ``φ + 1/p``.
    Beyond the cut-off ``φ = -H(k)``.
    """
    relevant, within = at.is_relevant(measure), at.within(measure.k)
    inverse = within / at.place
    harmonic = at.running(relevant * inverse)
    falling = at.running(relevant) * inverse - harmonic
    rising = falling + inverse
    is_relevant = relevant > 0
    first = np.where(is_relevant, falling, rising)
    second = np.where(is_relevant, rising, falling)
    return relevant, first, second, 1.0 / np.maximum(at.total(relevant), 1.0)


def _of_mrr(measure: measures.ReciprocalRank, at: _Places) -> Effect:
    """Only the first relevant row counts, at place f; once it falls, the next one, at place n.

    One that falls to s changes 1/f to 1/min(s, n); another that rises to r < f, to 1/r.
    """
    relevant = at.is_relevant(measure)
    rank = at.running(relevant) * relevant  # 1 for the first relevant row, 2 for the next
    value = at.within(measure.k) / at.place
    first = at.total(np.where(rank == 1, value, 0.0))
    following = at.total(np.where(rank == 2, value, 0.0))
    above = np.where(relevant > 0, np.where(rank == 1, first, following), np.maximum(value, first))
    below = np.where(relevant > 0, first, np.maximum(value, following))
    return relevant, above, below, np.ones(len(value))


def _of_err(measure: measures.ERR, at: _Places) -> Effect:
    """``|Δ| = |R_i - R_j| (ψ_i - ψ_j) / (1 - R_i)`` for i before j.

    ``ψ(p) = E(p-1) + T(p)/p``, T the chance to come to a place and E what is earned up to it.
    """
    grades = _gains(measure, at.labels, is_linear=False)
    highest = at.labels.max() if measure.y_max is None else measure.y_max
    stop = grades / np.exp2(max(0.0, highest))
    if not stop.max() < 1.0:
        raise ValueError(f"{measure}: y_max={highest:g} is below the largest label")
    arrive = np.exp(at.running(np.log1p(-stop)) - np.log1p(-stop))
    value = at.within(measure.k) / at.place * arrive
    earned = at.running(value * stop) - value * stop
    worth = earned + value
    return stop, worth, worth, 1.0 / (1.0 - stop)


def _gains(measure: Measure, labels: Array, is_linear: bool) -> Array:
    """``2^y - 1``, or y."""
    if labels.min() < 0:
        raise ValueError(
            f"pair_weighting='{measure}' takes labels >= 0, and the smallest is {labels.min():g}; "
            "shift the labels, or use pair_weighting='uniform'"
        )
    if is_linear:
        return labels.astype(np.float64)
    if labels.max() > 500:
        raise ValueError(
            f"pair_weighting='{measure}' takes 2^label, and the label {labels.max():g} is too "
            "large for it; use labels up to 500, or ndcg(gain=linear)"
        )
    return np.exp2(labels) - 1.0


_EFFECTS: dict[type[Measure], Any] = {
    measures.NDCG: _of_ndcg,
    measures.AveragePrecision: _of_map,
    measures.ReciprocalRank: _of_mrr,
    measures.ERR: _of_err,
    measures.Precision: _of_precision,
    measures.Recall: _of_recall,
    measures.RankBiasedPrecision: _of_rbp,
}


class SwapLoss(CoreLoss):
    """``L(z) = Σ ω l(1 - z_win + z_lose)`` over the pairs of a ranking, which are never listed.

    Parameters
    ----------
    swaps : Swaps
        The ranking, and the weights ω.
    n_threads : int
        Threads of every sweep; the result does not depend on it.
    """

    name: ClassVar[str]

    def __init__(self, swaps: Swaps, n_threads: int = 1) -> None:
        super().__init__(swaps.queries.order, swaps.queries.n_rows, n_threads)
        self.pairs = swaps

    def at(self, z: Array, near: Any = None) -> _core.SwapPoint:
        return _core.swap_point(self.pairs.problem, self.name, self.epsilon, z, self.n_threads)


class SwapSquaredHinge(SquaredHingeKind, SwapLoss):
    """``l(ξ) = max(0, ξ)²``."""


class SwapHinge(HingeKind, SwapLoss):
    """``l(ξ) = max(0, ξ)``."""


class SwapHuber(HuberKind, SwapLoss):
    """The hinge, smoothed within ε of its kink."""


KINDS[Swaps] = {"squared_hinge": SwapSquaredHinge, "hinge": SwapHinge, "huber": SwapHuber}
