"""The objective ``F(w) = ½‖w‖² + C·L(X D w)``, as points that a solver can ask.

A point is immutable: value, gradient and products always belong to the same ``w``. The image
``X D v`` that a Hessian product computes on its way is handed out, so that a line search along a
combination of such vectors needs sweeps of the scores but no product with ``X``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.rows import Rows
from linrank.losses.base import Dual, PairLoss

__all__ = ["Point", "Ridge", "Risk", "RiskPoint", "Sum", "SumPoint", "Term"]

Array = NDArray[Any]


class Point(Protocol):
    """A smooth function at one ``w``."""

    w: Array

    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> Array: ...
    @property
    def primal(self) -> float:
        """The objective that is certified: ``value``, or what ``value`` is a smoothing of."""

    @property
    def dual(self) -> Dual:
        """The dual point that goes with ``w``; zero for a regulariser."""

    def hvp(self, v: Array) -> tuple[Array, Any]:
        """``(∇²F v, image of v)``."""

    def hessian_matrix(self) -> Array:
        """``∇²F`` in full."""

    def hessian_diagonal(self) -> Array:
        """An estimate of the diagonal of ``∇²F``."""

    def slope(self, d: Array, image: Any) -> float:
        """``∇F(w)·d``, from the image of ``d`` where that is cheaper than the gradient."""

    def moved(self, t: float, d: Array, image: Any) -> Any:
        """The point ``w + t d``."""


class Term(Protocol):
    """A smooth function of ``w``."""

    def at(self, w: Array) -> Any: ...

    def resume(self, point: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class RidgePoint:
    """``½‖w‖²`` at ``w``."""

    w: Array

    @property
    def value(self) -> float:
        return 0.5 * _core.dot(self.w, self.w)

    @property
    def gradient(self) -> Array:
        return self.w

    @property
    def primal(self) -> float:
        return self.value

    @property
    def dual(self) -> Dual:
        return Dual()

    def hvp(self, v: Array) -> tuple[Array, None]:
        return v, None

    def hessian_matrix(self) -> Array:
        return np.eye(len(self.w))

    def hessian_diagonal(self) -> Array:
        return np.ones(len(self.w))

    def slope(self, d: Array, image: None) -> float:
        return _core.dot(self.w, d)

    def moved(self, t: float, d: Array, image: None) -> RidgePoint:
        return RidgePoint(self.w + t * d)


class Ridge:
    """``½‖w‖²``."""

    def at(self, w: Array) -> RidgePoint:
        return RidgePoint(w)

    def resume(self, point: RidgePoint) -> RidgePoint:
        return point


@dataclass(frozen=True, eq=False)
class Risk:
    """``C·L(X D w)``: gradient ``C·D Xᵀ∇L(z)``, Hessian ``C·D Xᵀ∇²L(z) X D``, with ``z = X D w``.

    ``D = diag(scale)`` multiplies the columns without a copy of the rows; None stands for ones.
    """

    rows: Rows
    loss: PairLoss
    C: float
    scale: Array | None = None

    def stretch(self, v: Array) -> Array:
        """``D v``."""
        return v if self.scale is None else self.scale * v

    def at(self, w: Array) -> RiskPoint:
        queries = self.loss.queries
        if w.any():
            z = _core.scores(self.rows.core, self.stretch(w), queries.order, self.loss.n_threads)
        else:
            z = np.zeros(queries.n_rows)
        return RiskPoint(self, w, z)

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
    def gradient(self) -> Array:
        risk, loss = self.risk, self.risk.loss
        by_column = _core.gradient(
            risk.rows.core, self.loss.gradient, loss.queries.order, loss.n_threads
        )
        return risk.C * risk.stretch(by_column)

    @property
    def primal(self) -> float:
        return self.risk.C * self.risk.loss.primal(self.loss)

    @property
    def dual(self) -> Dual:
        return self.risk.C * self.risk.loss.dual(self.loss)

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
        return RiskPoint(self.risk, self.w + t * d, z, self.loss)


class Sum:
    """``Σ_b f_b(w)``."""

    def __init__(self, *terms: Term) -> None:
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

    @cached_property
    def value(self) -> float:
        return float(sum(part.value for part in self.parts))

    @cached_property
    def gradient(self) -> Array:
        total = np.zeros_like(self.w)
        for part in self.parts:
            total += part.gradient
        return total

    @property
    def primal(self) -> float:
        return float(sum(part.primal for part in self.parts))

    @property
    def dual(self) -> Dual:
        return sum((part.dual for part in self.parts), Dual())

    def hvp(self, v: Array) -> tuple[Array, list[Any]]:
        products = [part.hvp(v) for part in self.parts]
        total = np.zeros_like(v)
        for product, _ in products:
            total += product
        return total, [image for _, image in products]

    def hessian_matrix(self) -> Array:
        total = np.zeros((len(self.w), len(self.w)))
        for part in self.parts:
            total += part.hessian_matrix()
        return total

    def hessian_diagonal(self) -> Array:
        total = np.zeros_like(self.w)
        for part in self.parts:
            total += part.hessian_diagonal()
        return total

    def slope(self, d: Array, image: list[Any]) -> float:
        return float(sum(p.slope(d, i) for p, i in zip(self.parts, image, strict=True)))

    def moved(self, t: float, d: Array, image: list[Any]) -> SumPoint:
        parts = [p.moved(t, d, i) for p, i in zip(self.parts, image, strict=True)]
        return SumPoint(self.w + t * d, parts)
