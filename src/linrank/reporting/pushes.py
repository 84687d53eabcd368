"""Which way each feature pushes, over pairs of all queries: those ranked wrongly, and others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from linrank.data.profile import Profile
from linrank.data.rows import DenseRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.rows import Rows
    from linrank.model import LinearModel

__all__ = ["Pushes", "pushes"]

SAMPLE = 50_000  # pairs that are drawn; of fewer, all are taken


@dataclass(frozen=True, eq=False)
class Pushes:
    """Means of ``w_j·(x_better,j - x_worse,j)`` over pairs of different labels, all or sampled.

    Attributes
    ----------
    wrong, right : float64 arrays (n_features,)
        Over the pairs in the wrong order, or tied, and over the others; 0 where there are none.
    n_wrong, n_right : int
        Pairs of each kind among those.
    is_sample : bool
        Whether the pairs are drawn, with replacement, rather than all there are.
    """

    wrong: NDArray[np.float64]
    right: NDArray[np.float64]
    n_wrong: int
    n_right: int
    is_sample: bool = False


def pushes(
    data: Dataset, scores: NDArray[np.float64], model: LinearModel, n_samples: int = SAMPLE
) -> Pushes:
    """The pushes of all features of a linear model.

    A mean over pairs is linear in the rows: each row counts by how often it is the better document
    of a pair less how often it is the worse one, so that one product ``Xᵀc`` does for all features.
    """
    is_sample = data.queries.n_pairs > n_samples
    better, worse = Profile(data).sample_pairs(n_samples) if is_sample else _all_pairs(data)
    is_wrong = scores[better] <= scores[worse]
    rows = model.scaling.transform(data.rows, data.queries)
    means = []
    for kind in (is_wrong, ~is_wrong):
        n_pairs = max(1, int(np.count_nonzero(kind)))
        net = np.zeros(data.n_rows)
        np.add.at(net, better[kind], 1.0 / n_pairs)
        np.add.at(net, worse[kind], -1.0 / n_pairs)
        means.append(model.coef * _product(rows, net))
    n_wrong = int(np.count_nonzero(is_wrong))
    return Pushes(means[0], means[1], n_wrong, len(is_wrong) - n_wrong, is_sample)


def _all_pairs(data: Dataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (better, worse) of every pair of different labels.

    Rows of a query by falling label: each pairs with all that follow its own label, a run.
    """
    queries = data.queries
    better, worse = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start, stop in pairwise(queries.offsets.tolist()):
        places = np.arange(start, stop)
        rows = places if queries.order is None else queries.order[places]
        rows = rows[np.argsort(-data.labels[rows], kind="stable")]
        first = np.searchsorted(-data.labels[rows], -data.labels[rows], side="right")
        lower = len(rows) - first  # how many are worse than each
        better.append(np.repeat(rows, lower))
        within = np.arange(int(lower.sum())) - np.repeat(np.cumsum(lower) - lower, lower)
        worse.append(rows[np.repeat(first, lower) + within])
    return np.concatenate(better), np.concatenate(worse)


def _product(rows: Rows, net: NDArray[np.float64]) -> NDArray[np.float64]:
    """``Xᵀc`` in float64, over the rows that count."""
    used = np.flatnonzero(net)
    if isinstance(rows, DenseRows):
        total: NDArray[np.float64] = net[used] @ rows.values[used].astype(np.float64)
        return total
    weights = np.repeat(net, np.diff(rows.offsets)) * rows.values
    sums = np.bincount(rows.columns, weights=weights, minlength=rows.shape[1])
    return np.asarray(sums, dtype=np.float64)
