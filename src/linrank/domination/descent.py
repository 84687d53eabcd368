"""Coordinate descent: one weight at a time, each to the minimum of a bound of the objective."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.vectors import read_only
from linrank.domination.newton_steps import newton_step, writes_hessian
from linrank.domination.problem import DominationProblem, PenalisedPoint
from linrank.solvers.result import Callback, Patience, Result, Verdict

__all__ = ["Bounds", "Descent", "Log", "descend"]

Array = NDArray[Any]

_SWEEPS = 10  # before the certificate is looked at again, at most
_ENOUGH = 0.1  # share of the first sweep's decrease at which it is


@dataclass(frozen=True)
class Bounds:
    """What is known of the loss along single features, as `_core.Coordinates.measure` finds it.

    ``L(w + t e_r) <= L(w) + gradient·t + Φ(|t|)``, ``Φ'' = min(bound, hessian·exp(range·t))``.
    """

    features: Array
    gradient: Array
    hessian: Array
    bound: Array  # 0 where the feature is the same in every row and all that it dominates
    range: Array

    def decreases(self, w: Array, penalty: str, alpha: float) -> Array:
        """By how much, at least, the objective falls if a feature alone is moved from ``w``."""
        decreases: Array
        _, decreases = _core.coordinate_steps(
            self.gradient,
            self.hessian,
            self.bound,
            self.range,
            np.ascontiguousarray(w[self.features]),
            penalty,
            alpha,
        )
        return decreases


class Descent:
    """A coordinate descent on its way: weights, and the state of all queries there.

    Parameters
    ----------
    problem : DominationProblem
        What is minimised; its alpha may change on the way (`problem` is an attribute).
    w0 : array or None
        Start; zero if None.
    curvature : {"local", "range", "paper"}
        How the second derivative along a feature is bounded.
    order : {"sequential", "shuffled"}
        Order of the features in a sweep.
    seed : int
        Of the shuffling.
    """

    def __init__(
        self,
        problem: DominationProblem,
        w0: Array | None = None,
        *,
        curvature: str = "local",
        order: str = "sequential",
        seed: int = 0,
    ) -> None:
        self.problem = problem
        self.curvature = curvature
        self.n_sweeps = 0
        self._rng = np.random.default_rng(seed) if order == "shuffled" else None
        self._columns = problem.columns()
        self._state = _core.coordinates(self._columns, problem.layering.core, problem.scale)
        self.w = np.zeros(problem.n_features)
        self._is_fresh = True  # scores are those of w, not carried along
        if w0 is not None and np.any(w0):
            self.move_to(w0)

    def move_to(self, w: Array) -> None:
        """Take up the descent at ``w``."""
        self.w = np.array(w, dtype=np.float64)
        self._state.restart(self.w)
        self._is_fresh = True

    def sweep(self, features: Array) -> float:
        """Move each of ``features`` once; the decrease of F that the bounds guarantee."""
        if self._rng is not None:
            features = self._rng.permutation(features)
        problem = self.problem
        decrease, _ = self._state.sweep(
            self.w, features, problem.penalty, problem.alpha, self.curvature
        )
        self.n_sweeps += 1
        self._is_fresh = False
        return float(decrease)

    def measure(self, features: Array) -> Bounds:
        """The bounds along each of ``features``, which increase."""
        found = self._state.measure(features, self.curvature, self.problem.n_threads)
        return Bounds(features, *found)

    def jump(self, point: PenalisedPoint, features: Array) -> None:
        """Make a Newton step on ``features`` from ``point``, where this is, if it lowers F."""
        bounds = self.measure(features)
        is_useful = bounds.bound > 0.0  # the others have no slope but rounding
        if is_useful.any():
            moving, diagonal = features[is_useful], bounds.hessian[is_useful]
            w = newton_step(point, self._columns, moving, diagonal)
            if w is not None:
                self.move_to(w)

    def scores(self) -> Array:
        """``XDw`` by position, carried along by the sweeps."""
        return self._state.scores()

    def point(self, among: Array | None = None) -> PenalisedPoint:
        """The objective, gradient and certificate here, of the features ``among`` if given.

        The scores are those that sweeps have carried along: their rounding is not counted.
        """
        return self.problem.at(self.w.copy(), self.scores(), among, self._columns)

    def certified_point(self, among: Array | None = None) -> PenalisedPoint:
        """The same with scores computed from the weights: its certificate holds."""
        if not self._is_fresh:
            self.move_to(self.w)
        return self.point(among)


class Log:
    """Collects the history of a descent and talks to its callback."""

    KEYS = ("objective", "gap", "kkt_residual", "n_nonzero", "n_sweeps", "n_working", "seconds")

    def __init__(self, callback: Callback | None, started: float | None = None) -> None:
        self.callback = callback
        self.started = time.perf_counter() if started is None else started
        self.history: dict[str, list[float]] = {key: [] for key in self.KEYS}
        self.context: dict[str, float] = {}  # what every entry is to say of where the solver is

    def record(self, descent: Descent, point: PenalisedPoint, n_working: int) -> bool:
        """Add a point; True if the callback asks to stop."""
        entry = {
            "objective": point.value,
            "gap": point.gap,
            "kkt_residual": point.kkt_residual,
            "n_nonzero": int(np.count_nonzero(point.w)),
            "n_sweeps": descent.n_sweeps,
            "n_working": n_working,
            "seconds": time.perf_counter() - self.started,
            **self.context,
        }
        for key, value in entry.items():
            self.history.setdefault(key, []).append(value)
        if self.callback is None:
            return False
        n_iter = len(self.history["objective"]) - 1
        return bool(self.callback({**entry, "w": read_only(point.w), "n_iter": n_iter}))

    def result(self, point: PenalisedPoint, n_sweeps: int, verdict: Verdict) -> Result:
        stopped, message = verdict
        return Result(
            w=point.w,
            value=point.value,
            gap=point.gap,
            gradient_norm=point.kkt_residual,
            kkt_residual=point.kkt_residual,
            n_iter=n_sweeps,
            n_hvp=0,
            converged=stopped == "tolerance",
            stopped=stopped,
            message=message,
            history=self.history,
        )


def descend(
    descent: Descent,
    *,
    tol: float,
    max_iter: int,
    among: Array | None = None,
    is_plain: bool = False,
    log: Log | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise F from where the descent is; stop when the certified gap is at most ``tol·F``.

    With the l1 penalty, sweeps go over a working set: the features with a weight, and those whose
    derivative exceeds alpha at the last certificate; it is enlarged until the certificate, which
    looks at all features, is satisfied. Without a penalty there is no certificate: the descent
    stops when the steps between two looks lower F by less than ``tol·F``.

    Parameters
    ----------
    descent : Descent
        Moved to the minimiser.
    tol, max_iter : float, int
        Tolerance; sweeps at most.
    among : int64 array, optional
        Features that may move, ascending; the others keep their weights and have no part in the
        certificate. All if None.
    is_plain : bool
        Sweeps only. Otherwise Newton steps on the working set go in between: where features go
        together, sweeps alone creep.
    log : Log, optional
        A history to go on with; a new one, with ``callback``, if None.
    """
    log = Log(callback) if log is None else log
    first = descent.n_sweeps
    features = np.arange(descent.problem.n_features) if among is None else among
    before, patience = np.inf, Patience()
    while True:
        point = descent.point(among)
        decrease, before = before - point.value, point.value
        working = _working(point, features)
        n_left = max_iter - (descent.n_sweeps - first)
        is_vain = patience.is_over(point.gap, decrease <= point.rounding)
        if _verdict(point, tol, False, decrease, n_left, is_vain) is not None:
            point = descent.certified_point(among)
        wants_stop = log.record(descent, point, len(working))
        verdict = _verdict(point, tol, wants_stop, decrease, n_left, is_vain)
        if verdict is not None:
            return log.result(point, descent.n_sweeps - first, verdict)
        if not is_plain and descent.n_sweeps > first:
            descent.jump(point, working)
        # Between Newton steps that know of the penalty, one sweep tells which features move.
        n = 1 if not is_plain and writes_hessian(len(working)) else _SWEEPS
        _sweeps(descent, working, min(n, n_left), 0.03 * tol * point.value)


