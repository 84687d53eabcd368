"""Newton steps in the space of a kernel: an approximate inverse of the Hessian, from landmarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.inner_product import dot
from linrank.kernels.landmarks import Landmarks
from linrank.solvers.conjugate import Solution
from linrank.solvers.directions import Directions
from linrank.solvers.preconditioner import by_cholesky

__all__ = ["KernelDirections", "OnLandmarks"]

Array = NDArray[Any]
Solve = Callable[[Array], Array]

_HARMLESS = 0.05  # share of the slope that a step may lose by being written down anew


class OnLandmarks:
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

    limit = 500
    memory = 0
    forcing = 0.1

    def __init__(self, landmarks: Landmarks, patience: int, n_threads: int = 1) -> None:
        self.landmarks = landmarks
        self.is_exact = False
        self._patience = patience
        self._n_threads = n_threads
        self._inverse: Solve | None = None

    def matrix(self, point: Any, n_last: int) -> Array:
        """H at the point: a sweep for each landmark, and one product of matrices.

        The core's way of building the Hessian of a linear ranker costs the same operations, but
        not at the speed of a library's product of large matrices in double.
        """
        part, G = point.parts[1], self.landmarks.coordinates
        curved = np.empty_like(G)

        def sweep(first: int) -> None:
            for k in range(first, len(G), self._n_threads):
                curved[k] = part.risk.loss.curvature(part.loss, G[k])

        if self._n_threads == 1:
            sweep(0)
        else:
            with ThreadPoolExecutor(self._n_threads) as pool:
                deque(pool.map(sweep, range(self._n_threads)), maxlen=0)
        H: Array = part.risk.C * (G @ curved.T)
        H[np.diag_indices_from(H)] += 1.0
        return H

    def at(self, point: Any, n_last: int) -> Solve:
        self.is_exact = self._inverse is None or n_last > self._patience
        if self.is_exact:
            self._inverse = by_cholesky(self.matrix(point, n_last))
        # A fresh H is as good as it gets; an aged one is better taken again than waited for.
        self.limit = 500 if self.is_exact else 2 * self._patience + 12
        return self._solve

    def wants_hessian(self, n_last: int) -> bool:
        return False

    def _solve(self, r: Array) -> Array:
        assert self._inverse is not None
        along = self.landmarks.coordinates @ r[0]
        y: Array = r.copy()
        return self.landmarks.add(self._inverse(along) - along, y)


class KernelDirections(Directions):
    """Steps whose coefficients are those of slopes of the loss, but for some of landmarks.

    Coefficients that Q takes to nearly 0 are invisible to the inner product, and conjugate
    gradients may multiply them from product to product until they drown the others in rounding.
    With the residual ρ, ``d = -r - C∇²L·Qd - ρ``, of which only ρ has a past. So d is written down
    anew from the first terms, and of ρ what the landmarks span: where it is large, and beyond which
    the Hessian is about 1 and it does no harm. Where landmarks are too few for that, d stays.
    """

    preconditioner: OnLandmarks

    def represented(self, point: Any, solution: Solution) -> Solution:
        landmarks, part = self.preconditioner.landmarks, point.parts[1]
        rest, curved = solution.residual, part.risk.loss.curvature(part.loss, solution.d[1])
        d = solution.d + rest
        d[0] = -point.gradient[0] - part.risk.C * curved
        landmarks.add(-(landmarks.coordinates @ rest[0]), d)
        # ½‖a - e‖² >= ½‖a‖² - <a, e> with e what d has gained: no old coefficient enters.
        harm = dot(point.w + d, d - solution.d)
        harm += part.moved(1.0, d, d[1]).value
        harm -= part.moved(1.0, solution.d, solution.d[1]).value
        is_harmless = harm <= -_HARMLESS * dot(point.gradient, d)
        return replace(solution, d=d, image=point.image(d)) if is_harmless else solution
