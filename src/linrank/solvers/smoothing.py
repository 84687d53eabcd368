"""From a smooth loss to the one it stands for, by steps that the certificate asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from linrank.objective import Sum

__all__ = ["Sharpening"]

# Shares of the tolerance and of the slack, and the largest step; tuned on iterations of small sets.
_AIM = 0.6
_READY = 2.0
_LARGEST_STEP = 20.0


class Sharpening:
    """Lowers ε of the Huberised hinge while its slack keeps the certified gap above the tolerance.

    The gap at the optimum of ``h_ε`` is the slack of its dual point, which falls as ``ε²``: the
    pairs of the band and what each of them leaves both shrink with ε. So the ε that a tolerance
    needs is known from any ε at hand, and is taken at once where that is no more than a factor 20;
    but not before the step in hand has brought ``F_ε`` down to the order of the slack.

    Parameters
    ----------
    objective : callable
        ``objective(ε)`` is the smoothed objective.
    tol : float
        The gap that will do, relative to the objective.
    epsilon : float
        The first ε. At ``w = 0`` all slacks are 1, and only ``ε >= 1`` gives the first step a
        curvature.
    """

    def __init__(self, objective: Callable[[float], Sum], tol: float, epsilon: float = 1.0) -> None:
        self.objective = objective
        self.tol = tol
        self.epsilon = epsilon

    def __call__(self, point: Any, decrement: float) -> Any:
        slack, aim = point.dual.slack, _AIM * self.tol * point.primal
        if slack <= aim or decrement > _READY * slack:
            return point
        self.epsilon *= max(math.sqrt(aim / slack), 1.0 / _LARGEST_STEP)
        return self.objective(self.epsilon).resume(point)
