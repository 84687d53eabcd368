"""What costs nothing to ship, and what every method must beat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.contest.own import linear_candidate
from linrank.contest.task import Candidate, Size, Task
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.scaling import Scaling

__all__ = ["best_feature", "random_order"]

Array = NDArray[Any]

_MOST = 20  # features that are tried on validation


def best_feature(task: Task) -> Iterator[Candidate]:
    """Single features, ascending or descending as they order the training pairs.

    The sum over the pairs (i above j) of ``x_i - x_j``, in deviations of the feature, says which
    way a feature goes and how well; validation chooses among the best of them.
    """
    data = task.train
    pull = _core.gradient(data.rows.core, pair_balance(data.queries), data.queries.order, 1)
    strength = np.abs(Scaling.fit("standard", data.rows, n_jobs=1).fold(pull))
    for feature in np.argsort(-strength, kind="stable")[:_MOST].tolist():
        if strength[feature] == 0.0:
            return
        coef = np.zeros(data.n_features)
        coef[feature] = np.sign(pull[feature])
        number = feature + (0 if data.index_base == 0 else 1)
        way = "descending" if coef[feature] > 0 else "ascending"
        yield linear_candidate(coef, {"feature": number, "order": way}, seconds=0.0)


def pair_balance(queries: Queries) -> Array:
    """Of each row, rows of its query below it less rows above it, by position.

    ``Σ_i balance_i x_i`` is the sum of ``x_i - x_j`` over all pairs (i above j).
    """
    balance = np.empty(queries.n_rows)
    for begin, end in zip(queries.offsets[:-1], queries.offsets[1:], strict=True):
        counts = np.bincount(queries.levels[begin:end])
        below = np.cumsum(counts) - counts
        above = counts.sum() - counts - below
        balance[begin:end] = (below - above)[queries.levels[begin:end]]
    return balance


def random_order(task: Task) -> Iterator[Candidate]:
    """Scores drawn at random: what a measure is worth by chance."""

    def predict(data: Dataset) -> Array:
        return np.random.default_rng(task.seed).random(data.n_rows)

    yield Candidate({}, predict, lambda: Size(0, 0, "weights"), 0.0)
