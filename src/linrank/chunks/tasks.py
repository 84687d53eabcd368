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
from linrank.data.rows import Extents
from linrank.inner_product import dot
from linrank.losses.base import Dual

__all__ = ["Totals", "diagonal", "evaluate", "hessian", "product", "scores", "sizes", "slopes"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Totals:
    """The losses at one ``w``, for ``C = 1``: all that a solver and a certificate ask for."""

    value: float
    rounding: float
    primal: float
    primal_error: float
    dual: Dual
    total_curvature: float
    gradient: Array
    slope_square: float  # ‖a‖², a the slopes of the scores
    error_square: float  # of their rounding
    total_weight: float
    extents: Extents | None = None
    hessian: Array | None = None

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.value + other.value,
            self.rounding + other.rounding,
            self.primal + other.primal,
            self.primal_error + other.primal_error,
            self.dual + other.dual,
            self.total_curvature + other.total_curvature,
            self.gradient + other.gradient,
            self.slope_square + other.slope_square,
            self.error_square + other.error_square,
            self.total_weight + other.total_weight,
            _sum(self.extents, other.extents),
            _sum(self.hessian, other.hessian),
        )


def _sum(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a + b


def sizes(chunk: Chunk, n_threads: int = 1) -> Sizes:
    """What the whole has to know of the chunk."""
    return chunk.sizes


def evaluate(
    chunk: Chunk,
    w: Array,
    epsilon: float,
    with_hessian: bool = False,
    with_extents: bool = False,
    n_threads: int = 1,
) -> Totals:
    """Value, gradient and the sums of the certificate, in one pass over the rows.

    With ``with_hessian`` the Hessian too, with ``with_extents`` how large the columns are, while
    the rows are there.
    """
    n = chunk.sizes.n_features
    if chunk.terms is None:
        hessian = np.zeros((n, n)) if with_hessian else None
        dual, none = Dual(largest=math.inf), np.zeros(n)
        extents = Extents(none, none, 0.0, 0.0) if with_extents else None
        return Totals(0.0, 0.0, 0.0, 0.0, dual, 0.0, none, 0.0, 0.0, 0.0, extents, hessian)
    state = chunk.at(w, epsilon, n_threads)
    loss, point = state.loss, state.point
    errors = loss.errors(point, None)
    return Totals(
        float(point.value),
        errors.value,
        loss.primal(point),
        errors.primal,
        loss.dual(point, errors),
        float(point.total_curvature),
        chunk.rows.gradient(point.gradient, loss.order, n_threads),
        dot(point.gradient, point.gradient),
        errors.gradient**2,
        loss.total_weight,
        chunk.rows.extents(n_threads) if with_extents else None,
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
