"""Rows that stand for all: a partial Cholesky factor of Q with pivots drawn at random."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from linrank.data.rows import Array, dot
from linrank.kernels.matrices import KernelMatrix
from linrank.objective import SumPoint
from linrank.solvers import conjugate
from linrank.system.device import HOST, Device

HESSIAN_BYTES = 1 << 28  # of vectors that a Hessian takes at a time on a device
_BLOCK = 64  # pivots drawn at a time
_LEAST = 1e-9  # pivots below this share of k(x, x) would lose half of the digits of T⁻¹


@dataclass(frozen=True, eq=False)
class Landmarks:
    """``Q ≈ G'G``, ``G = T⁻¹ Q[rows]``, ``Q[rows, rows] = T T'``: exact in the columns of the
    landmarks.

    Attributes
    ----------
    rows : int64 array (m,)
        The landmarks.
    coordinates : float64 array (m, n)
        G: column i has those of row i in an orthonormal basis of the span of the landmarks.
    back : float64 array (m, m)
        T⁻ᵀ: from coordinates to coefficients of the landmarks.
    place : Device or HOST
        Where these two are.
    """

    rows: Array
    coordinates: Any
    back: Any
    place: Any = HOST

    def __len__(self) -> int:
        return len(self.rows)

    def along(self, function: Array) -> Any:
        """``Gβ`` of a function, its part in the span: coordinates, where G is."""
        return self.place.product(self.coordinates, self.place.put(function[0]))

    def add(self, t: Any, function: Array) -> Array:
        """Add the element of the span with coordinates ``t`` to a function, in place."""
        place = self.place
        function[0, self.rows] += place.get(place.product(self.back, t))
        function[1] += place.get(place.product(self.coordinates, t, turned=True))
        return function

    @classmethod
    def of(
        cls,
        matrix: KernelMatrix,
        m: int,
        *,
        seed: int = 0,
        enough: float = 0.0,
        least: float = _LEAST,
    ) -> Landmarks:
        """Up to ``m`` landmarks, fewer where the trace of the rest is below ``enough``.

        ``least`` is the share of the largest ``k(x, x)`` below which a pivot is no news.

        Randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2023) in blocks: rows are drawn
        with chances proportional to what of ``k(x, x)`` is left, so that outliers are taken and
        duplicates are not; of a block, those that its others make superfluous are dropped. What has
        the size of G is where the matrix is, which must be ``current``.
        """
        rng, place, xp = np.random.default_rng(seed), matrix.place, matrix.place.xp
        n, m = matrix.n, min(m, matrix.n)
        left = matrix.diagonal.copy()
        smallest = least * max(float(left.max()), 0.0)
        left[left <= smallest] = 0.0
        G, rows = xp.empty((m, n)), np.empty(m, dtype=np.int64)
        k = 0
        while k < m and left.sum() > enough:
            drawn = _draw(left, min(_BLOCK, m - k), rng)
            if drawn.size == 0:
                break
            block = matrix.columns(drawn).T
            block -= G[:k, drawn].T @ G[:k]
            kept, triangle = _independent(place.get(block[:, drawn]), smallest)
            size = len(kept)
            added = xp.linalg.solve(place.put(triangle), block[kept])
            G[k : k + size], rows[k : k + size] = added, drawn[kept]
            left -= place.get((added * added).sum(axis=0))
            left[left < smallest] = 0.0
            left[drawn] = 0.0  # taken, or no news beside those taken
            k += size
        G, rows = G[:k], rows[:k]
        return cls(rows, G, xp.triu(xp.linalg.inv(xp.tril(G[:, rows].T)).T), place)


def _draw(left: Array, size: int, rng: np.random.Generator) -> Array:
    """Different rows, by chances ``left``; fewer than ``size`` where few have any."""
    alive = np.flatnonzero(left)
    if alive.size <= size:
        return alive
    # Exponential clocks: the first to ring are a weighted draw without replacement.
    clocks = rng.exponential(size=alive.size) / left[alive]
    return np.sort(alive[np.argpartition(clocks, size)[:size]])


def _independent(block: Array, smallest: float) -> tuple[Array, Array]:
    """Rows of a small matrix with pivots above ``smallest``, and their Cholesky factor."""
    left = np.diagonal(block).copy()
    kept: list[int] = []
    L = np.zeros_like(block)
    for i in range(len(block)):
        k = len(kept)
        if left[i] <= max(smallest, 1e-6 * block[i, i]):
            continue
        column = (block[:, i] - L[:, :k] @ L[i, :k]) / np.sqrt(left[i])
        L[:, k] = column
        left -= column * column
        kept.append(i)
    index = np.array(kept, dtype=np.int64)
    return index, np.tril(L[index][:, : len(kept)])


_HARMLESS = 0.05  # share of the slope that a step may lose by being written down anew


@dataclass(eq=False)
class OnLandmarks(conjugate.Preconditioner):
    """``M`` = ``∇²f`` on the span of the landmarks, at an earlier iterate, and 1 beside it.

    In an orthonormal basis U of the span, rows have the coordinates G, a function r has
    ``U'r = Gβ_r``, and ``H = 1 + C·G∇²L G'`` is the Hessian of a linear ranker of m features. With
    ``t = (H⁻¹ - 1) Gβ_r``, ``M⁻¹r = r + U t``, whose coefficients are those of r plus ``T⁻ᵀt`` on
    the landmarks, and whose values those of r plus ``G't``: no product with Q.

    Parameters
    ----------
    landmarks : Landmarks
        What spans.
    patience : int
        Products that a solve may take before H is taken again.
    n_threads : int
        Threads of the sweeps.
    """

    memory = 0
    landmarks: Landmarks
    patience: int
    n_threads: int = 1
    _inverse: conjugate.Solve | None = field(default=None, init=False)

    def matrix(self, point: Any, n_last: int) -> Any:
        """H at the point: a sweep for each landmark, and one product of matrices.

        The core's way of building the Hessian of a linear ranker costs the same operations, but
        not at the speed of a library's product of large matrices in double.
        """
        part, G = point.parts[1], self.landmarks.coordinates
        if self.landmarks.place is not HOST:
            return self._matrix_there(part)
        curved = np.empty_like(G)

        def sweep(first: int) -> None:
            for k in range(first, len(G), self.n_threads):
                curved[k] = part.risk.loss.curvature(part.loss, G[k])

        with ThreadPoolExecutor(self.n_threads) as pool:
            deque(pool.map(sweep, range(self.n_threads)), maxlen=0)
        H: Array = part.risk.C * (G @ curved.T)
        H[np.diag_indices_from(H)] += 1.0
        return H

    def _matrix_there(self, part: Any) -> Any:
        """The same on a device, where sweeps take many landmarks at a time."""
        G, device = self.landmarks.coordinates, self.landmarks.place
        H = device.empty((len(G), len(G)))
        step = max(1, HESSIAN_BYTES // (8 * max(1, G.shape[1])))
        for begin in range(0, len(G), step):
            some = G[begin : begin + step]
            H[begin : begin + step] = part.risk.loss.curve_rows(part.loss, some, device) @ G.T
            device.wait()
        H *= part.risk.C
        H.reshape(-1)[:: len(G) + 1] += 1.0
        return H

    def at(self, point: Any, n_last: int) -> conjugate.Solve:
        self.is_exact = self._inverse is None or n_last > self.patience
        if self.is_exact:
            place = self.landmarks.place
            factor = {} if place is HOST else {"factor": self._factor_there}
            with place.current():
                self._inverse = conjugate.by_cholesky(self.matrix(point, n_last), **factor)
        # A fresh H is as good as it gets; an aged one is better taken again than waited for.
        self.limit = 500 if self.is_exact else 2 * self.patience + 12
        return self._on_span

    def _factor_there(self, H: Any) -> conjugate.Solve | None:
        """With W the inverse of the factor, ``H⁻¹ = W'W`` in two products: a triangle is slow."""
        from cupyx import errstate

        device: Device = self.landmarks.place
        try:
            with errstate(linalg="raise"):
                W = device.xp.linalg.inv(device.xp.linalg.cholesky(H))
        except np.linalg.LinAlgError:
            return None
        return lambda r: device.product(W, device.product(W, r), turned=True)

    def _on_span(self, r: Array) -> Array:
        assert self._inverse is not None
        y: Array = r.copy()
        with self.landmarks.place.current():
            along = self.landmarks.along(r)
            return self.landmarks.add(self._inverse(along) - along, y)


