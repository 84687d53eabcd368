"""The coefficients that a point in the space of a kernel speaks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.kernels.preconditioner import OnLandmarks
from linrank.objective import SumPoint
from linrank.solvers.conjugate import Memory, solve_newton

__all__ = ["settled"]

Array = NDArray[Any]

_SHARE = 0.01
_TRIALS = 6
_ROUNDING = 1e-14


def settled(point: SumPoint, preconditioner: OnLandmarks, tol: float) -> Array | None:
    """A β as good as that of this point, 0 where no pair is violated and of sum 0 in each query.

    At the optimum, ``β = -C∇L(s)`` has both properties, but away from it that β is useless: what is
    left of the gradient is multiplied by the largest eigenvalue of the Hessian, 10⁷ and more. The
    end of a Newton step d has them as well, as ``β + d = -C(∇L(s) + ∇²L(s)Qd)`` where d solves its
    linear system; with a residual ρ, the right-hand side is ``β + d + ρ``, whose values are known.
    So the system is solved further until ρ does no harm. None where that takes too long.
    """
    part, allowed = point.parts[1], _SHARE * tol * point.primal
    memory = Memory(preconditioner.memory, point.w.shape[-1])
    solve = preconditioner.at(point, 0)
    d, rest = np.zeros_like(point.w), -point.gradient
    goal = 1e-6 * tol * point.primal
    for _ in range(_TRIALS):
        solution = solve_newton(
            _System(point, -rest),
            memory.improve(solve),
            memory,
            forcing=0.0,
            floor=0.0,
            limit=preconditioner.limit,
            residual=goal,
        )
        d, rest = d + solution.d, solution.residual
        excess = point.moved(1.0, d + rest, point.image(d + rest)).primal - point.primal
        if excess <= allowed:
            slope = part.loss.gradient + part.risk.loss.curvature(part.loss, d[1])
            return _without_rounding(-part.risk.C * slope)
        goal *= min(0.1, 0.3 * allowed / excess)
    return None


def _without_rounding(beta: Array) -> Array:
    """β, where what is no more than the rounding of the sums that sweeps subtract is 0."""
    beta[np.abs(beta) <= _ROUNDING * np.abs(beta).sum()] = 0.0
    return beta


@dataclass(frozen=True, eq=False)
class _System:
    """The linear system of a Newton step, or of what is left of it: ``H d = -gradient``."""

    point: Any
    gradient: Array

    def hvp(self, v: Array) -> Any:
        return self.point.hvp(v)
