"""The definitions: each loss and metric straight from its formula, in O(n²) or worse.

Nothing in the library calls these; the tests compare the fast kernels with them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# ---- losses -----------------------------------------------------------------------------------


def pairs(offsets: Array, levels: Array, adjacent: bool = False) -> list[tuple[int, int, int]]:
    """(q, i, j) for every pair of positions of query q with ``level_i > level_j``."""
    return [
        (q, i, j)
        for q in range(len(offsets) - 1)
        for i in range(offsets[q], offsets[q + 1])
        for j in range(offsets[q], offsets[q + 1])
        if levels[i] > levels[j] and (not adjacent or levels[i] == levels[j] + 1)
    ]


def slope_and_value(loss: str, slack: float, epsilon: float) -> tuple[float, float, float]:
    """``l(ξ)``, ``l'(ξ)``, ``l''(ξ)`` of a violated pair."""
    if loss == "squared_hinge":
        return slack**2, 2.0 * slack, 2.0
    if loss == "hinge":
        return slack, 1.0, 0.0
    if slack <= epsilon:
        return slack**2 / (2.0 * epsilon), slack / epsilon, 1.0 / epsilon
    return slack - epsilon / 2.0, 1.0, 0.0


def listed_loss(
    z: Array,
    preferences: Iterable[tuple[int, int, float]],
    *,
    loss: str = "squared_hinge",
    epsilon: float = 1.0,
) -> dict[str, Any]:
    """``L(z) = Σ ω_ij l(1 - z_i + z_j)`` over (i, j, ω), its derivatives and sums of slacks."""
    n = len(z)
    out = {"value": 0.0, "sum_of_slacks": 0.0, "n_violations": 0.0, "total_curvature": 0.0}
    gradient, hessian = np.zeros(n), np.zeros((n, n))
    for i, j, weight in preferences:
        slack = (1.0 - z[i]) + z[j]
        if slack <= 0:
            continue
        value, slope, curve = slope_and_value(loss, slack, epsilon)
        out["value"] += weight * value
        out["sum_of_slacks"] += weight * slack
        out["n_violations"] += weight
        out["total_curvature"] += weight * curve
        e = np.zeros(n)
        e[i], e[j] = 1.0, -1.0
        gradient -= weight * slope * e
        hessian += weight * curve * np.outer(e, e)
    return {**out, "gradient": gradient, "hessian": hessian}


def domination_loss(
    z: Array,
    offsets: Array,
    levels: Array,
    *,
    s: Array | None = None,
    u: Array | None = None,
    c: Array | None = None,
    margin: Callable[[int, int], float] = lambda i, j: 0.0,
) -> dict[str, Any]:
    """``L(z) = Σ_q c_q Σ_i u_i log(1 + Σ_j u_j exp(m_j - m_i + Δ(i, j)))`` and its derivatives.

    j runs over the positions of i's query with ``level_j < level_i``; ``m = z - s`` and
    ``margin(i, j)`` is Δ. The Hessian is ``Σ_i c_q u_i (diag(p_i) - p_i p_iᵀ)``, with p_i the
    softmax over i and those j.
    """
    n = len(z)
    m, u = z - (0.0 if s is None else s), np.ones(n) if u is None else u
    value, gradient, hessian = 0.0, np.zeros(n), np.zeros((n, n))
    for q in range(len(offsets) - 1):
        rows = range(offsets[q], offsets[q + 1])
        for i in rows:
            below = [j for j in rows if levels[j] < levels[i] and u[j] > 0]
            if not below:
                continue
            weight = u[i] * (1.0 if c is None else c[q])
            terms = [0.0, *(math.log(u[j]) + m[j] - m[i] + margin(i, j) for j in below)]
            largest = max(terms)
            log_sum = largest + math.log(sum(math.exp(t - largest) for t in terms))
            p = np.zeros(n)
            p[[i, *below]] = np.exp(np.array(terms) - log_sum)
            value += weight * log_sum
            hessian += weight * (np.diag(p) - np.outer(p, p))
            p[i] -= 1.0
            gradient += weight * p
    return {"value": value, "gradient": gradient, "hessian": hessian}


