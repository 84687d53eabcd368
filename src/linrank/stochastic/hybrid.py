"""The hybrid: passive-aggressive steps first, Pegasos after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linrank import _core
from linrank.stochastic.descent import Descent, Learner

if TYPE_CHECKING:
    from linrank.data.rows import Rows
    from linrank.stochastic.samplers import PairSampler

__all__ = ["mean_square", "switch_plan"]

_N_PAIRS = 256


def mean_square(rows: Rows, sampler: PairSampler, seed: int) -> float:
    """The mean of ``‖x_i - x_j‖²`` over some sampled pairs."""
    winners, losers = sampler.core.draw(_core.Random(seed ^ 0x9E3779B9), _N_PAIRS)
    total = 0.0
    for pair in zip(winners, losers, strict=True):
        # The first step of PA without a limit is x/‖x‖², of norm 1/‖x‖.
        probe = Descent(rows.shape[1], [Learner("pa", aggressiveness=1e300)])
        probe.step(rows, *(np.array([row]) for row in pair))
        w = probe.weights()[0]
        total += 1.0 / float(w @ w) if w.any() else 0.0
    return total / _N_PAIRS


def switch_plan(mean_square: float, alpha: float, n_steps: int) -> tuple[int, float, float]:
    """(steps of PA, first_step of Pegasos, aggressiveness of PA).

    Pegasos takes over where its step ``1/(λt)`` equals the step ``1/‖x‖²`` that PA takes on a pair
    of margin 0: at ``t = ‖x‖²/λ``.
    """
    first_step = max(1.0, mean_square / alpha)
    return int(min(first_step, n_steps // 10)), first_step, 1.0
