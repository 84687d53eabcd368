"""Pairs of labels with their weights, without a list of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.errors import NoPairsError
from linrank.system.threads import cached_property

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All (i, j) of one query with level_i > level_j, weighing ``ω_ij = c_q u_i u_j (g_i - g_j)``.

    Attributes
    ----------
    queries : Queries
        The rows by query and the levels of their labels.
    row_weight : float64 array by position, or None
        The factors u; None for ones.
    query_weight : float64 array by query, or None
        The factors c; None for ones.
    gain : float64 array by position, or None
        g, a function of the level that increases with it inside each query; None drops the factor.
    adjacent : bool
        Compare neighbouring levels only: level_i = level_j + 1.
    """

    queries: Queries
    row_weight: Array | None = None
    query_weight: Array | None = None
    gain: Array | None = None
    adjacent: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is cached belongs to the core, and is made again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def problem(self) -> _core.PairProblem:
        """The same for the core; its arrays are shared."""
        queries = self.queries
        return _core.pair_problem(
            queries.offsets,
            queries.levels,
            queries.n_levels,
            self.row_weight,
            self.query_weight,
            self.gain,
            self.adjacent,
        )

    @cached_property
    def n_pairs(self) -> int:
        """Number of pairs, whatever their weight."""
        if self.adjacent:
            return round(Pairs(self.queries, adjacent=True).total_weight())
        return self.queries.n_pairs

    def on(self, sample: Queries, positions: Array, row_weight: Array) -> Pairs:
        """The pairs of a sample of the rows, as `linrank.ranksvm.plan.draw_rows` returns it."""
        if self.row_weight is not None:
            row_weight = row_weight * self.row_weight[positions]
        query_weight = None
        if self.query_weight is not None:
            query = np.searchsorted(self.queries.offsets, positions, side="right") - 1
            query_weight = self.query_weight[query[sample.offsets[:-1]]]
        gain = None if self.gain is None else self.gain[positions]
        return Pairs(sample, row_weight, query_weight, gain, self.adjacent)

    def weight_by_query(self) -> Array:
        """``Σ ω_ij / c_q`` over the pairs of each query; computed once."""
        return self._weight_by_query

    @cached_property
    def _weight_by_query(self) -> Array:
        """``Σ ω_ij / c_q`` over the pairs of each query.

        With ``U_r`` and ``G_r`` the sums of u and of u g over the rows of level r, it is
        ``Σ_(r > s) (G_r U_s - U_r G_s)``, or ``Σ_(r > s) U_r U_s`` without gains.
        """
        queries = self.queries
        if self.row_weight is None and self.gain is None and not self.adjacent:
            return queries.pairs_per_query.astype(np.float64)
        first_cell = np.concatenate([[0], np.cumsum(queries.n_levels)])
        cell = queries.levels
        if queries.n_queries > 1:
            cell = cell + np.repeat(first_cell[:-1], np.diff(queries.offsets))
        u = np.ones(queries.n_rows) if self.row_weight is None else self.row_weight
        U = np.bincount(cell, weights=u, minlength=int(first_cell[-1]))
        head = np.repeat(first_cell[:-1], queries.n_levels)
        with np.errstate(over="ignore", invalid="ignore"):  # `check_total` refuses such weights
            per_cell = U * self._below(U, head)
            if self.gain is not None:
                G = np.bincount(cell, weights=u * self.gain, minlength=int(first_cell[-1]))
                per_cell = G * self._below(U, head) - U * self._below(G, head)
        by_query = np.bincount(
            np.repeat(np.arange(queries.n_queries), queries.n_levels),
            weights=per_cell,
            minlength=queries.n_queries,
        )
        weight: Array = np.maximum(by_query, 0.0)
        return weight

    def _below(self, a: Array, head: Array) -> Array:
        """Sum of ``a`` over the levels that each is preferred to; ``head``: first of its query.

        Sums run over all queries and are subtracted: exact to ``1e-16`` of the total.
        """
        before = np.concatenate([[0.0], a[:-1]])
        if self.adjacent:
            return np.where(np.arange(len(a)) == head, 0.0, before)
        running: Array = np.cumsum(before)
        below: Array = running - running[head]
        return below

    def total_weight(self) -> float:
        """``Σ ω_ij`` over all pairs."""
        by_query = self.weight_by_query()
        with np.errstate(over="ignore", invalid="ignore"):
            total = by_query.sum() if self.query_weight is None else by_query @ self.query_weight
        return float(total)


