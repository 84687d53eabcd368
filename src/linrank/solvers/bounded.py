"""The steps of Newton's method on a box: near minimizers of the quadratic model within bounds.

At ``w`` with gradient ``g`` and Hessian ``H`` the step is a near minimizer of

    q(d) = g·d + ½ d·Hd     over   lower <= w + d <= upper,

found face by face: conjugate gradients on the free variables, projection where they leave the box,
release of bounds whose multiplier has the wrong sign. First the same problem is solved for the
preconditioner ``M`` in place of ``H``, which costs no product; where ``M`` is good, its minimizer
lies on the right face already. The segment from ``w`` to ``w + d`` is inside the box, so the
search along it is that of `newton`, by sweeps alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from linrank._core import dot
from linrank.data import Array, Box
from linrank.solvers import conjugate
from linrank.solvers.conjugate import Solution

_FACES = 100  # faces that one model may visit; each is better than the last, so few are needed


def metric_of(matrix: Array, last: Metric | None) -> Metric:
    """The metric of a matrix or diagonal; the last one, with its factors, if it is the same."""
    if last is not None and last.matrix is matrix:
        return last
    return Separable(matrix) if matrix.ndim == 1 else Coupled(matrix)


class Separable:
    """A diagonal ``M``, a preconditioner that can be cut to a face."""

    depth = 4  # products that a first face is worth
    is_coupled = False

    def __init__(self, diagonal: Array) -> None:
        self.matrix = self.diagonal = diagonal

    def on(self, free: Array) -> Callable[[Array], Array]:
        """``r -> M⁻¹ r`` on the face of the free variables, 0 for the others."""
        inverse = free / self.diagonal
        return lambda r: inverse * r

    def minimizer(self, w: Array, g: Array, box: Box) -> Solution:
        """The minimizer of ``g·d + ½ d·Md`` in the box; its image is missing."""
        d = box.clip(w - g / self.diagonal) - w
        return Solution(d, None, 0, 0.0, -g - self.diagonal * d)


class Coupled:
    """A full ``M``; factors of its last faces are kept: near the optimum the face is always one."""

    KEPT = 4
    depth = 100
    is_coupled = True

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.diagonal = matrix, np.diagonal(matrix)
        self._factors: dict[bytes, Callable[[Array], Array]] = {}

    def on(self, free: Array) -> Callable[[Array], Array]:
        key = free.tobytes()
        if key in self._factors:
            return self._factors[key]
        if len(self._factors) == self.KEPT:
            del self._factors[next(iter(self._factors))]
        index = np.flatnonzero(free)
        solve = conjugate.by_cholesky(self.matrix[np.ix_(index, index)])

        def restricted(r: Array) -> Array:
            y = np.zeros_like(r)
            y[index] = solve(r[index])
            return y

        self._factors[key] = restricted
        return restricted

    def minimizer(self, w: Array, g: Array, box: Box) -> Solution:
        start = Solution(np.zeros_like(w), None, 0, 0.0, -g)
        goal = 1e-10 * dot(g, g / self.diagonal)
        return minimize(Surrogate(self), start, w, g, box, goal)

    def times(self, d: Array) -> Array:
        return np.einsum("ij,j->i", self.matrix, d)


Metric = Separable | Coupled


@dataclass(frozen=True, eq=False)
class Surrogate:
    """``H = M``: exact on every face, and no product with the rows."""

    metric: Coupled
    norm: float = math.inf

    def product(self, d: Array) -> tuple[Array, list[Any]]:
        return self.metric.times(d), []

    def on_face(self, r: Array, free: Array, goal: float) -> Solution | None:
        s = self.metric.on(free)(r)
        if dot(s, r) <= goal:
            return None
        return Solution(s, [], 0, 0.0, r - self.metric.times(s))

    def is_spent(self, n: int) -> bool:
        return False

    def learn(self, t: float) -> None:
        """Nothing: a face costs no product, and is solved exactly."""


def minimize(model: Model, move: Solution, w: Array, g: Array, box: Box, goal: float) -> Solution:
    """Lower ``q`` from face to face until no face promises more than ``goal/2``.

    A step on a face ends in one of three ways: inside the box; or at the lowest point of the
    segment to its projection on the box; or, if that segment rises, at the first bound on the way,
    which then holds. So q falls from face to face, but for faces that only shrink: none comes back.
    """
    free = box.is_free(w + move.d, move.r)
    for _ in range(_FACES):
        s = model.on_face(move.r, free, goal) if free.any() else None
        if s is None:
            released = box.is_free(w + move.d, move.r) & ~free
            gain = _energy(move.r, released, model.metric)
            if gain <= goal and conjugate.half_square(released * move.r) <= model.norm:
                return replace(move, rest=0.5 * (gain + _energy(move.r, free, model.metric)))
            free |= released
            continue
        move, free = _follow(model, move, s, free, w, g, box)
        if model.is_spent(move.n):
            break
    # Ended early: what is left is known by its order only, and may not pass for the end.
    left = _energy(move.r, box.is_free(w + move.d, move.r), model.metric)
    return replace(move, rest=max(goal, left))


def _energy(r: Array, variables: Array, metric: Metric) -> float:
    """``Σ r_j²/M_jj``: twice what the variables promise, each on its own."""
    part = np.where(variables, r, 0.0)
    return dot(part, part / metric.diagonal)


def _follow(
    model: Model, move: Solution, s: Solution, free: Array, w: Array, g: Array, box: Box
) -> tuple[Solution, Array]:
    """The move after the step ``s`` on a face, and the next face."""
    n = move.n + s.n
    target = move.d + s.d
    inside = box.clip(w + target) - w
    is_out = free & (np.abs(target - inside) > 1e-14 * np.abs(w))
    step = replace(s, n=n, rest=0.0, r=s.r - move.r)
    if not is_out.any():
        model.learn(1.0)
        return _plus(move, 1.0, step), free
    hd, image = model.product(inside)
    projected = Solution(inside, image, n + 1, 0.0, -g - hd)
    # The segment to the projection is in the box, and q on it is known without a product.
    along = inside - move.d
    slope, curvature = dot(move.r, along), dot(along, move.r - projected.r)
    t = min(1.0, slope / max(curvature, 1e-300))
    model.learn(t)
    if t > 0.5:  # q is lower at the projection itself, which settles bounds
        return projected, box.is_free(w + projected.d, projected.r)
    if t > 0.0 and not model.metric.is_coupled:
        move = _between(move, projected, t)
        return move, box.is_free(w + move.d, move.r)
    t, hit = box.first_hit(w + move.d, s.d)
    return replace(_plus(move, t, step), n=n + 1), free & ~hit


def _between(a: Solution, b: Solution, t: float) -> Solution:
    """``(1 - t) a + t b``."""
    zero = Solution(np.zeros_like(a.d), None, 0, 0.0, np.zeros_like(a.r))
    return _plus(_plus(zero, 1.0 - t, a), t, b)


def _plus(a: Solution, t: float, b: Solution) -> Solution:
    """``a + t b``: residual and image are linear in d, so it costs no product."""
    image = None if a.image is None else conjugate.combine(None, 1.0, a.image)
    if b.image is not None:
        image = conjugate.combine(image, t, b.image)
    return Solution(a.d + t * b.d, image, b.n, 0.0, a.r + t * b.r)


class BoundedDirections(conjugate.Directions):
    """Near minimizers of the model in the box; what one learns of the Hessian serves the next."""

    _metric: Metric | None = None

    def at(  # type: ignore[override]
        self, point: Any, forcing: float, floor: float, norm: float
    ) -> Solution:
        """The step from ``point``, with the meaning of `linrank.solvers.conjugate.Directions`."""
        matrix = self.preconditioner.matrix(point, self._n_last)
        self._metric = metric_of(matrix, self._metric)
        if self.preconditioner.is_exact:
            self.memory.pairs.clear()
        model = _Hessian(point, self._metric, self.memory, self.preconditioner.limit, norm)
        move = _step(model, forcing, floor)
        self._n_last = move.n
        return replace(move, decrement=move.rest - move.value(point.gradient))


@dataclass(eq=False)
class _Hessian:
    """The Hessian at a point, by products.

    Where a face is wrong, its minimizer is far outside the box and says little: ``depth``, the
    products spent on one face, grows with success and shrinks with failure.
    """

    point: Any
    metric: Metric
    memory: conjugate.Memory
    limit: int
    norm: float  # the largest ``½‖r‖²`` on a face that may be left

    def __post_init__(self) -> None:
        self.depth = min(self.limit, self.metric.depth)

    def product(self, d: Array) -> tuple[Array, list[Any]]:
        """``Hd`` and the image of ``d``."""
        hd, image = self.point.hvp(d)
        return hd, image

    def on_face(self, r: Array, free: Array, goal: float) -> Solution | None:
        """A near solution of ``H s = r`` on a face; None if s would lower q by less than goal/2."""
        solve = self.memory.improve(self.metric.on(free), free)
        if dot(solve(r), r) <= goal and conjugate.half_square(free * r) <= self.norm:
            return None
        # The same quadratic model at another d: its products with the gradient that it has there.
        shifted = SimpleNamespace(gradient=-r, hvp=self.product)
        return conjugate.solve_newton(
            shifted, solve, self.memory, 0.0, goal, self.depth, self.norm, free
        )

    def learn(self, t: float) -> None:
        """How far towards the last solution, brought into the box, q fell: 1 all the way."""
        self.depth = min(self.limit, 2 * self.depth) if t > 0.5 else max(1, self.depth // 4)

    def is_spent(self, n: int) -> bool:
        """Whether ``n`` products are enough for one step."""
        return n >= 2 * self.limit


Model = Surrogate | _Hessian


def _step(model: _Hessian, forcing: float, floor: float) -> Solution:
    """A near minimizer of the model, from that of the metric."""
    w, g, box = model.point.w, model.point.gradient, model.point.box
    guess = model.metric.minimizer(w, g, box)
    d = guess.d
    if not dot(g, d) < 0.0:  # M sees nothing to gain
        return minimize(model, Solution(np.zeros_like(w), None, 0, 0.0, -g), w, g, box, floor)
    hd, image = model.product(d)
    # M may be too small: the best length along d, no longer than d, which may end at bounds.
    t = min(1.0, -dot(g, d) / max(dot(d, hd), 1e-300))
    move = Solution(t * d, conjugate.combine(None, t, image), 1, 0.0, -g - t * hd)
    goal = max(2.0 * forcing * forcing * -guess.value(g), floor)
    return minimize(model, move, w, g, box, goal)
