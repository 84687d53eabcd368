"""TreeRankSVM's optimizer as published: cutting planes at the minimizer of the model (BMRM).

No line search, no choice of where to cut (Teo et al. 2010; Airola et al. 2011). Value, sub-gradient
and master problem are linrank's own, on one thread and far faster than the published ones: only the
method is the rival.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linrank.data.dataset import Dataset
from linrank.losses.base import Hinge
from linrank.objective import Risk
from linrank.pairs import choose_pairs
from linrank.solvers.bundle import maximize_on_simplex


def fit(data: Dataset, C: float, goal: float, max_iter: int = 5000) -> tuple[Any, float, int]:
    """The first ``w`` with ``½‖w‖² + C Σ hinge <= goal``, its objective, and the rounds it took."""
    risk = Risk(data.rows, Hinge(choose_pairs(data)), C, None)
    planes = np.zeros((max_iter + 1, data.n_features))  # the first is zero: a risk is not negative
    offsets, gram = np.zeros(max_iter + 1), np.zeros((max_iter + 1, max_iter + 1))
    beta, w = np.ones(1), np.zeros(data.n_features)
    for n in range(1, max_iter + 1):
        point = risk.at(w)
        value = point.value + 0.5 * w @ w
        if value <= goal:
            break
        planes[n], offsets[n] = point.gradient, point.value - point.gradient @ w
        gram[n, : n + 1] = gram[: n + 1, n] = planes[: n + 1] @ planes[n]
        beta = maximize_on_simplex(
            np.ascontiguousarray(gram[: n + 1, : n + 1]), offsets[: n + 1], np.append(beta, 0.0)
        )
        w = -beta @ planes[: n + 1]
    return w, float(value), n - 1
