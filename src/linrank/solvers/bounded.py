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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank._core import dot
from linrank.bounds import Box
from linrank.objective import Term
from linrank.solvers.conjugate import Memory, Solution, combine, conjugate_gradients
from linrank.solvers.newton import Preconditioner, line_search
from linrank.solvers.preconditioner import by_cholesky
from linrank.solvers.result import Callback, Recorder, Result, kkt_residual

__all__ = ["bounded_newton"]

Array = NDArray[Any]
_FACES = 100  # faces that one model may visit; each is better than the last, so few are needed


def bounded_newton(
    objective: Term,
    w0: Array,
    *,
    preconditioner: Preconditioner,
    tol: float = 1e-4,
    max_iter: int = 100,
    callback: Callback | None = None,
    started: float | None = None,
) -> Result:
    """Minimise ``F`` on its box; stop when the model promises at most ``tol·F``, as `newton` does.

    The promise, ``-q(d)``, estimates ``F - F*`` as the Newton decrement does without bounds.
    """
    recorder = Recorder(callback, started)
    point = objective.at(w0)
    point = objective.at(point.box.clip(w0))
    if recorder.record(point, step=0.0, n_hvp=0):
        return recorder.result(point, "callback", "stopped by the callback")
    forcing, memory = preconditioner.forcing, Memory(preconditioner.memory, len(w0))
    metric: _Metric | None = None
    n_hvp = n_last = 0
    while True:
        if kkt_residual(point) == 0.0:
            return recorder.result(point, "tolerance", "the projected gradient is zero")
        metric = _metric(preconditioner.matrix(point, n_last), metric)
        floor = 4e-4 * tol * point.value  # as in `newton`
        move = _step(point, metric, memory, forcing, floor, preconditioner.limit)
        n_last = move.n
        n_hvp += n_last
        decrement = move.promise(point.gradient)
        recorder.note_decrement(decrement)
        is_last = decrement <= tol * point.value
        if not is_last and recorder.n_iter >= max_iter:
            message = (
                f"the estimated distance to the optimum, {decrement:.3g}, is above tol·F = "
                f"{tol * point.value:.3g} after max_iter={max_iter} iterations; "
                "raise max_iter or tol"
            )
            return recorder.result(point, "max_iter", message)
        trial, step = _search(point, move)
        if trial is None:
            stopped = "tolerance" if is_last else "precision"
            message = "steps have fallen below the rounding of F; the result is as good as it gets"
            return recorder.result(point, stopped, message)
        point = trial
        share = 10.0 * np.sqrt(decrement / max(point.value, 1e-300))
        forcing = preconditioner.forcing * min(1.0, max(0.01, share))
        if recorder.record(point, step=step, n_hvp=n_hvp):
            return recorder.result(point, "callback", "stopped by the callback")
        if is_last:
            return recorder.result(point, "tolerance", f"estimated F - F* <= {tol:g}·F")


def _search(point: Any, move: _Move) -> tuple[Any | None, float]:
    """The next point and its step; None if there is nowhere to go."""
    if move.image is None:
        return None, 0.0
    return line_search(point, move.d, move.image, point.box.room(point.w, move.d))


class _Metric(Protocol):
    """The preconditioner as a matrix that can be cut to a face."""

    matrix: Array
    diagonal: Array
    depth: int  # products that a first face is worth
    is_coupled: bool

    def on(self, free: Array) -> Callable[[Array], Array]:
        """``r -> M⁻¹ r`` on the face of the free variables, 0 for the others."""

    def minimiser(self, w: Array, g: Array, box: Box) -> _Move:
        """The minimiser of ``g·d + ½ d·Md`` in the box; its image is missing."""


def _metric(matrix: Array, last: _Metric | None) -> _Metric:
    """The metric of a matrix or diagonal; the last one, with its factors, if it is the same."""
    if last is not None and last.matrix is matrix:
        return last
    return _Separable(matrix) if matrix.ndim == 1 else _Coupled(matrix)


class _Separable:
    """A diagonal ``M``."""

    depth = 4
    is_coupled = False

    def __init__(self, diagonal: Array) -> None:
        self.matrix = self.diagonal = diagonal

    def on(self, free: Array) -> Callable[[Array], Array]:
        inverse = free / self.diagonal
        return lambda r: inverse * r

    def minimiser(self, w: Array, g: Array, box: Box) -> _Move:
        d = box.clip(w - g / self.diagonal) - w
        return _Move(d, -g - self.diagonal * d, None, 0, 0.0)


class _Coupled:
    """A full ``M``; factors of its last faces are kept: near the optimum the face is always one."""

    KEPT = 4
    depth = 100
    is_coupled = True

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.diagonal = matrix, np.diagonal(matrix)
        self._factors: dict[bytes, Callable[[Array], Array]] = {}

    def on(self, free: Array) -> Callable[[Array], Array]:
        key = free.tobytes()
        if key not in self._factors:
            if len(self._factors) == self.KEPT:
                del self._factors[next(iter(self._factors))]
            self._factors[key] = self._factor(free)
        return self._factors[key]

    def _factor(self, free: Array) -> Callable[[Array], Array]:
        index = np.flatnonzero(free)
        solve = by_cholesky(self.matrix[np.ix_(index, index)])

        def restricted(r: Array) -> Array:
            y = np.zeros_like(r)
            y[index] = solve(r[index])
            return y

        return restricted

    def minimiser(self, w: Array, g: Array, box: Box) -> _Move:
        start = _Move(np.zeros_like(w), -g, None, 0, 0.0)
        goal = 1e-10 * dot(g, g / self.diagonal)
        return _minimise(_Surrogate(self), start, w, g, box, goal)

    def times(self, d: Array) -> Array:
        product: Array = np.einsum("ij,j->i", self.matrix, d)
        return product


