"""From a smooth loss to the one it stands for, by steps that the certificate asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linrank.objective import Sum
from linrank.solvers.result import lower_bound

# Shares of the tolerance and of the slack, and the largest step; tuned on iterations of small sets.
_AIM = 0.8
_READY = 0.3
_LARGEST_STEP = 20.0
_SMALLEST = 2.0**-23  # ε below which slacks, and the slopes of the pairs in the band, are rounding
_BAND = 2.0  # pairs a feature that a band should hold: with fewer there is no curvature to go by


class Sharpening:
    """Lowers ε of the Huberised hinge while its slack keeps the certified gap above the tolerance.

    The gap at the optimum of ``h_ε`` is the slack of its dual point, which falls as ``ε²`` while
    the band holds many pairs: their number and what each of them leaves both shrink with ε. (In
    the end about one a feature stays, and it falls as ε: then it takes more than one change.) So
    the ε that a tolerance needs is known from any ε at hand, and is taken at once where that is no
    more than a factor 20 and leaves enough pairs in the band; but not before the step in hand has
    brought ``F_ε`` down to the order of the slack.

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
        if slack <= aim or decrement > _READY * slack or self.epsilon <= _SMALLEST:
            return point
        largest = min(_LARGEST_STEP, max(2.0, self._in_band(point) / (_BAND * point.w.shape[-1])))
        epsilon = max(_SMALLEST, self.epsilon * max(math.sqrt(aim / slack), 1.0 / largest))
        self.epsilon = 2.0 ** math.floor(math.log2(epsilon))  # sums over its band are exact
        return self.objective(self.epsilon).resume(point)

    def best_bound(self, point: Any) -> float:
        epsilons = 2.0 ** np.arange(math.log2(_SMALLEST), 1.0)
        return max(lower_bound(self.objective(float(one)).resume(point)) for one in epsilons)

    def _in_band(self, point: Any) -> float:
        """About the number of pairs that the loss is curved for."""
        shares = (
            part.loss.total_curvature / part.risk.loss.mean_weight for part in point.parts[1:]
        )
        return self.epsilon * float(sum(shares))
