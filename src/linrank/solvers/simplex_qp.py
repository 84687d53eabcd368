"""A concave quadratic on the simplex: the master problem of a cutting-plane method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core

__all__ = ["maximise_on_simplex"]

Array = NDArray[Any]
_LIFT = 1e-14  # of the diagonal, so that dependent rows can be factored


def maximise_on_simplex(
    gram: Array, b: Array, start: Array, *, accuracy: float = 1e-13, max_steps: int | None = None
) -> Array:
    """``argmax b'β - ½β'Gβ`` over ``β >= 0, Σβ = 1``, by a primal active-set method.

    With the slopes ``s = b - Gβ``, concavity bounds what is missing by ``max s - s'β``; the method
    ends when that is at most ``accuracy`` times the value, or does not fall any more.
    Every step goes to the maximum over the rows in use, or up to the first that reaches zero, which
    is then put aside; once the slopes in use are equal, the row of the largest slope joins them.

    Parameters
    ----------
    gram : float64 array (m, m)
        G, positive semidefinite; equal and dependent rows are allowed.
    b : float64 array (m,)
        The linear term.
    start : float64 array (m,)
        A point of the simplex; the nearer to the optimum, the fewer steps.
    accuracy : float
        Relative to the value.
    max_steps : int, optional
        Steps at most; ``100 + 20 m`` if None, which only rounding can exhaust.

    Returns
    -------
    float64 array (m,)
        β, exactly on the simplex but for the rounding of its sum.
    """
    rows = _core.dense_rows(gram)
    beta = np.array(start, dtype=np.float64)
    in_use, is_full, progress = beta > 0.0, False, _Progress()
    for _ in range(100 + 20 * len(b) if max_steps is None else max_steps):
        product = _core.scores(rows, beta, None, 1)
        slope = b - product
        level, linear = _core.dot(slope, beta), _core.dot(b, beta)
        value = 0.5 * (linear + level)
        best = int(np.argmax(slope))
        excess = float(slope[best]) - level
        if excess <= accuracy * abs(value) or progress.has_ended(value, abs(linear), excess):
            break
        # Only where the slopes in use are equal does the new row enter with a positive weight.
        is_level = is_full or np.abs(slope[in_use] - level).max() <= 1e-6 * excess
        is_new = is_level and not in_use[best]
        in_use[best] |= is_new
        beta, in_use, is_full = _step(gram, slope, beta, in_use)
        progress.is_refining = is_full and not is_new
    return beta


class _Progress:
    """Tells when only rounding is left."""

    def __init__(self) -> None:
        self.is_refining = False
        self._value, self._excess = -np.inf, np.inf
        self._n_flat = self._n_vain = 0

    def has_ended(self, value: float, size: float, excess: float) -> bool:
        """Whether full steps over the same rows do not help, or nothing has for a while."""
        is_vain = self.is_refining and excess > 0.5 * self._excess
        self._n_vain = self._n_vain + 1 if is_vain else 0
        self._excess = min(excess, self._excess) if self.is_refining else excess
        self._n_flat = 0 if value > self._value + 4e-16 * size else self._n_flat + 1
        self._value = max(value, self._value)
        return self._n_vain > 1 or self._n_flat > 30


def _step(gram: Array, slope: Array, beta: Array, in_use: Array) -> tuple[Array, Array, bool]:
    """Towards the maximum over the rows in use; those left in use, and whether that are all."""
    used = np.flatnonzero(in_use)
    d = _direction(gram[np.ix_(used, used)], slope[used])
    beta, in_use = beta.copy(), in_use.copy()
    falling = d < 0.0
    reach = np.full(len(used), np.inf)
    reach[falling] = beta[used[falling]] / -d[falling]
    t = min(1.0, float(reach.min()))
    beta[used] = np.maximum(0.0, beta[used] + t * d)
    if t < 1.0:
        gone = used[reach <= t]
        beta[gone], in_use[gone] = 0.0, False
    return beta / beta.sum(), in_use, t == 1.0


def _direction(gram: Array, slope: Array) -> Array:
    """``argmax s'd - ½d'Gd`` over ``Σd = 0``.

    On that plane G may be lifted by any multiple of ``ee'``, which makes it definite where the rows
    are affinely independent. Where they are not, a lift of the diagonal in its last digits stands
    in: d is then huge along the null space, and ends where the first β vanishes. As the slopes are
    those at the current β, the lift bends the path but not the optimum.
    """
    n = len(slope)
    diagonal = np.diagonal(gram)
    level = float(diagonal.sum()) / n or 1.0
    matrix = gram + level
    factor: Any = None
    share = _LIFT
    while factor is None:
        lifted = matrix + np.diag(share * (diagonal + level))
        factor = _core.cholesky_factor(lifted.reshape(-1), n)
        share *= 10.0
    x = _core.cholesky_solve(factor, n, slope - slope.sum() / n)
    y = _core.cholesky_solve(factor, n, np.ones(n))
    d: Array = x - (x.sum() / y.sum()) * y
    return d
