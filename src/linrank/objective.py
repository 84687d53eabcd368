"""The objective ``F(w) = ½‖w‖² + C·L(X D w)``, a sum of terms, as points that a solver can ask.

A point is immutable: value, gradient and products always belong to the same ``w``. The image
``X D v`` that a Hessian product computes on its way is handed out, so that a line search along a
combination of such vectors needs sweeps of the scores but no product with ``X``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import Box
from linrank.data.rows import dot
from linrank.losses.base import Dual
from linrank.system.threads import cached_property

Array = NDArray[Any]


class Point(Protocol):
    """A smooth function at one ``w``."""

    w: Array

    @property
    def box(self) -> Box | None:
        """Where ``w`` has to be; None if anywhere."""

    @property
    def value(self) -> float: ...
    @property
    def rounding(self) -> float:
        """The error of ``value``."""

    @property
    def gradient(self) -> Array: ...
    @property
    def primal(self) -> float:
        """The objective that is certified: ``value``, or what ``value`` is a smoothing of."""

    def primal_error(self, size: Array) -> float:
        """The rounding of ``primal``, for scores made of vectors of sizes ``size`` in all."""

    @property
    def gradient_error(self) -> Array:
        """The rounding of ``gradient``."""

    @property
    def dual(self) -> Dual:
        """The dual point that goes with ``w``; zero for a regulariser."""

    def image(self, v: Array) -> Any:
        """What `slope` and `moved` need of a direction: its scores."""

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

    def afresh(self) -> Any:
        """The same ``w``, its scores computed from it and not step by step."""

    def expecting_hessian(self) -> Any:
        """The same point, told that its Hessian will be asked for."""

    def reweighted(self, factor: float) -> Any:
        """The same ``w`` where the losses weigh ``factor`` times as much; nothing is swept anew."""


class Term(Protocol):
    """A smooth function of ``w``."""

    def at(self, w: Array) -> Any: ...

    def resume(self, point: Any) -> Any: ...


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

    @property
    def box(self) -> Box | None:
        """That of the regulariser, which is the first part."""
        box: Box | None = self.parts[0].box
        return box

    @cached_property
    def value(self) -> float:
        return float(sum(part.value for part in self.parts))

    @property
    def rounding(self) -> float:
        return float(sum(part.rounding for part in self.parts))

    @cached_property
    def risk_gradient(self) -> Array:
        """The gradient of all but the regulariser."""
        _, first, *others = self.parts
        total: Array = first.gradient
        for part in others:
            total = total + part.gradient
        return total

    @cached_property
    def risk_gradient_error(self) -> Array:
        """Its rounding."""
        total: Array = sum(part.gradient_error for part in self.parts[1:])
        return total

    @property
    def risk_square(self) -> float:
        """``‖risk_gradient‖²``, not below its exact value."""
        if self.w.ndim > 1:  # a function, whose risk is one
            return float(self.parts[1].gradient_square)
        above = np.abs(self.risk_gradient) + self.risk_gradient_error
        return (1.0 + 2.0**-53 * (len(above) + 8)) * dot(above, above)

    @cached_property
    def gradient(self) -> Array:
        total: Array = self.parts[0].gradient + self.risk_gradient
        return total

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
        total = products[0][0].copy()
        for product, _ in products[1:]:
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
        return SumPoint(parts[0].w, parts)

    def afresh(self) -> SumPoint:
        return SumPoint(self.w, [part.afresh() for part in self.parts])

    def expecting_hessian(self) -> SumPoint:
        return SumPoint(self.w, [part.expecting_hessian() for part in self.parts])

    def reweighted(self, factor: float) -> SumPoint:
        return SumPoint(self.w, [part.reweighted(factor) for part in self.parts])
