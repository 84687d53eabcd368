"""Cutting planes for ``½‖w‖² + risk(w)``, with a line search between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.objective import Term
from linrank.solvers.result import Callback, Recorder, Result
from linrank.solvers.simplex_qp import maximise_on_simplex

__all__ = ["bundle"]

Array = NDArray[Any]
_BEYOND = 0.1  # where to cut: this share of the way from the best point to the model's minimiser
_PATIENCE = 30  # rounds that a plane may stay out of the model's minimum before it is dropped
_LARGEST = 1e150  # of ‖a‖²
_ROUNDING = 1e-15


def bundle(
    objective: Term,
    w0: Array,
    *,
    tol: float = 1e-3,
    max_iter: int = 2000,
    callback: Callback | None = None,
    started: float | None = None,
) -> Result:
    """Minimise ``F(w) = ½‖w‖² + risk(w)``; stop when the certified gap is at most ``tol·F``.

    The risk need not be smooth. Every sub-gradient is a plane below it, and the minimum of ½‖w‖²
    plus the highest plane is a lower bound of F that can only rise (Teo et al. 2010). F is then
    minimised exactly between the best point so far and the minimiser of that model, and cut a
    little beyond (Franc & Sonnenburg 2009); a step costs one product with X, one with Xᵀ, and
    sweeps of the scores.
    """
    recorder = Recorder(callback, started)
    best, step, n_idle = objective.at(w0), 0.0, 0
    model = _Model(len(w0))
    model.cut(best)
    while True:
        before = recorder.best_bound
        norm = math.sqrt(_core.dot(best.gradient, best.gradient)) if recorder.n_iter < 0 else np.nan
        if recorder.add(best, model.bound(), gradient_norm=norm, step=step, n_hvp=0):
            return recorder.result(best, "callback", "stopped by the callback")
        gap = recorder.history["gap"][-1]
        if gap <= tol * best.value:
            return recorder.result(best, "tolerance", f"certified: F - F* <= {tol:g}·F")
        risen = recorder.best_bound - before > _ROUNDING * best.value
        n_idle = 0 if risen or step > 0.0 else n_idle + 1
        if n_idle > 5:
            message = "neither F nor its lower bound moves: rounding forbids further progress"
            return recorder.result(best, "precision", message)
        if recorder.n_iter >= max_iter:
            message = (
                f"the gap {gap:.3g} is above tol·F = {tol * best.value:.3g} after "
                f"max_iter={max_iter} iterations; raise max_iter or tol"
            )
            return recorder.result(best, "max_iter", message)
        d = model.w - best.w
        image = best.image(d)
        best, step = _line_search(best, d, image, 0.01 * gap)
        model.cut(best.moved(_BEYOND * (1.0 - step), d, image))


class _Model:
    """``½‖w‖² + max_t (a_t·w + b_t)``, a lower bound of F, by its dual.

    ``max_β b'β - ½‖Σ β_t a_t‖²`` over the simplex, attained at ``w = -Σ β_t a_t``. The first plane
    is zero: a risk is not negative.
    """

    def __init__(self, n_features: int) -> None:
        self.w = np.zeros(n_features)
        self._n = 1
        self._a, self._b, self._gram = np.zeros((8, n_features)), np.zeros(8), np.zeros((8, 8))
        self._beta, self._age = np.ones(1), np.zeros(1, dtype=np.int64)

    def cut(self, point: Any) -> None:
        """Add the plane that touches the risk at a point.

        Where α is the slope of the loss at each pair, ``b = risk - a·w = e'α - ‖α‖²/4C``: a sum of
        positive terms, free of the cancellation in the difference.
        """
        a = sum((part.gradient for part in point.parts[1:]), np.zeros_like(point.w))
        square = _core.dot(a, a)
        if not square < _LARGEST:
            raise ValueError(
                f"the gradient of the risk has the squared norm {square:g}: the features are too "
                "large for double precision; divide them by a common factor"
            )
        self._drop_idle()
        if self._n == len(self._b):
            self._grow()
        n = self._n
        dual = point.dual
        self._a[n], self._b[n] = a, dual.linear - dual.quadratic + dual.slack
        products = _core.scores(_core.dense_rows(self._a[: n + 1]), a, None, 1)
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = products
        self._n = n + 1
        self._beta, self._age = np.append(self._beta, 0.0), np.append(self._age, 0)

    def bound(self) -> float:
        """The minimum of the model, attained at ``self.w``."""
        n = self._n
        gram, b = np.ascontiguousarray(self._gram[:n, :n]), self._b[:n]
        self._beta = maximise_on_simplex(gram, b, self._beta)
        self._age = np.where(self._beta > 0.0, 0, self._age + 1)
        self.w = -_core.gradient(_core.dense_rows(self._a[:n]), self._beta, None, 1)
        return _core.dot(b, self._beta) - 0.5 * _core.dot(self.w, self.w)

    def _drop_idle(self) -> None:
        """Forget planes long out of use: without them the minimum is the same."""
        kept = self._age <= _PATIENCE
        kept[0] = True
        if kept.all():
            return
        kept = np.flatnonzero(kept)
        n = len(kept)
        self._a[:n], self._b[:n] = self._a[kept], self._b[kept]
        self._gram[:n, :n] = self._gram[np.ix_(kept, kept)]
        self._beta, self._age, self._n = self._beta[kept], self._age[kept], n

    def _grow(self) -> None:
        n = self._n
        a, b, gram = self._a, self._b, self._gram
        self._a, self._b = np.zeros((2 * n, a.shape[1])), np.zeros(2 * n)
        self._gram = np.zeros((2 * n, 2 * n))
        self._a[:n], self._b[:n], self._gram[:n, :n] = a, b, gram


def _line_search(point: Any, d: Array, image: Any, precision: float) -> tuple[Any, float]:
    """The point near the minimum of F along ``d``, and its step; the start and 0 if none is lower.

    The tangents at the two ends of a bracket meet below the minimum of a convex function: the
    search ends when the better end is within ``precision`` of where they meet. The next trial is
    the root of the slope by a secant, or where the tangents meet if the secant creeps.
    """
    low, low_point, low_slope = 0.0, point, point.slope(d, image)
    if not low_slope < 0.0:
        return point, 0.0
    high, t = None, 1.0
    for trial in range(40):
        reached = point.moved(t, d, image)
        slope = reached.slope(d, image)
        if slope < 0.0:
            low, low_point, low_slope = t, reached, slope
        else:
            high, high_point, high_slope = t, reached, slope
        if high is None:
            t *= 2.0
            continue
        width = high - low
        meet = (low_point.value - high_point.value + high_slope * width) / (high_slope - low_slope)
        floor = low_point.value + low_slope * meet
        if min(low_point.value, high_point.value) - floor <= precision:
            break
        t = low + (meet if trial % 3 < 2 else 0.5 * width)
        if not low < t < high:
            break
    ends = [(point, 0.0), (low_point, low)]
    if high is not None:
        ends.append((high_point, high))
    return min(ends, key=lambda end: end[0].value)
