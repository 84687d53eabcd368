"""How good the weights of a stochastic fit are: the objective, in full or on sampled pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import _core
from linrank.losses.hinge import Huber
from linrank.objective import Ridge, Sum
from linrank.risk import Risk
from linrank.solvers.certificate import duality_gap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.stochastic.drawn_pairs import DrawnPairs
    from linrank.stochastic.samplers import PairSampler

    Array = NDArray[Any]

__all__ = ["BAND", "ExactObjective", "SampledObjective"]

BAND = 0.1  # ε of the smoothing that gives the dual point; the value is that of the hinge itself


class ExactObjective:
    """``λ/2 ‖w‖² + Σ ω max(0, 1 - w·x_ij) / Σ ω`` over all pairs that the sampler may draw.

    It costs a pass over the rows and a sort of every query: no pair is listed.
    """

    at_zero = 1.0  # the objective of w = 0

    def __init__(self, rows: Rows, sampler: PairSampler, alpha: float, n_threads: int) -> None:
        C = 1.0 / (alpha * sampler.total_weight)
        self._alpha = alpha
        self._sum = Sum(Ridge(), Risk(rows, Huber(sampler.pairs, BAND, n_threads), C))

    def __call__(self, w: Array) -> tuple[float, float]:
        """(objective, certified bound on what it is above the minimum).

        RankSVM's ``½‖w‖² + C Σ ω loss`` with ``C = 1/(λ Σω)`` is this objective divided by λ.
        """
        point = self._sum.at(w)
        return self._alpha * float(point.primal), self._alpha * duality_gap(point)


class SampledObjective:
    """The same with the mean loss of some pairs, drawn once, in place of that of all pairs.

    The pairs stay the same, so that two values differ by the weights and not by the draw. With
    ``logistic=True`` the loss is ``log(1 + exp(-w·x_ij))``.
    """

    def __init__(self, drawn: DrawnPairs, alpha: float, *, logistic: bool = False) -> None:
        self._order, places = np.unique(
            np.concatenate([drawn.winners, drawn.losers]), return_inverse=True
        )
        n = len(drawn.winners)
        self._winners, self._losers = places[:n], places[n:]
        self._rows, self._alpha, self._logistic = drawn.rows, alpha, logistic
        self.at_zero = math.log(2) if logistic else 1.0

    def __call__(self, w: Array) -> tuple[float, float]:
        """(objective, nan): a sample certifies nothing."""
        scores = _core.scores(self._rows.core, w, self._order, 1)
        margins = scores[self._winners] - scores[self._losers]
        losses = np.logaddexp(0, -margins) if self._logistic else np.maximum(0, 1 - margins)
        return 0.5 * self._alpha * float(w @ w) + float(losses.mean()), math.nan
