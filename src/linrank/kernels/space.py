"""The objective in the space of a kernel: functions ``Σ β_i k(x_i, ·)``, given at the rows.

A function is an array (2, n), its coefficients β and its values ``s = Qβ`` at the rows, and
``<a, b> = a'Qb``. In this inner product, with L a loss of the scores,

``f = ½<β, β> + C·L(Qβ)``, ``∇f = β + C∇L(s)``, ``∇²f v = v + C∇²L(s) Qv``,

all in coefficients: Q is never inverted and may be singular. The values of a product are those of
its coefficients, one product with Q for each gradient and for each ``∇²f v``; all else, line
searches above all, is sweeps over the scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.rows import dot
from linrank.kernels.matrices import KernelMatrix
from linrank.losses.base import Dual, Errors, ScoreLoss
from linrank.objective import RiskPoint
from linrank.system.resources import cached_property

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
    def total_weight(self) -> float:
        return float(sum(loss.total_weight for loss in self.losses))

    @property
    def has_kink(self) -> bool:  # type: ignore[override]
        return self.losses[0].has_kink

    def errors(self, point: JointPoint, z: Array | None) -> Errors:
        found = [astuple(loss.errors(part, None)) for loss, part in self._each(point)]
        return Errors(*np.sum(found, axis=0).tolist())

    def at(self, z: Array, near: JointPoint | None = None) -> JointPoint:
        near = near or JointPoint(self, [None] * len(self.losses))
        return JointPoint(self, [loss.at(_gathered(loss, z), at) for loss, at in self._each(near)])

    def _each(self, point: JointPoint) -> Iterator[tuple[ScoreLoss, Any]]:
        """Each loss with its own point."""
        return zip(self.losses, point.points, strict=True)

    def curvature(self, point: JointPoint, v: Array) -> Array:
        if len(self.losses) == 1 and self.losses[0].order is None:  # a sweep for each landmark
            return self.losses[0].curvature(point.points[0], v)
        each = self._each(point)
        return self.by_row(loss.curvature(part, _gathered(loss, v)) for loss, part in each)

    def primal(self, point: JointPoint) -> float:
        return float(sum(loss.primal(part) for loss, part in self._each(point)))

    def dual(self, point: JointPoint, errors: Errors) -> Dual:
        each = self._each(point)
        return sum((loss.dual(part, loss.errors(part, None)) for loss, part in each), Dual())

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
    entry_rounding: float = 0.0  # of every Q_ij, relative to √(Q_ii Q_jj)

    @cached_property
    def roots(self) -> Array:
        """``√Q_ii``: no entry of Q is above ``√(Q_ii Q_jj)``."""
        roots: Array = np.sqrt(np.maximum(self.matrix.diagonal, 0.0))
        return roots

    @property
    def rounding(self) -> float:
        """ρ with ``|Qβ - exact|_i <= ρ √Q_ii Σ_j √Q_jj |β_j|``."""
        return 2.0**-53 * (self.matrix.n + 128) + self.entry_rounding

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

    @property
    def rounding(self) -> float:
        """That of the loss, and of ``½β'Qβ``, which is as noisy as β is large."""
        noise = self.risk.rounding * float(self.risk.roots @ np.abs(self.w[0])) ** 2
        return float(self.risk.C * self.errors.value + 0.5 * noise)

    def primal_error(self, size: Array) -> float:
        """The rounding of the loss, of its scores, and of ``½β'Qβ``.

        The scores are sums of products of Q with vectors of sizes ``size[0]`` in all: score i is
        off by at most ``√Q_ii η``, ``η = ρ √Q·size[0]``.
        """
        risk, loss, (beta, values) = self.risk, self.risk.loss, np.abs(self.w)
        eta = risk.rounding * float(risk.roots @ size[0])
        weight, largest = loss.total_weight, eta * float(risk.roots.max())
        if loss.has_kink:
            moved = 2.0 * weight * largest
        else:
            moved = eta * float(risk.roots @ np.abs(self.loss.gradient))
            moved += 4.0 * weight * largest * largest
        of_square = eta * float(risk.roots @ beta)
        of_square += 2.0**-53 * (len(beta) + 8) * float(beta @ values)
        return float(risk.C * (self.errors.primal + moved) + 0.5 * of_square)

    @property
    def gradient_square(self) -> float:
        """``r'Qr`` of the gradient's coefficients r, not below its exact value.

        An error δ of r adds at most ``2‖δ‖‖Qr‖ + ‖δ‖²·trace Q``.
        """
        risk, (r, values) = self.risk, self.gradient
        off = risk.C * self.errors.gradient
        rounding = risk.rounding * float(risk.roots @ np.abs(r)) ** 2
        rounding += 2.0**-53 * (len(r) + 8) * float(np.abs(r) @ np.abs(values))
        added = 2.0 * off * math.sqrt(values @ values) + off * off * float(risk.roots @ risk.roots)
        return float(dot(self.gradient, self.gradient) + rounding + added)

    def image(self, v: Array) -> Array:
        values: Array = v[1]
        return values

    def hvp(self, v: Array) -> tuple[Array, Array]:
        curved = self.risk.loss.curvature(self.loss, v[1])
        return self.risk.function(curved), v[1]


def _gathered(loss: ScoreLoss, by_row: Array) -> Array:
    return by_row if loss.order is None else by_row[loss.order]
