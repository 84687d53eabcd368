"""scikit-learn's SVC (LIBSVM) as a ranker: the pairs are its rows, their kernel is computed before.

Between pairs (i, j) and (k, l) it is ``K_ik - K_il - K_jk + K_jl``, p² numbers in double. SVC fits
a bias b, which RankSVM has not. There are two ways round it:

- anchored: all pairs are positive, and one more row, whose kernel with every row is 0, is negative
  and weighs as much as all pairs together. It holds b at -1, so that pairs pay ``max(0, 2 - m)``;
  with C doubled, half of that solution is the minimizer of RankSVM, exactly;
- turned: half of the pairs, drawn at random, are given as (j, i) and negative, as is the custom.
  They pay ``max(0, 1 - m - b)`` or ``max(0, 1 - m + b)``: b is near 0, and the minimizer near
  RankSVM's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_BLOCK = 256  # pairs whose rows of the kernel are made together


@dataclass(frozen=True, eq=False)
class PairKernel:
    """Pairs by row, and their kernel: of pairs and the anchor, which is last, or of turned pairs.

    ``signs`` are -1 for pairs that are turned; None with the anchor.
    """

    winners: Array
    losers: Array
    n_rows: int
    signs: Array | None
    values: Array

    @classmethod
    def of(cls, K: Array, y: Array, seed: int | None = None) -> PairKernel:
        """Of all pairs of these labels, half of them turned where there is a seed."""
        winners, losers = np.nonzero(y[:, None] > y[None, :])
        p, signs = len(winners), None
        first, second = winners, losers
        if seed is not None:
            signs = np.where(np.random.default_rng(seed).random(p) < 0.5, 1.0, -1.0)
            first, second = np.where(signs > 0, (winners, losers), (losers, winners))
        size = p + (signs is None)
        differences = np.ascontiguousarray((K[first] - K[second]).T)
        values = np.empty((size, size))
        for begin in range(0, p, _BLOCK):
            part = slice(begin, min(p, begin + _BLOCK))
            np.subtract(differences[first[part]], differences[second[part]], out=values[part, :p])
        values[p:], values[:, p:] = 0.0, 0.0
        return cls(winners, losers, len(y), signs, values)

    @property
    def n_pairs(self) -> int:
        return len(self.winners)

    def coefficients(self, alpha: Array) -> Array:
        """β of the rows, from α of the pairs."""
        gained = np.bincount(self.winners, alpha, self.n_rows)
        return gained - np.bincount(self.losers, alpha, self.n_rows)


def warm_up() -> None:
    """Import what the clock is not to see."""
    import sklearn.svm  # noqa: F401


def fit(pairs: PairKernel, C: float, tol: float) -> Array:
    """β; anchored, that of RankSVM."""
    if pairs.signs is not None:
        alpha = _alpha(pairs.values, pairs.signs, C, tol, None)
        return pairs.coefficients(pairs.signs * alpha)
    p = pairs.n_pairs
    labels, weights = np.ones(p + 1), np.ones(p + 1)
    labels[p], weights[p] = -1.0, 2.0 * p
    return pairs.coefficients(0.5 * _alpha(pairs.values, labels, 2.0 * C, tol, weights)[:p])


def _alpha(values: Array, labels: Array, C: float, tol: float, weights: Array | None) -> Array:
    """``labels·α`` of SVC, with a cache for all that it looks at."""
    from sklearn.svm import SVC

    model = SVC(C=C, kernel="precomputed", tol=tol, cache_size=2000)
    model.fit(values, labels, sample_weight=weights)
    alpha = np.zeros(len(labels))
    alpha[model.support_] = model.dual_coef_[0]
    return alpha
