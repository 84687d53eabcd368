"""The pairs near the kink of the hinge, listed, and the best dual variables for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.duals.cells import pair_weight
from linrank.pairs import Pairs

__all__ = ["Band", "list_band", "maximise_in_box"]

Array = NDArray[Any]
_STEPS = 100
_SNAP = 1e-6  # of its bound: a dual variable that is as near to it is put on it


@dataclass(frozen=True, eq=False)
class Band:
    """Pairs with ``|ξ| <= δ`` and ``ω > 0``: positions, weights and slacks, query by query."""

    first: Array  # pairs of query q are first[q]:first[q + 1]
    winner: Array
    loser: Array
    weight: Array
    slack: Array

    def __len__(self) -> int:
        return len(self.winner)


def list_band(pairs: Pairs, z: Array, width: float, limit: int) -> Band | None:
    """The pairs with ``|1 - z_i + z_j| <= width``, or None if there are more than ``limit``.

    With the scores of a query sorted, the losers of row i are a range of them: no pair outside the
    band is listed, but those inside it that the labels do not make are listed and dropped.
    """
    found, first = [], [0]
    for q in range(pairs.queries.n_queries):
        i, j = _near(pairs, z, q, width, limit - first[-1])
        if i is None or j is None:
            return None
        weight = pair_weight(pairs, q, i, j)
        used = weight > 0.0
        found.append((i[used], j[used], weight[used]))
        first.append(first[-1] + int(used.sum()))
        if first[-1] > limit:
            return None
    i, j, weight = (np.concatenate([part[k] for part in found]) for k in range(3))
    return Band(np.array(first), i, j, weight, 1.0 - z[i] + z[j])


def _near(
    pairs: Pairs, z: Array, q: int, width: float, limit: int
) -> tuple[Array | None, Array | None]:
    """Positions of the winners and losers of one query's band; None if too many to look at."""
    queries = pairs.queries
    begin, end = int(queries.offsets[q]), int(queries.offsets[q + 1])
    level, scores = queries.levels[begin:end], z[begin:end]
    order = np.argsort(scores, kind="stable")
    ascending = scores[order]
    winners = np.flatnonzero(level > 0)
    # |1 - z_i + z_j| <= δ where z_j is between z_i - 1 - δ and z_i - 1 + δ.
    low = np.searchsorted(ascending, scores[winners] - 1.0 - width, side="left")
    high = np.searchsorted(ascending, scores[winners] - 1.0 + width, side="right")
    sizes = np.maximum(high - low, 0)
    n_listed = int(sizes.sum())
    if n_listed > 8 * max(limit, 0) + end - begin:
        return None, None
    i = np.repeat(winners, sizes)
    ends = np.cumsum(sizes)
    j = order[np.arange(n_listed) + np.repeat(low - (ends - sizes), sizes)]
    above = level[i] - level[j]
    kept = above == 1 if pairs.adjacent else above > 0
    return begin + i[kept], begin + j[kept]


def maximise_in_box(D: Array, offset: Array, upper: Array, tol: float) -> Array:
    """The α that maximises ``e'α - ½‖b + D'α‖²`` over ``0 <= α <= upper``, to an error of ``tol``.

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
    best, largest = alpha, -np.inf
    for _ in range(_STEPS):
        w = offset + D.T @ alpha
        value = float(alpha.sum() - 0.5 * w @ w)
        # Where S is tiny its steps are rounding in the end: they are not all kept.
        best, largest = (alpha, value) if value > largest else (best, largest)
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
    return _snapped(np.clip(best, 0.0, upper), D, offset, upper, tol)


def _newton_step(D: Array, gram: Array | None, S: Array, r: Array) -> Array:
    """s with ``(DD' + S) s = r``; NaN where the system is singular in doubles."""
    try:
        if gram is not None:
            return np.linalg.solve(gram + np.diag(S), r)
        # With d = D's: s = (r - D d)/S, so that (I + D'S⁻¹D) d = D'S⁻¹r.
        inner = np.eye(D.shape[1]) + D.T @ (D / S[:, np.newaxis])
        s: Array = (r - D @ np.linalg.solve(inner, D.T @ (r / S))) / S
    except np.linalg.LinAlgError:
        s = np.full_like(S, np.nan)
    return s


def _longest(moves: tuple[tuple[Array, Array], ...]) -> float:
    """The step, at most 1, that keeps all variables positive."""
    t = 1.0
    for x, dx in moves:
        falls = dx < 0
        if falls.any():
            t = min(t, 0.995 * float(np.min(-x[falls] / dx[falls])))
    return t


def _snapped(alpha: Array, D: Array, offset: Array, upper: Array, tol: float) -> Array:
    """α with its ends exact, unless that costs more than ``tol``."""
    ends = np.where(alpha <= _SNAP * upper, 0.0, alpha)
    ends = np.where(ends >= (1.0 - _SNAP) * upper, upper, ends)

    def value(a: Array) -> float:
        w = offset + D.T @ a
        return float(a.sum() - 0.5 * w @ w)

    return ends if value(ends) >= value(alpha) - tol else alpha
