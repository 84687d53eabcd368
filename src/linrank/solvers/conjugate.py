"""The steps that Newton's method tries, where there are no bounds."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import dot
from linrank.solvers.preconditioner import Preconditioner

Array = NDArray[Any]


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

    def reweight(self, factor: float) -> None:
        """Carry the products over to losses that weigh ``factor`` times: ``Hp = p + C·Kp``."""
        pairs = [(p, p + factor * (hp - p)) for p, hp, _ in self.pairs]
        self.pairs.clear()
        self.pairs.extend((p, hp, dot(p, hp)) for p, hp in pairs)

    def improve(
        self, solve: Callable[[Array], Array], free: Array | None = None
    ) -> Callable[[Array], Array]:
        """``solve`` improved, as it is now: M must not change during a solve.

        On the face of the ``free`` variables the pairs inside it count, ``Hp`` cut to it.
        """
        pairs = list(self.pairs)
        if free is not None:
            pairs = [(p, free * hp, php) for p, hp, php in pairs if not p[~free].any()]
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
    residual: Array  # -g - Hd


def solve_newton(
    point: Any,
    solve: Callable[[Array], Array],
    memory: Memory,
    forcing: float,
    floor: float,
    limit: int,
    norm: float = math.inf,
    free: Array | None = None,
    residual: float = 0.0,
) -> Solution:
    """Preconditioned conjugate gradients on ``H d = -g``.

    The decrease left is ``½ r'H⁻¹r <= r'M⁻¹r / 2θ``, θ the smallest eigenvalue of ``M⁻¹H``, for
    which the coefficients of the iteration give an estimate. It ends when twice that is at most
    ``forcing²`` of its first value or at most ``floor``, and ``½‖r‖²`` at most ``norm``, or after
    ``limit`` products: any ``d`` on the way is a descent direction. It also ends when ``½‖r‖²`` is
    at most ``residual``, whatever the rest.

    On a face, ``free`` says which variables move; ``solve`` must return zeros for the others. The
    residual is that of all variables.
    """
    r = -point.gradient
    y = solve(r)
    p, ry = y, dot(r, y)
    goal, d, image = max(forcing * forcing * ry, floor), np.zeros_like(r), None
    lanczos = Lanczos()
    n = 0
    while n < limit:
        hp, xp = point.hvp(p)
        n += 1
        php = dot(p, hp)
        # Rounding has eaten the curvature, or the gradient is none that steps can follow.
        if not php > 0.0 or not np.isfinite(php) or not ry > 0.0:
            break
        memory.add(p, hp, php)
        alpha = ry / php
        d += alpha * p
        image = combine(image, alpha, xp)
        r = r - alpha * hp
        if half_square(r) <= residual:
            return Solution(d, image, n, 0.0, r)
        y = solve(r)
        ry, old = dot(r, y), ry
        lanczos.add(alpha, ry / old)
        if not ry > 0.0 or (
            lanczos.confirms(ry, goal) and half_square(r if free is None else free * r) <= norm
        ):
            break
        p = y + (ry / old) * p
    if image is None:  # the very first direction failed: fall back on it unscaled
        return Solution(p, xp, n, 0.0, r - hp)
    return Solution(d, image, n, 0.5 * max(ry, 0.0) / lanczos.smallest(), r)


def half_square(r: Array) -> float:
    """``½‖r‖²``."""
    return 0.5 * float(dot(r, r))


class Lanczos:
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


def combine(total: list[Any] | None, alpha: float, image: list[Any]) -> list[Any]:
    """``total + alpha·image``, part by part; the sizes that the first part has add up."""
    factors = [abs(alpha)] + [alpha] * (len(image) - 1)
    if total is None:
        return [
            None if part is None else factor * part
            for factor, part in zip(factors, image, strict=False)
        ]
    for whole, factor, part in zip(total, factors, image, strict=False):
        if whole is not None:
            whole += factor * part
    return total


@dataclass(frozen=True, eq=False)
class Step:
    """A displacement ``d`` with its image, what it has cost, and what the quadratic model hopes."""

    d: Array
    image: list[Any] | None  # None of d = 0
    n: int  # products
    decrement: float  # the decrease of the model at its minimiser: an estimate of F - F*


class Directions:
    """Near solutions of ``H d = -g``; what one learns of the Hessian serves the next."""

    def __init__(self, preconditioner: Preconditioner, n_features: int) -> None:
        self.preconditioner = preconditioner
        self.memory = Memory(preconditioner.memory, n_features)
        self._n_last = 0

    def at(
        self,
        point: Any,
        forcing: float = 0.0,
        floor: float = 0.0,
        norm: float = math.inf,
        residual: float = 0.0,
    ) -> Step:
        """The step from ``point``; what ends the solve is that of `solve_newton`."""
        solve = self.preconditioner.at(point, self._n_last)
        if self.preconditioner.is_exact:
            self.memory.pairs.clear()
        solution = solve_newton(
            point,
            self.memory.improve(solve),
            self.memory,
            forcing,
            floor,
            self.preconditioner.limit,
            norm,
            residual=residual,
        )
        self._n_last = solution.n
        solution = self.represented(point, solution)
        decrement = -0.5 * dot(point.gradient, solution.d) + solution.rest
        return Step(solution.d, solution.image, solution.n, decrement)

    def represented(self, point: Any, solution: Solution) -> Solution:
        """The same step as it is to be written down; a vector of weights has one way only."""
        return solution
