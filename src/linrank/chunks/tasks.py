"""What is asked of every chunk: functions of a chunk and a few vectors, without side effects.

A task of a sum returns something that can be added; chunks without pairs return zeros. Vectors of
weights are those of the raw columns: ``D`` is applied by who asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.chunks.chunk import Chunk, Sizes
from linrank.losses.base import Dual

__all__ = ["Totals", "diagonal", "evaluate", "hessian", "product", "scores", "sizes", "slopes"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Totals:
    """The losses at one ``w``, for ``C = 1``: all that a solver and a certificate ask for."""

    value: float
    rounding: float
    primal: float
    dual: Dual
    total_curvature: float
    gradient: Array
    hessian: Array | None = None

    def __add__(self, other: Totals) -> Totals:
        hessian = None
        if self.hessian is not None and other.hessian is not None:
            hessian = self.hessian + other.hessian
        return Totals(
            self.value + other.value,
            self.rounding + other.rounding,
            self.primal + other.primal,
            self.dual + other.dual,
            self.total_curvature + other.total_curvature,
            self.gradient + other.gradient,
            hessian,
        )


def sizes(chunk: Chunk, n_threads: int = 1) -> Sizes:
    """What the whole has to know of the chunk."""
    return chunk.sizes


def evaluate(
    chunk: Chunk, w: Array, epsilon: float, with_hessian: bool = False, n_threads: int = 1
) -> Totals:
    """Value, gradient and the sums of the certificate, in one pass over the rows.

    With ``with_hessian`` the Hessian too, while the rows are there.
    """
    n = chunk.sizes.n_features
    if chunk.terms is None:
        none = np.zeros((n, n)) if with_hessian else None
        return Totals(0.0, 0.0, 0.0, Dual(largest=math.inf), 0.0, np.zeros(n), none)
    state = chunk.at(w, epsilon, n_threads)
    loss, point = state.loss, state.point
    value = float(point.value)
    return Totals(
        value,
        loss.rounding * value,
        loss.primal(point),
        loss.dual(point),
        float(point.total_curvature),
        chunk.rows.gradient(point.gradient, loss.order, n_threads),
        loss.hessian_matrix(chunk.rows, point) if with_hessian else None,
    )


def product(chunk: Chunk, w: Array, epsilon: float, v: Array, n_threads: int = 1) -> Array:
    """``Xᵀ∇²L(z)X v`` at the scores z of ``w``."""
    if chunk.terms is None:
        return np.zeros(chunk.sizes.n_features)
    state = chunk.at(w, epsilon, n_threads)
    return state.loss.hessian_product(chunk.rows, state.point, v)[0]


def hessian(chunk: Chunk, w: Array, epsilon: float, n_threads: int = 1) -> Array:
    """``Xᵀ∇²L(z)X`` in full."""
    if chunk.terms is None:
        return np.zeros((chunk.sizes.n_features, chunk.sizes.n_features))
    state = chunk.at(w, epsilon, n_threads)
    return state.loss.hessian_matrix(chunk.rows, state.point)


def diagonal(chunk: Chunk, w: Array, epsilon: float, n_threads: int = 1) -> Array:
    """An estimate of the diagonal of ``Xᵀ∇²L(z)X``."""
    if chunk.terms is None:
        return np.zeros(chunk.sizes.n_features)
    state = chunk.at(w, epsilon, n_threads)
    return state.loss.hessian_diagonal(chunk.rows, state.point)


def scores(chunk: Chunk, w: Array, n_threads: int = 1) -> Array:
    """``X w``, by row."""
    return chunk.rows.scores(w, None, n_threads)


def slopes(chunk: Chunk, r: Array, n_threads: int = 1) -> Array:
    """``Xᵀ r``, r by row."""
    return chunk.rows.gradient(r, None, n_threads)
