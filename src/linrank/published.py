"""The methods of the literature, apart from the production path: for comparison and teaching.

Each way of counting the violated pairs is a short part of ``core/published`` behind one interface;
all give the same sums. One thread, double precision, rows in CSR. `tron` is Lee and Lin's solver,
`factorize_by_pairs` the dual of low rank by its pairs, on any rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from linrank import _core
from linrank._core import dot
from linrank.choices import COUNTED, SELECTED_PAIRS
from linrank.choices import COUNTINGS as COUNTINGS  # a public name here
from linrank.data import Array, CsrRows, Dataset, Rows, as_sparse
from linrank.errors import check_natural, check_one_of, check_positive
from linrank.losses.base import Errors, HingeKind, PairLoss, SquaredHingeKind
from linrank.objective import Sum
from linrank.pairs import Pairs, choose_pairs
from linrank.solvers.result import Callback, History, Recorder, Result
from linrank.system.resources import cached_property, check_fits


def __getattr__(name: str) -> Any:
    if name != "PublishedRankSVM":
        raise AttributeError(f"module 'linrank.published' has no attribute {name!r}")
    from importlib import import_module  # the estimator stands above all that it uses

    return import_module("linrank.estimators.ranksvm").PublishedRankSVM


# ---- ways of counting violated pairs -------------------------------------------------------------


class PublishedLoss(SquaredHingeKind, PairLoss):
    """``l(ξ) = max(0, ξ)²`` over all pairs as published: one thread, double, no gains."""

    def __init__(self, pairs: Pairs) -> None:
        if pairs.gain is not None or pairs.adjacent:
            what = "adjacent levels" if pairs.adjacent else "pairs weighted by gains"
            raise ValueError(
                f"the published methods count all pairs alike and do not know {what}; "
                "use solver='newton'"
            )
        super().__init__(pairs)

    def curvature(self, point: Any, v: Array) -> Array:
        return point.multiply(v)

    def errors(self, point: Any, z: Array | None) -> Errors:
        """From above, whatever way of counting: sums of at most n terms, of scores about the mean.

        The formulas are those of `core/pair_sweep.cpp`, all pairs taken for violated ones.
        """
        assert z is not None  # published points do not travel without
        pairs, starts = self.pairs, self.queries.offsets[:-1]
        lengths = np.diff(self.queries.offsets)
        u = np.ones(len(z)) if pairs.row_weight is None else pairs.row_weight
        c = np.ones(len(starts)) if pairs.query_weight is None else pairs.query_weight
        s = np.abs(z - np.repeat(np.add.reduceat(z, starts) / lengths, lengths))
        weight, scores = np.add.reduceat(u, starts), np.add.reduceat(u * s, starts)
        size = 1.0 + np.maximum.reduceat(s, starts)
        unit = 2.0**-53 * 20.0 * (lengths + 2.0) * c
        slope = unit * np.maximum.reduceat(u, starts) * (scores + weight * size)
        reach = weight + scores
        value = float((unit * reach * (scores + weight * size)).sum())
        slacks = float((unit * reach * weight).sum())
        primal = slacks if self.has_kink else value
        return Errors(value, primal, slacks, float(np.sqrt((lengths * slope * slope).sum())))


class Counted(PublishedLoss):
    """``l(ξ) = max(0, ξ)²`` over all pairs, by one of the ways of counting.

    Parameters
    ----------
    pairs : Pairs
        All pairs, ``ω_ij = c_q u_i u_j``; neither gains nor adjacent levels were published.
    counting : str
        One of `linrank.choices.COUNTINGS`.
    """

    def __init__(self, pairs: Pairs, counting: str = "selection-tree") -> None:
        super().__init__(pairs)
        check_one_of("counting", counting, COUNTINGS)
        self.counting = counting
        if counting == "prefix-table":
            # A table has (l_q + 1)(k_q + 1) numbers for the query in hand.
            lengths, n_levels = np.diff(self.queries.offsets), self.queries.n_levels
            sizes = (lengths + 1).astype(float) * (n_levels + 1.0)
            q = int(sizes.argmax())
            check_fits(
                int(8 * sizes[q]),
                "counting='prefix-table': the table of a query with "
                f"{lengths[q]} rows and {n_levels[q]} levels",
                "use counting='selection-tree'",
            )

    def at(self, z: Array, near: Any = None) -> Any:
        return _core.published_point(self.problem, z, self.counting)


class HingePoint(NamedTuple):
    """The hinge at one vector of scores: ``Σ ω max(0, ξ)`` and a sub-gradient in the scores."""

    value: float
    sum_of_slacks: float
    n_violations: float
    gradient: Array


class TreeHinge(HingeKind, Counted):
    """``l(ξ) = max(0, ξ)`` over all pairs: the oracle of TreeRankSVM, by default on its tree.

    The sub-gradient is ``∂/∂z_i = Σ ω_ji - Σ ω_ij`` over the violated pairs (j, i) and (i, j).

    Parameters
    ----------
    pairs : Pairs
        All pairs, ``ω_ij = c_q u_i u_j``.
    counting : str, default="red-black"
        One of `linrank.choices.COUNTINGS`.
    """

    def __init__(self, pairs: Pairs, counting: str = "red-black") -> None:
        super().__init__(pairs, counting)

    def at(self, z: Array, near: Any = None) -> HingePoint:
        point = super().at(z)
        slacks = point.sum_of_slacks
        return HingePoint(slacks, slacks, point.n_violations, point.hinge_gradient)

    def curvature(self, point: Any, v: Array) -> Array:
        """``0``: the hinge is piecewise linear."""
        return np.zeros_like(v)


_BYTES_PER_PAIR = 96  # of the list, which grows by doubling and is sorted; of slopes at two points


class ExplicitPairs(PublishedLoss):
    """``l(ξ) = max(0, ξ)²`` over a list of all p pairs: O(p) in memory and for each product.

    Parameters
    ----------
    pairs : Pairs
        All pairs, ``ω_ij = c_q u_i u_j``.

    Raises
    ------
    MemoryError
        Before anything is allocated, where the list does not fit.
    """

    def __init__(self, pairs: Pairs) -> None:
        super().__init__(pairs)
        n_pairs = pairs.queries.n_pairs
        check_fits(
            n_pairs * _BYTES_PER_PAIR,
            f"solver='prsvm': the list of {n_pairs} pairs",
            "use solver='prsvm+', 'tron' or 'newton', which never write it down",
        )

    @cached_property
    def list(self) -> _core.PreferenceList:
        """The pairs, by position."""
        return _core.explicit_pairs(self.problem)

    def at(self, z: Array, near: Any = None) -> _core.PreferencePoint:
        return _core.preference_point(self.list, "squared_hinge", 1.0, z, 1)


def published_loss(pairs: Any, loss: str, method: str, counting: str | None) -> PairLoss:
    """``Σ ω l(ξ)`` as the method counts it, by one thread.

    Parameters
    ----------
    pairs : Pairs
        All pairs, without gains.
    loss : {"squared_hinge", "hinge"}
        The hinge is for cutting planes only: ``"bundle"`` with a tree is TreeRankSVM.
    method : {"tron", "bundle", "prsvm", "prsvm+"}
        ``"prsvm"`` lists the pairs, ``"prsvm+"`` counts by two pointers for each level.
    counting : str, optional
        How the others count: one of `linrank.choices.COUNTINGS`, the first if None.

    Returns
    -------
    PairLoss
        ``at(z)`` gives value, gradient and products at the scores z.

    Examples
    --------
    Two rows of one query whose scores are equal: the one pair has the loss 1.

    >>> from linrank import Dataset
    >>> from linrank.pairs import Pairs
    >>> pairs = Pairs(Dataset.of(np.eye(2), [1, 0]).queries)
    >>> float(published_loss(pairs, "squared_hinge", "tron", "avl").at(np.zeros(2)).value)
    1.0
    """
    if method == "prsvm":
        return ExplicitPairs(pairs)
    way = "two-pointers" if method == "prsvm+" else counting or COUNTINGS[0]
    return (TreeHinge if loss == "hinge" else Counted)(pairs, way)


def check_counting(solver: str, counting: str, pairs: str | None) -> None:
    """Raise ValueError where ``counting`` is given to a solver, or for pairs, that it is not of."""
    if solver not in COUNTED:
        names = " or ".join(repr(name) for name in COUNTED)
        raise ValueError(
            f"counting={counting!r} needs solver={names}, got solver={solver!r}; "
            "the other solvers have their own way of counting"
        )
    if pairs in SELECTED_PAIRS:
        raise ValueError(
            f"counting={counting!r} is a published way to count all pairs, not those of "
            f"pairs={pairs!r}; leave counting out"
        )


def sparse_doubles(rows: Rows) -> CsrRows:
    """The rows as published: sparse, in double."""
    csr = as_sparse(rows)
    return replace(csr, values=csr.values.astype(np.float64, copy=False))


# ---- the trust-region Newton method of Lee and Lin -----------------------------------------------

# Acceptance and radius constants of the LIBLINEAR family, inside the ranges of Lee & Lin's (37).
_ETA = (1e-4, 0.25, 0.75)
_SIGMA = (0.25, 0.5, 4.0)
_ROUNDING = 1e-12


def tron(
    objective: Sum,
    w0: Array,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    callback: Callback | None = None,
    started: float | None = None,
) -> Result:
    """Minimize by a trust-region Newton method; stop when ``‖∇F(w)‖ <= tol·‖∇F(0)‖``."""
    recorder = Recorder(callback, started)
    point = objective.at(w0)
    origin = point if not w0.any() else objective.at(np.zeros_like(w0))
    goal = tol * _norm(origin.gradient)
    radius, n_hvp = _norm(point.gradient), 0
    if recorder.record(point, step=0.0, n_hvp=0):
        return recorder.result(point, "callback", "stopped by the callback")
    while _norm(point.gradient) > goal:
        if recorder.n_iter >= max_iter:
            message = f"‖∇F‖ is above tol·‖∇F(0)‖ = {goal:.3g} after max_iter={max_iter} iterations"
            return recorder.result(point, "max_iter", message + "; raise max_iter or tol")
        s, r, products = _steihaug(point, radius)
        n_hvp += products
        slope = dot(point.gradient, s)
        predicted = -0.5 * (slope - dot(s, r))
        trial = objective.at(point.w + s)
        actual = point.value - trial.value
        if recorder.n_iter == 0:
            radius = min(radius, _norm(s))
        radius = _new_radius(radius, _norm(s), actual, predicted, slope)
        rounding = _ROUNDING * abs(point.value)
        if actual > _ETA[0] * predicted and predicted > 0:
            point = trial
            if recorder.record(point, step=_norm(s), n_hvp=n_hvp):
                return recorder.result(point, "callback", "stopped by the callback")
        elif predicted <= 0 or (abs(actual) <= rounding and predicted <= rounding):
            if _norm(trial.gradient) < _norm(point.gradient):
                point = trial
                recorder.record(point, step=_norm(s), n_hvp=n_hvp)
                continue
            message = "steps have fallen below the rounding of F; the result is as good as it gets"
            return recorder.result(point, "precision", message)
    return recorder.result(point, "tolerance", f"‖∇F‖ <= {tol:g}·‖∇F(0)‖")


def _norm(x: Array) -> float:
    return math.sqrt(dot(x, x))


def _steihaug(point: Any, radius: float) -> tuple[Array, Array, int]:
    """Approximate minimizer s of the quadratic model in ``‖s‖ <= radius``; r = -∇F - Hs."""
    s, r = np.zeros_like(point.w), -point.gradient
    p, rr = r.copy(), dot(r, r)
    goal, n = 0.1 * np.sqrt(rr), 0
    while np.sqrt(rr) > goal:
        hp, _ = point.hvp(p)
        n += 1
        alpha = rr / dot(p, hp)
        if _norm(s + alpha * p) > radius:
            # Where the line s + αp leaves the ball.
            sp, pp, ss = dot(s, p), dot(p, p), dot(s, s)
            root = np.sqrt(sp * sp + pp * (radius * radius - ss))
            alpha = (radius * radius - ss) / (sp + root) if sp >= 0 else (root - sp) / pp
            return s + alpha * p, r - alpha * hp, n
        s = s + alpha * p
        r = r - alpha * hp
        rr, old = dot(r, r), rr
        p = r + (rr / old) * p
        if n >= max(100, 10 * len(s)):  # rounding can keep the residual from falling
            break
    return s, r, n


def _new_radius(
    radius: float, length: float, actual: float, predicted: float, slope: float
) -> float:
    excess = -actual - slope  # F(w+s) - F(w) - ∇F·s
    kappa = _SIGMA[2] if excess <= 0 else max(_SIGMA[0], -0.5 * slope / excess)
    trust = kappa * length
    if actual < _ETA[0] * predicted:
        return min(trust, _SIGMA[1] * radius)
    if actual < _ETA[1] * predicted:
        return max(_SIGMA[0] * radius, min(trust, _SIGMA[1] * radius))
    if actual < _ETA[2] * predicted:
        return max(_SIGMA[0] * radius, min(trust, _SIGMA[2] * radius))
    return max(radius, min(trust, _SIGMA[2] * radius))


# ---- Factorized RankSVM by loops over the pairs: Algorithm 1 of Xu et al. (2019) -----------------

PAIR_WORK = ("by_pair", "by_row")


@dataclass(frozen=True, eq=False)
class FactorizedByPairs:
    """What the epochs led to.

    Attributes
    ----------
    w : float64 array (n_features,)
        ``β(V)``.
    factors : float64 array (n_rows, n_components)
        V, by row of the data.
    value : float
        ``f(V)``.
    history : dict of lists
        "objective" (f) and "seconds" (on the wall, since the start), the starting point first.
    """

    w: Array
    factors: Array
    value: float
    history: dict[str, list[float]]


def factorize_by_pairs(
    data: Dataset,
    *,
    learning_rate: float,
    n_components: int = 5,
    C: float = 1.0,
    work: str = "by_pair",
    max_iter: int = 100,
    V0: Array | None = None,
    seed: int = 0,
    callback: Callback | None = None,
) -> FactorizedByPairs:
    """Minimize ``f(V) = ½‖β‖² - Σ_P ⟨v_i, v_j⟩`` over ``0 <= v_ik <= √(C/K)`` as published.

    ``β = Σ_P ⟨v_i, v_j⟩ (x_i - x_j)``. Query after query, every ``v_i`` takes a projected step of a
    given length down its gradient, all at one point, and β follows. The misprints of the paper are
    put right: the sign of the sum and of the step, ``-1`` for ``-C``, the old ``β_q`` kept until
    the new one is there. One thread, double precision; nothing guarantees that f falls.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; with row weights u the bound is ``u_i √(C/K)``.
    learning_rate : float
        η, the length of a step.
    n_components : int
        K, the length of ``v_i``.
    C : float
        Bound of ``α_ij = ⟨v_i, v_j⟩``.
    work : {"by_pair", "by_row"}
        ``"by_pair"``: ``⟨β, x_i - x_j⟩`` and ``β_q += α_ij (x_i - x_j)`` for every pair, as
        printed, ``O(p(K + n))`` an epoch. ``"by_row"``: the scores ``Xβ`` of a query once and
        ``β_q = Σ c_i x_i``, ``O(pK + ln)``. Both give the same up to rounding.
    max_iter : int
        Epochs: passes over all queries.
    V0 : float64 array (n_rows, n_components), optional
        Where to start, by row; None draws uniformly from the box, as printed.
    seed : int
        Of that draw.
    callback : callable, optional
        Called with "objective", "seconds", "w" and "n_iter" at the start and after
        every epoch; True stops.

    Examples
    --------
    One pair at distance 2: ``f = 2α² - α`` is lowest at ``α = 1/4``.

    >>> data = Dataset.of([[1.0], [-1.0]], [1, 0])
    >>> fit = factorize_by_pairs(data, learning_rate=0.1, n_components=1, max_iter=200)
    >>> round(fit.value, 6), round(float(fit.w[0]), 6)
    (-0.125, 0.5)
    """
    check_positive("learning_rate", learning_rate)
    check_positive("C", C)
    check_natural("n_components", n_components)
    check_natural("max_iter", max_iter)
    check_one_of("work", work, PAIR_WORK)
    pairs = choose_pairs(data)
    # u_i √(C/K) by position: then α_ij <= C u_i u_j.
    u = np.ones(pairs.queries.n_rows) if pairs.row_weight is None else pairs.row_weight
    largest = u * np.sqrt(C / n_components)
    V = _start(pairs, largest, n_components, V0, seed)
    beta = np.zeros(data.n_features)
    shared = (data.rows.core, pairs.queries.order, pairs.problem, largest, V, beta)
    log, total, is_over = History(callback), _core.factor_start(*shared), False
    while not is_over:
        value = float(0.5 * (beta @ beta) - total)
        is_over = log.append(lambda: beta, {"objective": value}) or log.n_iter == max_iter
        if not is_over:
            total = _core.factor_epoch(*shared, work, learning_rate)
    return FactorizedByPairs(beta, pairs.queries.scatter(V), value, log.history)


def _start(pairs: Pairs, largest: Array, n_components: int, V0: Array | None, seed: int) -> Array:
    """V by position, a copy, inside the box."""
    shape = (len(largest), n_components)
    if V0 is None:
        return np.random.default_rng(seed).random(shape) * largest[:, np.newaxis]
    if np.shape(V0) != shape:
        raise ValueError(f"V0 must have the shape {shape}, got {np.shape(V0)}")
    V = np.array(pairs.queries.gather(np.asarray(V0, dtype=np.float64)), order="C")
    return np.clip(V, 0.0, largest[:, np.newaxis], out=V)
