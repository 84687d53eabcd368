"""Factorized RankSVM: the dual variable of a pair is the inner product of vectors of its rows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from linrank import _core
from linrank.choices import CONSTRAINTS, QUERY_NORMALIZATIONS
from linrank.data import Array, Dataset, Queries, as_array, without_offsets
from linrank.errors import check_natural, check_numbers, check_one_of
from linrank.losses.base import Hinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs, choose_pairs
from linrank.solvers.result import Callback, History, Result, Verdict, check_finite
from linrank.system.resources import check_fits, resolve, useful_threads

TOLERANCE = 1e-6
EPOCHS = 2000
_WINDOW = 5  # epochs over which the decrease is judged: single ones may rest
_STATIONARY = 1e4  # times tol: how much of f its linearization may still promise


@dataclass(frozen=True, eq=False)
class FactorizedResult(Result):
    """The outcome of a fit: ``value`` is f(V), which no other point need be near.

    Attributes
    ----------
    factors : float64 array (n_rows, n_components)
        V, by row of the data; rows of queries without pairs are 0.
    hinge_objective : float
        ``P(w) = ½‖w‖² + C Σ ω max(0, 1 - w·D(x_i - x_j))``: the hinge RankSVM's objective at w.
    gap : float
        ``P(w) + f(V)``. The hinge RankSVM's optimum lies between ``-f(V)`` and ``P(w)``; the
        difference does not go to 0, as few duals have this form.
    kkt_residual : float
        How much f falls by its linearization within the constraints: 0 where V is stationary.
    """

    factors: Array
    hinge_objective: float

    @property
    def kept(self) -> int:
        """Which iterate it is: the last, as f never rises."""
        return self.n_iter

    @property
    def summary(self) -> dict[str, float | int | bool | str | None]:
        told = super().summary
        del told["gradient_norm"]
        return told | {"lower_bound": -self.value, "hinge_objective": self.hinge_objective}


def train_factorized(
    data: Dataset,
    *,
    n_components: int = 5,
    C: float = 1.0,
    constraint: str = "box",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: Array | None = None,
    query_weight: Array | None = None,
    query_normalization: str | None = None,
    V0: Array | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> FactorizedResult:
    """Minimize ``f(V) = ½‖β‖² - Σ α_ij`` over duals ``α_ij = <v_i, v_j>`` of the pairs (i above j).

    ``β = Σ α_ij D(x_i - x_j)`` is the model. With ``b_i = u_i √(C c_q)``, the factors of row i obey
    ``v_i >= 0`` and ``v_ik <= b_i/√K`` (box) or ``‖v_i‖ <= b_i`` (ball), so that
    ``0 <= α_ij <= C ω_ij``: α is feasible for the dual of the hinge RankSVM, and -f(V) a lower
    bound of its optimum. f is not convex: another seed may end elsewhere.

    Parameters
    ----------
    data : Dataset
        Rows, labels, queries; its row weights u enter ``ω_ij = c_q u_i u_j``.
    n_components : int, default=5
        K, the length of the v, >= 1.
    C : float, default=1.0
        Upper bound of a dual, > 0.
    constraint : {"box", "ball"}
        Where the factors may lie.
    tol : float, optional
        Stop when f falls by at most ``tol·|f|`` per epoch, on average over five, and its
        linearization promises at most ``1e4·tol·|f|``; None for 1e-6.
    max_iter : int, optional
        Epochs at most, >= 1; None for 2000.
    scale : float64 array (n_features,), optional
        The diagonal of D.
    query_weight : float64 array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    query_normalization : {None, "pairs"}
        ``"pairs"`` divides c_q by ``Σ ω_ij`` of the query's pairs.
    V0 : float64 array (n_rows, n_components), optional
        Start, by row. None draws each component from ``[0, b_i/√K]``, and takes the multiple of
        that V which has the lowest f. At 0 the gradient is 0.
    seed : int
        Of the start, and of the order of the queries.
    n_jobs : int, optional
        Threads; None for all cores. The result does not depend on it.
    callback : callable, optional
        Called with the state of each epoch; stops by returning True.
    """
    check_numbers(C, tol, max_iter)
    check_natural("n_components", n_components)
    if n_components >= 2**31:
        raise ValueError(f"n_components must be below 2^31, got {n_components}")
    check_one_of("constraint", constraint, CONSTRAINTS)
    check_one_of("query_normalization", query_normalization, QUERY_NORMALIZATIONS)
    started = time.perf_counter()
    pairs = choose_pairs(data, query_weight=query_weight, query_normalization=query_normalization)
    n_threads = useful_threads(data.rows.nbytes, resolve(n_jobs))
    queries, bound = pairs.queries, factor_bounds(pairs, C)
    check_fits(  # three copies of V while it runs, and one or two at its ends
        5 * 8 * queries.n_rows * n_components,
        f"{n_components} factors for each of {queries.n_rows} rows",
        "use a smaller n_components, or fewer rows",
    )
    rows = without_offsets(data.rows)
    descent = _core.factor_descent(
        rows.core,
        queries.order,
        *queries.ranked,
        scale,
        bound,
        constraint,
        n_components,
        _start(queries, bound, n_components, V0, seed),
        seed,
    )
    if V0 is None:
        # Where few pairs need a dual, β of a random V is so large that the first steps would undo
        # it by making V nearly 0, and that is a saddle.
        descent.shrink()
    log = _Log(descent, callback, started)
    tol = TOLERANCE if tol is None else tol
    stopped, message = _descend(descent, log, tol, max_iter or EPOCHS, n_threads)
    w = descent.weights()
    risk = Risk(rows, Hinge(pairs, n_threads), float(C), scale)
    point = Sum(Ridge(), risk).at(w)
    hinge_objective = float(point.value)
    rounding = point.primal_error + _rounding(risk, w, log.objective)
    residual = descent.linear_decrease(n_threads)
    factors = descent.factors().reshape(-1, n_components)
    return FactorizedResult(
        w=w,
        value=log.objective,
        gap=max(rounding, hinge_objective + log.objective + rounding),
        **log.ending(stopped, message, residual),
        factors=pairs.queries.scatter(factors),
        hinge_objective=hinge_objective,
    )


def _rounding(risk: Risk, w: Array, value: float) -> float:
    """How far ``f(V) = ½‖β‖² - Σα`` may be off: sums over rows, and β, whose slopes are duals."""
    square = 0.5 * float(w @ w)
    total = square - value  # Σα
    extents = risk.extents
    unit = extents.slope_rounding + 2.0**-53 * risk.rows.shape[0]
    slopes = 2.0 * total * float(extents.norms @ risk.stretch(np.abs(w)))
    return unit * (square + total + slopes)


def factor_bounds(pairs: Pairs, C: float) -> Array:
    """``b_i = u_i √(C c_q)``, by position: two rows at their bounds have ``α_ij = C ω_ij``."""
    queries = pairs.queries
    bound = np.full(queries.n_rows, math.sqrt(C))
    if pairs.query_weight is not None:
        bound *= np.repeat(np.sqrt(pairs.query_weight), np.diff(queries.offsets))
    if pairs.row_weight is not None:
        bound *= pairs.row_weight
    return bound


def _start(queries: Queries, bound: Array, n_components: int, V0: Array | None, seed: int) -> Array:
    """V to start from, by position, in one row."""
    shape = (queries.n_rows, n_components)
    if V0 is None:
        drawn = np.random.default_rng(seed).random(shape)
        drawn *= bound[:, np.newaxis] / math.sqrt(n_components)
        return drawn.ravel()
    factors = as_array(V0, "V0").astype(np.float64, copy=False)
    if factors.shape != shape:
        raise ValueError(f"V0 has shape {factors.shape}, expected {shape}: a vector for each row")
    if not np.isfinite(factors).all():
        raise ValueError("V0 has a NaN or infinite entry")
    return np.ascontiguousarray(queries.gather(factors)).ravel()


def _momenta() -> Iterator[float]:
    """``(θ_k - 1)/θ_{k+1}`` of Nesterov's sequence ``θ_1 = 1, θ_{k+1} = (1 + √(1 + 4θ_k²))/2``."""
    theta = 1.0
    while True:
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * theta * theta))
        yield (theta - 1.0) / after
        theta = after


