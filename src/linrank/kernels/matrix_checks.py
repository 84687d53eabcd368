"""Whether a matrix is a kernel matrix: square, finite, symmetric, positive semidefinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.frames import as_array

__all__ = ["LANCZOS_STEPS", "TOLERANCE", "by_rows", "check_kernel_matrix", "lowest_values"]

Array = NDArray[Any]

# What rounding may do, relative to the largest entry (symmetry) or eigenvalue (definiteness):
# kernels computed elsewhere in float32 are symmetric to some 1e-7 and have eigenvalues below zero
# of that size.
TOLERANCE = 1e-6

_EXACT = 500  # rows up to which all eigenvalues are computed: some 0.1 s
LANCZOS_STEPS = 60  # beyond
_BLOCK = 1 << 20  # entries that are looked at together


def check_kernel_matrix(
    Q: Any, n_threads: int = 1, *, what: str = "the kernel matrix", remedy: str = ""
) -> None:
    """Raise ValueError for a matrix that no kernel gives, and say by how much.

    Parameters
    ----------
    Q : array of shape (n, n), or KernelMatrix
        Of an object with ``n`` and ``product`` alone only the definiteness is checked.
    n_threads : int
        Of the products.
    what, remedy : str
        What the message calls it, and what it advises where it is not semidefinite.

    Raises
    ------
    ValueError
        Not square; not finite, with the first entry at fault; not symmetric, with the largest
        ``|Q_ij - Q_ji|`` and its place, where it exceeds 1e-6 of the largest entry; not positive
        semidefinite, with an eigenvalue, or a quotient ``u'Qu / u'u`` that proves one, below -1e-6
        of the largest.

    Notes
    -----
    Up to 500 rows all eigenvalues are computed. Beyond, 60 Lanczos steps from a fixed start give
    the lowest ``u'Qu / u'u`` over the space that they span, an upper bound of the lowest
    eigenvalue: what is refused is indefinite for certain, what passes may have negative
    eigenvalues that are small or isolated within the positive ones.
    """
    if hasattr(Q, "product"):
        lowest, largest = lowest_values(Q.n, Q.product)
    else:
        Q = _as_square(Q, what)
        _check_finite(Q, what)
        _check_symmetric(Q, what)
        if len(Q) <= _EXACT:
            values = np.linalg.eigvalsh(Q)
            lowest, largest = float(values[0]), float(np.abs(values).max(initial=0.0))
        else:
            Q = by_rows(Q)
            lowest, largest = lowest_values(
                len(Q), lambda v: _core.symmetric_product(Q, v, n_threads)
            )
    _check_definite(lowest, largest, what, remedy or f"add {-lowest:.3g} to its diagonal")


def lowest_values(n: int, product: Callable[[Array], Array]) -> tuple[float, float]:
    """The lowest Ritz value of a symmetric matrix, and the largest in size, after 60 Lanczos steps.

    All vectors are kept and each new one is made orthogonal to them, twice, so that no copy of an
    eigenvalue that was found already is mistaken for another.
    """
    n_steps = min(LANCZOS_STEPS, n)
    basis = np.zeros((n_steps, n))
    diagonal, beside = np.zeros(n_steps), np.zeros(n_steps)
    start = np.random.default_rng(0).standard_normal(n)
    basis[0] = start / np.sqrt(_core.dot(start, start))
    scale = 0.0
    for k in range(n_steps):
        image = product(basis[k])
        diagonal[k] = _core.dot(basis[k], image)
        for _ in range(2):
            for vector in basis[: k + 1]:
                image = _core.add_scaled(image, -_core.dot(vector, image), vector, 1)
        size = float(np.sqrt(_core.dot(image, image)))
        scale = max(scale, size, abs(float(diagonal[k])))
        if k + 1 == n_steps or size <= 1e-14 * scale:  # the space is closed
            n_steps = k + 1
            break
        beside[k] = size
        basis[k + 1] = image / size
    band = np.diag(diagonal[:n_steps])
    band += np.diag(beside[: n_steps - 1], 1) + np.diag(beside[: n_steps - 1], -1)
    values = np.linalg.eigvalsh(band)
    return float(values[0]), float(np.abs(values).max(initial=0.0))


def _as_square(Q: Any, what: str) -> Array:
    try:
        matrix: Array = as_array(Q, what).astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be a matrix of numbers: {error}") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " × ".join(map(str, matrix.shape))
        raise ValueError(
            f"{what} must be square, one row and one column a training row, got {shape}"
        )
    return matrix


def _blocks(n: int) -> list[slice]:
    step = max(1, _BLOCK // max(1, n))
    return [slice(i, i + step) for i in range(0, n, step)]


def _check_finite(Q: Array, what: str) -> None:
    for rows in _blocks(len(Q)):
        finite = np.isfinite(Q[rows])
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            i += rows.start
            raise ValueError(f"{what} must be finite, got {Q[i, j]} at row {i}, column {j}")


def _check_symmetric(Q: Array, what: str) -> None:
    worst, place, largest = 0.0, (0, 0), 0.0
    for rows in _blocks(len(Q)):
        block = Q[rows]
        largest = max(largest, float(np.abs(block).max(initial=0.0)))
        difference = np.abs(block - Q[:, rows].T)
        k = int(difference.argmax())
        if difference.flat[k] > worst:
            i, j = divmod(k, len(Q))
            worst, place = float(difference.flat[k]), (i + rows.start, j)
    if worst > TOLERANCE * largest:
        i, j = place
        raise ValueError(
            f"{what} must be symmetric: entry ({i}, {j}) is {Q[i, j]:.6g} and ({j}, {i}) is "
            f"{Q[j, i]:.6g}; they differ by {worst:.3g}, most of all, where the largest entry is "
            f"{largest:.3g}. (Q + Q.T) / 2 is symmetric"
        )


def _check_definite(lowest: float, largest: float, what: str, remedy: str) -> None:
    if lowest < -TOLERANCE * largest:
        raise ValueError(
            f"{what} must be positive semidefinite: it has an eigenvalue of at most {lowest:.6g}, "
            f"{lowest / largest:.3g} of the largest in size, {largest:.6g}. No vectors have such "
            f"inner products; {remedy}"
        )


def by_rows(Q: Array) -> Array:
    """Q, or a copy, with unit stride within its rows."""
    return Q if Q.strides[1] == Q.itemsize and Q.strides[0] > 0 else np.ascontiguousarray(Q)
