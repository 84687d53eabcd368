"""Kernel: the function k(a, b), of single rows as of whole blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.checks import check_natural, check_one_of, check_positive, is_number
from linrank.data.rows import CsrRows, DenseRows, Rows
from linrank.options import KERNELS

__all__ = ["Kernel"]

Array = NDArray[Any]

_TAKEN = ("scale", "auto")  # ways to take gamma from the rows
_WITHOUT_GAMMA = ("linear", "precomputed")
_TILE = 1024  # rows of a tile of `product`


@dataclass(frozen=True)
class Kernel:
    """``k(a, b)``, symmetric and positive semidefinite.

    Attributes
    ----------
    name : {"rbf", "poly", "sigmoid", "linear", "precomputed", "callable"}
        ``exp(-γ‖a - b‖²)``, ``(γ a·b + c)^degree``, ``tanh(γ a·b + c)``, ``a·b``; of
        "precomputed" the rows are those of the kernel matrix themselves.
    gamma, coef0 : float
        γ > 0 and c.
    degree : int
        Of "poly".
    function : callable or None
        Of "callable": two blocks of rows to the matrix of their kernel.
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Callable[[Any, Any], Any] | None = None

    @classmethod
    def of(
        cls,
        kernel: Any,
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        rows: Rows | None = None,
        weight: Array | None = None,
    ) -> Kernel:
        """The kernel of an estimator's parameters.

        ``rows`` are those that γ is taken from, ``weight`` how often each of them counts.
        """
        if callable(kernel):
            return cls("callable", function=kernel)
        check_one_of("kernel", kernel, KERNELS)
        check_natural("degree", degree)
        if not (is_number(coef0) and np.isfinite(coef0)):
            raise ValueError(f"coef0 must be a finite number, got {coef0!r}")
        if isinstance(gamma, str) and kernel in _WITHOUT_GAMMA:
            check_one_of("gamma", gamma, _TAKEN)
            gamma = 1.0
        return cls(kernel, _resolved(gamma, rows, weight), int(degree), float(coef0))

    def matrix(self, A: Rows, B: Rows, n_threads: int = 1) -> Array:
        """``K(A, B)`` in full."""
        if self.function is not None:
            return np.asarray(self.function(A.to_user(), B.to_user()), dtype=np.float64)
        products = _products(A, B)
        if self.name == "linear":
            return products
        if self.name == "rbf":
            products *= -2.0
            products += _squares(A)[:, np.newaxis]
            products += _squares(B)
            np.maximum(products, 0.0, out=products)
            products *= -self.gamma
            return np.exp(products, out=products)
        products *= self.gamma
        products += self.coef0
        return products**self.degree if self.name == "poly" else np.tanh(products)

    def product(self, A: Rows, B: Rows, v: Array, n_threads: int = 1) -> Array:
        """``K(A, B) v``, tile by tile."""
        n = A.shape[0]
        parts = [
            self.matrix(A.take(slice(i, i + _TILE)), B, n_threads) @ v for i in range(0, n, _TILE)
        ]
        return np.concatenate(parts)

    def diagonal(self, A: Rows) -> Array:
        """``k(a, a)`` of every row."""
        if self.name == "rbf":
            return np.ones(A.shape[0])
        n = A.shape[0]
        parts = [A.take(slice(i, i + 1)) for i in range(n)]
        return np.concatenate([self.matrix(one, one).ravel() for one in parts])


def _resolved(gamma: Any, rows: Rows | None, weight: Array | None) -> float:
    """γ as a number."""
    if not isinstance(gamma, str):
        check_positive("gamma", gamma, "; or give 'scale' or 'auto'")
        return float(gamma)
    check_one_of("gamma", gamma, _TAKEN)
    if rows is None:
        raise ValueError(f"gamma={gamma!r} is taken from the rows; give a number > 0")
    n_features = rows.shape[1]
    if gamma == "auto":
        return 1.0 / n_features
    # The variance of all entries: that within the columns, and that between them.
    mean, within, _, _ = _core.summarise_columns(rows.core, weight, 1)
    variance = float(np.mean(within) + np.var(mean))
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def _products(A: Rows, B: Rows) -> Array:
    return np.asarray(_wide(A) @ _wide(B).T)


def _wide(rows: Rows) -> Array:
    if isinstance(rows, DenseRows):
        return rows.values.astype(np.float64)
    dense = np.zeros(rows.shape)
    dense[np.repeat(np.arange(rows.shape[0]), np.diff(rows.offsets)), rows.columns] = rows.values
    return dense


def _squares(rows: Rows) -> Array:
    assert isinstance(rows, DenseRows | CsrRows)
    wide = _wide(rows)
    return np.einsum("ij,ij->i", wide, wide)