class KernelDirections(conjugate.Directions):
    """Steps whose coefficients are those of slopes of the loss, but for some of landmarks.

    Coefficients that Q takes to nearly 0 are invisible to the inner product, and conjugate
    gradients may multiply them from product to product until they drown the others in rounding.
    With the residual ρ, ``d = -r - C∇²L·Qd - ρ``, of which only ρ has a past. So d is written down
    anew from the first terms, and of ρ what the landmarks span: where it is large, and beyond which
    the Hessian is about 1 and it does no harm. Where landmarks are too few for that, d stays.
    """

    preconditioner: OnLandmarks

    def represented(self, point: Any, solution: conjugate.Solution) -> conjugate.Solution:
        landmarks, part = self.preconditioner.landmarks, point.parts[1]
        rest, curved = solution.r, part.risk.loss.curvature(part.loss, solution.d[1])
        d = solution.d + rest
        d[0] = -point.gradient[0] - part.risk.C * curved
        with landmarks.place.current():
            landmarks.add(-landmarks.along(rest), d)
        # ½‖a - e‖² >= ½‖a‖² - <a, e> with e what d has gained: no old coefficient enters.
        harm = dot(point.w + d, d - solution.d)
        harm += part.moved(1.0, d, d[1]).value
        harm -= part.moved(1.0, solution.d, solution.d[1]).value
        is_harmless = harm <= -_HARMLESS * dot(point.gradient, d)
        return replace(solution, d=d, image=point.image(d)) if is_harmless else solution


