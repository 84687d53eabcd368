"""Pairwise accuracy with weighted rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from linrank import _core
from linrank.data.queries import Queries
from linrank.data.vectors import as_labels, as_weights

__all__ = ["weighted_pairwise_accuracy"]


def weighted_pairwise_accuracy(y: Any, scores: Any, sample_weight: Any, qid: Any = None) -> float:
    """Weight of the pairs in the right order over that of all pairs; NaN if there are none.

    The pair (i, j) weighs ``u_i·u_j``, so that a weight of 2 equals repeating the row; a pair of
    equal scores is an error.

    Examples
    --------
    >>> weighted_pairwise_accuracy([2, 1, 0], [3.0, 1.0, 2.0], [1.0, 1.0, 2.0])
    0.6
    """
    labels = as_labels(y)
    weight = as_weights(sample_weight, len(labels))
    queries = Queries.of(labels, qid=qid)
    values = np.ascontiguousarray(scores, dtype=np.float64)
    if np.isnan(values).any():
        row = int(np.argmax(np.isnan(values)))
        raise ValueError(f"scores has nan at row {row}: a NaN cannot be ranked")
    right, wrong, tied = _core.weighted_concordance(
        queries.offsets,
        queries.levels,
        queries.gather(values),
        queries.gather(weight),
    )
    total = right + wrong + tied
    return float(right / total) if total > 0.0 else float("nan")
