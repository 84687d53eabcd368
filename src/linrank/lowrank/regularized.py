"""Training a RankSVM whose dual variables form matrices of small nuclear norm.

The regularized dual by splitting: a RankSVM on one side, thresholded matrices on the other.

``min over α of q(α) + H(P(α))``, ``q(α) = ½‖β‖² - e'α`` on the box, ``H = Σ h(σ)``. With a copy A
of ``P(α)`` and a matrix Z of prices for their difference, each iteration solves for α given A and
Z (`linrank.lowrank.proximal`), then for A given α: singular values of ``M = α + Z/ρ`` shrink by h.
Prices are ``Z = ρ(M - A)``, the gradient of H at A. The state is A and ``y = A - Z/ρ``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from linrank._core import dot
from linrank.choices import QUERY_NORMALIZATIONS
from linrank.data import Array, Dataset, Rows, without_offsets
from linrank.errors import check_numbers, check_one_of, check_positive, is_number
from linrank.lowrank.proximal import Leading, ProximalProblem, leading
from linrank.lowrank.rectangles import Rectangles, check_memory
from linrank.pairs import choose_pairs
from linrank.solvers.result import Callback, History, Result, Verdict, check_finite
from linrank.system.resources import allowed, resolve, useful_threads

TOLERANCE = 1e-6  # of the certified gap, relative to |Ψ|
ITERATIONS = 1000
_BALANCED = 400  # iterations in which ρ may change; convergence is proved for a fixed one
_STUCK = 10  # iterations in a row that rounding may cut short


class Shrinkage(NamedTuple):
    """What becomes of the singular values σ of M in each block, in A and in ``y = A - Z/ρ``.

    Up to ``threshold``, A has ``kappa σ``; above it, ``σ - shift``. In matrices:
    ``A = mixture_0 M + mixture_1 S`` and ``y = mixture_2 M + mixture_3 S``, where S has the
    singular values ``slope σ - intercept`` in place of those above the threshold, and no others.
    """

    threshold: Array
    kappa: Array
    shift: Array
    slope: Array
    intercept: Array
    mixture: Array

    @classmethod
    def of(cls, gamma: float, lam: float, rho: Array) -> Shrinkage:
        """A minimizes ``H(A) + ρ/2 ‖A - M‖²``, and ``Z = ρ(M - A)``.

        The minimizer of ``h(s) + ρ/2 (s - σ)²`` is κσ while that is at most ``γ/2λ``, and then
        ``σ - γ/ρ``.
        """
        one, zero = np.ones_like(rho), np.zeros_like(rho)
        if gamma == 0.0:  # H = 0
            mixture = np.stack([one, zero, one, zero], axis=1)
            return cls(np.full_like(rho, np.inf), one, zero, zero, zero, mixture)
        with np.errstate(over="ignore"):  # of a γ that no singular value can reach
            kappa, shift = rho / (rho + 2.0 * lam), gamma / rho
        mixture = np.stack([kappa, one, 2.0 * kappa - 1.0, 2.0 * one], axis=1)
        return cls(gamma / (2.0 * lam) / kappa, kappa, shift, 1.0 - kappa, shift, mixture)

    @classmethod
    def to_prices(cls, gamma: float, lam: float, rho: Array) -> Shrinkage:
        """``A = M`` and ``Z = ∇H(M) = 2λ(M - SVT(M))``; S is ``SVT(M)``."""
        one, zero = np.ones_like(rho), np.zeros_like(rho)
        if gamma == 0.0:
            return cls.of(gamma, lam, rho)
        share, threshold = 2.0 * lam / rho, np.full_like(rho, gamma / (2.0 * lam))
        mixture = np.stack([one, zero, 1.0 - share, share], axis=1)
        return cls(threshold, one, zero, one, threshold, mixture)


_OVER = 1.6  # relaxation: between 1.5 and 1.8 iterations are fewest
_STEP = 0.5  # ρ·Cω at first: a change of the margin by 1 moves α by twice its bound
_STEEP = 1e5  # λ‖α‖² over e'α up to which rounding of ∇H costs a bound less than 1e-10 of itself
_WORTHWHILE = 1e7  # multiplications of all decompositions: some 5 ms, and threads pay


@dataclass(frozen=True, eq=False)
class Iterate:
    """A feasible α by what is known of it.

    Attributes
    ----------
    w : array
        ``β`` of α.
    objective : float
        ``Ψ(α, A)`` with the low-rank A of the iteration: at least ``Ψ(α) = min over A``.
    bound : float
        A lower bound of the minimum.
    residual : float
        Length of what is left of the conditions of the optimum.
    is_solved : bool
        Whether Newton's method got as far as it was asked to.
    """

    w: Array
    objective: float
    bound: float
    residual: float
    is_solved: bool


@dataclass(eq=False)
class Splitting:
    """The iteration, and the buffers it works on.

    Parameters
    ----------
    rows, scale
        The features and their factors.
    rectangles : Rectangles
        Layout and bounds of α.
    gamma, lam : float
        Of ``h(σ) = min over a of γ|a| + λ(σ - a)²``: ``λσ²`` up to ``γ/2λ``, then ``γσ - γ²/4λ``.
    n_threads, n_jobs : int
        Threads of passes over α, and of decompositions.
    """

    rows: Rows
    rectangles: Rectangles
    gamma: float
    lam: float
    scale: Array | None
    n_threads: int
    n_jobs: int

    def __post_init__(self) -> None:
        rows, rectangles = self.rows, self.rectangles
        self.alpha, self.best, self.a, self.y = (np.zeros(rectangles.n_entries) for _ in range(4))
        # With ρ = 2λ the first iteration is the one of alternating minimization, which is good
        # enough where λCω is small; where it is large, steps of 1/2λ would crawl over the box.
        with np.errstate(over="ignore", divide="ignore"):  # of bounds that are next to nothing
            self.rho = np.minimum(2.0 * self.lam, _STEP / rectangles.mean_bounds())
        self.problem = ProximalProblem(self)
        shapes = np.array(rectangles.shapes, dtype=np.float64)
        self._prices = shapes.prod(axis=1) * shapes.min(axis=1)  # of a decomposition
        self._w = np.zeros(rows.shape[1])
        self._weight = float(rectangles.C * rectangles.pairs.total_weight())  # Σ Cω
        self._distance = 0.0

    def nothing(self) -> Iterate:
        """``α = 0``, of which all is known: ``w = A = Z = 0``, and the bound is ``-Σ Cω``."""
        z, zero = np.zeros(self.problem.loss.n_positions), self.y
        found = self.rectangles.core.sums(z, zero, zero, zero, self.rho, self.n_threads)
        lowest, residual = (float(np.asarray(part).sum()) for part in found[4:])
        bound = -lowest - self.rounding(self._w, lowest)
        return Iterate(np.zeros_like(self._w), 0.0, bound, float(np.sqrt(residual)), True)

    def start(self, goal: float) -> tuple[Iterate, float]:
        """From ``A = Z = 0`` to the first α, and from there to ``A = α``, ``Z = ∇H(α)``; as `step`.

        Where λ is so large that rounding would lift singular values of that Z above γ, for which
        there is no bound, A and Z are those of any other step.
        """
        point, is_solved = self._solve(goal)
        self.y[:] = self.alpha
        squares = np.asarray(self.rectangles.core.squared_norms(self.y, self.n_threads))
        is_steep = self.lam * float(squares.sum()) > _STEEP * float(self.alpha.sum())
        rule = Shrinkage.of if is_steep else Shrinkage.to_prices
        penalty, change = self._shrink(squares, rule(self.gamma, self.lam, self.rho))
        return self._iterate(point, penalty, is_solved), change

    def step(self, goal: float) -> tuple[Iterate, float]:
        """One iteration, and ``Σ ρ‖A - A before‖²``."""
        point, is_solved = self._solve(goal)
        core = self.rectangles.core
        squares = np.asarray(core.relax(self.alpha, self.a, self.y, _OVER, self.n_threads))
        penalty, change = self._shrink(squares, Shrinkage.of(self.gamma, self.lam, self.rho))
        return self._iterate(point, penalty, is_solved), change

    def keep_best(self) -> None:
        """Remember the α of the last iteration; its buffer is free for the next one."""
        self.alpha, self.best = self.best, self.alpha

    def balance(self, change: float) -> None:
        """Weigh ρ so that α and A, and A and its predecessor, approach each other alike."""
        if not (change > 0.0 and self._distance > 0.0):
            return
        factor = float(np.clip((self._distance / change) ** 0.25, 1.0 / 3.0, 3.0))
        if 2.0 / 3.0 < factor < 1.5:
            return
        self.rho *= factor
        np.subtract(self.a, self.y, out=self.y)  # Z/ρ, which shrinks as ρ grows
        self.y *= -1.0 / factor
        self.y += self.a

    def certify(self) -> tuple[Array, float, Array]:
        """``β``, ``Ψ(α)`` and the ranks of ``SVT(P(α))`` by block, of the best α, exactly."""
        squares = np.asarray(self.rectangles.core.squared_norms(self.best, self.n_threads))
        thresholds = np.full(len(squares), self.gamma / (2.0 * self.lam))
        if self.gamma == 0.0:  # A = P(α): its rank is what rounding leaves of it
            sides = np.array([max(shape) for shape in self.rectangles.shapes])
            thresholds = np.sqrt(squares) * sides * np.finfo(np.float64).eps
        penalty, ranks = 0.0, np.zeros(len(squares), dtype=np.int64)

        def measure(k: int, found: Leading) -> tuple[Leading, float]:
            # ‖M‖² less the squares above the threshold would lose what lies below to rounding.
            return found, found.rest(self.rectangles.block_of(self.best, k))

        for k, (found, below) in self._decompose(self.best, squares, thresholds, measure):
            penalty += self._penalty(below, found, 1.0, found.values)
            ranks[k] = found.rank
        w = self.problem.weights(self.best)
        return w, 0.5 * dot(w, w) - float(self.best.sum()) + penalty, ranks

    def rounding(self, w: Array, total: float) -> float:
        """How far Ψ, or a bound of it, may be off whose parts are as large as ``total`` in all.

        A sum over all entries of the matrices is off by at most as many units of rounding. So is
        ``½‖β‖²``, and more, for β is a sum over rows: of slopes no larger than ``2 Σα <= 2 total``.
        Matrices of prices keep to singular values up to γ but for the rounding of these, a share
        of their length, ``√(4λ total)`` at most, which moves a bound by as much of all the weights.
        """
        rectangles, risk = self.rectangles, self.problem.risk
        sides = max(max(shape) for shape in rectangles.shapes)
        unit = 2.0**-53 * (rectangles.n_entries + len(w) + 256)
        extents = risk.extents
        rounding = extents.score_rounding + extents.slope_rounding
        reach = rounding * float(extents.norms @ risk.stretch(np.abs(w)))
        weight = self._weight
        length = min(self.gamma, math.sqrt(4.0 * self.lam * total))
        steep = 2.0**-53 * 64.0 * sides * length * weight
        return unit * total + 2.0 * reach * (total + weight) + steep

    # ---- the two sides ---------------------------------------------------------------------------

    def _solve(self, goal: float) -> tuple[Any, bool]:
        point, is_solved = self.problem.solve(self._w, goal)
        self.problem.write(point, self.alpha)
        self._w = point.w
        return point, is_solved

    def _shrink(self, squares: Array, rule: Shrinkage) -> tuple[float, float]:
        """Make A and y of the matrices M that lie in y; ``squares`` are their ``‖M‖²``.

        Returns ``Σ h(σ)``, before or after shrinking, and ``Σ ρ‖A - A before‖²``.
        """

        def settle(k: int, found: Leading) -> tuple[Leading, float]:
            s = None
            if found.rank:
                M = self.rectangles.block_of(self.y, k)
                gains = rule.slope[k] * found.values - rule.intercept[k]
                s = found.with_gains(M, gains).reshape(-1)
            am, a_s, ym, ys = rule.mixture[k].tolist()
            change = self.rectangles.core.settle(k, s, am, a_s, ym, ys, self.a, self.y)
            return found, self.rho[k] * change

        penalty = change = 0.0
        for k, (found, moved) in self._decompose(self.y, squares, rule.threshold, settle):
            shrunk = found.values - rule.shift[k]
            below = float(squares[k]) - float(found.values @ found.values)
            # What rounding makes of the difference is no more than what the threshold allows.
            with np.errstate(over="ignore"):  # of a threshold that nothing can reach
                below = min(max(0.0, below), found.n_others * rule.threshold[k] ** 2)
            penalty += self._penalty(below, found, rule.kappa[k], shrunk)
            change += moved
        return penalty, change

    def _decompose(
        self, values: Array, squares: Array, thresholds: Array, use: Any
    ) -> Iterator[tuple[int, Any]]:
        """``use(k, singular values above the threshold)`` of all blocks, in order."""
        rectangles = self.rectangles

        def work(k: int) -> Any:
            M = rectangles.block_of(values, k)
            try:
                found = leading(M, float(thresholds[k]))
            except np.linalg.LinAlgError as error:
                m, n = M.shape
                raise np.linalg.LinAlgError(
                    f"the singular values of the {m}x{n} block of {rectangles.name(k)} do not "
                    "converge; scale the features, or take a smaller C, so that dual variables "
                    "stay within the range of double precision"
                ) from error
            return use(k, found)

        # No singular value exceeds the Frobenius norm: the other blocks are not decomposed.
        hard = np.sqrt(squares) > thresholds
        n_hard = int(np.count_nonzero(hard))
        if self.n_jobs == 1 or n_hard < 2 or float(self._prices @ hard) < _WORTHWHILE:
            yield from ((k, work(k)) for k in range(len(squares)))
            return
        pool = ThreadPoolExecutor(min(self.n_jobs, n_hard))
        try:
            yield from enumerate(pool.map(work, range(len(squares))))
        finally:  # an interrupt does not wait for blocks that have not begun
            pool.shutdown(cancel_futures=True)

    def _penalty(self, below: float, found: Leading, kappa: float, values: Array) -> float:
        """``Σ h``: ``λκ²`` times Σ σ² ``below`` the threshold, and ``γs - γ²/4λ`` of the rest."""
        if self.gamma == 0.0:
            return 0.0
        penalty = self.lam * kappa * kappa * below
        if found.rank:  # γ² may be out of range where no singular value reaches γ/2λ
            fixed = self.gamma * self.gamma / (4.0 * self.lam)
            penalty += self.gamma * float(values.sum()) - found.rank * fixed
        return penalty

    def _iterate(self, point: Any, penalty: float, is_solved: bool) -> Iterate:
        """The objective and a bound, from the prices Z and the weights of the RankSVM side.

        For every w and every Z with singular values up to γ,
        ``Ψ >= -½‖w‖² - ‖Z‖²/4λ - Σ Cω max(0, 1 - (z_i - z_j) - Z_ij)``.
        """
        core, rho = self.rectangles.core, self.rho
        z = point.parts[1].z
        found = core.sums(z, self.alpha, self.a, self.y, rho, self.n_threads)
        total, distance, slope, square, lowest, residual = (np.asarray(part) for part in found)
        off = point.gradient  # w - β
        beta = point.w - off
        self._distance = float(rho @ distance)
        coupled, dual = penalty, 0.0
        if self.gamma > 0.0:
            coupled += float(slope.sum()) + self.lam * float(distance.sum())
            dual = float(square.sum()) / (4.0 * self.lam)
        below = 0.5 * dot(point.w, point.w) + dual + float(lowest.sum())
        return Iterate(
            w=beta,
            objective=0.5 * dot(beta, beta) - float(total.sum()) + coupled,
            bound=-below - self.rounding(point.w, below),
            residual=float(np.sqrt(residual.sum() + distance.sum() + dot(off, off))),
            is_solved=is_solved,
        )


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
    """Minimize ``Ψ(α) = ½‖β‖² - e'α + min over A of γ‖A‖_* + λ‖P(α) - A‖²``, ``0 <= α <= Cω``.

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
    bounds = float(C) * pairs.total_weight()
    penalty = float(lam) * bounds * bounds
    if not penalty * penalty < np.inf:
        raise ValueError(
            f"the bounds of the dual variables, C times the weights of the pairs, sum to "
            f"{bounds:.3g}: with lam={lam:g} the penalty leaves the range of double precision; use "
            "a smaller C or lam, or smaller weights"
        )
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
    return _result(splitting, log, _descend(splitting, log, tol, max_iter or ITERATIONS))


