"""Newton's method: steps by conjugate gradients, in a box if there is one, and a line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from linrank.data.rows import Array
from linrank.objective import Sum
from linrank.solvers.bounded import BoundedDirections
from linrank.solvers.conjugate import Directions, Preconditioner
from linrank.solvers.result import (
    Callback,
    Patience,
    Recorder,
    Result,
    Verdict,
    certified_share,
    kkt_residual,
    lower_bound,
)

_DIGITS = 2.0**-44  # of F: a fall that slopes can tell, though the worst rounding may be larger


class Sharpen(Protocol):
    """Leads from a smooth objective to the one that it stands for."""

    def __call__(self, point: Any, decrement: float) -> Any:
        """The point to go on from: this one, or the same ``w`` with a sharper objective."""

    def best_bound(self, point: Any) -> float:
        """The largest lower bound of the optimum that any smoothing gives at this ``w``."""


def newton(
    objective: Sum,
    w0: Array,
    *,
    preconditioner: Preconditioner,
    tol: float = 1e-4,
    max_iter: int = 100,
    callback: Callback | None = None,
    started: float | None = None,
    sharpen: Sharpen | None = None,
    certified: bool = False,
    proven: bool = False,
    proof: float = math.inf,
    directions: Callable[[Preconditioner, int], Directions] = Directions,
) -> Result:
    """Minimize ``F``; stop when the Newton decrement ``½ g'H⁻¹g ≈ F - F*`` is at most ``tol·F``.

    The decrement is free of the scaling of the features, unlike ``‖∇F‖``, and costs nothing; on a
    box it is what the quadratic model promises there. The step in hand when it passes the test is
    still taken: what it leaves is of second order. A decrement that rounding has made negative
    passes no test, nor does one whose step does not keep its promise.

    An estimate is no proof. It goes on from there until the certified gap is at most ``proof·F``,
    or, where ``proven``, within the tolerance; a fit that rounding keeps from that has not
    converged. Where ``certified``, and from a negative decrement on, the gap alone says when to
    stop. So it does where ``F`` is a smoothing of what is to be minimized:
    ``sharpen(point, decrement)`` returns the point to go on from, the same or one of a sharper
    objective. ``directions`` makes the steps where there is no box.
    """
    certified = certified or sharpen is not None
    recorder = Recorder(callback, started)
    point = _start(objective, w0, sharpen, preconditioner.wants_hessian(0))
    kind = directions if point.box is None else BoundedDirections
    steps = kind(preconditioner, w0.shape[-1])
    forcing, t, n_hvp, is_last, patience = preconditioner.forcing, 0.0, 0, False, Patience()
    is_there, enough = False, max(tol, proof)  # there by an estimate, which will do with such a gap
    while True:
        wants_stop = recorder.record(point, step=t, n_hvp=n_hvp)
        is_there = is_there or (is_last and not proven)
        goal = (enough if is_there else tol) * point.primal
        suffices = is_there and (recorder.gap <= goal or recorder.n_iter >= max_iter)
        verdict = _verdict(recorder, tol, wants_stop, suffices, certified or is_last, point)
        if verdict is not None:
            return recorder.result(point, *verdict)
        certified = certified or is_last
        is_idle = abs(recorder.last_decrement) <= point.rounding
        if certified and patience.is_over(recorder.gap, is_idle):
            message = _loose(recorder, point, goal)
            return _end(recorder, point, goal, sharpen, message)
        # What a solve leaves need not be far below the tolerance; but one product more at the end
        # tightens the certified gap, which sees ‖∇F‖ and not the decrement, a hundredfold.
        floor = 4e-4 * tol * point.value
        # That sight of ‖∇F‖ counts where the gap is what stops.
        least = 0.5 * (forcing * recorder.kkt_residual) ** 2
        norm = max(0.1 * goal, least) if certified else math.inf
        step = steps.at(point, forcing, floor, norm)
        n_hvp += step.n
        recorder.note_decrement(step.decrement)
        certified = certified or not step.decrement > 0.0
        is_there = is_there and abs(step.decrement) <= tol * point.value
        is_last = not certified and step.decrement <= tol * point.value
        if recorder.n_iter >= max_iter + is_last:  # the last step may be one more
            return recorder.result(point, *too_few(recorder, tol, max_iter, by_gap=certified))
        trial, t = line_search(point, step.d, step.image, preconditioner.wants_hessian(step.n))
        if trial is None:  # as far as this smoothing goes; the next may go on
            trial = point if sharpen is None else sharpen(point, 0.0)
            if trial is point:
                goal = enough * point.primal if is_last and not proven else goal
                return _end(recorder, point, goal, sharpen, _rounded(point, sharpen))
        if is_last and not _keeps(step.decrement, point, trial):
            is_last, certified = False, True  # an estimate that fails once is none: the gap decides
        point = trial if sharpen is None else sharpen(trial, step.decrement)
        forcing = preconditioner.forcing
        if point is not trial:
            patience = Patience()
        else:
            # Where rounding has eaten the curvature, the decrement may be below 0.
            share = 10.0 * math.sqrt(max(0.0, step.decrement) / max(point.value, 1e-300))
            forcing *= min(1.0, max(0.01, share))


def _keeps(promise: float, point: Any, trial: Any) -> bool:
    """Whether F falls about as the quadratic model promises: pairs that change sides spoil it."""
    fall, rounding = point.value - trial.value, point.rounding + trial.rounding
    return bool(0.25 * promise - rounding <= fall <= 4.0 * promise + rounding)


def _start(objective: Sum, w0: Array, sharpen: Sharpen | None, wants_hessian: bool) -> Any:
    """The first point: in the box, and where w0 knows something, as sharp as it allows."""
    point = objective.at(w0)
    if point.box is not None:
        point = objective.at(point.box.clip(w0))
    if wants_hessian:
        point = point.expecting_hessian()
    return sharpen(point, 0.0) if sharpen is not None and point.w.any() else point


def _verdict(
    recorder: Recorder, tol: float, wants_stop: bool, suffices: bool, certified: bool, point: Any
) -> Verdict | None:
    """Why to stop before another step; None to go on.

    A gap within the goal is no reason at the start ``w = 0``: where C is so small that 0 is within
    the tolerance, there is still a direction to be had, and no ranking without one.
    """
    if wants_stop:
        return "callback", "stopped by the callback"
    goal = tol * point.primal
    is_idle = recorder.n_iter == 0 and not point.w.any() and recorder.kkt_residual > 0.0
    if recorder.gap <= goal and not is_idle and certified:
        return "tolerance", f"certified F - F* <= {tol:g}·F"
    if suffices:
        return "tolerance", f"estimated F - F* <= {tol:g}·F"
    if recorder.kkt_residual == 0.0 and not certified:  # the optimum of a smoothing is not the end
        message = "the conditions of the optimum hold exactly"
        return "tolerance" if recorder.gap <= goal else "precision", message
    return None


def _loose(recorder: Recorder, point: Any, goal: float) -> str:
    told = "rounding lets no useful bound on F - F* be certified"
    if certified_share(point.primal, recorder.gap) is not None:
        told = (
            f"rounding lets no more be certified than F - F* <= {recorder.gap:.3g}, above the goal "
            f"of {goal:.3g}"
        )
    return f"{told}: features of very different ranges can do that; scale them, or raise tol"


def too_few(recorder: Recorder, tol: float, max_iter: int, by_gap: bool = True) -> Verdict:
    """What to say where `max_iter` has ended a fit."""
    objective, decrement = (recorder.history[key][-1] for key in ("objective", "decrement"))
    left = f"the estimated distance to the optimum, {decrement:.3g},"
    if by_gap:
        left = f"the certified gap, {recorder.gap:.3g},"
    return "max_iter", (
        f"{left} is above tol·F = {tol * objective:.3g} after max_iter={max_iter} iterations; "
        "raise max_iter or tol"
    )


def _end(
    recorder: Recorder, point: Any, goal: float, sharpen: Sharpen | None, message: str
) -> Result:
    """The result where rounding forbids to go on.

    Scores that steps have led to have the rounding of all of them; and wider smoothings may still
    give better bounds.
    """
    if recorder.gap > goal:
        point = point.afresh() if point.w.ndim == 1 else point
        recorder.revise(point, lower_bound(point))
    if recorder.gap > goal and sharpen is not None:
        recorder.revise(point, sharpen.best_bound(point))
    is_there = recorder.gap <= goal
    if not is_there and sharpen is None and point.w.ndim == 1:
        message = _loose(recorder, point, goal)
    return recorder.result(point, "tolerance" if is_there else "precision", message)


def _rounded(point: Any, sharpen: Sharpen | None) -> str:
    message = "steps have fallen below the rounding of F; the result is as good as it gets"
    if point.w.ndim > 1:  # a kernel's: rounding is that of Qβ, and the optimum may be far
        message = "steps have fallen below the rounding of Qβ; a smaller C or γ goes further"
    # The bundle cannot keep bounds, and knows nothing of kernels.
    if sharpen is not None and point.box is None and point.w.ndim == 1:
        message += "; solver='bundle' needs no smoothing and goes on where features are few"
    return message


def line_search(
    point: Any, d: Array, image: list[Any] | None, wants_hessian: bool = False
) -> tuple[Any | None, float]:
    """The point near the minimum of ``F`` along ``d``, and its step; None if rounding forbids one.

    ``φ(t) = F(w + t d)`` is convex with a continuous slope, so a bracketed secant on ``φ'`` finds
    the minimum. Every trial is a sweep of ``z + t X d``: no product with the rows. The full step
    nearly always has the small slope that ends the search at once. No step leaves the box, in
    which ``w + d`` is. ``wants_hessian`` tells what will be asked of the point that is returned.
    """
    if image is None:
        return None, 0.0
    longest = np.inf if point.box is None else point.box.room(point.w, d)
    slope0 = point.slope(d, image)
    if not slope0 < 0.0:
        return None, 0.0
    low, low_slope, high, high_slope = 0.0, slope0, np.inf, np.inf
    t, lowest, lowest_t, lowest_slope = 1.0, point, 0.0, slope0
    for _ in range(40):
        trial = point.moved(t, d, image)
        if wants_hessian:
            trial = trial.expecting_hessian()
        slope = trial.slope(d, image)
        # F is convex, and falls by no more than its slope promises: this is but rounding of d.
        if point.value - trial.value > -2.0 * t * slope0 + point.rounding + trial.rounding:
            break
        if trial.value < lowest.value:
            lowest, lowest_t, lowest_slope = trial, t, slope
        # A small slope alone does not do: beyond a sharp bend F may be flat but high.
        is_flat = abs(slope) <= 0.3 * abs(slope0) or (slope < 0.0 and t >= longest)
        # Nor does a fall that drowns in the rounding of far larger scores.
        is_clear = trial.rounding <= 2.0 * point.rounding or (
            point.value - trial.value > point.rounding + trial.rounding
        )
        if is_flat and is_clear and trial.value <= point.value + point.rounding:
            lowest, lowest_t, lowest_slope = trial, t, slope
            break
        # Illinois: an end that stays counts half, or the secant would creep to the root.
        if slope < 0.0:
            low, low_slope, high_slope = t, slope, 0.5 * high_slope
        else:
            high, high_slope, low_slope = t, slope, 0.5 * low_slope
        if np.isinf(high):
            # Extrapolate the slope linearly, but not beyond four times the step.
            rate = (slope - slope0) / t
            t = min(4.0 * t, max(1.5 * t, -slope0 / rate if rate > 0 else np.inf), longest)
        else:
            t = low - low_slope * (high - low) / (high_slope - low_slope)
    # A change below the rounding of F is judged by slopes instead.
    if point.value - lowest.value > point.rounding + lowest.rounding:
        return lowest, lowest_t
    is_noisier = lowest.rounding > 2.0 * point.rounding  # and so may be its gradient
    fall = -0.5 * lowest_t * (slope0 + lowest_slope)
    is_real = fall > _DIGITS * point.value or kkt_residual(lowest) < kkt_residual(point)
    if is_real and not is_noisier:
        return lowest, lowest_t
    return None, 0.0
