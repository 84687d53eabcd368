"""Weights of stochastic descents after given numbers of steps, for the programs about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.stochastic.descent import Descent, Learner
from linrank.stochastic.samplers import PairSampler
from linrank.stochastic.train import descend

Array = NDArray[np.float64]

# The four of the paper, their averages, and the hybrid: algorithm and average by name in tables.
COMPARED: dict[str, tuple[str, str | None]] = {
    "pegasos": ("pegasos", None),
    "pegasos, averaged": ("pegasos", "weighted"),
    "sgd-svm": ("sgd-svm", None),
    "sgd-svm, averaged": ("sgd-svm", "weighted"),
    "pa": ("pa", None),
    "romma": ("romma", None),
    "hybrid": ("hybrid", None),
    "hybrid, averaged": ("hybrid", "weighted"),
}


def half_decades(first: int, last: int) -> list[int]:
    """10^first, 3·10^first, 10^(first+1), ..., 10^last."""
    return [*(m * 10**k for k in range(first, last) for m in (1, 3)), 10**last]


def weights_at(
    data: Dataset,
    sampler: PairSampler,
    name: str,
    alpha: float,
    steps: Sequence[int],
    seed: int,
    aggressiveness: float = 1.0,
) -> Iterator[Array]:
    """The weights after each of these numbers of steps.

    The plan of the hybrid depends on the number of steps, so each of its points is a separate
    descent; the points of the others lie on one.
    """
    algorithm, average = COMPARED[name]
    if algorithm == "hybrid":
        options: dict[str, Any] = {"sampling": sampler.sampling, "average": average, "seed": seed}
        for n_steps in steps:
            fit = descend(data, algorithm="hybrid", alpha=alpha, n_steps=n_steps, **options)
            yield np.asarray(fit.w)
        return
    descent = Descent(data.n_features, [Learner(algorithm, alpha, aggressiveness)], average, seed)
    for n_steps in steps:
        descent.run(data.rows, sampler, n_steps - descent.n_steps)
        yield descent.weights()[0]
