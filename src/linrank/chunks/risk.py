"""The term ``C·L(X D w)`` as a sum over chunks: one pass for a point, one for a product.

Nothing by row is kept here or travels: a trial of a line search is a pass at ``w + t d``, which
gives value and gradient together. The first trial is nearly always taken, and then the pass is
the one that the gradient there needs anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.chunks import tasks
from linrank.chunks.gathering import Gathering
from linrank.data.rows import Extents
from linrank.inner_product import dot
from linrank.lazy import cached_property
from linrank.losses.base import Dual

__all__ = ["ChunkedPoint", "ChunkedRisk", "Whole"]

Array = NDArray[Any]


@dataclass(eq=False)
class Whole:
    """What is said of the loss of all chunks, and of their rows."""

    mean_weight: float
    has_kink: bool
    extents: Extents | None = None  # of all columns, known from the first point on


@dataclass(frozen=True, eq=False)
class ChunkedRisk:
    """``C Σ_chunks L(X D w)``, with ``D = diag(scale)``; smoothed within ``epsilon`` of a kink."""

    gathering: Gathering
    C: float
    loss: Whole
    scale: Array | None = None
    epsilon: float = 1.0

    def stretch(self, v: Array) -> Array:
        """``D v``."""
        return v if self.scale is None else self.scale * v

    def at(self, w: Array) -> ChunkedPoint:
        return ChunkedPoint(self, w)

    def resume(self, point: ChunkedPoint) -> ChunkedPoint:
        """The same ``w`` with this risk's smoothing: a pass."""
        return ChunkedPoint(self, point.w)


@dataclass(frozen=True, eq=False)
class ChunkedPoint:
    """`ChunkedRisk` at ``w``."""

    risk: ChunkedRisk
    w: Array
    with_hessian: bool = False

    @cached_property
    def loss(self) -> tasks.Totals:
        """The losses at ``w`` for ``C = 1``, in raw columns."""
        risk, whole = self.risk, self.risk.loss
        args = (risk.stretch(self.w), risk.epsilon, self.with_hessian, whole.extents is None)
        totals: tasks.Totals = risk.gathering.total(tasks.evaluate, *args)
        if totals.extents is not None:
            whole.extents = totals.extents
        return totals

    @property
    def value(self) -> float:
        return self.risk.C * self.loss.value

    @property
    def rounding(self) -> float:
        return self.risk.C * self.loss.rounding

    @property
    def _extents(self) -> Extents:
        _ = self.loss  # from the first point on, the extents are known
        extents = self.risk.loss.extents
        assert extents is not None
        return extents

    def primal_error(self, size: Array) -> float:
        """As of `linrank.risk.RiskPoint`."""
        risk, totals = self.risk, self.loss
        steepness = None if risk.loss.has_kink else math.sqrt(totals.slope_square)
        moved = self._extents.loss_error(risk.stretch(size), totals.total_weight, steepness)
        return risk.C * (totals.primal_error + moved)

    @property
    def gradient_error(self) -> Array:
        steepness, error = math.sqrt(self.loss.slope_square), math.sqrt(self.loss.error_square)
        found = self._extents.slope_error(steepness, error)
        return self.risk.C * self.risk.stretch(found)

    @cached_property
    def gradient(self) -> Array:
        return self.risk.C * self.risk.stretch(self.loss.gradient)

    @property
    def primal(self) -> float:
        return self.risk.C * self.loss.primal

    @property
    def dual(self) -> Dual:
        return self.risk.C * self.loss.dual

    def image(self, v: Array) -> None:
        """Scores of a direction stay with the rows."""

    def hvp(self, v: Array) -> tuple[Array, None]:
        risk = self.risk
        args = (risk.stretch(self.w), risk.epsilon, risk.stretch(v))
        return risk.C * risk.stretch(risk.gathering.total(tasks.product, *args)), None

    def hessian_matrix(self) -> Array:
        risk = self.risk
        found = self.loss.hessian
        if found is None:
            found = risk.gathering.total(tasks.hessian, risk.stretch(self.w), risk.epsilon)
        matrix: Array = risk.C * found
        if risk.scale is not None:
            matrix *= risk.scale
            matrix *= risk.scale[:, np.newaxis]
        return matrix

    def hessian_diagonal(self) -> Array:
        risk = self.risk
        found = risk.gathering.total(tasks.diagonal, risk.stretch(self.w), risk.epsilon)
        diagonal: Array = risk.C * found
        return diagonal if risk.scale is None else risk.scale**2 * diagonal

    def slope(self, d: Array, image: None) -> float:
        return dot(self.gradient, d)

    def moved(self, t: float, d: Array, image: None) -> ChunkedPoint:
        return ChunkedPoint(self.risk, self.w + t * d)

    def afresh(self) -> ChunkedPoint:
        return self

    def expecting_hessian(self) -> ChunkedPoint:
        """One pass gives the Hessian beside value and gradient, unless that pass is over."""
        return self if "loss" in self.__dict__ else ChunkedPoint(self.risk, self.w, True)

    def reweighted(self, factor: float) -> ChunkedPoint:
        point = ChunkedPoint(replace(self.risk, C=factor * self.risk.C), self.w)
        point.__dict__["loss"] = self.loss  # it does not depend on C
        return point