def _working(point: PenalisedPoint, features: Array) -> Array:
    if point.penalty != "l1":
        return features
    is_in = (point.w[features] != 0.0) | (np.abs(point.derivatives) > point.alpha)
    working: Array = features[is_in]
    return working


def _sweeps(descent: Descent, features: Array, n: int, enough: float) -> None:
    """Sweep until a sweep brings little, n times at most."""
    first = decrease = descent.sweep(features)
    for _ in range(n - 1):
        if decrease <= max(_ENOUGH * first, enough):
            break
        decrease = descent.sweep(features)


def _verdict(
    point: PenalisedPoint,
    tol: float,
    wants_stop: bool,
    decrease: float,
    n_left: int,
    is_vain: bool,
) -> Verdict | None:
    """Why to stop before another sweep; None to go on."""
    if wants_stop:
        return "callback", "stopped by the callback"
    if point.gap <= tol * point.value:
        return "tolerance", f"certified F - F* <= {tol:g}·F"
    if point.penalty == "none" and decrease <= tol * point.value:
        return "tolerance", f"the last steps lowered F by less than {tol:g}·F"
    if n_left <= 0:
        return "max_iter", _too_few(point, tol, decrease)
    if is_vain and point.penalty != "none":
        return "precision", (
            f"rounding lets no more be certified than F - F* <= {point.gap:.3g}, above tol·F = "
            f"{tol * point.value:.3g}; raise tol"
        )
    return None


def _too_few(point: PenalisedPoint, tol: float, decrease: float) -> str:
    left = f"the certified gap, {point.gap:.3g},"
    if point.penalty == "none":
        left = f"the decrease of the last steps, {decrease:.3g},"
    limit = tol * point.value
    remedy = "raise max_iter or tol, or scale the features"
    return f"{left} is above tol·F = {limit:.3g} after max_iter sweeps; {remedy}"
