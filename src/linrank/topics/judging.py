"""What the scores of topics are worth: the first rows of one, the measures of all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.metrics import Convention, Evaluation, convention

__all__ = ["gathered", "highest", "skipping"]


def highest(scores: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Rows of the k highest scores, best first, equal ones in input order; O(n + k log k).

    Examples
    --------
    >>> highest(np.array([0.5, 2.0, 0.5, 0.5, 1.0]), 3).tolist()
    [1, 4, 0]
    """
    place = len(scores) - k
    least = np.partition(scores, place)[place]
    above = np.flatnonzero(scores > least)
    level = np.flatnonzero(scores == least)[: k - len(above)]
    found: NDArray[np.int64] = np.concatenate([above, level])
    return found[np.argsort(-scores[found], kind="stable")]


def skipping(rules: str | Convention, **changes: Any) -> Convention:
    """The convention in which a topic without relevant rows has no part in a mean."""
    return convention(rules, empty="skip", **changes)


def gathered(values: list[Evaluation], topics: NDArray[Any], rules: Convention) -> Evaluation:
    """The evaluations of topics, each of one query, as one; means are over topics.

    Measures that pool the pairs of queries do not pool those of topics.
    """
    per_topic = {
        name: np.array([one.per_query[name][0] for one in values]) for name in values[0].means
    }
    means = {}
    for name, column in per_topic.items():
        judged = column[~np.isnan(column)]
        means[name] = float(judged.mean()) if judged.size else float("nan")
    return Evaluation(means, per_topic, topics, rules)
