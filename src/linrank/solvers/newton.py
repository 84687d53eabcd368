"""Newton's method with preconditioned conjugate gradients and an exact line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank._core import dot
from linrank.objective import Term
from linrank.solvers.conjugate import Memory, half_square, solve_newton
from linrank.solvers.result import Callback, Recorder, Result, kkt_residual

__all__ = ["Preconditioner", "Sharpen", "line_search", "newton", "too_few"]

Array = NDArray[Any]
Sharpen = Callable[[Any, float], Any]


class Preconditioner(Protocol):
    """Gives, at each outer iterate, a cheap approximation of the inverse Hessian."""

    limit: int  # products that one solve may take: beyond, a better approximation pays
    memory: int  # earlier products that improve it
    forcing: float  # residual, relative to the first, to which the first solve goes
    is_exact: bool  # whether M is the Hessian of its point: earlier products cannot improve it

    def matrix(self, point: Any, n_last: int) -> Array:
        """``M``, or its diagonal; ``n_last`` is the number of products that the last solve took."""

    def at(self, point: Any, n_last: int) -> Callable[[Array], Array]:
        """``r -> M⁻¹ r``."""


def newton(
    objective: Term,
    w0: Array,
    *,
    preconditioner: Preconditioner,
    tol: float = 1e-4,
    max_iter: int = 100,
    callback: Callback | None = None,
    started: float | None = None,
    sharpen: Sharpen | None = None,
) -> Result:
    """Minimise ``F``; stop when the Newton decrement ``½ g'H⁻¹g ≈ F - F*`` is at most ``tol·F``.

    The decrement is free of the scaling of the features, unlike ``‖∇F‖``, and costs nothing. The
    step in hand when it passes the test is still taken: what it leaves is of second order.

    Where ``F`` is a smoothing of what is to be minimised, ``sharpen(point, decrement)`` returns the
    point to go on from, the same or one of a sharper objective; it stops on the certified gap.
    """
    recorder = Recorder(callback, started)
    point = objective.at(w0)
    n_hvp = n_last = 0
    if sharpen is not None and w0.any():
        point = sharpen(point, 0.0)
    if recorder.record(point, step=0.0, n_hvp=0):
        return recorder.result(point, "callback", "stopped by the callback")
    forcing, memory = preconditioner.forcing, Memory(preconditioner.memory, len(w0))
    while True:
        if sharpen is not None and recorder.gap <= tol * point.primal:
            return recorder.result(point, "tolerance", f"certified F - F* <= {tol:g}·F")
        if not point.gradient.any():
            return recorder.result(point, "tolerance", "the gradient is zero")
        solve = preconditioner.at(point, n_last)
        if preconditioner.is_exact:
            memory.pairs.clear()
        solve = memory.improve(solve)
        # What a solve leaves need not be far below the tolerance; but one product more at the end
        # tightens the certified gap, which sees ‖∇F‖ and not the decrement, a hundredfold.
        floor = 4e-4 * tol * point.value
        # That sight of ‖∇F‖ counts where the gap is what stops.
        norm = (
            math.inf
            if sharpen is None
            else max(0.1 * tol * point.primal, forcing**2 * half_square(point.gradient))
        )
        solution = solve_newton(point, solve, memory, forcing, floor, preconditioner.limit, norm)
        d, image, n_last = solution.d, solution.image, solution.n
        n_hvp += n_last
        decrement = -0.5 * dot(point.gradient, d) + solution.rest
        recorder.note_decrement(decrement)
        is_last = sharpen is None and decrement <= tol * point.value
        if not is_last and recorder.n_iter >= max_iter:
            left = decrement if sharpen is None else None
            return recorder.result(point, "max_iter", too_few(recorder, left, tol, max_iter))
        trial, step = line_search(point, d, image)
        if trial is None and sharpen is not None:
            trial = sharpen(point, 0.0)  # as far as this smoothing goes; the next may go on
            if trial is point:
                trial = None
        if trial is None:
            stopped = "tolerance" if is_last else "precision"
            message = "steps have fallen below the rounding of F; the result is as good as it gets"
            if sharpen is not None:
                message += "; solver='bundle' needs no smoothing and goes on where features are few"
            return recorder.result(point, stopped, message)
        point = trial
        share = 10.0 * np.sqrt(decrement / max(point.value, 1e-300))
        forcing = preconditioner.forcing * min(1.0, max(0.01, share))
        if sharpen is not None:
            point = sharpen(trial, decrement)
            if point is not trial:
                forcing = preconditioner.forcing
        if recorder.record(point, step=step, n_hvp=n_hvp):
            return recorder.result(point, "callback", "stopped by the callback")
        if is_last:
            return recorder.result(point, "tolerance", f"estimated F - F* <= {tol:g}·F")


def too_few(recorder: Recorder, decrement: float | None, tol: float, max_iter: int) -> str:
    """What to say when max_iter ends a fit; ``decrement`` is None where the gap is to stop it."""
    objective = recorder.history["objective"][-1]
    left = f"the certified gap, {recorder.gap:.3g},"
    if decrement is not None:
        left = f"the estimated distance to the optimum, {decrement:.3g},"
    return (
        f"{left} is above tol·F = {tol * objective:.3g} after max_iter={max_iter} iterations; "
        "raise max_iter or tol"
    )


def line_search(
    point: Any, d: Array, image: list[Any], longest: float = np.inf
) -> tuple[Any | None, float]:
    """The point near the minimum of ``F`` along ``d``, and its step; None if rounding forbids one.

    ``φ(t) = F(w + t d)`` is convex with a continuous slope, so a bracketed secant on ``φ'`` finds
    the minimum. Every trial is a sweep of ``z + t X d``: no product with the rows. The full step
    nearly always has the small slope that ends the search at once. No step is beyond ``longest``,
    which is at least 1.
    """
    slope0 = point.slope(d, image)
    if not slope0 < 0.0:
        return None, 0.0
    low, low_slope, high, high_slope = 0.0, slope0, np.inf, np.inf
    t, lowest, lowest_t = 1.0, point, 0.0
    for _ in range(40):
        trial = point.moved(t, d, image)
        slope = trial.slope(d, image)
        if trial.value < lowest.value:
            lowest, lowest_t = trial, t
        # A small slope alone does not do: beyond a sharp bend F may be flat but high.
        is_flat = abs(slope) <= 0.3 * abs(slope0) or (slope < 0.0 and t >= longest)
        if is_flat and trial.value <= point.value + point.rounding:
            lowest, lowest_t = trial, t
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
    # A change below the rounding of F is judged by the gradient instead.
    if point.value - lowest.value > point.rounding:
        return lowest, lowest_t
    if kkt_residual(lowest) < kkt_residual(point):
        return lowest, lowest_t
    return None, 0.0
