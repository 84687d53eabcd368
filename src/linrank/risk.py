"""The term ``C·L(X D w)`` of the objective: a loss of the scores as a function of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import Design, Extents
from linrank.losses.base import Dual, Errors, ScoreLoss
from linrank.system.threads import cached_property

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Risk:
    """``C·L(X D w)``: gradient ``C·D Xᵀ∇L(z)``, Hessian ``C·D Xᵀ∇²L(z) X D``, with ``z = X D w``.

    ``D = diag(scale)`` multiplies the columns without a copy of the rows; None stands for ones.
    """

    rows: Design
    loss: ScoreLoss
    C: float
    scale: Array | None = None

    def stretch(self, v: Array) -> Array:
        """``D v``."""
        return v if self.scale is None else self.scale * v

    def image(self, v: Array) -> Array:
        """``X D v``, by position."""
        loss = self.loss
        if not v.any():
            return np.zeros(loss.n_positions)
        return self.rows.scores(self.stretch(v), loss.order, loss.n_threads)

    @property
    def extents(self) -> Extents:
        """How large the columns are, and how exact products."""
        return self.rows.extents(self.loss.n_threads)

    def at(self, w: Array) -> RiskPoint:
        return RiskPoint(self, w, self.image(w))

    def resume(self, point: RiskPoint) -> RiskPoint:
        """From a point of another risk on the same rows and pairs: scores and order are kept."""
        return RiskPoint(self, point.w, point.z, point.loss)


@dataclass(frozen=True, eq=False)
class RiskPoint:
    """`Risk` at ``w``; ``z`` are the scores by position."""

    risk: Risk
    w: Array
    z: Array
    near: Any = None

    @cached_property
    def loss(self) -> Any:
        """The pair loss at ``z``: sorted once, used by value, slope, gradient and products."""
        loss = self.risk.loss.at(self.z, self.near)
        object.__setattr__(self, "near", None)  # of no more use, and it holds 32 bytes a row
        return loss

    @property
    def value(self) -> float:
        return self.risk.C * float(self.loss.value)

    @cached_property
    def errors(self) -> Errors:
        """The rounding of the loss, at the scores ``z`` as they are."""
        return self.risk.loss.errors(self.loss, self.z)

    @property
    def rounding(self) -> float:
        return self.risk.C * self.errors.value

    @cached_property
    def _slope_norm(self) -> float:
        return math.sqrt(_core.dot(self.loss.gradient, self.loss.gradient))

    def primal_error(self, size: Array) -> float:
        """The rounding of `primal`: of the loss, and of its scores.

        These are sums of products with vectors of sizes ``size`` in all.
        """
        risk, loss = self.risk, self.risk.loss
        steepness = None if loss.has_kink else self._slope_norm
        moved = risk.extents.loss_error(risk.stretch(size), loss.total_weight, steepness)
        return risk.C * (self.errors.primal + moved)

    @property
    def gradient_error(self) -> Array:
        """The rounding of `gradient`: of the slopes of the scores, and of their sums."""
        found = self.risk.extents.slope_error(self._slope_norm, self.errors.gradient)
        return self.risk.C * self.risk.stretch(found)

    @cached_property
    def gradient(self) -> Array:
        risk, loss = self.risk, self.risk.loss
        by_column = risk.rows.gradient(self.loss.gradient, loss.order, loss.n_threads)
        return risk.C * risk.stretch(by_column)

    @property
    def primal(self) -> float:
        return self.risk.C * self.risk.loss.primal(self.loss)

    @property
    def dual(self) -> Dual:
        return self.risk.C * self.risk.loss.dual(self.loss, self.errors)

    def image(self, v: Array) -> Array:
        return self.risk.image(v)

    def hvp(self, v: Array) -> tuple[Array, Array]:
        risk = self.risk
        product, image = risk.loss.hessian_product(risk.rows, self.loss, risk.stretch(v))
        return risk.C * risk.stretch(product), image

    def hessian_matrix(self) -> Array:
        """The Hessian in full; losses by sweeps have it."""
        risk = self.risk
        matrix: Array = risk.C * risk.loss.hessian_matrix(risk.rows, self.loss)
        if risk.scale is not None:
            matrix *= risk.scale
            matrix *= risk.scale[:, np.newaxis]
        return matrix

    def hessian_diagonal(self) -> Array:
        """An estimate of its diagonal, for preconditioning."""
        risk = self.risk
        diagonal = risk.C * risk.loss.hessian_diagonal(risk.rows, self.loss)
        return diagonal if risk.scale is None else risk.scale**2 * diagonal

    def slope(self, d: Array, image: Array) -> float:
        return self.risk.C * _core.dot(self.loss.gradient, image)

    def moved(self, t: float, d: Array, image: Array) -> RiskPoint:
        z = _core.add_scaled(self.z, t, image, self.risk.loss.n_threads)
        return type(self)(self.risk, self.w + t * d, z, self.loss)

    def afresh(self) -> RiskPoint:
        return type(self)(self.risk, self.w, self.risk.image(self.w), self.loss)

    def expecting_hessian(self) -> RiskPoint:
        """Nothing to prepare: rows in memory are as fast the second time."""
        return self

    def reweighted(self, factor: float) -> RiskPoint:
        """``factor·C`` in place of C: value, gradient and products are multiples of these."""
        point = type(self)(replace(self.risk, C=factor * self.risk.C), self.w, self.z)
        # What the cached properties would compute, handed over.
        point.__dict__["loss"] = self.loss
        point.__dict__["gradient"] = factor * self.gradient
        return point
