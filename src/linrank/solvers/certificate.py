"""Certificates: how far, at most, a point is from the optimum, in spite of all rounding.

By weak duality, every feasible point α of the dual, at every length t, gives a lower bound of

    F(w) = R(w) + risk(w),    D(t) = t e'α - t²‖α‖²/4C - R*(t u) <= F*,    u = -∇risk(w),

R = ½‖w‖² on a box, R* its conjugate. The sums ``e'α`` and ``‖α‖²/4C`` are handed over on the safe
side of their rounding (`Dual`), ``|u - exact| <= e`` is known by coordinate, and so is by how much
``F(w)`` as computed may be off. So ``F(w) - D`` with all of that added is a bound that holds, and
the least of many such bounds, of one iterate or another, holds as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import Box
from linrank.data.rows import dot
from linrank.losses.base import Dual

Array = NDArray[Any]

_UNIT = 2.0**-53  # of rounding


def duality_gap(point: Any) -> float:
    """A bound on ``F(w) - F*`` from the dual point that goes with ``w``."""
    return float(point.primal + point.primal_error - lower_bound(point))


def lower_bound(point: Any) -> float:
    """A lower bound of ``F*`` from the dual point that goes with ``w``, at its best length.

    No risk is negative, so that the least of the regulariser is one as well, and rounding so large
    that it makes D no number costs no more than that.
    """
    dual, box = point.dual, point.box
    bound = _freely(point, dual) if box is None else _in_box(point, box, dual)
    least = 0.0 if box is None else _least(box)
    return float(bound) if bound > least else least


def _freely(point: Any, dual: Dual) -> float:
    """``max_t ta - t²b`` with ``a = e'α``, ``b = ½(‖u‖ + ‖e‖)² + ‖α‖²/4C`` on the safe side."""
    half = (0.5 * float(point.risk_square) + dual.quadratic) * (1.0 + 8.0 * _UNIT)
    if not (dual.linear > 0.0 and half > 0.0):
        return 0.0  # rounding has eaten e'α, and no length of α is any good
    t = min(dual.linear / (2.0 * half), dual.largest)
    linear, quadratic = t * dual.linear, t * t * half
    return linear - quadratic - 4.0 * _UNIT * (linear + quadratic)


def _in_box(point: Any, box: Box, dual: Dual) -> float:
    """The same with ``R*(v) = v·clip(v) - ½‖clip(v)‖²``.

    The slope of R* is ``clip(v)``, which moves no farther than v: an error e of u costs at most
    ``t e·|clip(tu)| + ½t²‖e‖²``.
    """
    u, error = -point.risk_gradient, point.risk_gradient_error
    t = _best_length(u, box, dual)
    v = box.clip(t * u)
    terms = v * (t * u - 0.5 * v)
    sizes = np.abs(v) * (np.abs(t * u) + 0.5 * np.abs(v))
    linear, quadratic = t * dual.linear, t * t * dual.quadratic
    value = linear - quadratic - float(terms.sum())
    with np.errstate(invalid="ignore", over="ignore"):  # of an error without bound: no number
        value -= t * float(error @ np.abs(v)) + 0.5 * t * t * float(error @ error)
    n = len(u) + 8
    return value - n * _UNIT * (abs(linear) + quadratic + float(sizes.sum()))


def _least(box: Box) -> float:
    """``min ½‖w‖²`` in the box, rounded down."""
    nearest = box.clip(np.zeros_like(box.lower))
    return 0.5 * float(nearest @ nearest) * (1.0 - (len(nearest) + 4) * _UNIT)


def _best_length(u: Array, box: Box, dual: Dual) -> float:
    """The t that nearly maximises the concave ``D(t) = t e'α - t²‖α‖²/4C - R*(tu)``.

    Its slope ``e'α - t‖α‖²/2C - u·clip(tu)`` falls, piece by piece linearly: Newton's method from
    ``t = 1``, kept between a t where it is positive and one where it is not. Far from the optimum
    the best t may be smaller by many orders of magnitude. Every t gives a bound, so none is needed
    to the last digit.
    """
    t, low, high = min(1.0, dual.largest), 0.0, math.inf
    for _ in range(100):
        v = box.clip(t * u)
        slope = dual.linear - 2.0 * t * dual.quadratic - dot(u, v)
        low, high = (t, high) if slope > 0.0 else (low, t)
        inside = np.where((box.lower < v) & (v < box.upper), u, 0.0)
        curvature = 2.0 * dual.quadratic + dot(inside, inside)
        last, t = t, t + slope / curvature if curvature > 0.0 else math.inf
        if not low < t < high:  # or no number
            t = 16.0 * low if high == math.inf else max(high / 16.0, 0.5 * (low + high))
        t = min(t, dual.largest)
        if abs(t - last) <= 1e-6 * last or not 1e-300 < t < 1e300:
            break
    return last


def kkt_residual(point: Any) -> float:
    """``‖w - clip(w - ∇F(w))‖``: how far a step down the gradient gets inside the box."""
    g = point.gradient
    if point.box is not None:
        g = point.w - point.box.clip(point.w - g)
    return math.sqrt(dot(g, g))
