"""Training a RankSVM whose dual variables form matrices of small nuclear norm."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import without_offsets
from linrank.errors import (
    check_numbers,
    check_one_of,
    check_positive,
    is_number,
)
from linrank.lowrank.factorized import Log
from linrank.lowrank.rectangles import Rectangles, check_memory
from linrank.lowrank.splitting import Iterate, Splitting
from linrank.options import QUERY_NORMALIZATIONS
from linrank.pairs import choose_pairs
from linrank.solvers.result import Callback, Result, Verdict
from linrank.system.resources import allowed, resolve, useful_threads

Array = NDArray[Any]

TOLERANCE = 1e-6  # of the certified gap, relative to |Ψ|
ITERATIONS = 1000
_BALANCED = 400  # iterations in which ρ may change; convergence is proved for a fixed one
_STUCK = 10  # iterations in a row that rounding may cut short


@dataclass(frozen=True, eq=False)
class RegularizedResult(Result):
    """The outcome of a fit: `Result` for Ψ, and the dual variables.

    Attributes
    ----------
    value, gap : float
        ``Ψ(α)``, exactly, and a certified bound of its distance to the minimum.
    kkt_residual, gradient_norm : float
        Length of what is left of the conditions of the optimum, both the same.
    duals : Rectangles
        α, block by block.
    ranks : int64 array (n_queries,)
        Singular values of each query's block above ``γ/2λ``: the rank of A.
    kept : int
        Which iterate it is: the one of the least objective, or the last if a callback stopped.
    """

    duals: Rectangles = field(repr=False, kw_only=True)
    ranks: Array = field(repr=False, kw_only=True)
    kept: int = field(repr=False, kw_only=True)

    @property
    def summary(self) -> dict[str, float | int | bool | str | None]:
        told = super().summary
        del told["gradient_norm"]
        ranks = self.ranks[self.duals.query]  # of the queries that have pairs
        return told | {"mean_rank": float(ranks.mean()), "largest_rank": int(ranks.max())}


def train_regularized(
    data: Dataset,
    *,
    gamma: float = 10.0,
    lam: float = 0.1,
    C: float = 1.0,
    tol: float | None = None,
    max_iter: int | None = None,
    scale: Array | None = None,
    query_weight: Array | None = None,
    query_normalization: str | None = None,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> RegularizedResult:
    """Minimise ``Ψ(α) = ½‖β‖² - e'α + min over A of γ‖A‖_* + λ‖P(α) - A‖²``, ``0 <= α <= Cω``.

    ``β = Σ α_ij D(x_i - x_j)`` over the pairs (i above j) is the model, ``P(α)`` the matrix of α by
    query, ``‖A‖_*`` the sum of singular values. ``-Ψ`` is the RankSVM dual less the two penalties.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; its row weights u enter ``ω_ij = c_q u_i u_j``.
    gamma : float, default=10.0
        γ >= 0. Singular values of ``P(α)`` up to ``γ/2λ`` have no share in A. 0 is the plain dual.
    lam : float, default=0.1
        λ > 0.
    C : float, default=1.0
        Upper bound of the dual variables, > 0.
    tol : float, optional
        Stop when the certified gap is at most ``tol·|Ψ|``; 1e-6 if None. Ψ is negative at the
        optimum, and 0 at ``α = 0``.
    max_iter : int, optional
        Iterations at most; 1000 if None.
    scale : float64 array (n_features,), optional
        The diagonal of D.
    query_weight : float64 array (n_queries,), optional
        The factors c_q.
    query_normalization : {None, "pairs"}
        ``"pairs"`` divides c_q by ``Σ ω_ij`` of the query's pairs.
    memory_limit : int, float or str, optional
        Bytes that the dual variables and their copies may take; what the system has if None.
    n_jobs : int, optional
        Threads; None for all cores.
    callback : callable, optional
        Called with the state of each iterate; stops by returning True.
    """
    check_numbers(C, tol, max_iter)
    if not (is_number(gamma) and 0.0 <= float(gamma) < np.inf):
        raise ValueError(
            f"gamma must be a finite number >= 0, got {gamma!r}; 0 is the plain RankSVM dual, and "
            "larger values give matrices of lower rank"
        )
    closer = "; the larger it is, the closer A is to the matrix of dual variables"
    check_positive("lam", lam, closer)
    check_one_of("query_normalization", query_normalization, QUERY_NORMALIZATIONS)
    limit = None if memory_limit is None else allowed(memory_limit)
    log = _Log(callback, time.perf_counter())
    pairs = choose_pairs(data, query_weight=query_weight, query_normalization=query_normalization)
    _check_range(float(C) * pairs.total_weight(), float(lam))
    check_memory(pairs, limit)
    rectangles = Rectangles(pairs, float(C))
    n_jobs = resolve(n_jobs)
    splitting = Splitting(
        without_offsets(data.rows),
        rectangles,
        float(gamma),
        float(lam),
        scale=scale,
        n_threads=useful_threads(data.rows.nbytes + 8 * rectangles.n_entries, n_jobs),
        n_jobs=n_jobs,
    )
    tol = TOLERANCE if tol is None else tol
    max_iter = ITERATIONS if max_iter is None else max_iter
    verdict = _descend(splitting, log, tol, max_iter)
    return _result(splitting, log, verdict)


def _descend(splitting: Splitting, log: _Log, tol: float, max_iter: int) -> Verdict:
    """Iterate until something says stop."""
    if log.record(splitting.nothing()):
        return "callback", "stopped by the callback"
    n_stuck = 0
    while True:
        goal = max(0.01 * tol * abs(log.objective), 1e-3 * log.gap)
        spectra = None
        if log.n_iter == 0:
            iterate = splitting.start(goal)
        else:
            iterate, spectra = splitting.step(goal)
        is_better = iterate.objective < log.objective
        wants_stop = log.record(iterate)
        if is_better or wants_stop:  # who stops here wants this iterate
            splitting.keep_best()
            log.kept = log.n_iter
        if wants_stop:
            return "callback", "stopped by the callback"
        if log.gap <= tol * abs(log.objective):
            return "tolerance", f"certified Ψ - Ψ* <= {tol:g}·|Ψ|"
        n_stuck = 0 if iterate.is_solved else n_stuck + 1
        if n_stuck >= _STUCK:
            return "precision", (
                "steps have fallen below the rounding of Ψ; the result is as good as it gets"
            )
        if log.n_iter >= max_iter:
            return "max_iter", (
                f"the certified gap, {log.gap:.3g}, is above tol·|Ψ| = "
                f"{tol * abs(log.objective):.3g} after max_iter={max_iter} iterations; raise "
                "max_iter or tol"
            )
        if spectra is not None and log.n_iter % 4 == 0 and log.n_iter <= _BALANCED:
            splitting.balance(spectra)


def _result(splitting: Splitting, log: _Log, verdict: Verdict) -> RegularizedResult:
    """The best α, its objective and ranks computed anew."""
    rectangles = splitting.rectangles
    w, value, by_block = splitting.certify()
    total = 0.5 * float(w @ w) + float(splitting.best.sum())
    rounding = splitting.rounding(w, 2.0 * total + abs(value))
    ranks = np.zeros(rectangles.pairs.queries.n_queries, dtype=np.int64)
    ranks[rectangles.query] = by_block
    residual = log.history["kkt_residual"][log.kept]
    return RegularizedResult(
        w=w,
        value=value,
        gap=max(rounding, value + rounding - log.bound),
        **log.ending(*verdict, residual),
        duals=replace(rectangles, values=splitting.best),
        ranks=ranks,
        kept=log.kept,
    )


class _Log(Log):
    """The history, the least objective and the best bound."""

    def __init__(self, callback: Callback | None, started: float) -> None:
        super().__init__(callback, started)
        self.objective, self.bound = np.inf, -np.inf
        self.kept = 0  # the iterate that is the result so far

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bound)

    def record(self, iterate: Iterate) -> bool:
        """Add an iterate; True if the callback asks to stop."""
        self.objective = min(self.objective, iterate.objective)
        self.bound = max(self.bound, iterate.bound)
        return self.add(
            lambda: iterate.w,
            objective=iterate.objective,
            lower_bound=self.bound,
            gap=max(0.0, iterate.objective - self.bound),
            kkt_residual=iterate.residual,
        )


def _check_range(total: float, lam: float) -> None:
    """Refuse bounds ``Σ Cω = total`` whose penalty, squared on the way, leaves the doubles."""
    penalty = lam * total * total
    if not penalty * penalty < np.inf:
        raise ValueError(
            f"the bounds of the dual variables, C times the weights of the pairs, sum to "
            f"{total:.3g}: with lam={lam:g} the penalty leaves the range of double precision; use "
            "a smaller C or lam, or smaller weights"
        )
