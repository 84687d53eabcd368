"""Newton steps: what ends a coordinate descent.

Along features that go together, coordinate descent creeps: each of them alone can do little. A step
to the minimum of the quadratic model sees all of them at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import narrow_rows
from linrank.domination.problem import PenalisedPoint
from linrank.losses.domination import DominationLoss
from linrank.risk import Risk, RiskPoint
from linrank.solvers.preconditioner import by_cholesky

__all__ = ["newton_step", "writes_hessian"]

Array = NDArray[Any]

_MATRIX = 600  # features up to which the Hessian is written down: it costs some tens of products
_PRODUCTS = 60  # of the Hessian, at most, in one step
_SWEEPS = 1000  # over a written Hessian, each some microseconds
_ROUNDS = 10
_REACH = 1e6  # by how much a step may change a score, relative to the largest
_HALVINGS = 8


def writes_hessian(n_features: int) -> bool:
    """Whether a step on so many features is cheap and knows of the penalty."""
    return n_features <= _MATRIX


def newton_step(
    point: PenalisedPoint, columns: _core.Columns, features: Array, diagonal: Array
) -> Array | None:
    """Weights with a lower objective, from the quadratic model at ``point``; None if none is found.

    Of few features the Hessian is written down, and the model minimised with its penalty. Of many,
    those with a weight make a Newton step, where a weight that would change its sign stops at zero.

    Parameters
    ----------
    point : PenalisedPoint
        Where the descent is.
    columns : Columns
        The rows by column.
    features : int64 array
        Those that move, ascending.
    diagonal : array
        Second derivatives of the loss along them.
    """
    if writes_hessian(len(features)):
        part = _part(point, columns, features)
        with np.errstate(all="ignore"):
            d = _by_matrix(point, part)
        return _lower(point, part, features, d, may_cross=True)
    if point.penalty == "l1":
        is_moving = point.w[features] != 0.0
        features, diagonal = features[is_moving], diagonal[is_moving]
    part = _part(point, columns, features)
    d = _by_products(point, part, diagonal)
    return _lower(point, part, features, d, may_cross=point.penalty != "l1")


def _part(point: PenalisedPoint, columns: _core.Columns, features: Array) -> RiskPoint:
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
    point: PenalisedPoint, part: RiskPoint, features: Array, d: Array, may_cross: bool
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
        if _is_lower(point.moved_to(w, part.moved(1.0, change, part.image(change)).z), point):
            return w
        step *= 0.5
    return None


def _is_lower(trial: PenalisedPoint, point: PenalisedPoint) -> bool:
    """Whether F is lower; where rounding hides it, whether the conditions hold better."""
    if abs(trial.value - point.value) > 1e-12 * abs(point.value):
        return trial.value < point.value
    return trial.kkt_residual < point.kkt_residual


def _ridge(point: PenalisedPoint) -> float:
    return 2.0 * point.alpha if point.penalty == "l2" else 0.0


def _by_matrix(point: PenalisedPoint, part: RiskPoint) -> Array:
    hessian, g = part.hessian_matrix(), part.gradient
    if point.penalty != "l1":
        hessian[np.diag_indices_from(hessian)] += _ridge(point)
        return -by_cholesky(hessian)(g + _ridge(point) * part.w)
    enough = 1e-7 * point.value
    return _sparse_minimum(hessian, g, part.w, point.alpha, enough) - part.w


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


def _by_products(point: PenalisedPoint, part: RiskPoint, diagonal: Array) -> Array:
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