@dataclass(frozen=True, eq=False)
class _Move:
    """A displacement ``d`` in the box with ``r = -g - Hd`` and its image, and what it has cost."""

    d: Array
    r: Array
    image: list[Any] | None  # None of d = 0
    n: int  # products
    rest: float  # estimate of the decrease of q that is left

    def value(self, g: Array) -> float:
        """``q(d) = g·d + ½ d·Hd``."""
        return 0.5 * (dot(g, self.d) - dot(self.r, self.d))

    def promise(self, g: Array) -> float:
        """The decrease of q at its minimiser."""
        return self.rest - self.value(g)


class _Model(Protocol):
    """``½ d·Hd``, for the Hessian or for what stands for it."""

    @property
    def metric(self) -> _Metric: ...

    def product(self, d: Array) -> tuple[Array, list[Any]]:
        """``Hd`` and the image of ``d``."""

    def on_face(self, r: Array, free: Array, goal: float) -> Solution | None:
        """A near solution of ``H s = r`` on a face; None if s would lower q by less than goal/2."""

    def is_spent(self, n: int) -> bool:
        """Whether ``n`` products are enough for one step."""

    def learn(self, t: float) -> None:
        """How far towards the last solution, brought into the box, q fell: 1 all the way."""


@dataclass(frozen=True, eq=False)
class _Surrogate:
    """``H = M``: exact on every face, and no product with the rows."""

    metric: _Coupled

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


@dataclass(eq=False)
class _Hessian:
    """The Hessian at a point, by products.

    Where a face is wrong, its minimiser is far outside the box and says little: ``depth``, the
    products spent on one face, grows with success and shrinks with failure.
    """

    point: Any
    metric: _Metric
    memory: Memory
    limit: int
    depth: int

    def product(self, d: Array) -> tuple[Array, list[Any]]:
        hd, image = self.point.hvp(d)
        return hd, image

    def on_face(self, r: Array, free: Array, goal: float) -> Solution | None:
        solve = self.memory.improve(self.metric.on(free), free)
        if dot(solve(r), r) <= goal:
            return None
        return conjugate_gradients(_Shifted(self, -r), solve, self.memory, 0.0, goal, self.depth)

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


def _step(
    point: Any, metric: _Metric, memory: Memory, forcing: float, floor: float, limit: int
) -> _Move:
    """A near minimiser of the model at ``point``, from that of the metric."""
    w, g, box = point.w, point.gradient, point.box
    model = _Hessian(point, metric, memory, limit, min(limit, metric.depth))
    guess = metric.minimiser(w, g, box)
    d = guess.d
    if not dot(g, d) < 0.0:  # M sees nothing to gain
        return _minimise(model, _Move(np.zeros_like(w), -g, None, 0, 0.0), w, g, box, floor)
    hd, image = model.product(d)
    # M may be too small: the best length along d, no longer than d, which may end at bounds.
    t = min(1.0, -dot(g, d) / max(dot(d, hd), 1e-300))
    move = _Move(t * d, -g - t * hd, combine(None, t, image), 1, 0.0)
    goal = max(2.0 * forcing * forcing * -guess.value(g), floor)
    return _minimise(model, move, w, g, box, goal)


def _minimise(model: _Model, move: _Move, w: Array, g: Array, box: Box, goal: float) -> _Move:
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
            if gain <= goal:
                return replace(move, rest=0.5 * (gain + _energy(move.r, free, model.metric)))
            free |= released
            continue
        move, free = _follow(model, move, s, free, w, g, box)
        if model.is_spent(move.n):
            break
    # Ended early: what is left is known by its order only, and may not pass for the end.
    left = _energy(move.r, box.is_free(w + move.d, move.r), model.metric)
    return replace(move, rest=max(goal, left))


def _energy(r: Array, variables: Array, metric: _Metric) -> float:
    """``Σ r_j²/M_jj``: twice what the variables promise, each on its own."""
    part = np.where(variables, r, 0.0)
    return dot(part, part / metric.diagonal)


def _follow(
    model: _Model, move: _Move, s: Solution, free: Array, w: Array, g: Array, box: Box
) -> tuple[_Move, Array]:
    """The move after the step ``s`` on a face, and the next face."""
    n = move.n + s.n
    target = move.d + s.d
    inside = box.clip(w + target) - w
    is_out = free & (np.abs(target - inside) > 1e-14 * np.abs(w))
    step = _Move(s.d, s.residual - move.r, s.image, n, 0.0)
    if not is_out.any():
        model.learn(1.0)
        return _plus(move, 1.0, step), free
    hd, image = model.product(inside)
    projected = _Move(inside, -g - hd, image, n + 1, 0.0)
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


def _between(a: _Move, b: _Move, t: float) -> _Move:
    """``(1 - t) a + t b``."""
    zero = _Move(np.zeros_like(a.d), np.zeros_like(a.r), None, 0, 0.0)
    return _plus(_plus(zero, 1.0 - t, a), t, b)


def _plus(a: _Move, t: float, b: _Move) -> _Move:
    """``a + t b``: residual and image are linear in d, so it costs no product."""
    image = None if a.image is None else combine(None, 1.0, a.image)
    if b.image is not None:
        image = combine(image, t, b.image)
    return _Move(a.d + t * b.d, a.r + t * b.r, image, b.n, 0.0)