def _descend(splitting: Splitting, log: _Log, tol: float, max_iter: int) -> Verdict:
    """Iterate until something says stop."""
    if log.record(splitting.nothing()):
        return "callback", "stopped by the callback"
    n_stuck = 0
    while True:
        goal = max(0.01 * tol * abs(log.least), 1e-3 * log.gap)
        iterate, change = (splitting.step if log.n_iter else splitting.start)(goal)
        is_better = iterate.objective < log.least
        wants_stop = log.record(iterate)
        if is_better or wants_stop:  # who stops here wants this iterate
            splitting.keep_best()
            log.kept = log.n_iter
        if wants_stop:
            return "callback", "stopped by the callback"
        if log.gap <= tol * abs(log.least):
            return "tolerance", f"certified Ψ - Ψ* <= {tol:g}·|Ψ|"
        n_stuck = 0 if iterate.is_solved else n_stuck + 1
        if n_stuck >= _STUCK:
            return "precision", (
                "steps have fallen below the rounding of Ψ; the result is as good as it gets"
            )
        if log.n_iter >= max_iter:
            return "max_iter", (
                f"the certified gap, {log.gap:.3g}, is above tol·|Ψ| = "
                f"{tol * abs(log.least):.3g} after max_iter={max_iter} iterations; raise "
                "max_iter or tol"
            )
        if log.n_iter % 4 == 0 and log.n_iter <= _BALANCED:
            splitting.balance(change)


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


class _Log(History):
    """The history, the least objective and the best bound."""

    def __init__(self, callback: Callback | None, started: float) -> None:
        super().__init__(callback, started)
        self.least, self.bound = np.inf, -np.inf
        self.kept = 0  # the iterate that is the result so far

    @property
    def gap(self) -> float:
        return max(0.0, self.least - self.bound)

    def record(self, iterate: Iterate) -> bool:
        """Add an iterate; True if the callback asks to stop."""
        self.least = min(self.least, iterate.objective)
        self.bound = max(self.bound, iterate.bound)
        entry = {
            "objective": check_finite(iterate.objective),
            "lower_bound": self.bound,
            "gap": max(0.0, iterate.objective - self.bound),
            "kkt_residual": iterate.residual,
        }
        return self.append(lambda: iterate.w, entry)