def _descend(
    descent: _core.FactorDescent, log: _Log, tol: float, max_iter: int, n_threads: int
) -> Verdict:
    """Epochs until f rests; one that raises f is undone, and the next starts without momentum."""
    if log.is_over:
        return "callback", "stopped by the callback"
    momenta = _momenta()
    while log.n_iter < max_iter:
        value = descent.epoch(next(momenta), n_threads)
        if not value <= log.objective:
            descent.reject()
            momenta = _momenta()
            value = descent.epoch(next(momenta), n_threads)
            if not value < log.objective:
                return _at_rest(value, log.objective)
        descent.accept()
        if log.record(value):
            return "callback", "stopped by the callback"
        if _rests(descent, log, tol, n_threads):
            return "tolerance", f"an epoch lowers the objective by less than {tol:g} of it"
    fall, of = log.fall(_WINDOW), f"max_iter={max_iter}"
    if not math.isfinite(fall):
        return "max_iter", (f"{of} is too few epochs to tell whether the objective rests; raise it")
    return "max_iter", (
        f"an epoch still lowers the objective by {fall / abs(log.objective):.1e} of it after "
        f"{of} epochs; raise max_iter or tol"
    )


def _rests(descent: _core.FactorDescent, log: _Log, tol: float, n_threads: int) -> bool:
    """Whether f has stopped falling, and V is nearly stationary: f may also linger near a saddle.

    At a stationary point ``f <= -½‖β‖²``: else shrinking V would lower it.
    """
    value = log.objective
    if value > 0.0 or log.fall(_WINDOW) > tol * abs(value):
        return False
    return descent.linear_decrease(n_threads) <= _STATIONARY * tol * abs(value)


def _at_rest(value: float, last: float) -> Verdict:
    """Why an epoch without momentum did not lower f: there is no way down, or rounding hides it.

    Where V is stationary along ``tV``, ``2‖β‖² = 2 Σ α`` or V = 0: there f is not above 0.
    """
    if last <= 0.0 and value - last <= 1e-9 * abs(last):
        return "tolerance", "no step lowers the objective"
    return "precision", (
        f"the objective stays at {last:g}, as rounding forbids further progress; scale the "
        "features, or use a smaller C"
    )


class _Log(History):
    """The history of a descent, from its start on."""

    def __init__(
        self, descent: _core.FactorDescent, callback: Callback | None, started: float
    ) -> None:
        super().__init__(callback, started)
        self._descent = descent
        self.is_over = self.record(descent.value())  # the callback may be content with the start

    def fall(self, n: int) -> float:
        """How much f has fallen per epoch, on average over the last n; infinite before."""
        values = self.history["objective"]
        return (values[-1 - n] - values[-1]) / n if self.n_iter > n else math.inf

    def record(self, value: float) -> bool:
        """Add an epoch; True if the callback asks to stop."""
        return self.append(
            self._descent.weights, {"objective": check_finite(value), "lower_bound": -value}
        )
