"""Coordinate descent: one weight at a time, each to the minimum of a bound of the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linrank import _core
from linrank.data.rows import Array, narrow_rows
from linrank.domination.problem import DominationLoss, DominationProblem, PenalizedPoint
from linrank.objective import Risk, RiskPoint
from linrank.solvers.conjugate import by_cholesky
from linrank.solvers.result import Callback, History, Patience, Result, Verdict

_MATRIX = 600  # features up to which the Hessian is written down: it costs some tens of products
_PRODUCTS = 60  # of the Hessian, at most, in one step
_HESSIAN_SWEEPS = 1000  # over a written Hessian, each some microseconds
_ROUNDS = 10
_REACH = 1e6  # by how much a step may change a score, relative to the largest
_HALVINGS = 8


def newton_step(
    point: PenalizedPoint, columns: _core.Columns, features: Array, diagonal: Array
) -> Array | None:
    """Weights with a lower objective, from the quadratic model at ``point``; None if none is found.

    Of few features the Hessian is written down, and the model minimized with its penalty. Of many,
    those with a weight make a Newton step, where a weight that would change its sign stops at zero.

    Parameters
    ----------
    point : PenalizedPoint
        Where the descent is.
    columns : Columns
        The rows by column.
    features : int64 array
        Those that move, ascending.
    diagonal : array
        Second derivatives of the loss along them.
    """
    is_small = len(features) <= _MATRIX
    may_cross = is_small or point.penalty != "l1"
    if not may_cross:
        is_moving = point.w[features] != 0.0
        features, diagonal = features[is_moving], diagonal[is_moving]
    part = _part(point, columns, features)
    with np.errstate(all="ignore"):
        d = _by_matrix(point, part) if is_small else _by_products(point, part, diagonal)
    return _lower(point, part, features, d, may_cross)


def _part(point: PenalizedPoint, columns: _core.Columns, features: Array) -> RiskPoint:
    """The loss at the same scores, as a function of the weights of ``features`` alone."""
    if len(features) == len(point.w):
        return point.risk
    risk = point.risk.risk
    assert isinstance(risk.loss, DominationLoss)
    scale = None if risk.scale is None else risk.scale[features]
    narrow = Risk(narrow_rows(columns, features), risk.loss.by_position(), risk.C, scale)
    part = RiskPoint(narrow, point.w[features], point.risk.z)
    part.__dict__["loss"] = point.risk.loss  # what the cached property would compute again
    return part


def _lower(
    point: PenalizedPoint, part: RiskPoint, features: Array, d: Array, may_cross: bool
) -> Array | None:
    """The weights at the first of the steps 1, ½, ¼, ... along ``d`` that lowers the objective."""
    if not np.isfinite(d).all():  # curvature that has under- or overflowed leads nowhere
        return None
    # Next to no curvature: any length lowers the objective of rows that can be told apart.
    reach, limit = np.abs(part.image(d)).max(), _REACH * (1.0 + np.abs(point.risk.z).max())
    step, before = (1.0 if reach <= limit else limit / reach), part.w
    for _ in range(_HALVINGS):
        after = before + step * d
        if not may_cross:
            after = np.where(after * before > 0.0, after, 0.0)
        w: Array = point.w.copy()
        w[features] = after
        change = after - before
        if _is_lower(point.at_scores(w, part.moved(1.0, change, part.image(change)).z), point):
            return w
        step *= 0.5
    return None


def _is_lower(trial: PenalizedPoint, point: PenalizedPoint) -> bool:
    """Whether F is lower; where rounding hides it, whether the conditions hold better."""
    if abs(trial.value - point.value) > 1e-12 * abs(point.value):
        return trial.value < point.value
    return trial.kkt_residual < point.kkt_residual


def _ridge(point: PenalizedPoint) -> float:
    return 2.0 * point.alpha if point.penalty == "l2" else 0.0


def _by_matrix(point: PenalizedPoint, part: RiskPoint) -> Array:
    hessian, g = part.hessian_matrix(), part.gradient
    if point.penalty != "l1":
        hessian[np.diag_indices_from(hessian)] += _ridge(point)
        return -by_cholesky(hessian)(g + _ridge(point) * part.w)
    enough = 1e-7 * point.value
    return _sparse_minimum(hessian, g, part.w, point.alpha, enough) - part.w


def _sparse_minimum(hessian: Array, g: Array, w: Array, alpha: float, enough: float) -> Array:
    """The v that minimizes ``g·(v - w) + ½(v - w)'H(v - w) + alpha‖v‖₁``.

    Sweeps find which weights are zero and the signs of the others, equations their values; where
    these would change a sign, that weight becomes zero on the way, and the rest is solved again.
    """
    flat, v = hessian.reshape(-1), w
    for _ in range(_ROUNDS):
        slope = g + hessian @ (v - w)
        v = _core.sparse_quadratic(flat, slope, v, alpha, enough, _HESSIAN_SWEEPS)
        is_moving = v != 0.0
        while is_moving.any():
            slope = g + hessian @ (v - w)
            d = np.zeros(len(v))
            kept = hessian[np.ix_(is_moving, is_moving)]
            d[is_moving] = -by_cholesky(kept)((slope + alpha * np.sign(v))[is_moving])
            room = np.divide(-v, d, out=np.full(len(v), np.inf), where=v * d < 0.0)
            first = int(np.argmin(room))
            if room[first] > 1.0:
                v = v + d
                break
            v = v + room[first] * d
            v[first], is_moving[first] = 0.0, False
        slope = g + hessian @ (v - w)
        if (np.abs(slope[v == 0.0]) <= alpha * (1.0 + 1e-9)).all():
            break
    return v


def _by_products(point: PenalizedPoint, part: RiskPoint, diagonal: Array) -> Array:
    """Conjugate gradients, preconditioned by the diagonal, to a tenth of the residual or less."""
    ridge = _ridge(point)
    inverse = 1.0 / (diagonal + ridge)
    r = -(part.gradient + ridge * part.w)
    if point.penalty == "l1":
        r -= point.alpha * np.sign(part.w)
    d = np.zeros(len(r))
    z = inverse * r
    p, rz = z, _core.dot(r, z)
    # What a step leaves is then of the order of the square of what it began with.
    enough = rz * min(1e-2, max(1e-6, rz / max(point.value, 1e-300)))
    for _ in range(_PRODUCTS):
        product = part.hvp(p)[0] + ridge * p
        curvature = _core.dot(p, product)
        if not curvature > 0.0:
            break
        step = rz / curvature
        d += step * p
        r = r - step * product
        z = inverse * r
        rz, last = _core.dot(r, z), rz
        if rz <= enough:
            break
        p = z + (rz / last) * p
    return d


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
        known = (self.gradient, self.hessian, self.bound, self.range)
        found = _core.coordinate_steps(*known, w[self.features], penalty, alpha)
        return np.asarray(found[1])


class Descent:
    """A coordinate descent on its way: weights, and the state of all queries there.

    Parameters
    ----------
    problem : DominationProblem
        What is minimized; its alpha may change on the way (`problem` is an attribute).
    w0 : array or None
        Start; zero if None.
    curvature : {"local", "range", "paper"}
        How the second derivative along a feature is bounded: ``"local"`` follows it. For
        comparison, ``"range"`` takes a quarter of the squared range for every row and ``"paper"``
        the square of the largest value; these are plain descents.

    Attributes
    ----------
    is_plain : bool
        Sweeps only. Otherwise Newton steps on the working set go in between: where features go
        together, sweeps alone creep.
    """

    def __init__(
        self, problem: DominationProblem, w0: Array | None = None, *, curvature: str = "local"
    ) -> None:
        self.problem = problem
        self.curvature, self.is_plain = curvature, curvature != "local"
        self.n_sweeps = 0
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

    def jump(self, point: PenalizedPoint, features: Array) -> None:
        """Make a Newton step on ``features`` from ``point``, where this is, if it lowers F."""
        bounds = self.measure(features)
        is_useful = bounds.bound > 0.0  # the others have no slope but rounding
        if is_useful.any():
            moving, diagonal = features[is_useful], bounds.hessian[is_useful]
            w = newton_step(point, self._columns, moving, diagonal)
            if w is not None:
                self.move_to(w)

    def point(self, among: Array | None = None) -> PenalizedPoint:
        """The objective, gradient and certificate here, of the features ``among`` if given.

        The scores are those that sweeps have carried along: their rounding is not counted.
        """
        return self.problem.at(self.w.copy(), self._state.scores(), among, self._columns)

    def certified_point(self, among: Array | None = None) -> PenalizedPoint:
        """The same with scores computed from the weights: its certificate holds."""
        if not self._is_fresh:
            self.move_to(self.w)
        return self.point(among)


class Log(History):
    """The history of a descent."""

    def __init__(self, callback: Callback | None, started: float | None = None) -> None:
        keys = ("objective", "gap", "kkt_residual", "n_nonzero", "n_sweeps", "n_working", "seconds")
        super().__init__(callback, started, keys)
        self.context: dict[str, float] = {}  # what every entry is to say of where the solver is

    def record(self, descent: Descent, point: PenalizedPoint, n_working: int) -> bool:
        """Add an iterate; True if the callback asks to stop."""
        entry = {
            "objective": point.value,
            "gap": point.gap,
            "kkt_residual": point.kkt_residual,
            "n_nonzero": int(np.count_nonzero(point.w)),
            "n_sweeps": descent.n_sweeps,
            "n_working": n_working,
            **self.context,
        }
        return self.append(lambda: point.w, entry)

    def result(self, point: PenalizedPoint, n_sweeps: int, verdict: Verdict) -> Result:
        ending = {**self.ending(*verdict, point.kkt_residual), "n_iter": n_sweeps}
        return Result(w=point.w, value=point.value, gap=point.gap, **ending)


def descend(
    descent: Descent,
    *,
    tol: float,
    max_iter: int,
    among: Array | None = None,
    log: Log | None = None,
) -> Result:
    """Minimize F from where the descent is; stop when the certified gap is at most ``tol·F``.

    With the l1 penalty, sweeps go over a working set: the features with a weight, and those whose
    derivative exceeds alpha at the last certificate; it is enlarged until the certificate, which
    looks at all features, is satisfied. Without a penalty there is no certificate: the descent
    stops when the steps between two looks lower F by less than ``tol·F``.

    Parameters
    ----------
    descent : Descent
        Moved to the minimizer.
    tol, max_iter : float, int
        Tolerance; sweeps at most.
    among : int64 array, optional
        Features that may move, ascending; the others keep their weights and have no part in the
        certificate. All if None.
    log : Log, optional
        A history to go on with; a new one if None.
    """
    log = log or Log(None)
    first = descent.n_sweeps
    features = np.arange(descent.problem.n_features) if among is None else among
    before, patience = np.inf, Patience()
    while True:
        point = descent.point(among)
        decrease, before = before - point.value, point.value
        working = features
        if point.penalty == "l1":
            is_in = (point.w[features] != 0.0) | (np.abs(point.derivatives) > point.alpha)
            working = features[is_in]
        n_left = max_iter - (descent.n_sweeps - first)
        is_vain = patience.is_over(point.gap, decrease <= point.rounding)
        if _verdict(point, tol, decrease, n_left, is_vain) is not None:
            point = descent.certified_point(among)
        verdict = _verdict(point, tol, decrease, n_left, is_vain)
        if log.record(descent, point, len(working)):
            verdict = ("callback", "stopped by the callback")
        if verdict is not None:
            return log.result(point, descent.n_sweeps - first, verdict)
        if not descent.is_plain and descent.n_sweeps > first:
            descent.jump(point, working)
        # Between Newton steps that know of the penalty, one sweep tells which features move.
        n = 1 if not descent.is_plain and len(working) <= _MATRIX else _SWEEPS
        _sweeps(descent, working, min(n, n_left), 0.03 * tol * point.value)


def _sweeps(descent: Descent, features: Array, n: int, enough: float) -> None:
    """Sweep until a sweep brings little, n times at most."""
    first = decrease = descent.sweep(features)
    for _ in range(n - 1):
        if decrease <= max(_ENOUGH * first, enough):
            break
        decrease = descent.sweep(features)


def _verdict(
    point: PenalizedPoint, tol: float, decrease: float, n_left: int, is_vain: bool
) -> Verdict | None:
    """Why to stop before another sweep; None to go on."""
    limit, is_free = tol * point.value, point.penalty == "none"
    if point.gap <= limit:
        return "tolerance", f"certified F - F* <= {tol:g}·F"
    if is_free and decrease <= limit:
        return "tolerance", f"the last steps lowered F by less than {tol:g}·F"
    if n_left <= 0:
        left = f"the certified gap, {point.gap:.3g},"
        left = f"the decrease of the last steps, {decrease:.3g}," if is_free else left
        return "max_iter", (
            f"{left} is above tol·F = {limit:.3g} after max_iter sweeps; raise max_iter or tol, or "
            "scale the features"
        )
    if is_vain and not is_free:
        return "precision", (
            f"rounding lets no more be certified than F - F* <= {point.gap:.3g}, above tol·F = "
            f"{limit:.3g}; raise tol"
        )
    return None
