"""The steps of Newton's method on a box: near minimisers of the quadratic model within bounds.

At ``w`` with gradient ``g`` and Hessian ``H`` the step is a near minimiser of

    q(d) = g·d + ½ d·Hd     over   lower <= w + d <= upper,

found face by face: conjugate gradients on the free variables, projection where they leave the box,
release of bounds whose multiplier has the wrong sign. First the same problem is solved for the
preconditioner ``M`` in place of ``H``, which costs no product; where ``M`` is good, its minimiser
lies on the right face already. The segment from ``w`` to ``w + d`` is inside the box, so the
search along it is that of `newton`, by sweeps alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank._core import dot
from linrank.solvers.conjugate import Memory, Solution, combine, half_square, solve_newton
from linrank.solvers.directions import Step
from linrank.solvers.faces import Metric, Move, metric_of, minimise
from linrank.solvers.preconditioner import Preconditioner

__all__ = ["BoundedDirections"]

Array = NDArray[Any]


class BoundedDirections:
    """Near minimisers of the model in the box; what one learns of the Hessian serves the next."""

    def __init__(self, preconditioner: Preconditioner, n_features: int) -> None:
        self.preconditioner = preconditioner
        self.memory = Memory(preconditioner.memory, n_features)
        self._metric: Metric | None = None
        self._n_last = 0

    def at(self, point: Any, forcing: float, floor: float, norm: float) -> Step:
        """The step from ``point``, with the meaning of `linrank.solvers.directions.Directions`."""
        matrix = self.preconditioner.matrix(point, self._n_last)
        self._metric = metric_of(matrix, self._metric)
        if self.preconditioner.is_exact:
            self.memory.pairs.clear()
        model = _Hessian(point, self._metric, self.memory, self.preconditioner.limit, norm)
        move = _step(model, forcing, floor)
        self._n_last = move.n
        return Step(move.d, move.image, move.n, move.promise(point.gradient))


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
    norm: float

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
