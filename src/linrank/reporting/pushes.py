"""Which way each feature pushes, over pairs of all queries: those ranked wrongly, and others."""

from __future__ import annotations

from dataclasses import dataclass
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

SAMPLE = 50_000  # pairs that are drawn


@dataclass(frozen=True, eq=False)
class Pushes:
    """Means of ``w_j·(x_better,j - x_worse,j)`` over sampled pairs of different labels.

    Attributes
    ----------
    wrong, right : float64 arrays (n_features,)
        Over the pairs in the wrong order, or tied, and over the others; 0 where there are none.
    n_wrong, n_right : int
        Pairs of each kind in the sample.
    """

    wrong: NDArray[np.float64]
    right: NDArray[np.float64]
    n_wrong: int
    n_right: int


def pushes(
    data: Dataset, scores: NDArray[np.float64], model: LinearModel, n_samples: int = SAMPLE
) -> Pushes:
    """The pushes of all features of a linear model.

    A mean over pairs is linear in the rows: each row counts by how often it is the better document
    of a pair less how often it is the worse one, so that one product ``Xᵀc`` does for all features.
    """
    better, worse = Profile(data).sample_pairs(n_samples)
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
    return Pushes(means[0], means[1], n_wrong, len(is_wrong) - n_wrong)


def _product(rows: Rows, net: NDArray[np.float64]) -> NDArray[np.float64]:
    """``Xᵀc`` in float64, over the rows that count."""
    used = np.flatnonzero(net)
    if isinstance(rows, DenseRows):
        total: NDArray[np.float64] = net[used] @ rows.values[used].astype(np.float64)
        return total
    weights = np.repeat(net, np.diff(rows.offsets)) * rows.values
    sums = np.bincount(rows.columns, weights=weights, minlength=rows.shape[1])
    return np.asarray(sums, dtype=np.float64)
