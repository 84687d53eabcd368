"""Dual variables of listed pairs, and their value: what tests of dual matrices share."""

from __future__ import annotations

import numpy as np

from explicit_pairs import ExplicitPairs
from linrank import Dataset, LinearModel, support_distribution
from papers import RankSVM


def fit(data: Dataset, C: float = 1.0, loss: str = "hinge", query_weight=None, **options):
    ranker = RankSVM(C, loss=loss, **options)
    return ranker.fit(
        data.X, data.y, qid=data.qid, sample_weight=data.weight, query_weight=query_weight
    )


def support_of(scores, y, qid=None, **training):
    """The support distribution of a model of one feature, the scores, of weight 1."""
    model = LinearModel([1.0], training={"C": 1.0, "loss": "squared_hinge", **training})
    return support_distribution(model, np.reshape(scores, (-1, 1)), y, qid)


def by_pair(dual, listed: ExplicitPairs, data: Dataset) -> np.ndarray:
    """α of the listed pairs, from the square matrices; asserts that the rest is 0."""
    whole = np.zeros((data.n_rows, data.n_rows))
    for query in dual.query_ids:
        block = dual.block(query)
        whole[np.ix_(block.members, block.members)] += dual.full(query)
    alpha = whole[listed.winner, listed.loser]
    whole[listed.winner, listed.loser] = 0.0
    assert not whole.any()
    return alpha


def dual_value(alpha: np.ndarray, listed: ExplicitPairs, C: float, loss: str) -> float:
    beta = listed.difference.T @ alpha
    value = alpha.sum() - 0.5 * beta @ beta
    if loss == "squared_hinge":
        used = listed.weight > 0
        value -= (alpha[used] ** 2 / listed.weight[used]).sum() / (4 * C)
    return float(value)
