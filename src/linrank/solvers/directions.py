"""The steps that Newton's method tries, where there are no bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from linrank.inner_product import dot
from linrank.solvers.conjugate import Memory, Solution, solve_newton
from linrank.solvers.preconditioner import Preconditioner

__all__ = ["Directions", "Step"]

Array = NDArray[Any]


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
