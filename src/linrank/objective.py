"""The objective ``F(w) = ½‖w‖² + C·L(X D w)``, a sum of terms, as points that a solver can ask.

A point is immutable: value, gradient and products always belong to the same ``w``. The image
``X D v`` that a Hessian product computes on its way is handed out, so that a line search along a
combination of such vectors needs sweeps of the scores but no product with ``X``. It has:

=====================================  ============================================================
``w``, ``box``                         where it is, and where it has to be; None if anywhere
``value``, ``rounding``                F and its error
``gradient``, ``gradient_error``       ∇F and its rounding
``primal``, ``primal_error(size)``     the objective that is certified, ``value`` or what it is a
                                       smoothing of, and its rounding for vectors of such sizes
``dual``                               the dual point that goes with ``w``
``image(v)``, ``hvp(v)``               the scores of a direction; ``(∇²F v, image of v)``
``hessian_matrix()``,                  ``∇²F`` in full, and an estimate of its diagonal
``hessian_diagonal()``
``slope(d, image)``                    ``∇F(w)·d``, from the image where that is cheaper
``moved(t, d, image)``                 the point ``w + t d``
``afresh()``                           the same ``w``, its scores computed from it
``expecting_hessian()``                the same, told that its Hessian will be asked for
``reweighted(factor)``                 the same where the losses weigh ``factor`` times as much
=====================================  ============================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.data.bounds import Box
from linrank.data.rows import Array, Design, Extents, dot
from linrank.losses.base import Dual, Errors, ScoreLoss
from linrank.system.resources import cached_property


@dataclass(frozen=True, eq=False)
class RidgePoint:
    """``½‖w‖²`` at a ``w`` of the box.

    ``size`` tells what the scores that go with ``w`` were added up from: of a ``w`` that steps have
    led to, the sum of their absolute values. The image of a direction is such a sum, too.
    """

    w: Array
    size: Array
    box: Box | None = None

    @property
    def value(self) -> float:
        return 0.5 * dot(self.w, self.w)

    @property
    def rounding(self) -> float:
        return self.primal_error(self.size)

    @property
    def gradient(self) -> Array:
        return self.w

    @property
    def gradient_error(self) -> Array:
        return np.zeros_like(self.w)

    @property
    def primal(self) -> float:
        return self.value

    def primal_error(self, size: Array) -> float:
        return 2.0**-53 * float(self.w.shape[-1] + 2) * self.value

    @property
    def dual(self) -> Dual:
        return Dual()

    def image(self, v: Array) -> Array:
        return np.abs(v)

    def hvp(self, v: Array) -> tuple[Array, Array]:
        return v, np.abs(v)

    def hessian_matrix(self) -> Array:
        return np.eye(len(self.w))

    def hessian_diagonal(self) -> Array:
        return np.ones_like(self.w)

    def slope(self, d: Array, image: Array) -> float:
        return dot(self.w, d)

    def moved(self, t: float, d: Array, image: Array) -> RidgePoint:
        """The point ``w + t d``, which lies in the box but for rounding, and so inside exactly."""
        w = self.w + t * d
        # The rounding of w counts little beside that of products; but clipping may move it farther.
        w, share = (w, 0.0625) if self.box is None else (self.box.clip(w), 2.0)
        return RidgePoint(w, self.size + abs(t) * image + share * np.abs(w), self.box)

    def afresh(self) -> RidgePoint:
        return RidgePoint(self.w, np.abs(self.w), self.box)

    def expecting_hessian(self) -> RidgePoint:
        return self

    def reweighted(self, factor: float) -> RidgePoint:
        return self


class Ridge:
    """``½‖w‖²`` on a box, infinite outside it."""

    def __init__(self, box: Box | None = None) -> None:
        self.box = box

    def at(self, w: Array) -> RidgePoint:
        return RidgePoint(w, np.abs(w), self.box)

    def resume(self, point: RidgePoint) -> RidgePoint:
        return point


class Sum:
    """``Σ_b f_b(w)``; a term makes a point ``at(w)``, and may ``resume`` that of another term."""

    def __init__(self, *terms: Any) -> None:
        self.terms = terms

    def at(self, w: Array) -> SumPoint:
        return SumPoint(w, [term.at(w) for term in self.terms])

    def resume(self, point: SumPoint) -> SumPoint:
        """The same ``w``, taken over from a point of a sum of the same structure."""
        parts = zip(self.terms, point.parts, strict=True)
        return SumPoint(point.w, [term.resume(part) for term, part in parts])


@dataclass(frozen=True, eq=False)
class SumPoint:
    """`Sum` at ``w``; an image is the list of the parts' images."""

    w: Array
    parts: Sequence[Any]

    @property
    def box(self) -> Box | None:
        """That of the regularizer, which is the first part."""
        return self.parts[0].box

    @cached_property
    def value(self) -> float:
        return float(sum(part.value for part in self.parts))

    @property
    def rounding(self) -> float:
        return float(sum(part.rounding for part in self.parts))

    @cached_property
    def risk_gradient(self) -> Array:
        """The gradient of all but the regularizer."""
        return sum(part.gradient for part in self.parts[1:])

    @cached_property
    def risk_gradient_error(self) -> Array:
        """Its rounding."""
        return sum(part.gradient_error for part in self.parts[1:])

    @property
    def risk_square(self) -> float:
        """``‖risk_gradient‖²``, not below its exact value."""
        if self.w.ndim > 1:  # a function, whose risk is one
            return float(self.parts[1].gradient_square)
        above = np.abs(self.risk_gradient) + self.risk_gradient_error
        return (1.0 + 2.0**-53 * (len(above) + 8)) * dot(above, above)

    @cached_property
    def gradient(self) -> Array:
        return self.parts[0].gradient + self.risk_gradient

    @cached_property
    def primal(self) -> float:
        return float(sum(part.primal for part in self.parts))

    @property
    def primal_error(self) -> float:
        """``primal`` and its exact value at ``w`` are no farther apart."""
        size = self.parts[0].size
        return float(sum(part.primal_error(size) for part in self.parts))

    @property
    def dual(self) -> Dual:
        return sum((part.dual for part in self.parts), Dual())

    def image(self, v: Array) -> list[Any]:
        return [part.image(v) for part in self.parts]

    def hvp(self, v: Array) -> tuple[Array, list[Any]]:
        products = [part.hvp(v) for part in self.parts]
        return sum(product for product, _ in products), [image for _, image in products]

    def hessian_matrix(self) -> Array:
        total = np.zeros((len(self.w), len(self.w)))
        for part in self.parts:  # one of them at a time: they are large
            total += part.hessian_matrix()
        return total

    def hessian_diagonal(self) -> Array:
        return sum(part.hessian_diagonal() for part in self.parts)

    @property
    def n_threads(self) -> int:
        """For vectors of weights."""
        return max((part.risk.loss.n_threads for part in self.parts[1:]), default=1)

    def slope(self, d: Array, image: list[Any]) -> float:
        return float(sum(p.slope(d, i) for p, i in zip(self.parts, image, strict=True)))

    def moved(self, t: float, d: Array, image: list[Any]) -> SumPoint:
        parts = [p.moved(t, d, i) for p, i in zip(self.parts, image, strict=True)]
        return SumPoint(parts[0].w, parts)

    def afresh(self) -> SumPoint:
        return SumPoint(self.w, [part.afresh() for part in self.parts])

    def expecting_hessian(self) -> SumPoint:
        return SumPoint(self.w, [part.expecting_hessian() for part in self.parts])

    def reweighted(self, factor: float) -> SumPoint:
        return SumPoint(self.w, [part.reweighted(factor) for part in self.parts])


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
        return self.loss.scores(self.rows, self.stretch(v)) if v.any() else self.loss.zeros()

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
        return self.risk.loss.slope_norm(self.loss)

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
        return risk.C * risk.stretch(loss.by_column(risk.rows, self.loss.gradient))

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
        return self.risk.C * self.risk.loss.dot(self.loss.gradient, image)

    def moved(self, t: float, d: Array, image: Array) -> RiskPoint:
        z = self.risk.loss.add_scaled(self.z, t, image)
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
