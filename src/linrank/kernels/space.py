"""The objective in the space of a kernel: functions ``Σ β_i k(x_i, ·)``, given at the rows.

A function is an array (2, n), its coefficients β and its values ``s = Qβ`` at the rows, and
``<a, b> = a'Qb``. In this inner product, with L a loss of the scores,

``f = ½<β, β> + C·L(Qβ)``, ``∇f = β + C∇L(s)``, ``∇²f v = v + C∇²L(s) Qv``,

all in coefficients: Q is never inverted and may be singular. The values of a product are those of
its coefficients, one product with Q for each gradient and for each ``∇²f v``; all else, line
searches above all, is sweeps over the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.kernels.matrices import KernelMatrix
from linrank.lazy import cached_property
from linrank.losses.base import Dual, ScoreLoss
from linrank.risk import RiskPoint

__all__ = ["JointLoss", "KernelRisk", "KernelRiskPoint", "as_function"]

Array = NDArray[Any]


def as_function(coefficients: Array, matrix: KernelMatrix) -> Array:
    """The function of these coefficients: one product with Q, none for zeros."""
    function = np.zeros((2, matrix.n))
    if coefficients.any():
        function[0] = coefficients
        function[1] = matrix.product(function[0])
    return function


class JointLoss(ScoreLoss):
    """The sum of losses that look at the rows by positions of their own; its positions are rows."""

    def __init__(self, losses: Sequence[ScoreLoss], n_rows: int) -> None:
        super().__init__(None, n_rows, losses[0].n_threads)
        self.losses = losses

    @property
    def mean_weight(self) -> float:
        return float(np.mean([loss.mean_weight for loss in self.losses]))

    @property
    def rounding(self) -> float:
        return max(loss.rounding for loss in self.losses)

    def at(self, z: Array, near: JointPoint | None = None) -> JointPoint:
        nears = [None] * len(self.losses) if near is None else near.points
        points = [
            loss.at(_gathered(loss, z), known)
            for loss, known in zip(self.losses, nears, strict=True)
        ]
        return JointPoint(self, points)

    def curvature(self, point: JointPoint, v: Array) -> Array:
        if len(self.losses) == 1 and self.losses[0].order is None:  # a sweep for each landmark
            return self.losses[0].curvature(point.points[0], v)
        return self.by_row(
            loss.curvature(part, _gathered(loss, v))
            for loss, part in zip(self.losses, point.points, strict=True)
        )

    def primal(self, point: JointPoint) -> float:
        parts = zip(self.losses, point.points, strict=True)
        return float(sum(loss.primal(part) for loss, part in parts))

    def dual(self, point: JointPoint) -> Dual:
        parts = zip(self.losses, point.points, strict=True)
        return sum((loss.dual(part) for loss, part in parts), Dual())

    def by_row(self, parts: Iterable[Array]) -> Array:
        """The sum of vectors that each loss gave by its positions."""
        total = np.zeros(self.n_positions)
        for loss, part in zip(self.losses, parts, strict=True):
            if loss.order is None:
                total += part
            else:
                total[loss.order] += part  # no row has two positions
        return total


@dataclass(frozen=True, eq=False)
class JointPoint:
    """`JointLoss` at scores by row."""

    loss: JointLoss
    points: Sequence[Any]

    @property
    def value(self) -> float:
        return float(sum(part.value for part in self.points))

    @property
    def total_curvature(self) -> float:
        return float(sum(part.total_curvature for part in self.points))

    @cached_property
    def gradient(self) -> Array:
        return self.loss.by_row(part.gradient for part in self.points)


@dataclass(frozen=True, eq=False)
class KernelRisk:
    """``C·L(s)`` as a function of functions."""

    matrix: KernelMatrix
    loss: JointLoss
    C: float

    def at(self, w: Array) -> KernelRiskPoint:
        return KernelRiskPoint(self, w, w[1])

    def resume(self, point: KernelRiskPoint) -> KernelRiskPoint:
        """From a point of another loss on the same rows and pairs: scores and order are kept."""
        return KernelRiskPoint(self, point.w, point.z, point.loss)

    def function(self, coefficients: Array) -> Array:
        return as_function(self.C * coefficients, self.matrix)


@dataclass(frozen=True, eq=False)
class KernelRiskPoint(RiskPoint):
    """`KernelRisk` at the function ``w``; ``z`` are its values."""

    risk: Any

    @cached_property
    def gradient(self) -> Array:
        function: Array = self.risk.function(self.loss.gradient)
        return function

    def image(self, v: Array) -> Array:
        values: Array = v[1]
        return values

    def hvp(self, v: Array) -> tuple[Array, Array]:
        curved = self.risk.loss.curvature(self.loss, v[1])
        return self.risk.function(curved), v[1]


def _gathered(loss: ScoreLoss, by_row: Array) -> Array:
    return by_row if loss.order is None else by_row[loss.order]
