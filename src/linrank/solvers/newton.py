"""Newton's method with preconditioned conjugate gradients and an exact line search."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank._core import dot
from linrank.objective import Term
from linrank.solvers.result import Callback, Recorder, Result

__all__ = ["Memory", "Preconditioner", "line_search", "newton", "solve_newton"]

Array = NDArray[Any]
Sharpen = Callable[[Any, float], Any]


class Preconditioner(Protocol):
    """Gives, at each outer iterate, a cheap approximation of the inverse Hessian."""

    limit: int  # products that one solve may take: beyond, a better approximation pays
    memory: int  # earlier products that improve it
    forcing: float  # residual, relative to the first, to which the first solve goes
    is_exact: (
        bool  # whether `at` last gave the Hessian of its point: earlier products cannot improve it
    )

    def at(self, point: Any, n_last: int) -> Callable[[Array], Array]:
        """``r -> M⁻¹ r``; ``n_last`` is the number of products that the last solve took."""


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
            else max(0.1 * tol * point.primal, forcing**2 * _half_square(point.gradient))
        )
        solution = solve_newton(point, solve, memory, forcing, floor, preconditioner.limit, norm)
        d, image, n_last = solution.d, solution.image, solution.n
        n_hvp += n_last
        decrement = -0.5 * dot(point.gradient, d) + solution.rest
        recorder.note_decrement(decrement)
        is_last = sharpen is None and decrement <= tol * point.value
        if not is_last and recorder.n_iter >= max_iter:
            return recorder.result(point, "max_iter", _too_few(recorder, decrement, tol, max_iter))
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


def _too_few(recorder: Recorder, decrement: float, tol: float, max_iter: int) -> str:
    objective = recorder.history["objective"][-1]
    return (
        f"the estimated distance to the optimum, {decrement:.3g}, is above tol·F = "
        f"{tol * objective:.3g} after max_iter={max_iter} iterations; raise max_iter or tol"
    )


class Memory:
    """Improves a preconditioner by the curvature that earlier products have shown.

    The directions ``p`` of the last solves and their products ``Hp`` enter as the pairs of a
    limited-memory BFGS update of ``M`` (Morales & Nocedal 2000): exact on the span of a solve's
    directions, which are conjugate, at the cost of a few vector operations.
    """

    def __init__(self, size: int, n: int) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=int(min(size, 4e6 // n + 2)))

    def add(self, p: Array, hp: Array, php: float) -> None:
        self.pairs.append((p, hp, php))

    def improve(self, solve: Callable[[Array], Array]) -> Callable[[Array], Array]:
        pairs = list(self.pairs)  # as they are now: M must not change during a solve
        if not pairs:
            return solve

        def improved(r: Array) -> Array:
            q, alphas = r.copy(), []
            for p, hp, php in reversed(pairs):
                alphas.append(dot(p, q) / php)
                q -= alphas[-1] * hp
            y = solve(q)
            for (p, hp, php), alpha in zip(pairs, reversed(alphas), strict=True):
                y += (alpha - dot(hp, y) / php) * p
            return y

        return improved


@dataclass(frozen=True, eq=False)
class Solution:
    """``H d ≈ -g``, the image of ``d``, the products it took, and the decrease that is left."""

    d: Array
    image: list[Any]
    n: int
    rest: float


def solve_newton(
    point: Any,
    solve: Callable[[Array], Array],
    memory: Memory,
    forcing: float,
    floor: float,
    limit: int,
    norm: float = math.inf,
) -> Solution:
    """Preconditioned conjugate gradients on ``H d = -g``.

    The decrease left is ``½ r'H⁻¹r <= r'M⁻¹r / 2θ``, θ the smallest eigenvalue of ``M⁻¹H``, for
    which the coefficients of the iteration give an estimate. It ends when twice that is at most
    ``forcing²`` of its first value or at most ``floor``, and ``½‖r‖²`` at most ``norm``, or after
    ``limit`` products: any ``d`` on the way is a descent direction.
    """
    r = -point.gradient
    y = solve(r)
    p, ry = y, dot(r, y)
    goal, d, image = max(forcing * forcing * ry, floor), np.zeros_like(r), None
    lanczos = _Lanczos()
    n = 0
    while n < limit:
        hp, xp = point.hvp(p)
        n += 1
        php = dot(p, hp)
        if not php > 0.0 or not np.isfinite(php):  # rounding has eaten the curvature
            break
        memory.add(p, hp, php)
        alpha = ry / php
        d += alpha * p
        image = _combine(image, alpha, xp)
        r = r - alpha * hp
        y = solve(r)
        ry, old = dot(r, y), ry
        lanczos.add(alpha, ry / old)
        if not ry > 0.0 or (lanczos.confirms(ry, goal) and _half_square(r) <= norm):
            break
        p = y + (ry / old) * p
    if image is None:  # the very first direction failed: fall back on it unscaled
        return Solution(p, xp, n, 0.0)
    return Solution(d, image, n, 0.5 * max(ry, 0.0) / lanczos.smallest())


def _half_square(r: Array) -> float:
    return 0.5 * float(dot(r, r))


class _Lanczos:
    """The tridiagonal matrix of conjugate gradients; its eigenvalues approach those of ``M⁻¹H``."""

    LEAST = 1e-12

    def __init__(self) -> None:
        self.diagonal: list[float] = []
        self.beside: list[float] = [0.0]  # squares of the entries left of the diagonal
        self._carried = 0.0
        self._known = 1.0

    def add(self, alpha: float, beta: float) -> None:
        """Another row, from the step and the ratio of residuals of an iteration."""
        self.diagonal.append(1.0 / alpha + self._carried)
        self._carried = max(beta, 0.0) / alpha
        self.beside.append(self._carried / alpha)

    def confirms(self, ry: float, goal: float) -> bool:
        """Whether ``ry <= goal·θ``, θ the smallest eigenvalue.

        The matrices are nested, so θ can only fall: while its last value refuses, it is not needed.
        """
        return ry <= goal * self._known and ry <= goal * self.smallest()

    def smallest(self) -> float:
        """The smallest eigenvalue so far, at most 1, from below within a hundredth."""
        if not self._exceeds(self._known):
            low, high = self.LEAST, self._known
            while high > 1.01 * low:
                middle = math.sqrt(low * high)
                low, high = (middle, high) if self._exceeds(middle) else (low, middle)
            self._known = low
        return self._known

    def _exceeds(self, x: float) -> bool:
        """Whether all eigenvalues are above ``x``: whether the pivots of ``T - x`` are positive."""
        pivot = 1.0
        for diagonal, beside in zip(self.diagonal, self.beside, strict=False):
            pivot = diagonal - x - beside / pivot
            if pivot <= 0.0:
                return False
        return True


def _combine(total: list[Any] | None, alpha: float, image: list[Any]) -> list[Any]:
    """``total + alpha·image``, part by part; a regulariser has no image."""
    if total is None:
        return [None if part is None else alpha * part for part in image]
    for whole, part in zip(total, image, strict=True):
        if whole is not None:
            whole += alpha * part
    return total


def line_search(point: Any, d: Array, image: list[Any]) -> tuple[Any | None, float]:
    """The point near the minimum of ``F`` along ``d``, and its step; None if rounding forbids one.

    ``φ(t) = F(w + t d)`` is convex with a continuous slope, so a bracketed secant on ``φ'`` finds
    the minimum. Every trial is a sweep of ``z + t X d``: no product with the rows. The full step
    nearly always has the small slope that ends the search at once.
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
        if abs(slope) <= 0.3 * abs(slope0) and trial.value <= point.value + point.rounding:
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
            t = min(4.0 * t, max(1.5 * t, -slope0 / rate if rate > 0 else np.inf))
        else:
            t = low - low_slope * (high - low) / (high_slope - low_slope)
    # A change below the rounding of F is judged by the gradient instead.
    if point.value - lowest.value > point.rounding:
        return lowest, lowest_t
    if _half_square(lowest.gradient) < _half_square(point.gradient):
        return lowest, lowest_t
    return None, 0.0
