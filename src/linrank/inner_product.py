"""The inner product of the space that a solver works in."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from linrank import _core

__all__ = ["dot"]

Array = NDArray[Any]


def dot(a: Array, b: Array) -> float:
    """``a·b`` of two vectors of weights, or ``a'Qb`` of two functions in the space of a kernel.

    A function is an array (2, n): its coefficients, and its values ``Q·coefficients`` at the rows.
    Sums, multiples and this product are all that the solvers ask of either.
    """
    if a.ndim == 1:
        return _core.dot(a, b)
    product = _core.dot(a[0], b[1])
    # Where Q is singular, ‖a‖² may round to less than 0; what is no number stays none.
    return 0.0 if a is b and product < 0.0 else product
