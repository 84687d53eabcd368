"""Samplers: which pair comes next, and the objective that a sampling stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from linrank import _core
from linrank.choices import SAMPLINGS
from linrank.data import Array, Dataset, DenseRows, Queries, Rows, as_labels, as_weights
from linrank.errors import NoPairsError, check_one_of
from linrank.pairs import Pairs, layer_numbers, no_pairs_message
from linrank.system.resources import cached_property

_MOST_DRAWS = 1e5  # of two rows for a pair, by rejection: a millisecond


@dataclass(frozen=True, eq=False)
class PairSampler:
    """A distribution over pairs (i above j): ``P(i, j) = ω_ij / Σω``.

    The expected loss of a drawn pair is the pair sum of ``pairs`` divided by ``total_weight``.

    Attributes
    ----------
    build : callable
        Makes `core`: tables that take as long as a pass over the labels.
    sampling : str
        The name of the distribution.
    pairs : Pairs
        The same distribution as weights ω; with "roc" its queries are not those of the data.
    total_weight : float
        ``Σω``, so that ``λ = 1 / (C·total_weight)`` makes the objective that of `RankSVM`.
    n_pairs : int
        Pairs of the queries of positive weight that are kept, whatever the weight of their rows.
    mass : float
        What the pairs weigh beside those of other queries, by the same sampling: of data in parts,
        a pair is of a part with the probability of its share in the sum of all masses.
    """

    build: Callable[[], _core.PairSampler]
    sampling: str
    pairs: Pairs
    total_weight: float
    n_pairs: int
    mass: float

    @cached_property
    def core(self) -> _core.PairSampler:
        """Draws pairs of rows."""
        return self.build()


def pair_sampler(
    queries: Queries,
    sampling: str = "pairs",
    *,
    labels: Any = None,
    row_weight: Any = None,
    query_weight: Any = None,
    keep: Any = None,
) -> PairSampler:
    """A sampler of the pairs of ``queries``; `NoPairsError` if there is none to draw.

    Parameters
    ----------
    queries : Queries
        The rows by query and their levels.
    sampling : {"pairs", "query", "query-level", "roc", "rejection"}
        - "pairs": every pair alike, ``ω_ij = c_q u_i u_j``.
        - "query": every query alike, its pairs alike: ``ω_ij = c_q u_i u_j / Σ u_k u_l``, the sum
          over the pairs (k, l) of the query.
        - "query-level": every query alike, every two of its k levels, every two rows of these:
          ``ω_ij ∝ 2 c_q / (k (k - 1) n_i n_j)`` with n the rows of the query in the level of i or
          j; ``Σω = 1``. The sampler of Sculley's paper.
        - "roc": rows of positive label above all others, whatever their query:
          ``ω_ij = u_i u_j``.
        - "rejection": as "pairs", by drawing two rows until they make a pair.
    labels : array (n_rows,), optional
        Labels by row of the matrix; "roc" needs them, the others do not look at them.
    row_weight : array (n_rows,), optional
        The factors u by row of the matrix; not with "query-level" and "rejection".
    query_weight : array (n_queries,), optional
        The factors c; not with "roc" and "rejection".
    keep : bool array (n_queries,), optional
        False for queries that take no part, such as those of a held-out fold.

    Examples
    --------
    >>> from linrank import _core
    >>> queries = Queries.of([0, 1, 0, 2], qid=["a", "a", "b", "b"])
    >>> sampler = pair_sampler(queries)
    >>> winners, losers = sampler.core.draw(_core.Random(0), 1000)
    >>> print(set(zip(winners.tolist(), losers.tolist())) == {(1, 0), (3, 2)})
    True
    """
    check_one_of("sampling", sampling, SAMPLINGS)
    u, c = row_weight, query_weight
    u = None if u is None else as_weights(u, queries.n_rows, "row_weight")
    c = None if c is None else as_weights(c, queries.n_queries, "query_weight")
    _check_weights(sampling, u, c)
    kept = None if keep is None else np.ascontiguousarray(keep)
    if sampling == "roc":
        return _roc(queries, labels, u, kept)
    if queries.n_pairs == 0 or (kept is not None and not queries.pairs_per_query[kept].any()):
        part = queries if kept is None else queries.select(np.flatnonzero(kept))
        raise NoPairsError(no_pairs_message(part))
    if kept is not None:
        c = np.where(kept, 1.0 if c is None else c, 0.0)
    pairs = Pairs(queries, _by_position(queries, u), c)
    if sampling == "rejection":
        return _rejection(pairs, kept)
    if sampling == "query-level":
        return _query_level(pairs)
    weighted = _normalize(pairs) if sampling == "query" else pairs
    return _by_level(weighted, sampling, _count(pairs))


def sampler_of(
    data: Dataset, sampling: str, query_weight: Array | None, keep: Array | None = None
) -> PairSampler:
    """The sampler of the pairs of a data set, with the weights of its rows."""
    given = {"labels": data.labels, "row_weight": data.weight}
    return pair_sampler(data.queries, sampling, **given, query_weight=query_weight, keep=keep)


# ---- the samplings ------------------------------------------------------------------------------


def _by_level(pairs: Pairs, sampling: str, n_pairs: int) -> PairSampler:
    """``P(i, j) ∝ c_q u_i u_j``: all that the weights of ``pairs`` can say."""
    total = pairs.total_weight()
    if not total > 0:
        raise NoPairsError(
            f"all {pairs.n_pairs} pairs have weight zero; check the weights of rows and queries"
        )
    queries = pairs.queries
    build = partial(_core.level_sampler, *queries.arrays, _c(pairs), pairs.row_weight)
    return PairSampler(build, sampling, pairs, total, n_pairs, total)


def _normalize(pairs: Pairs) -> Pairs:
    """Every query weighs c_q, whatever the number and weight of its pairs."""
    total = pairs.weight_by_query
    c = np.divide(_c(pairs), total, out=np.zeros_like(total), where=total > 0)
    return replace(pairs, query_weight=c)


def _query_level(pairs: Pairs) -> PairSampler:
    """``u_i = 1/n_i`` and ``c_q/Σc · 2/(k (k - 1))``: of two levels, each pair has ``1/(n n')``."""
    queries = pairs.queries
    usable = np.where(queries.n_levels > 1, _c(pairs), 0.0)
    if not usable.any():
        raise NoPairsError("every query of two levels has weight zero; check query_weight")
    k = queries.n_levels.astype(np.float64)
    c = np.divide(2.0 * usable / usable.sum(), k * (k - 1.0), out=np.zeros_like(k), where=k > 1)
    level = layer_numbers(queries)
    weighted = Pairs(queries, 1.0 / np.bincount(level)[level], c)  # 1/rows of the level
    build = partial(_core.query_level_sampler, *queries.arrays, usable)
    return PairSampler(build, "query-level", weighted, 1.0, _count(weighted), float(usable.sum()))


def _rejection(pairs: Pairs, kept: Array | None) -> PairSampler:
    queries, n_pairs = pairs.queries, _count(pairs)
    lengths = np.diff(queries.offsets)
    n_rows = int(lengths.sum() if kept is None else lengths[kept].sum())
    draws = n_rows * n_rows / (2 * n_pairs)
    if draws > _MOST_DRAWS:
        raise ValueError(
            f"sampling='rejection' would draw l²/2p = {draws:.3g} times for each of the "
            f"p = {n_pairs} pairs of {n_rows} rows, more than {_MOST_DRAWS:g}; use "
            "sampling='pairs', the same distribution at a fixed cost"
        )
    weight = None if kept is None else kept.astype(np.float64)
    build = partial(_core.rejection_sampler, *queries.arrays, weight)
    return PairSampler(build, "rejection", pairs, float(n_pairs), n_pairs, float(n_pairs))


def _roc(queries: Queries, labels: Any, u: Array | None, kept: Array | None) -> PairSampler:
    """All rows that take part as one query of two levels."""
    if labels is None:
        raise ValueError("sampling='roc' compares labels > 0 with the rest; pass labels, by row")
    positive = as_labels(labels, queries.n_rows) > 0
    rows = None
    if kept is not None:  # of the queries that take part, in the order of the matrix
        rows = np.flatnonzero(np.repeat(kept, np.diff(queries.offsets)))
        rows = rows if queries.order is None else np.sort(queries.order[rows])
    levels = (positive if rows is None else positive[rows]).astype(np.int32)
    n_positive, n_rows = int(levels.sum()), len(levels)
    if n_positive in (0, n_rows):
        raise NoPairsError(
            f"sampling='roc' compares labels > 0 with the rest, but {n_positive} of {n_rows} rows "
            "have a label > 0; check the labels"
        )
    pooled = Queries(np.array([0, n_rows]), rows, levels, np.array([2], dtype=np.int32))
    pairs = Pairs(pooled, _by_position(pooled, u))
    return _by_level(pairs, "roc", pairs.n_pairs)


# ---- weights and counts -------------------------------------------------------------------------


def _c(pairs: Pairs) -> Array:
    """The factors c, ones included."""
    c = pairs.query_weight
    return np.ones(pairs.queries.n_queries) if c is None else c


def _by_position(queries: Queries, u: Array | None) -> Array | None:
    return None if u is None else np.ascontiguousarray(queries.gather(u))


def _count(pairs: Pairs) -> int:
    """Pairs of the queries of positive weight, exact."""
    if pairs.query_weight is None:
        return pairs.n_pairs
    p = pairs.queries.pairs_per_query[pairs.query_weight > 0]
    return (int((p >> 32).sum()) << 32) + int((p & 0xFFFFFFFF).sum())


# ---- errors -------------------------------------------------------------------------------------


_UNWEIGHED = {  # why a sampling cannot honor the weights of rows or queries
    ("query-level", "rows"): "draws the rows of a level alike",
    ("rejection", "rows"): "draws the rows of a level alike",
    ("rejection", "queries"): "draws all pairs alike",
    ("roc", "queries"): "compares rows whatever their query",
}


def _check_weights(sampling: str, u: Array | None, c: Array | None) -> None:
    """Refuse weights that a sampling cannot honor."""
    for of, weights in (("rows", u), ("queries", c)):
        reason = _UNWEIGHED.get((sampling, of))
        if weights is not None and reason is not None:
            raise ValueError(
                f"sampling={sampling!r} {reason} and cannot weigh {of}; use sampling='pairs', or "
                f"leave the weights of {of} out"
            )


@dataclass(frozen=True)
class Draw:
    """How many pairs are drawn, from a stream other than that of the steps."""

    n_pairs: int
    salt: int

    def seed(self, seed: int) -> int:
        """The seed of this draw in a run of the given one."""
        return seed ^ self.salt


PLANNED = Draw(1024, 0x9E3779B9)  # for R²: an error of some per cent moves nothing
RECORDED = Draw(16_384, 0x5DEECE66D)  # for a sampled objective


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """Pair t is row ``winners[t]`` above row ``losers[t]``."""

    rows: Rows
    winners: Array
    losers: Array

    @classmethod
    def of(cls, rows: Rows, sampler: PairSampler, draw: Draw, seed: int) -> DrawnPairs:
        """The pairs of a draw in a run of this seed."""
        return cls(rows, *sampler.core.draw(_core.Random(draw.seed(seed)), draw.n_pairs))

    def mean_square(self) -> float:
        """``R²``: the mean of ``‖x_i - x_j‖²``."""
        with np.errstate(over="ignore"):  # infinite then, and the steps say so in their own words
            return float(_squares(self.rows, self.winners, self.losers).mean())


def _squares(rows: Rows, winners: Array, losers: Array) -> Array:
    """``‖x_i - x_j‖²`` for each pair of rows."""
    if isinstance(rows, DenseRows):
        x = rows.values[winners].astype(np.float64) - rows.values[losers]
        return np.asarray((x * x).sum(axis=1))
    both = rows.take(np.concatenate([winners, losers]))
    n, sizes = len(winners), np.diff(both.offsets)
    cells = np.repeat(np.tile(np.arange(n), 2), sizes) * rows.n_columns + both.columns
    values = both.values * np.repeat([1.0, -1.0], [sizes[:n].sum(), sizes[n:].sum()])
    cell, place = np.unique(cells, return_inverse=True)  # one for each pair and column
    difference = np.bincount(place, weights=values, minlength=len(cell))
    return np.bincount(cell // rows.n_columns, difference * difference, minlength=n)