def choose_pairs(
    data: Dataset,
    *,
    pairs: str = "all",
    pair_weighting: str = "uniform",
    query_weight: Array | None = None,
    query_normalization: str | None = None,
) -> Pairs:
    """The pairs of the labels and their weights; `NoPairsError` if there are none to learn from."""
    if data.queries.n_pairs == 0:
        raise NoPairsError(no_pairs_message(data.queries))
    chosen = replace(plain_pairs(data, pair_weighting), adjacent=pairs == "adjacent")
    factors = query_factors(chosen.weight_by_query, query_weight, query_normalization)
    chosen = replace(chosen, query_weight=factors)
    check_total(chosen.total_weight(), pair_weighting)
    return chosen


def plain_pairs(data: Dataset, pair_weighting: str = "uniform") -> Pairs:
    """All pairs of the labels with ``ω_ij = u_i u_j (g_i - g_j)``: without factors of queries."""
    queries = data.queries
    row_weight = None if data.weight is None else np.ascontiguousarray(queries.gather(data.weight))
    gain = None if pair_weighting == "uniform" else _gain(data, pair_weighting)
    return Pairs(queries, row_weight, None, gain)


def check_total(total: float, pair_weighting: str) -> None:
    """Refuse weights of pairs that sum to nothing, or to more than a double holds."""
    if total <= 0:
        labels = (
            ""
            if pair_weighting == "uniform"
            else f", and that labels are not too small for pair_weighting={pair_weighting!r}"
        )
        raise NoPairsError(
            f"all pairs have weight zero; check sample_weight and query_weight{labels}"
        )
    if not total < np.inf:
        raise ValueError(
            f"the weights of the pairs, products of those of two rows, sum to {total:g}: they "
            "leave the range of double precision; divide sample_weight or query_weight by a common "
            "factor"
        )


def _gain(data: Dataset, pair_weighting: str) -> Array:
    """g by position, counted from the lowest label of each query: only differences matter."""
    queries = data.queries
    grade = queries.gather(data.labels)
    if pair_weighting == "gain_diff":
        if grade.max() > 500:
            raise ValueError(
                f"pair_weighting='gain_diff' takes 2^label, and the label {grade.max():g} is too "
                "large for it; use pair_weighting='grade_diff', or labels up to 500"
            )
        grade = np.exp2(grade)
    lowest = np.minimum.reduceat(grade, queries.offsets[:-1])
    gain: Array = grade - np.repeat(lowest, np.diff(queries.offsets))
    return gain


def query_factors(
    totals: Callable[[], Array], query_weight: Array | None, normalization: str | None
) -> Array | None:
    """The factors c_q; ``totals`` gives ``Σ ω_ij / c_q`` of each query, to be divided by."""
    weight = None if query_weight is None else np.ascontiguousarray(query_weight, dtype=np.float64)
    if normalization == "pairs":
        total = totals()
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        weight = inverse if weight is None else weight * inverse
    return weight


def no_pairs_message(queries: Queries) -> str:
    """What to say of labels that make no pair."""
    if queries.n_queries == 1:
        return (
            f"all {queries.n_rows} rows have the same label, so no pair can be formed; "
            "check the labels"
        )
    return (
        f"none of the {queries.n_queries} queries has two different labels; "
        "check that qid is not a row id and that labels vary inside a query"
    )