_SHARE = 0.01
_TRIALS = 6
_ROUNDING = 1e-14


def settle_coefficients(point: SumPoint, preconditioner: OnLandmarks, tol: float) -> Array | None:
    """A β as good as that of this point, 0 where no pair is violated and of sum 0 in each query.

    At the optimum, ``β = -C∇L(s)`` has both properties, but away from it that β is useless: what is
    left of the gradient is multiplied by the largest eigenvalue of the Hessian, 10⁷ and more. The
    end of a Newton step d has them as well, as ``β + d = -C(∇L(s) + ∇²L(s)Qd)`` where d solves its
    linear system; with a residual ρ, the right-hand side is ``β + d + ρ``, whose values are known.
    So the system is solved further until ρ does no harm. None where that takes too long.
    """
    part, allowed = point.parts[1], _SHARE * tol * point.primal
    memory = conjugate.Memory(preconditioner.memory, point.w.shape[-1])
    solve = preconditioner.at(point, 0)
    d, rest = np.zeros_like(point.w), -point.gradient
    goal = 1e-6 * tol * point.primal
    for _ in range(_TRIALS):
        left = SimpleNamespace(gradient=-rest, hvp=point.hvp)  # of the system
        improved, limit = memory.improve(solve), preconditioner.limit
        solution = conjugate.solve_newton(left, improved, memory, 0.0, 0.0, limit, residual=goal)
        d, rest = d + solution.d, solution.r
        excess = point.moved(1.0, d + rest, point.image(d + rest)).primal - point.primal
        if excess <= allowed:
            slope = part.loss.gradient + part.risk.loss.curvature(part.loss, d[1])
            beta: Array = -part.risk.C * slope
            # No more than the rounding of the sums that sweeps subtract is 0.
            beta[np.abs(beta) <= _ROUNDING * np.abs(beta).sum()] = 0.0
            return beta
        goal *= min(0.1, 0.3 * allowed / excess)
    return None
