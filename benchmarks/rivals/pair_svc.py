"""scikit-learn's SVC (LIBSVM) as a ranker: the pairs are its rows, their kernel is computed before.

Between pairs (i, j) and (k, l) it is ``K_ik - K_il - K_jk + K_jl``, p² numbers in double. SVC fits
a bias b, which RankSVM has not. There are two ways round it:

- anchored: all pairs are positive, and one more row, whose kernel with every row is 0, is negative
  and weighs as much as all pairs together. It holds b at -1, so that pairs pay ``max(0, 2 - m)``;
  with C doubled, half of that solution is the minimiser of RankSVM, exactly;
- turned: half of the pairs, drawn at random, are given as (j, i) and negative, as is the custom.
  They pay ``max(0, 1 - m - b)`` or ``max(0, 1 - m + b)``: b is near 0, and the minimiser near
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
    """Pairs by row, and their kernel; its last row and column are those of the anchor."""

    winners: Array
    losers: Array
    n_rows: int
    values: Array

    @classmethod
    def of(cls, K: Array, y: Array) -> PairKernel:
        winners, losers = np.nonzero(y[:, None] > y[None, :])
        p = len(winners)
        differences = np.ascontiguousarray((K[winners] - K[losers]).T)
        values = np.empty((p + 1, p + 1))
        for begin in range(0, p, _BLOCK):
            part = slice(begin, min(p, begin + _BLOCK))
            np.subtract(differences[winners[part]], differences[losers[part]], out=values[part, :p])
        values[p], values[:, p] = 0.0, 0.0
        return cls(winners, losers, len(y), values)

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


def fit_anchored(pairs: PairKernel, C: float, tol: float = 1e-3) -> Array:
    """β, the minimiser of RankSVM."""
    p = pairs.n_pairs
    labels, weights = np.ones(p + 1), np.ones(p + 1)
    labels[p], weights[p] = -1.0, 2.0 * p
    return pairs.coefficients(0.5 * _alpha(pairs.values, labels, 2.0 * C, tol, weights)[:p])


def turn(pairs: PairKernel, seed: int = 0) -> tuple[Array, Array]:
    """The kernel with half of the pairs turned, and their signs; the anchor is left out."""
    signs = np.where(np.random.default_rng(seed).random(pairs.n_pairs) < 0.5, 1.0, -1.0)
    values = pairs.values[:-1, :-1].copy()
    values *= signs
    values *= signs[:, None]
    return values, signs


def fit_turned(pairs: PairKernel, values: Array, signs: Array, C: float) -> Array:
    """β of SVC with a bias, on what `turn` gave."""
    return pairs.coefficients(signs * _alpha(values, signs, C, 1e-3, None))


def _alpha(values: Array, labels: Array, C: float, tol: float, weights: Array | None) -> Array:
    """``labels·α`` of SVC, with a cache for all that it looks at."""
    from sklearn.svm import SVC

    model = SVC(C=C, kernel="precomputed", tol=tol, cache_size=2000)
    model.fit(values, labels, sample_weight=weights)
    alpha = np.zeros(len(labels))
    alpha[model.support_] = model.dual_coef_[0]
    return alpha
