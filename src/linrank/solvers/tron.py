"""Trust-region Newton with plain conjugate gradients: Lee and Lin's solver, as published."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank._core import dot
from linrank.objective import Term
from linrank.solvers.result import Callback, Recorder, Result

Array = NDArray[Any]

# Acceptance and radius constants of the LIBLINEAR family, inside the ranges of Lee & Lin's (37).
_ETA = (1e-4, 0.25, 0.75)
_SIGMA = (0.25, 0.5, 4.0)
_ROUNDING = 1e-12


def tron(
    objective: Term,
    w0: Array,
    *,
    tol: float = 1e-3,
    max_iter: int = 100,
    callback: Callback | None = None,
    started: float | None = None,
) -> Result:
    """Minimise by a trust-region Newton method; stop when ``‖∇F(w)‖ <= tol·‖∇F(0)‖``."""
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
    """Approximate minimiser s of the quadratic model in ``‖s‖ <= radius``; r = -∇F - Hs."""
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
