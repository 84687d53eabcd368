"""Approximations of the Hessian and of its inverse for `newton`, each for its regime.

===============  ==================================================================================
`Explicit`       the Hessian itself, refreshed when it has aged: few rows, up to some 10³ features
`Sampled`        the Hessian of a sample of queries: many rows, up to some 10³ features
`Carried`        either, kept over many C and rescaled: regularisation paths
`Diagonal`       its diagonal: sparse data of high dimension
`Plain`          nothing: fewer rows than half the features
===============  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core

Array = NDArray[Any]
Solve = Callable[[Array], Array]

_SMALLEST = 1e-290  # a share of it is still a normal number


class Preconditioner(Protocol):
    """Gives, at each outer iterate, a cheap approximation of the inverse Hessian."""

    limit: int  # products that one solve may take: beyond, a better approximation pays
    memory: int  # earlier products that improve it
    forcing: float  # residual, relative to the first, to which the first solve goes
    is_exact: bool  # whether M is the Hessian of its point: earlier products cannot improve it

    def matrix(self, point: Any, n_last: int) -> Array:
        """``M``, or its diagonal; ``n_last`` is the number of products that the last solve took."""

    def at(self, point: Any, n_last: int) -> Solve:
        """``r -> M⁻¹ r``."""

    def wants_hessian(self, n_last: int) -> bool:
        """Whether the next `at` will ask its point for the Hessian.

        A point that is told before it is evaluated can form the Hessian in the same pass.
        """


def by_cholesky(matrix: Array) -> Solve:
    """``r -> matrix⁻¹ r``; a matrix that rounding made indefinite is lifted until it is not.

    Each diagonal entry is lifted by a share of itself: an equal lift for all would drown the
    features of small scale, and conjugate gradients would have to find their weights alone. An
    entry that has underflowed has no share to give, and takes that of the largest, or of 1.
    """
    if not np.isfinite(matrix).all():
        raise ValueError(
            "the Hessian overflows: squares of the features, summed over the pairs, leave the "
            "range of their type; divide the features by a common factor, or pass float64"
        )
    n = len(matrix)
    diagonal = np.diagonal(matrix).copy()
    largest = diagonal.max(initial=0.0)
    diagonal[diagonal < _SMALLEST] = largest if largest >= _SMALLEST else 1.0
    lift = 0.0
    while True:
        factor: Any = _core.cholesky_factor(np.ascontiguousarray(matrix).reshape(-1), n)
        if factor is not None:
            return lambda r: _core.cholesky_solve(factor, n, r)
        lift = max(10.0 * lift, 1e-7)
        matrix = matrix + np.diag(lift * diagonal)


class _Factor:
    """The factor of the last matrix, kept while that stays the same array."""

    def __init__(self) -> None:
        self._matrix: Array | None = None

    def of(self, matrix: Array) -> Solve:
        if matrix is not self._matrix:
            self._matrix, self._solve = matrix, by_cholesky(matrix)
        return self._solve


class Diagonal:
    """``M`` = an estimate of ``diag(∇²F)`` at every iterate: one pass over the non-zeros.

    Parameters
    ----------
    memory : int
        Products to remember; each takes four operations a feature in every step, which must not
        outweigh the product itself.
    """

    limit = 500
    forcing = 0.1
    is_exact = False

    def __init__(self, memory: int = 24) -> None:
        self.memory = memory

    def matrix(self, point: Any, n_last: int) -> Array:
        diagonal: Array = point.hessian_diagonal()
        return diagonal

    def at(self, point: Any, n_last: int) -> Solve:
        diagonal = point.hessian_diagonal()
        return lambda r: r / diagonal

    def wants_hessian(self, n_last: int) -> bool:
        return False


class Plain:
    """``M = 1``: where rows are few, ``∇²F`` is the identity but for a matrix of low rank.

    Conjugate gradients profit from the many equal eigenvalues, which a diagonal, or the memory of
    earlier products, would scatter.
    """

    limit = 500
    memory = 0
    is_exact = False
    forcing = 0.03  # the residual says less about the error than with a good M

    def matrix(self, point: Any, n_last: int) -> Array:
        return np.ones_like(point.w)

    def at(self, point: Any, n_last: int) -> Solve:
        return lambda r: r

    def wants_hessian(self, n_last: int) -> bool:
        return False


class Explicit:
    """``M = ∇²F`` at an earlier iterate, until a solve takes more than ``patience`` products.

    Parameters
    ----------
    patience : int
        The matrix costs about twice as many products, so an aged one is kept while it is cheaper.
    guess : Sampled, optional
        What to begin with; well-behaved data never need the matrix itself.
    """

    memory = 24
    forcing = 0.1

    def __init__(self, patience: int, guess: Sampled | None = None) -> None:
        self.patience = patience
        self.limit = patience + 2
        self.is_exact = False
        self._guess = guess
        self._matrix: Array | None = None
        self._factor = _Factor()

    def matrix(self, point: Any, n_last: int) -> Array:
        if n_last > self.patience:
            self._matrix = self._guess = None
        if self._guess is not None:
            return self._guess.matrix(point, 0)
        self.is_exact = self._matrix is None
        if self._matrix is None:
            self._matrix = point.hessian_matrix()
        return self._matrix

    def at(self, point: Any, n_last: int) -> Solve:
        return self._factor.of(self.matrix(point, n_last))

    def wants_hessian(self, n_last: int) -> bool:
        return n_last > self.patience or (self._guess is None and self._matrix is None)


class Sampled:
    """``M`` from the Hessian of a sample of queries, scaled to the curvature of the whole.

    Parameters
    ----------
    sample : callable
        ``sample(n_rows)`` returns the objective on about ``n_rows`` rows. Where the loss has a
        band, a wide one: the few pairs of a narrow one say little about the whole.
    n_rows : int
        Size of the first sample; four times as many at each rebuilding.
    w : array
        Where the first Hessian is taken.
    n_limit : int
        Products that a solve may take before the sample is enlarged.
    sees_all : bool
        Whether the diagonal of the whole Hessian is to be had, to correct that of a sample.
    """

    memory = 24
    forcing = 0.1
    is_exact = False

    def __init__(
        self,
        sample: Callable[[int], Any],
        n_rows: int,
        w: Array,
        n_limit: int = 12,
        sees_all: bool = True,
    ) -> None:
        self._sample = sample
        self._n_rows = n_rows
        self._n_limit = n_limit
        self._sees_all = sees_all
        self.limit = 4 * n_limit
        self._factor = _Factor()
        self._take(w)

    def _take(self, w: Array) -> None:
        point = self._sample(self._n_rows).at(w)
        self._sampled = sum(risk.hessian_matrix() for risk in point.parts[1:])
        self._curved = _curved(point)
        self._ratio = 0.0

    def matrix(self, point: Any, n_last: int) -> Array:
        if n_last > self._n_limit:
            self._n_rows *= 4
            self._take(point.w)
            if self._sees_all:
                self._rescale(point)
        ratio = _curved(point) / max(self._curved, 1e-300)
        # A factor of two in scale costs a product or so; a new factor costs n³/6.
        if not 0.5 < ratio / max(self._ratio, 1e-300) < 2.0:
            self._ratio = ratio
            self._scaled: Array = np.eye(len(point.w)) + ratio * self._sampled
        return self._scaled

    def at(self, point: Any, n_last: int) -> Solve:
        return self._factor.of(self.matrix(point, n_last))

    def wants_hessian(self, n_last: int) -> bool:
        return False

    def _rescale(self, point: Any) -> None:
        """Give the columns that the sample sees too large or too small their size in the whole.

        Scaling rows and columns alike keeps the correlations, for which the matrix is there;
        writing the whole diagonal into it would drown the nearly collinear directions.
        """
        ratio = _curved(point) / max(self._curved, 1e-300)
        whole = sum(risk.hessian_diagonal() for risk in point.parts[1:]) / ratio
        mine = np.diagonal(self._sampled).copy()
        is_seen = mine > 1e-12 * max(float(mine.max()), 1e-300)
        factor = np.sqrt(np.divide(whole, mine, out=np.ones_like(mine), where=is_seen))
        self._sampled *= factor
        self._sampled *= factor[:, np.newaxis]
        np.fill_diagonal(self._sampled, whole)


class Carried:
    """``M = I + ρK``, K the Hessian of the losses at an earlier point, for all C of a path.

    ρ is C times the curvature of the violated pairs, over what it was where K was taken: along a
    path the size of the losses' Hessian changes first of all, by C and by the pairs that are left.

    Parameters
    ----------
    take : callable
        ``take(point, k)``: where K is taken for the k-th time, the point itself or the same ``w``
        on a sample of the rows.
    patience : int
        Products that a solve may take before K is taken again.
    """

    # Each remembered product costs a few vector operations in every step of a solve. The last
    # solve's are the ones that matter: the next step has nearly its direction.
    memory = 3
    forcing = 0.1
    is_exact = False

    def __init__(self, take: Callable[[Any, int], Any], patience: int) -> None:
        self._take = take
        self._patience = patience
        self.limit = 4 * patience + 12
        self._n_taken = 0
        self._ratio = 0.0
        self._factor = _Factor()

    def matrix(self, point: Any, n_last: int) -> Array:
        if self._n_taken == 0 or n_last > self._patience:
            taken = self._take(point, self._n_taken)
            self._carried = sum(risk.hessian_matrix() for risk in taken.parts[1:])
            self._curved = max(_curved(taken), 1e-300)
            self._n_taken += 1
            self._ratio = 0.0
        ratio = _curved(point) / self._curved
        if not 0.8 < ratio / max(self._ratio, 1e-300) < 1.25:
            self._ratio = ratio
            self._scaled: Array = np.eye(len(point.w)) + ratio * self._carried
        return self._scaled

    def at(self, point: Any, n_last: int) -> Solve:
        return self._factor.of(self.matrix(point, n_last))

    def wants_hessian(self, n_last: int) -> bool:
        return False


def _curved(point: Any) -> float:
    """``C·Σωl''`` of all the risks beside ``½‖w‖²``."""
    return float(sum(risk.risk.C * risk.loss.total_curvature for risk in point.parts[1:]))