# ---- metrics ----------------------------------------------------------------------------------
# `ranked` are the labels of one query from rank 1 down; k = None is the whole list.


def orders(y: Array, s: Array, ties: str, docid: Array | None = None) -> Iterator[list[int]]:
    """Yield the orders of the rows that a tie rule allows: one, or under "average" all of them."""
    rows = range(len(y))
    if ties == "average":
        groups = [[i for i in rows if s[i] == v] for v in sorted(set(s.tolist()), reverse=True)]
        for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
            yield [i for part in parts for i in part]
        return
    ids = np.arange(len(y)) if docid is None else docid
    second: dict[str, Callable[[int], Any]] = {
        "stable": lambda i: 0,
        "pessimistic": lambda i: y[i],
        "docid": lambda i: -int(ids[i]),
    }
    yield sorted(rows, key=lambda i: (-s[i], second[ties](i), i))


def expected(
    measure: Callable[[Array], float], y: Array, s: Array, ties: str, docid: Array | None = None
) -> float:
    """Return the mean of ``measure(ranked)`` over the orders that the tie rule allows."""
    return float(np.mean([measure(y[order]) for order in orders(y, s, ties, docid)]))


def discount(i: int, kind: str) -> float:
    """Return 1/log2(i+1) ("standard") or 1/log2(max(2, i)) ("letor") for rank i = 1, 2, ..."""
    return 1.0 / math.log2(max(2, i) if kind == "letor" else i + 1)


def dcg(ranked: Sequence[float], k: int | None, gain: str, kind: str) -> float:
    """Return ``Σ_{i<=k} gain(y_i) · discount(i)``."""
    gains = [2.0**y - 1.0 if gain == "exponential" else y for y in ranked]
    return sum(g * discount(i, kind) for i, g in enumerate(gains[:k], start=1))


def ndcg(
    ranked: Sequence[float], k: int | None = None, gain: str = "exponential", kind: str = "standard"
) -> float:
    """Return ``DCG@k / IDCG@k``; NaN if no gain is positive."""
    best = dcg(sorted(ranked, reverse=True), k, gain, kind)
    return dcg(ranked, k, gain, kind) / best if best > 0 else math.nan


def mean_ndcg(ranked: Sequence[float], gain: str = "exponential", kind: str = "standard") -> float:
    """Return ``(1/l) Σ_{m=1..l} NDCG@m``."""
    return sum(ndcg(ranked, m, gain, kind) for m in range(1, len(ranked) + 1)) / len(ranked)


def average_precision(ranked: Sequence[float], k: int | None = None, rel: float = 1.0) -> float:
    """Return ``(1/#rel) Σ_{i<=k: rel} (#rel in the first i)/i``; NaN if no row is relevant."""
    hits = [y >= rel for y in ranked]
    terms = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits[:k])) if hits[i]]
    return sum(terms) / sum(hits) if any(hits) else math.nan


def precision(ranked: Sequence[float], k: int, rel: float = 1.0) -> float:
    """Return ``(#rel in the first k) / k``, also for fewer than k rows."""
    return sum(y >= rel for y in ranked[:k]) / k


def recall(ranked: Sequence[float], k: int, rel: float = 1.0) -> float:
    """Return ``(#rel in the first k) / #rel``; NaN if no row is relevant."""
    n_relevant = sum(y >= rel for y in ranked)
    return sum(y >= rel for y in ranked[:k]) / n_relevant if n_relevant else math.nan


def reciprocal_rank(ranked: Sequence[float], k: int | None = None, rel: float = 1.0) -> float:
    """Return ``1 / rank of the first relevant row``, 0 if none is among the first k."""
    return float(next((1.0 / i for i, y in enumerate(ranked[:k], start=1) if y >= rel), 0.0))


