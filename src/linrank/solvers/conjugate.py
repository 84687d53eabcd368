"""The steps that Newton's method tries where there are no bounds, and what preconditions them.

Approximations of the Hessian and of its inverse, each for its regime:

===============  ==================================================================================
`Explicit`       the Hessian itself, refreshed when it has aged: few rows, up to some 10³ features
`Sampled`        the Hessian of a sample of queries: many rows, up to some 10³ features
`Carried`        either, kept over many C and rescaled: regularization paths
`Diagonal`       its diagonal: sparse data of high dimension
`Spanned`        the Hessian on the span of the rows: some hundred rows, more features
`Plain`          nothing: fewer rows than half the features
===============  ==================================================================================
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank import _core
from linrank.data.rows import Array, add_to, dot

Solve = Callable[[Array], Array]

_SMALLEST = 1e-290  # a share of it is still a normal number


class Preconditioner:
    """Gives, at each outer iterate, a cheap approximation of the inverse Hessian.

    Attributes
    ----------
    limit : int
        Products that one solve may take: beyond, a better approximation pays.
    memory : int
        Earlier products that improve it.
    forcing : float
        Residual, relative to the first, to which the first solve goes.
    is_exact : bool
        Whether M is the Hessian of its point: earlier products cannot improve it.
    """

    limit = 500
    memory = 24
    forcing = 0.1
    is_exact = False
    _matrix: Array | None = None  # the one that `_solve` belongs to

    def matrix(self, point: Any, n_last: int) -> Array:
        """``M``, or its diagonal; ``n_last`` is the number of products that the last solve took."""
        raise NotImplementedError("a preconditioner defines matrix(point, n_last)")

    def at(self, point: Any, n_last: int) -> Solve:
        """``r -> M⁻¹ r``; a factor is kept while the matrix stays the same array."""
        matrix = self.matrix(point, n_last)
        if matrix.ndim == 1:
            return lambda r: r / matrix
        if matrix is not self._matrix:
            self._matrix, self._solve = matrix, by_cholesky(matrix)
        return self._solve

    def wants_hessian(self, n_last: int) -> bool:
        """Whether the next `at` will ask its point for the Hessian.

        A point that is told before it is evaluated can form the Hessian in the same pass.
        """
        return False


def _factor(matrix: Array) -> Solve | None:
    """``r -> matrix⁻¹ r`` by a factor of the matrix; None where it is indefinite."""
    n = len(matrix)
    factor: Any = _core.cholesky_factor(np.ascontiguousarray(matrix).reshape(-1), n)
    return None if factor is None else lambda r: _core.cholesky_solve(factor, n, r)


def by_cholesky(matrix: Any, factor: Callable[[Any], Solve | None] = _factor) -> Solve:
    """``r -> matrix⁻¹ r``; a matrix that rounding made indefinite is lifted until it is not.

    Each diagonal entry is lifted by a share of itself: an equal lift for all would drown the
    features of small scale, and conjugate gradients would have to find their weights alone. An
    entry that has underflowed has no share to give, and takes that of the largest, or of 1.
    """
    if not np.isfinite(matrix).all():
        raise ValueError(
            "the Hessian overflows: squares of the features, summed over the pairs, leave the "
            "range of their type; divide the features by a common factor, or pass float64"
        )
    diagonal = matrix.diagonal().copy()
    largest = float(diagonal.max()) if len(diagonal) else 0.0
    diagonal[diagonal < _SMALLEST] = largest if largest >= _SMALLEST else 1.0
    lift = 0.0
    while True:
        solve = factor(matrix)
        if solve is not None:
            return solve
        lift = max(10.0 * lift, 1e-7)
        matrix = matrix.copy()
        matrix.reshape(-1)[:: len(matrix) + 1] += lift * diagonal


class Diagonal(Preconditioner):
    """``M`` = an estimate of ``diag(∇²F)`` at every iterate: one pass over the non-zeros.

    Parameters
    ----------
    memory : int
        Products to remember; each takes four operations a feature in every step, which must not
        outweigh the product itself.
    """

    def __init__(self, memory: int = 24) -> None:
        self.memory = memory

    def matrix(self, point: Any, n_last: int) -> Array:
        return point.hessian_diagonal()


class Plain(Preconditioner):
    """``M = 1``: where rows are few, ``∇²F`` is the identity but for a matrix of low rank.

    Conjugate gradients profit from the many equal eigenvalues, which a diagonal, or the memory of
    earlier products, would scatter.
    """

    memory = 0
    forcing = 0.03  # the residual says less about the error than with a good M

    def matrix(self, point: Any, n_last: int) -> Array:
        return np.ones_like(point.w)

    def at(self, point: Any, n_last: int) -> Solve:
        return lambda r: r


class Explicit(Preconditioner):
    """``M = ∇²F`` at an earlier iterate, until a solve takes more than ``patience`` products.

    Parameters
    ----------
    patience : int
        The matrix costs about twice as many products, so an aged one is kept while it is cheaper.
    guess : Sampled, optional
        What to begin with; well-behaved data never need the matrix itself.
    """

    def __init__(self, patience: int, guess: Sampled | None = None) -> None:
        self.patience = patience
        self.limit = patience + 2
        self._guess = guess
        self._hessian: Array | None = None

    def matrix(self, point: Any, n_last: int) -> Array:
        if n_last > self.patience:
            self._hessian = self._guess = None
        if self._guess is not None:
            return self._guess.matrix(point, 0)
        self.is_exact = self._hessian is None
        if self._hessian is None:
            self._hessian = self._form(point)
        return self._hessian

    def _form(self, point: Any) -> Array:
        matrix: Array = point.hessian_matrix()
        return matrix

    def wants_hessian(self, n_last: int) -> bool:
        return n_last > self.patience or (self._guess is None and self._hessian is None)


class Spanned(Explicit):
    """``M = ∇²F`` of an earlier iterate on the span of the rows, and 1 beside it: few rows.

    With ``D Xᵀ = QR`` the losses at ``w`` are those of the rows ``Rᵀ`` at ``Qᵀw``. Their Hessian is
    as small as the rows are few, and exact: gradients and steps never leave the span.

    Parameters
    ----------
    basis : array (n_features, n_rows)
        ``Q``.
    rows : DenseRows
        ``Rᵀ``.
    patience : int
        As of `Explicit`.
    """

    def __init__(self, basis: Array, rows: Any, patience: int) -> None:
        super().__init__(patience)
        self._basis, self._rows = basis, rows

    def _form(self, point: Any) -> Array:
        within = (replace(part.risk, rows=self._rows, scale=None) for part in point.parts[1:])
        parts = zip(within, point.parts[1:], strict=True)
        total: Array = sum(risk.resume(part).hessian_matrix() for risk, part in parts)
        matrix: Array = np.eye(self._rows.shape[1]) + total
        return matrix

    def at(self, point: Any, n_last: int) -> Solve:
        solve, basis = super().at(point, n_last), self._basis

        def lifted(r: Array) -> Array:
            within = basis.T @ r
            y: Array = r + basis @ (solve(within) - within)
            return y

        return lifted

    def wants_hessian(self, n_last: int) -> bool:
        return False  # of all features, which is never formed


class Sampled(Preconditioner):
    """``M`` from the Hessian of a sample of queries, scaled to the curvature of the whole.

    Parameters
    ----------
    sample : callable
        ``sample(n_rows)`` returns the objective on about ``n_rows`` rows. Where the loss has a
        band, a wide one: the few pairs of a narrow one say little about the whole.
    n_rows : int
        Size of the first sample; four times as many at each rebuilding.
    w : array
        Where the first Hessian is taken.
    n_limit : int
        Products that a solve may take before the sample is enlarged.
    sees_all : bool
        Whether the diagonal of the whole Hessian is to be had, to correct that of a sample.
    """

    def __init__(
        self,
        sample: Callable[[int], Any],
        n_rows: int,
        w: Array,
        n_limit: int = 12,
        sees_all: bool = True,
    ) -> None:
        self._sample = sample
        self._n_rows = n_rows
        self._n_limit = n_limit
        self._sees_all = sees_all
        self.limit = 4 * n_limit
        self._take(w)

    def _take(self, w: Array) -> None:
        point = self._sample(self._n_rows).at(w)
        self._sampled = sum(risk.hessian_matrix() for risk in point.parts[1:])
        self._curved = _curved(point)
        self._ratio = 0.0

    def matrix(self, point: Any, n_last: int) -> Array:
        if n_last > self._n_limit:
            self._n_rows *= 4
            self._take(point.w)
            if self._sees_all:
                self._rescale(point)
        ratio = _curved(point) / max(self._curved, 1e-300)
        # A factor of two in scale costs a product or so; a new factor costs n³/6.
        if not 0.5 < ratio / max(self._ratio, 1e-300) < 2.0:
            self._ratio = ratio
            self._scaled: Array = np.eye(len(point.w)) + ratio * self._sampled
        return self._scaled

    def _rescale(self, point: Any) -> None:
        """Give the columns that the sample sees too large or too small their size in the whole.

        Scaling rows and columns alike keeps the correlations, for which the matrix is there;
        writing the whole diagonal into it would drown the nearly collinear directions.
        """
        ratio = _curved(point) / max(self._curved, 1e-300)
        whole = sum(risk.hessian_diagonal() for risk in point.parts[1:]) / ratio
        mine = np.diagonal(self._sampled).copy()
        is_seen = mine > 1e-12 * max(float(mine.max()), 1e-300)
        factor = np.sqrt(np.divide(whole, mine, out=np.ones_like(mine), where=is_seen))
        self._sampled *= factor
        self._sampled *= factor[:, np.newaxis]
        np.fill_diagonal(self._sampled, whole)


class Carried(Preconditioner):
    """``M = I + ρK``, K the Hessian of the losses at an earlier point, for all C of a path.

    ρ is C times the curvature of the violated pairs, over what it was where K was taken: along a
    path the size of the losses' Hessian changes first of all, by C and by the pairs that are left.

    Parameters
    ----------
    take : callable
        ``take(point, k)``: where K is taken for the k-th time, the point itself or the same ``w``
        on a sample of the rows.
    patience : int
        Products that a solve may take before K is taken again.
    """

    # Each remembered product costs a few vector operations in every step of a solve. The last
    # solve's are the ones that matter: the next step has nearly its direction.
    memory = 3

    def __init__(self, take: Callable[[Any, int], Any], patience: int) -> None:
        self._take = take
        self._patience = patience
        self.limit = 4 * patience + 12
        self._n_taken = 0
        self._ratio = 0.0

    def matrix(self, point: Any, n_last: int) -> Array:
        if self._n_taken == 0 or n_last > self._patience:
            taken = self._take(point, self._n_taken)
            self._carried = sum(risk.hessian_matrix() for risk in taken.parts[1:])
            self._curved = max(_curved(taken), 1e-300)
            self._n_taken += 1
            self._ratio = 0.0
        ratio = _curved(point) / self._curved
        if not 0.8 < ratio / max(self._ratio, 1e-300) < 1.25:
            self._ratio = ratio
            self._scaled: Array = np.eye(len(point.w)) + ratio * self._carried
        return self._scaled


def _curved(point: Any) -> float:
    """``C·Σωl''`` of all the risks beside ``½‖w‖²``."""
    return float(sum(risk.risk.C * risk.loss.total_curvature for risk in point.parts[1:]))


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

    def improve(self, solve: Solve, free: Array | None = None, n_threads: int = 1) -> Solve:
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
                alphas.append(dot(p, q, n_threads) / php)
                add_to(q, -alphas[-1], hp, n_threads)
            y = solve(q)
            for (p, hp, php), alpha in zip(pairs, reversed(alphas), strict=True):
                add_to(y, alpha - dot(hp, y, n_threads) / php, p, n_threads)
            return y

        return improved


@dataclass(frozen=True, eq=False)
class Solution:
    """A displacement with ``H d ≈ -g``, and what is known of it."""

    d: Array
    image: list[Any] | None  # None of d = 0
    n: int  # products that it took
    rest: float  # estimate of the decrease of ``q(d) = g·d + ½ d·Hd`` that is left
    r: Array  # -g - Hd
    decrement: float = math.nan  # of the model, at its minimizer: an estimate of F - F*

    def value(self, g: Array) -> float:
        """``q(d)``."""
        return 0.5 * (dot(g, self.d) - dot(self.r, self.d))


def solve_newton(
    point: Any,
    solve: Solve,
    memory: Memory,
    forcing: float,
    floor: float,
    limit: int,
    norm: float = math.inf,
    free: Array | None = None,
    residual: float = 0.0,
    n_threads: int = 1,
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
        php = dot(p, hp, n_threads)
        # Rounding has eaten the curvature, or the gradient is none that steps can follow.
        if not php > 0.0 or not np.isfinite(php) or not ry > 0.0:
            break
        memory.add(p, hp, php)
        alpha = ry / php
        add_to(d, alpha, p, n_threads)
        image = combine(image, alpha, xp)
        r = r - alpha * hp
        if half_square(r) <= residual:
            return Solution(d, image, n, 0.0, r)
        y = solve(r)
        ry, old = dot(r, y, n_threads), ry
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
    each = zip(factors, image, strict=False)
    if total is None:
        return [None if part is None else factor * part for factor, part in each]
    for whole, (factor, part) in zip(total, each, strict=False):
        if whole is not None:
            whole += factor * part
    return total


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
    ) -> Solution:
        """The step from ``point``; what ends the solve is that of `solve_newton`."""
        solve = self.preconditioner.at(point, self._n_last)
        if self.preconditioner.is_exact:
            self.memory.pairs.clear()
        how: dict[str, Any] = {"n_threads": point.n_threads}
        improved, limit = self.memory.improve(solve, **how), self.preconditioner.limit
        how["residual"] = residual
        solution = solve_newton(point, improved, self.memory, forcing, floor, limit, norm, **how)
        self._n_last = solution.n
        solution = self.represented(point, solution)
        decrement = -0.5 * dot(point.gradient, solution.d) + solution.rest
        return replace(solution, decrement=decrement)

    def represented(self, point: Any, solution: Solution) -> Solution:
        """The same step as it is to be written down; a vector of weights has one way only."""
        return solution
