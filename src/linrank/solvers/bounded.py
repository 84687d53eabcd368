"""Newton's method on a box: each step minimises the quadratic model within the bounds.

At ``w`` with gradient ``g`` and Hessian ``H`` the step is a near minimiser of

    q(d) = g·d + ½ d·Hd     over   lower <= w + d <= upper,

found face by face: conjugate gradients on the free variables, projection where they leave the box,
release of bounds whose multiplier has the wrong sign. First the same problem is solved for the
preconditioner ``M`` in place of ``H``, which costs no product; where ``M`` is good, its minimiser
lies on the right face already. The segment from ``w`` to ``w + d`` is inside the box, so the
search along it is that of `newton`, by sweeps alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank._core import dot
from linrank.objective import Term
from linrank.solvers.conjugate import Memory, Solution, combine, half_square, solve_newton
from linrank.solvers.faces import Metric, Move, metric_of, minimise
from linrank.solvers.newton import Preconditioner, Sharpen, line_search, too_few
from linrank.solvers.result import Callback, Recorder, Result, kkt_residual

__all__ = ["bounded_newton"]

Array = NDArray[Any]


def bounded_newton(
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
    """Minimise ``F`` on its box; stop when the model promises at most ``tol·F``, as `newton` does.

    The promise, ``-q(d)``, estimates ``F - F*`` as the Newton decrement does without bounds.
    ``sharpen`` is that of `newton`.
    """
    recorder = Recorder(callback, started)
    point = objective.at(w0)
    point = objective.at(point.box.clip(w0))
    if sharpen is not None and point.w.any():
        point = sharpen(point, 0.0)
    if recorder.record(point, step=0.0, n_hvp=0):
        return recorder.result(point, "callback", "stopped by the callback")
    forcing, memory = preconditioner.forcing, Memory(preconditioner.memory, len(w0))
    metric: Metric | None = None
    n_hvp = n_last = 0
    while True:
        if sharpen is not None and recorder.gap <= tol * point.primal:
            return recorder.result(point, "tolerance", f"certified F - F* <= {tol:g}·F")
        residual = kkt_residual(point)
        if residual == 0.0:
            sharper = point if sharpen is None else sharpen(point, 0.0)
            if sharper is point:
                return recorder.result(point, "tolerance", "the projected gradient is zero")
            point = sharper  # the optimum of a smoothing, not yet of the loss
            if recorder.record(point, step=0.0, n_hvp=n_hvp):
                return recorder.result(point, "callback", "stopped by the callback")
            continue
        metric = metric_of(preconditioner.matrix(point, n_last), metric)
        if preconditioner.is_exact:
            memory.pairs.clear()
        model = _Hessian(point, metric, memory, preconditioner.limit)
        if sharpen is not None:  # it is the gap that stops, and it sees the gradient
            model.norm = max(0.1 * tol * point.primal, 0.5 * (forcing * residual) ** 2)
        move = _step(model, forcing, 4e-4 * tol * point.value)  # the floor of `newton`
        n_last = move.n
        n_hvp += n_last
        decrement = move.promise(point.gradient)
        recorder.note_decrement(decrement)
        is_last = sharpen is None and decrement <= tol * point.value
        if not is_last and recorder.n_iter >= max_iter:
            left = decrement if sharpen is None else None
            return recorder.result(point, "max_iter", too_few(recorder, left, tol, max_iter))
        trial, step = _search(point, move)
        if trial is None and sharpen is not None:
            trial = sharpen(point, 0.0)  # as far as this smoothing goes; the next may go on
            if trial is point:
                trial = None
        if trial is None:
            stopped = "tolerance" if is_last else "precision"
            message = "steps have fallen below the rounding of F; the result is as good as it gets"
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


def _search(point: Any, move: Move) -> tuple[Any | None, float]:
    """The next point and its step; None if there is nowhere to go."""
    if move.image is None:
        return None, 0.0
    return line_search(point, move.d, move.image, point.box.room(point.w, move.d))


@dataclass(eq=False)
class _Hessian:
    """The Hessian at a point, by products.

    Where a face is wrong, its minimiser is far outside the box and says little: ``depth``, the
    products spent on one face, grows with success and shrinks with failure.
    """

    point: Any
    metric: Metric
    memory: Memory
    limit: int
    norm: float = math.inf

    def __post_init__(self) -> None:
        self.depth = min(self.limit, self.metric.depth)

    def product(self, d: Array) -> tuple[Array, list[Any]]:
        hd, image = self.point.hvp(d)
        return hd, image

    def on_face(self, r: Array, free: Array, goal: float) -> Solution | None:
        solve = self.memory.improve(self.metric.on(free), free)
        if dot(solve(r), r) <= goal and half_square(free * r) <= self.norm:
            return None
        shifted = _Shifted(self, -r)
        return solve_newton(shifted, solve, self.memory, 0.0, goal, self.depth, self.norm, free)

    def learn(self, t: float) -> None:
        self.depth = min(self.limit, 2 * self.depth) if t > 0.5 else max(1, self.depth // 4)

    def is_spent(self, n: int) -> bool:
        return n >= 2 * self.limit


@dataclass(frozen=True, eq=False)
class _Shifted:
    """A quadratic model at another d, as conjugate gradients want to see it."""

    model: _Hessian
    gradient: Array

    def hvp(self, v: Array) -> tuple[Array, list[Any]]:
        return self.model.product(v)


def _step(model: _Hessian, forcing: float, floor: float) -> Move:
    """A near minimiser of the model, from that of the metric."""
    w, g, box = model.point.w, model.point.gradient, model.point.box
    guess = model.metric.minimiser(w, g, box)
    d = guess.d
    if not dot(g, d) < 0.0:  # M sees nothing to gain
        return minimise(model, Move(np.zeros_like(w), -g, None, 0, 0.0), w, g, box, floor)
    hd, image = model.product(d)
    # M may be too small: the best length along d, no longer than d, which may end at bounds.
    t = min(1.0, -dot(g, d) / max(dot(d, hd), 1e-300))
    move = Move(t * d, -g - t * hd, combine(None, t, image), 1, 0.0)
    goal = max(2.0 * forcing * forcing * -guess.value(g), floor)
    return minimise(model, move, w, g, box, goal)
