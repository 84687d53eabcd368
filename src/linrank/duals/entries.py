"""Dual variables of single pairs, and of the cells of a query's matrix.

Those of the hinge are not told by its margins alone. At the optimum ``α = Cω`` where the margin is
below 1 and 0 where it is above; the pairs whose margin *is* 1, about one per feature, have
fractions. They are found in two ways, the second better: the Huber point ``α = Cω clip(ξ/ε, 0, 1)``
with the ε of the largest dual value, and the maximum of the dual over the α of a band of pairs
around the kink, all others staying at their end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linrank.data import Array
from linrank.data.preferences import Preferences
from linrank.objective import RiskPoint, SumPoint
from linrank.pairs import Cells as PairCells
from linrank.pairs import Pairs, distinct, weigh_as
from linrank.ranksvm.train import Problem, plan
from linrank.solvers.newton import newton
from linrank.solvers.result import duality_gap, lower_bound
from linrank.system.resources import check_fits

_ARRAYS = 4  # of 8 bytes per cell that are alive while a block is made and decomposed


@dataclass(frozen=True, eq=False)
class Cells:
    """The rectangle of one query: rows above its lowest level × rows below its highest level.

    All pairs (i above j) lie in it, and with two levels they fill it. Both sides are sorted by
    ascending level, so that the pairs of a row are a prefix of its columns (or, of
    ``pairs="adjacent"``, a range of them): the layout of `linrank.lowrank.rectangles`, one query at
    a time and for any choice and weighting of pairs.

    Attributes
    ----------
    query : int
        Number of the query.
    top, bottom : int64 arrays (m,) and (n,)
        Positions of the rows of the rectangle, and of its columns.
    is_pair : bool array (m, n)
        Which cells are pairs.
    weight : float64 array (m, n)
        ω of the pairs, 0 elsewhere.
    """

    query: int
    top: Array
    bottom: Array
    is_pair: Array
    weight: Array

    @classmethod
    def of(cls, pairs: Pairs, query: int) -> Cells:
        """The rectangle of query number ``query``, refused if it does not fit the memory."""
        queries = pairs.queries
        begin, end = int(queries.offsets[query]), int(queries.offsets[query + 1])
        level = queries.levels[begin:end]
        ascending = begin + np.argsort(level, kind="stable")
        highest = int(queries.n_levels[query]) - 1
        top = ascending[queries.levels[ascending] > 0]
        bottom = ascending[queries.levels[ascending] < highest]
        what = f"the dual matrix of a query of {end - begin} rows, {len(top)} × {len(bottom)},"
        check_fits(_ARRAYS * 8 * len(top) * len(bottom), what, "analyze a sample of its rows")
        above = np.subtract.outer(queries.levels[top], queries.levels[bottom])
        is_pair = above == 1 if pairs.adjacent else above > 0
        weight = is_pair * 1.0  # ω_ij = c_q u_i u_j (g_i - g_j)
        if pairs.query_weight is not None:
            weight *= pairs.query_weight[query]
        if pairs.row_weight is not None:
            weight *= np.multiply.outer(pairs.row_weight[top], pairs.row_weight[bottom])
        if pairs.gain is not None:
            weight *= np.subtract.outer(pairs.gain[top], pairs.gain[bottom])
        return cls(query, top, bottom, is_pair, weight)


Entries = Callable[[Cells], Array]  # α by cell, 0 where there is no pair
_CHUNK = 1 << 20  # pairs that are looked at together


def chunks(pairs: Pairs, size: int = _CHUNK, n_sampled: int | None = None) -> Iterator[Preferences]:
    """All pairs and their weights ω, ``size`` at a time: by query, by level of the winner.

    Or ``n_sampled`` of them, random ones, but the same every time.
    """
    cells = PairCells.of(pairs.queries)
    blocks = cells.at(1) if pairs.adjacent else cells.beyond(0)
    begins = range(0, blocks.n_pairs, size)
    parts: Iterable[Array] = (np.arange(k, min(k + size, blocks.n_pairs)) for k in begins)
    if n_sampled is not None:
        parts = [distinct(blocks.n_pairs, n_sampled, np.random.default_rng(0))]
    for numbers in parts:
        winners, losers = blocks.pairs(numbers)
        listed = Preferences(cells.rows[winners], cells.rows[losers])
        yield weigh_as(pairs, listed)


@dataclass(frozen=True, eq=False)
class PairEntries:
    """``α = Cω f(ξ)``, a function of the slack ``ξ_ij = 1 - z_i + z_j`` of each pair.

    Attributes
    ----------
    z : float64 array (n_rows,)
        Scores by position.
    C : float
    share : callable
        f.
    exceptions : (int64 array, float64 array) or None
        Pairs with an α of their own: their numbers ``i n + j``, ascending, and α.
    """

    z: Array
    C: float
    share: Callable[[Array], Array]
    exceptions: tuple[Array, Array] | None = None

    @classmethod
    def of_squared_hinge(cls, z: Array, C: float) -> PairEntries:
        """``α = 2Cω max(0, ξ)``, the slope of the squared hinge."""
        return cls(z, C, lambda slack: 2.0 * np.maximum(slack, 0.0))

    @classmethod
    def of_huber(cls, z: Array, C: float, epsilon: float, length: float = 1.0) -> PairEntries:
        """``α = t Cω clip(ξ/ε, 0, 1)`` with the length t, feasible in the dual of the hinge."""
        return cls(z, C, lambda slack: length * np.clip(slack / epsilon, 0.0, 1.0))

    @classmethod
    def of_hinge(cls, z: Array, C: float, winner: Array, loser: Array, alpha: Array) -> PairEntries:
        """``α = Cω`` where ``ξ > 0`` and 0 elsewhere, but for some pairs around 0, at least one."""
        number = winner * len(z) + loser
        order = np.argsort(number)
        return cls(z, C, lambda slack: (slack > 0.0) * 1.0, (number[order], alpha[order]))

    def __call__(self, cells: Cells) -> Array:
        return self.of_pairs(cells.top[:, np.newaxis], cells.bottom, cells.weight)

    def of_pairs(self, i: Array, j: Array, weight: Array) -> Array:
        """α of positions i above j, which broadcast, with their weights ω."""
        alpha: Array = self.share((1.0 - self.z[i]) + self.z[j])
        alpha *= self.C * weight
        if self.exceptions is not None:
            known, own = self.exceptions
            number = i * len(self.z) + j
            place = np.minimum(np.searchsorted(known, number), len(known) - 1)
            alpha = np.where(known[place] == number, own[place], alpha)
        return alpha


# ---- the hinge ----------------------------------------------------------------------------------


_STEPS = 100
_SNAP = 1e-6  # of its bound: a dual variable that is as near to it is put on it


def list_band(
    pairs: Pairs, z: Array, width: float, limit: int
) -> tuple[Array, Array, Array] | None:
    """Winners, losers and weights of the pairs with ``ω > 0`` and ``|ξ| <= width``, by position.

    None if there are none, or more than ``limit``.
    """
    queries, found, n_found = pairs.queries, [], 0
    position = queries.scatter(np.arange(queries.n_rows))
    for part in chunks(pairs):
        i, j = position[part.winners], position[part.losers]
        weight = np.ones(len(part)) if part.weight is None else part.weight
        is_near = (np.abs((1.0 - z[i]) + z[j]) <= width) & (weight > 0.0)
        found.append((i[is_near], j[is_near], weight[is_near]))
        n_found += int(is_near.sum())
        if n_found > limit:
            return None
    if not n_found:
        return None
    winners, losers, weights = (np.concatenate(side) for side in zip(*found, strict=True))
    return winners, losers, weights


def maximize_in_box(D: Array, offset: Array, upper: Array, tol: float) -> Array:
    """The α that maximizes ``e'α - ½‖b + D'α‖²`` over ``0 <= α <= upper``, to an error of ``tol``.

    A primal-dual interior-point method. With ``w = b + D'α`` and multipliers l, h of the bounds,
    the optimum has ``Dw - e - l + h = 0``, ``l α = 0`` and ``h (upper - α) = 0``; on the way both
    products are μ, and ``l·α + h·(upper - α)`` bounds the error. A Newton step solves
    ``(DD' + S) s = r`` with ``S = l/α + h/(upper - α)``: a system of the size of w or of α,
    whichever is smaller. Variables that end up at a bound but for 1e-6 of it are put there.
    """
    alpha = 0.5 * upper
    room = upper - alpha
    excess = D @ (offset + D.T @ alpha) - 1.0
    scale = float(np.abs(excess).mean()) + 1e-12
    low, high = np.maximum(excess, 0.0) + scale, np.maximum(-excess, 0.0) + scale
    gram = D @ D.T if len(D) < D.shape[1] else None

    def value(alpha: Array, w: Array) -> float:
        return float(alpha.sum() - 0.5 * w @ w)

    best, largest = alpha, -np.inf
    for _ in range(_STEPS):
        w = offset + D.T @ alpha
        # Where S is tiny its steps are rounding in the end: they are not all kept.
        if value(alpha, w) > largest:
            best, largest = alpha, value(alpha, w)
        apart, excess = float(low @ alpha + high @ room), D @ w - 1.0
        off = float(np.abs(excess - low + high) @ upper)  # 0 but for rounding, in the end
        if apart + off <= tol or apart <= 1e-3 * tol:
            break
        mu = 0.1 * apart / (2 * len(alpha))
        s = _newton_step(D, gram, low / alpha + high / room, mu / alpha - mu / room - excess)
        if not np.isfinite(s).all():  # S has left the range of doubles: nothing more to be had
            break
        d_low, d_high = mu / alpha - low - low / alpha * s, mu / room - high + high / room * s
        t = _longest(((alpha, s), (room, -s), (low, d_low), (high, d_high)))
        alpha, room = alpha + t * s, room - t * s
        low, high = low + t * d_low, high + t * d_high
    best = np.clip(best, 0.0, upper)
    ends = np.where(best <= _SNAP * upper, 0.0, best)
    ends = np.where(ends >= (1.0 - _SNAP) * upper, upper, ends)
    loss = value(best, offset + D.T @ best) - value(ends, offset + D.T @ ends)
    return ends if loss <= tol else best


def _newton_step(D: Array, gram: Array | None, S: Array, r: Array) -> Array:
    """s with ``(DD' + S) s = r``; NaN where the system is singular in doubles."""
    try:
        if gram is not None:
            return np.linalg.solve(gram + np.diag(S), r)
        # With d = D's: s = (r - D d)/S, so that (I + D'S⁻¹D) d = D'S⁻¹r.
        inner = np.eye(D.shape[1]) + D.T @ (D / S[:, np.newaxis])
        return np.asarray((r - D @ np.linalg.solve(inner, D.T @ (r / S))) / S)
    except np.linalg.LinAlgError:
        return np.full_like(S, np.nan)


def _longest(moves: tuple[tuple[Array, Array], ...]) -> float:
    """The step, at most 1, that keeps all variables positive."""
    falling = [-x[dx < 0] / dx[dx < 0] for x, dx in moves]
    return min(1.0, 0.995 * float(np.min(np.concatenate(falling), initial=np.inf)))


_WIDTHS = np.logspace(0.0, -7.0, 15)  # ε that are tried, before those between them
_NEAR = 1e-6  # gap from which bands are listed: from there a thousand pairs do
_INNER = 1e-14  # error of the dual over a band, relative to F: what rounding leaves
_ROUNDS = 12
_WIDENING = 64  # of the band, at most
_HALVINGS = 12
_LISTED = 1 << 25  # numbers that the differences of a band may take: 256 MiB
_FEWEST = 1000  # pairs of the first band, or
_PER_FEATURE = 20  # so many a feature


class _Found(NamedTuple):
    """A feasible α by its entries, its dual value and ``β = Σ α_ij (x_i - x_j)``."""

    value: float
    entries: Entries
    beta: Array


def hinge_entries(problem: Problem, w: Array, tol: float) -> Entries:
    """The α of the hinge, with ``F* - D(α) <= tol·F`` if that can be had.

    Newton's method goes from ``w`` to within 1e-6 of the optimum. A round then lists the pairs of a
    band around the kink, maximizes the dual over their α, and goes on from the weights that this α
    makes, or from a point on the way there where F is lower, else with a wider band. It ends when
    the least F and the largest D so far prove enough. Bands that do not fit 256 MiB are not listed;
    the best α so far is then what there is.
    """
    near = max(tol, _NEAR)
    w0, preconditioner = plan(problem, w)
    sharpen = problem.sharpening(near)
    result = newton(
        problem.objective(), w0, preconditioner=preconditioner, tol=near, sharpen=sharpen
    )
    point = problem.objective().at(result.w)
    best = _best_huber(problem, point)
    primal, size = point.primal, max(_FEWEST, _PER_FEATURE * len(w))
    largest = _WIDENING * size
    for _ in range(_ROUNDS):
        if primal - best.value <= tol * primal or size > largest:
            break
        found = _maximize_over_band(problem, point, size, _INNER * primal)
        if found is None:
            break
        if found.value > best.value + _INNER * primal:
            best = found
        moved = _lower_point(problem, point, found.beta)
        if moved is None:
            size *= 4
        else:
            point = moved
            primal = min(primal, point.primal)
    return best.entries


def _best_huber(problem: Problem, point: Any) -> _Found:
    """The Huber point of the ε that gives the largest dual value at the w of ``point``."""

    def at(epsilon: float) -> Any:
        return problem.objective(float(epsilon)).resume(point)

    k = int(np.argmin([duality_gap(at(epsilon)) for epsilon in _WIDTHS]))
    low, high = (float(_WIDTHS[min(max(m, 0), len(_WIDTHS) - 1)]) for m in (k + 1, k - 1))
    between = np.geomspace(low, high, 9)
    epsilon = float(min(between, key=lambda one: duality_gap(at(one))))
    best = at(epsilon)
    u = best.w - best.gradient
    square, dual = float(u @ u), best.dual
    t = min(1.0, max(0.0, dual.linear / square)) if square > 0.0 else 1.0
    entries = PairEntries.of_huber(best.parts[1].z, problem.C, epsilon, t)
    return _Found(lower_bound(best), entries, t * u)


def _maximize_over_band(problem: Problem, point: Any, size: int, tol: float) -> _Found | None:
    """The largest dual value over the α of about ``size`` pairs around the kink at ``point``.

    The pairs beyond the band are never listed: their part of β and of e'α is that of the Huber
    point with the band's δ as its ε, less what that has inside the band.
    """
    pairs = problem.pairs
    if not isinstance(pairs, Pairs):
        return None
    limit = min(8 * size, _LISTED // len(point.w))
    width = _width_of(problem, point, min(size, limit))
    z = _on_grid(point.parts[1].z, int(np.diff(pairs.queries.offsets).max()))
    band = list_band(pairs, z, width, limit)
    if band is None:
        return None
    winner, loser, weight = band
    moved = RiskPoint(point.parts[1].risk, point.w, z)
    huber = problem.objective(width).resume(SumPoint(point.w, [point.parts[0], moved]))
    upper = problem.C * weight
    inside = upper * np.clip((1.0 - z[winner] + z[loser]) / width, 0.0, 1.0)
    D = _differences(problem, winner, loser)
    offset = point.w - huber.gradient - D.T @ inside
    alpha = maximize_in_box(D, offset, upper, tol)
    beta = offset + D.T @ alpha
    value = huber.dual.linear - float(inside.sum()) + float(alpha.sum()) - 0.5 * float(beta @ beta)
    entries = PairEntries.of_hinge(z, problem.C, winner, loser, alpha)
    return _Found(value, entries, beta)


def _on_grid(z: Array, n: int) -> Array:
    """The scores as the Huber point of queries of up to n rows takes them, so that both agree.

    That rounds them to multiples of a power of two, at most this one; see `core/pair_sweep.cpp`.
    """
    reach = 4.0 * n * (2.0 + float(np.ptp(z)))
    grid = 2.0 ** (math.ceil(math.log2(reach)) - 53)
    return np.asarray(np.round(z / grid) * grid)


def _width_of(problem: Problem, point: Any, size: int) -> float:
    """The δ, at least 1e-7, whose band ``|ξ| <= δ`` has about ``size`` pairs.

    Half of them have ``0 < ξ < δ``, and ``δ Σω l''`` of the Huberized hinge is their weight.
    """
    low, high = float(np.log(_WIDTHS[-1])), float(np.log(_WIDTHS[0]))
    for _ in range(12):
        middle = 0.5 * (low + high)
        width = float(np.exp(middle))
        part = problem.objective(width).resume(point).parts[1]
        n_inside = width * part.loss.total_curvature / part.risk.loss.mean_weight
        low, high = (low, middle) if 2.0 * n_inside > size else (middle, high)
    return float(np.exp(high if high == np.log(_WIDTHS[0]) else low))


def _differences(problem: Problem, winner: Array, loser: Array) -> Array:
    """``D (x_i - x_j)`` of pairs by position, a row each, in double."""
    positions, index = np.unique(np.concatenate([winner, loser]), return_inverse=True)
    order = problem.pairs.queries.order if problem.pairs is not None else None
    rows = problem.rows.take(positions if order is None else order[positions]).to_user()
    dense = np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)
    if problem.scale is not None:
        dense = dense * problem.scale
    winner, loser = np.split(index, 2)
    return np.asarray(dense[winner] - dense[loser])


def _lower_point(problem: Problem, point: Any, goal: Array) -> Any | None:
    """The first point from ``goal`` back to ``point``, by halves, with a lower F; None if none."""
    objective = problem.objective()
    tried = (objective.at(point.w + 0.5**k * (goal - point.w)) for k in range(_HALVINGS))
    return next((moved for moved in tried if moved.primal < point.primal), None)
