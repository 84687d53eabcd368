"""Newton steps: what ends a coordinate descent.

Along features that go together, coordinate descent creeps: each of them alone can do little. A step
to the minimum of the quadratic model sees all of them at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.domination.problem import DominationProblem, PenalisedPoint
from linrank.solvers.preconditioner import by_cholesky

__all__ = ["newton_step", "writes_hessian"]

Array = NDArray[Any]

_MATRIX = 600  # features up to which the Hessian is written down: it costs some tens of products
_PRODUCTS = 60  # of the Hessian, at most, in one step
_SWEEPS = 1000  # over a written Hessian, each some microseconds
_ROUNDS = 10
_HALVINGS = 8


def writes_hessian(problem: DominationProblem) -> bool:
    """Whether a step writes the Hessian of all features down."""
    return problem.n_features <= _MATRIX


def newton_step(
    problem: DominationProblem, point: PenalisedPoint, features: Array, diagonal: Array | None
) -> Array | None:
    """Weights with a lower objective, from the quadratic model at ``point``; None if none is found.

    With a written Hessian the model is minimised with its penalty. Otherwise a Newton step is made
    on the features that have a weight, where a weight that would change its sign stops at zero.

    Parameters
    ----------
    problem : DominationProblem
        What is minimised.
    point : PenalisedPoint
        Where it is.
    features : int64 array
        Those that move.
    diagonal : array or None
        Second derivatives of the loss along them; None where the Hessian is written down.
    """
    if diagonal is None:
        return _lower(problem, point, features, _by_matrix(point, features), may_cross=True)
    d = _by_products(point, features, diagonal)
    return _lower(problem, point, features, d, may_cross=problem.penalty != "l1")


def _lower(
    problem: DominationProblem, point: PenalisedPoint, features: Array, d: Array, may_cross: bool
) -> Array | None:
    """The weights at the first of the steps 1, ½, ¼, ... along ``d`` that lowers the objective."""
    step = 1.0
    for _ in range(_HALVINGS):
        w: Array = point.w.copy()
        w[features] += step * d
        if not may_cross:
            w[features] = np.where(w[features] * point.w[features] > 0.0, w[features], 0.0)
        if problem.at(w).value < point.value:
            return w
        step *= 0.5
    return None


def _ridge(point: PenalisedPoint) -> float:
    return 2.0 * point.alpha if point.penalty == "l2" else 0.0


def _by_matrix(point: PenalisedPoint, features: Array) -> Array:
    hessian = point.risk.hessian_matrix()[np.ix_(features, features)]
    if point.penalty != "l1":
        hessian[np.diag_indices_from(hessian)] += _ridge(point)
        return -by_cholesky(hessian)(point.subgradient[features])
    w = point.w[features]
    g = np.ascontiguousarray(point.risk.gradient[features])
    return _sparse_minimum(hessian, g, w, point.alpha, 1e-7 * point.value) - w


def _sparse_minimum(hessian: Array, g: Array, w: Array, alpha: float, enough: float) -> Array:
    """The v that minimises ``g·(v - w) + ½(v - w)'H(v - w) + alpha‖v‖₁``.

    Sweeps find which weights are zero and the signs of the others, equations their values; where
    these would change a sign, that weight becomes zero on the way, and the rest is solved again.
    """
    flat, v = hessian.reshape(-1), w
    for _ in range(_ROUNDS):
        slope = g + hessian @ (v - w)
        v = _core.sparse_quadratic(flat, slope, v, alpha, enough, _SWEEPS)
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


def _by_products(point: PenalisedPoint, features: Array, diagonal: Array) -> Array:
    """Conjugate gradients, preconditioned by the diagonal, to a tenth of the residual or less."""
    ridge, g = _ridge(point), point.subgradient[features]
    inverse = 1.0 / (diagonal + ridge)
    full = np.zeros(len(point.w))
    d, r = np.zeros(len(g)), -g
    z = inverse * r
    p, rz = z, _core.dot(r, z)
    # What a step leaves is then of the order of the square of what it began with.
    enough = rz * min(1e-2, max(1e-6, rz / max(point.value, 1e-300)))
    for _ in range(_PRODUCTS):
        full[features] = p
        product = point.risk.hvp(full)[0][features] + ridge * p
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