def success(ranked: Sequence[float], k: int, rel: float = 1.0) -> float:
    """Return 1 if a relevant row is among the first k, else 0."""
    return float(any(y >= rel for y in ranked[:k]))


def rank_biased_precision(
    ranked: Sequence[float], k: int | None = None, p: float = 0.8, rel: float = 1.0
) -> float:
    """Return ``(1 - p) Σ_{i<=k: rel} p^(i-1)``."""
    return (1.0 - p) * sum(p**i for i, y in enumerate(ranked[:k]) if y >= rel)


def err(ranked: Sequence[float], y_max: float, k: int | None = None) -> float:
    """Return ``Σ_{i<=k} (1/i) R_i Π_{t<i} (1 - R_t)`` with ``R = (2^y - 1)/2^y_max``."""
    stop = [(2.0**y - 1.0) / 2.0**y_max for y in ranked[:k]]
    terms = (r * math.prod(1.0 - t for t in stop[:i]) / (i + 1) for i, r in enumerate(stop))
    return float(sum(terms))


def pair_counts(y: Array, s: Array) -> tuple[int, int, int]:
    """Return how many pairs ``y_i > y_j`` are concordant, discordant and tied in ``s``."""
    above = y[:, None] > y[None, :]
    difference = np.where(s[:, None] > s[None, :], 1, np.where(s[:, None] < s[None, :], -1, 0))
    c, d, t = (int(np.sum(above & (difference == sign))) for sign in (1, -1, 0))
    return c, d, t


def kendall_tau(y: Array, s: Array) -> float:
    """Return ``τ_b = (c - d)/√(p p_s)``; NaN if all labels or all scores are equal."""
    c, d, t = pair_counts(y, s)
    by_score = sum(pair_counts(s, y))
    return (c - d) / math.sqrt((c + d + t) * by_score) if (c + d + t) * by_score else math.nan


def goodman_kruskal_gamma(y: Array, s: Array) -> float:
    """Return ``(c - d)/(c + d)``; NaN if no pair differs in both."""
    c, d, _ = pair_counts(y, s)
    return (c - d) / (c + d) if c + d else math.nan


def somers_d(y: Array, s: Array) -> float:
    """Return ``(c - d)/(c + d + t)``; NaN if all labels are equal."""
    c, d, t = pair_counts(y, s)
    return (c - d) / (c + d + t) if c + d + t else math.nan


def auc(y: Array, s: Array, rel: float = 1.0) -> float:
    """Return the share of pairs (relevant, other) in the right order, ties ½; NaN if none."""
    c, d, t = pair_counts((y >= rel).astype(float), s)
    return (c + 0.5 * t) / (c + d + t) if c + d + t else math.nan


def domination_counts(y: Array, s: Array) -> tuple[int, int, int]:
    """How many rows i have a ``D(i) = {j: y_j < y_i}``; ``max_{D(i)} s_j > s_i``; ``= s_i``."""
    highest = [
        max((s[j] for j in range(len(y)) if y[j] < y[i]), default=None) for i in range(len(y))
    ]
    judged = [(top, s[i]) for i, top in enumerate(highest) if top is not None]
    return (
        len(judged),
        sum(top > own for top, own in judged),
        sum(top == own for top, own in judged),
    )


def dominated_counts(y: Array, s: Array) -> tuple[int, int, int]:
    """How many rows j have an i with ``y_i > y_j``; ``min_i s_i < s_j`` over these; ``= s_j``."""
    lowest = [
        min((s[i] for i in range(len(y)) if y[i] > y[j]), default=None) for j in range(len(y))
    ]
    judged = [(low, s[j]) for j, low in enumerate(lowest) if low is not None]
    return (
        len(judged),
        sum(low < own for low, own in judged),
        sum(low == own for low, own in judged),
    )
