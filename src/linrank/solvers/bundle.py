"""Cutting planes for ``½‖w‖² + risk(w)``, with a line search between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linrank import _core
from linrank.data.rows import Array
from linrank.objective import Sum
from linrank.solvers.result import Callback, Recorder, Result

_ACCURACY = 1e-13  # of what is missing to the maximum on the simplex
_LIFT = 1e-14  # of the diagonal, so that dependent rows can be factored


def maximize_on_simplex(gram: Array, b: Array, start: Array) -> Array:
    """``argmax b'β - ½β'Gβ`` over ``β >= 0, Σβ = 1``, by a primal active-set method.

    With the slopes ``s = b - Gβ``, concavity bounds what is missing by ``max s - s'β``; the method
    ends when that is at most 1e-13 of the value, or does not fall any more, or after ``100 + 20 m``
    steps, which only rounding can exhaust.
    Every step goes to the maximum over the rows in use, or up to the first that reaches zero, which
    is then put aside; once the slopes in use are equal, the row of the largest slope joins them.

    Parameters
    ----------
    gram : float64 array (m, m)
        G, positive semidefinite; equal and dependent rows are allowed.
    b : float64 array (m,)
        The linear term.
    start : float64 array (m,)
        A point of the simplex; the nearer to the optimum, the fewer steps.

    Returns
    -------
    float64 array (m,)
        β, exactly on the simplex but for the rounding of its sum.
    """
    rows = _core.dense_rows(gram)
    beta = np.array(start, dtype=np.float64)
    in_use, is_full, progress = beta > 0.0, False, _Progress()
    for _ in range(100 + 20 * len(b)):
        product = _core.scores(rows, beta, None, 1)
        slope = b - product
        level, linear = _core.dot(slope, beta), _core.dot(b, beta)
        value = 0.5 * (linear + level)
        best = int(np.argmax(slope))
        excess = float(slope[best]) - level
        if excess <= _ACCURACY * abs(value) or progress.has_ended(value, abs(linear), excess):
            break
        # Only where the slopes in use are equal does the new row enter with a positive weight.
        is_level = is_full or np.abs(slope[in_use] - level).max() <= 1e-6 * excess
        is_new = is_level and not in_use[best]
        in_use[best] |= is_new
        beta, in_use, is_full = _step(gram, slope, beta, in_use)
        progress.is_refining = is_full and not is_new
    return beta


class _Progress:
    """Tells when only rounding is left."""

    def __init__(self) -> None:
        self.is_refining = False
        self._value, self._excess = -np.inf, np.inf
        self._n_flat = self._n_vain = 0

    def has_ended(self, value: float, size: float, excess: float) -> bool:
        """Whether full steps over the same rows do not help, or nothing has for a while."""
        is_vain = self.is_refining and excess > 0.5 * self._excess
        self._n_vain = self._n_vain + 1 if is_vain else 0
        self._excess = min(excess, self._excess) if self.is_refining else excess
        self._n_flat = 0 if value > self._value + 4e-16 * size else self._n_flat + 1
        self._value = max(value, self._value)
        return self._n_vain > 1 or self._n_flat > 30


def _step(gram: Array, slope: Array, beta: Array, in_use: Array) -> tuple[Array, Array, bool]:
    """Towards the maximum over the rows in use; those left in use, and whether that are all."""
    used = np.flatnonzero(in_use)
    d = _direction(gram[np.ix_(used, used)], slope[used])
    beta, in_use = beta.copy(), in_use.copy()
    falling = d < 0.0
    reach = np.full(len(used), np.inf)
    reach[falling] = beta[used[falling]] / -d[falling]
    t = min(1.0, float(reach.min()))
    beta[used] = np.maximum(0.0, beta[used] + t * d)
    if t < 1.0:
        gone = used[reach <= t]
        beta[gone], in_use[gone] = 0.0, False
    return beta / beta.sum(), in_use, t == 1.0


def _direction(gram: Array, slope: Array) -> Array:
    """``argmax s'd - ½d'Gd`` over ``Σd = 0``.

    On that plane G may be lifted by any multiple of ``ee'``, which makes it definite where the rows
    are affinely independent. Where they are not, a lift of the diagonal in its last digits stands
    in: d is then huge along the null space, and ends where the first β vanishes. As the slopes are
    those at the current β, the lift bends the path but not the optimum.
    """
    n = len(slope)
    diagonal = np.diagonal(gram)
    level = float(diagonal.sum()) / n or 1.0
    matrix = gram + level
    factor: Any = None
    share = _LIFT
    while factor is None:
        lifted = matrix + np.diag(share * (diagonal + level))
        factor = _core.cholesky_factor(lifted.reshape(-1), n)
        share *= 10.0
    x = _core.cholesky_solve(factor, n, slope - slope.sum() / n)
    y = _core.cholesky_solve(factor, n, np.ones(n))
    return x - (x.sum() / y.sum()) * y


_PATIENCE = 30  # rounds that a plane may stay out of the model's minimum before it is dropped
_SHARE = 1e-3  # of the gap, to which F is minimized along a line
_LARGEST = 1e150  # of ‖a‖²
_ROUNDING = 1e-15


def bundle(
    objective: Sum,
    w0: Array,
    *,
    tol: float = 1e-3,
    max_iter: int = 2000,
    callback: Callback | None = None,
    started: float | None = None,
) -> Result:
    """Minimize ``F(w) = ½‖w‖² + risk(w)``; stop when the certified gap is at most ``tol·F``.

    The risk need not be smooth. Every sub-gradient is a plane below it, and the minimum of ½‖w‖²
    plus the highest plane is a lower bound of F that can only rise (Teo et al. 2010). F is then
    minimized exactly between the best point so far and the minimizer of that model, and cut just
    beyond (after Franc & Sonnenburg 2009). A round costs one product with X, one with Xᵀ, and
    two to four sweeps of the scores. The history's "gradient_norm" is the distance of the two
    points, the norm of a gap-sub-gradient of F; "objective" is the least so far.
    """
    recorder = Recorder(callback, started)
    best, step, reached, n_idle = objective.at(w0), 0.0, 1.0, 0
    model = _Model(len(w0))
    model.cut(best)
    while True:
        before, bound = recorder.best_bound, model.bound()
        d = model.w - best.w
        norm = math.sqrt(_core.dot(d, d))
        if recorder.add(best, bound, gradient_norm=norm, kkt_residual=norm, step=step, n_hvp=0):
            return recorder.result(best, "callback", "stopped by the callback")
        gap, goal = recorder.history["gap"][-1], tol * best.value
        if gap <= goal:
            return recorder.result(best, "tolerance", f"certified: F - F* <= {tol:g}·F")
        is_idle = step == 0.0 and recorder.best_bound - before <= _ROUNDING * best.value
        n_idle = n_idle + 1 if is_idle else 0
        if n_idle > 5:
            message = "neither F nor its lower bound moves: rounding forbids further progress"
            return recorder.result(best, "precision", message)
        if recorder.n_iter >= max_iter:
            message = f"the gap, {gap:.3g}, is above tol·F = {goal:.3g} after max_iter={max_iter}"
            return recorder.result(best, "max_iter", f"{message} iterations; raise max_iter or tol")
        first = min(1.0, max(1e-3, reached))
        best, step, beyond, reached = _search(best, d, first, _SHARE * gap)
        model.cut(beyond)


class _Model:
    """``½‖w‖² + max_t (a_t·w + b_t)``, a lower bound of F, by its dual.

    ``max_β b'β - ½‖Σ β_t a_t‖²`` over the simplex, attained at ``w = -Σ β_t a_t``. The first plane
    is zero: a risk is not negative.
    """

    def __init__(self, n_features: int) -> None:
        self.w = np.zeros(n_features)
        self._n = 1
        self._a, self._b, self._gram = np.zeros((8, n_features)), np.zeros(8), np.zeros((8, 8))
        self._error = np.zeros((8, n_features))  # of a
        self._beta, self._age = np.ones(1), np.zeros(1, dtype=np.int64)

    def cut(self, point: Any) -> None:
        """Add the plane that touches the risk at a point.

        Where α is the slope of the loss at each pair, ``b = risk - a·w = e'α - ‖α‖²/4C``: a sum of
        positive terms, free of the cancellation in the difference.
        """
        a = point.risk_gradient
        square = _core.dot(a, a)
        if not square < _LARGEST:
            raise ValueError(
                f"the gradient of the risk has the squared norm {square:g}: the features are too "
                "large for double precision; divide them by a common factor"
            )
        self._drop_idle()
        if self._n == len(self._b):
            more = (0, self._n)
            self._a, self._error = (np.pad(x, (more, (0, 0))) for x in (self._a, self._error))
            self._b, self._gram = np.pad(self._b, more), np.pad(self._gram, more)
        n = self._n
        dual = point.dual
        self._a[n], self._b[n] = a, dual.linear - dual.quadratic
        self._error[n] = point.risk_gradient_error
        products = _core.scores(_core.dense_rows(self._a[: n + 1]), a, None, 1)
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = products
        self._n = n + 1
        self._beta, self._age = np.append(self._beta, 0.0), np.append(self._age, 0)

    def bound(self) -> float:
        """The minimum of the model, attained at ``self.w``, less what rounding may have added."""
        n = self._n
        gram, b = np.ascontiguousarray(self._gram[:n, :n]), self._b[:n]
        self._beta = maximize_on_simplex(gram, b, self._beta)
        self._age = np.where(self._beta > 0.0, 0, self._age + 1)
        self.w = -_core.gradient(_core.dense_rows(self._a[:n]), self._beta, None, 1)
        size = np.abs(self._a[:n]).T @ self._beta
        above = np.abs(self.w) + self._error[:n].T @ self._beta + 2.0**-53 * (n + 8) * size
        linear, square = _core.dot(b, self._beta), 0.5 * _core.dot(above, above)
        rounding = 2.0**-53 * (n * float(np.abs(b) @ self._beta) + (len(above) + 8) * square)
        return linear - square - rounding

    def _drop_idle(self) -> None:
        """Forget planes long out of use: without them the minimum is the same."""
        is_kept = self._age <= _PATIENCE
        is_kept[0] = True
        if is_kept.all():
            return
        kept = np.flatnonzero(is_kept)
        n = len(kept)
        self._a[:n], self._b[:n] = self._a[kept], self._b[kept]
        self._error[:n] = self._error[kept]
        self._gram[:n, :n] = self._gram[np.ix_(kept, kept)]
        self._beta, self._age, self._n = self._beta[kept], self._age[kept], n


def _search(start: Any, d: Array, first: float, precision: float) -> tuple[Any, float, Any, float]:
    """The minimum of ``φ(t) = F(w + t d)``, between points whose slopes differ in sign.

    Returns the lowest point and its step, and the upper end of the bracket, which is narrowed from
    a ``first`` guess on, and the step there. The tangents at both ends meet below the minimum, so
    the search may stop when the better end is within ``precision`` of that. At the upper end φ does
    not fall: the plane there lifts the model at its minimizer, which is farther along d, to F(w) or
    more, by all of the gap.
    """
    image = start.image(d)
    low, below, low_slope = 0.0, start, start.slope(d, image)
    lowest, step = start, 0.0
    if not low_slope < 0.0:
        return lowest, step, below, low
    t, high, beyond, high_slope = first, math.inf, start, 0.0
    for n_trials in range(60):
        point = start.moved(t, d, image)
        if point.value < lowest.value:
            lowest, step = point, t
        slope = point.slope(d, image)
        if slope < 0.0:
            low, below, low_slope = t, point, slope
        else:
            high, beyond, high_slope = t, point, slope
        if high == math.inf:
            t *= 2.0
            continue
        width = high - low
        fall = high_slope - low_slope
        meet = (below.value - beyond.value + high_slope * width) / fall
        if lowest.value - (below.value + low_slope * meet) <= precision:
            break
        # Far from a kink the slope is nearly linear, at a kink the tangents meet.
        t = low + (meet if n_trials % 3 == 2 else -low_slope * width / fall)
        if not low < t < high:
            break
    return (lowest, step, beyond, high) if high < math.inf else (lowest, step, below, low)
