"""Start and preconditioner for the regime of a problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linrank import _core
from linrank.data.streamed_rows import StreamedRows
from linrank.objective import Sum
from linrank.solvers.newton import Sharpen, newton
from linrank.solvers.preconditioner import (
    Carried,
    Diagonal,
    Explicit,
    Plain,
    Preconditioner,
    Sampled,
)

__all__ = ["MOST_FACTORED", "Plannable", "Weighable", "carried", "is_small", "plan"]

Array = NDArray[Any]

CERTIFIED = 1 << 20  # entries up to which fits go on to a proof: a step more takes a millisecond
MOST_FACTORED = 4000  # features up to which a matrix of their size is formed
_ROUGH = 1e-2  # tolerance on the sample that gives the start
_WIDE = 0.5  # band of the smoothed hinge in the Hessian of a sample


class Extent(Protocol):
    """How large a matrix is and how it is stored."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def is_sparse(self) -> bool: ...


class Plannable(Protocol):
    """What `plan` asks of a problem."""

    @property
    def rows(self) -> Extent:
        """The matrix, or what there is to say of one that is elsewhere."""

    @property
    def loss(self) -> str: ...
    @property
    def n_rows(self) -> int:
        """Rows that are compared with others, at most."""

    @property
    def longest_query(self) -> int: ...
    @property
    def capacity(self) -> int:
        """Rows that a sample may have."""

    @property
    def largest_matrix(self) -> int:
        """Features up to which the whole Hessian may be formed."""

    def objective(self, epsilon: float = 1.0) -> Sum: ...
    def sharpening(self, tol: float) -> Sharpen | None: ...
    def sample(self, n_rows: int) -> Plannable: ...


def plan(problem: Plannable, w0: Array | None) -> tuple[Array, Preconditioner]:
    """Start and preconditioner for the regime of the data.

    While the explicit Hessian costs no more than some tens of products it is the safest choice and
    needs no tuning; beyond, the Hessian of a sample of 50 rows a feature; where even a Cholesky
    factor, ``n³/6``, is out of proportion, the diagonal, or nothing if rows are few. Where a
    twentieth of the rows still determines the features, the optimum on them is a first guess that
    saves outer iterations, and their Hessian comes before all others but the diagonal.

    Where rows are computed for every product, a sample is all that can be stored, and worth it.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    start = np.zeros(n) if w0 is None else np.array(w0, dtype=np.float64)
    price = _hessian_price(problem.rows)
    patience, guess = price // 2 + 2, None
    n_sample = min(n_rows // 20, problem.capacity)
    if problem.loss == "hinge":
        patience = 2  # the Hessian of a narrow band ages within a step
    if isinstance(problem.rows, StreamedRows):
        if not problem.rows.has_matrix:
            return start, Plain()
        n_sample = min(max(50 * n, n_rows // 20), n_rows, problem.capacity)
        return _from_sample(problem, n_sample, w0, patience)
    cheap = _without_matrix(problem)
    if cheap is not None:
        return start, cheap
    if n_sample >= 30 * n:
        start, guess = _from_sample(problem, n_sample, w0, patience)
    if guess is not None and problem.longest_query >= _core.LONG_QUERY:
        return start, guess  # the core builds the Hessian of a query on one thread
    if n <= problem.largest_matrix and (price <= 30 or n_rows < 100 * n):
        return start, Explicit(patience, guess)
    return start, guess or Sampled(lambda m: problem.sample(m).objective(_WIDE), 50 * n, start)


def is_small(problem: Plannable) -> bool:
    """Whether a proof of the optimum costs so little that an estimate will not do."""
    return _entries(problem.rows) * problem.n_rows <= CERTIFIED


def _from_sample(
    problem: Plannable, n_sample: int, w0: Array | None, patience: int
) -> tuple[Array, Sampled]:
    """The optimum on a sample, unless w0 is given, and the preconditioner of that sample."""
    part = problem.sample(n_sample)
    if w0 is not None:
        start = np.array(w0, dtype=np.float64)
    else:
        start = newton(
            part.objective(),
            np.zeros(problem.rows.shape[1]),
            preconditioner=Explicit(patience),
            tol=_ROUGH,
            sharpen=part.sharpening(_ROUGH),
        ).w
    sample = part.objective(_WIDE)
    guess = Sampled(
        lambda m: sample if m == n_sample else problem.sample(m).objective(_WIDE),
        n_sample,
        start,
        sees_all=not isinstance(problem.rows, StreamedRows),
    )
    return start, guess


class Weighable(Plannable, Protocol):
    """What `carried` asks of a problem, and of its samples, which are dataclasses."""

    @property
    def C(self) -> float: ...


def carried(problem: Weighable) -> Preconditioner:
    """The preconditioner of a path.

    One Hessian serves some fifty products, so the whole one is taken up to a price of ten; beyond,
    that of a sample, four times as large each time it disappoints.
    """
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    price, n_sample = _hessian_price(problem.rows), max(50 * n, n_rows // 20)
    if isinstance(problem.rows, StreamedRows):
        if not problem.rows.has_matrix:
            return Plain()
    else:
        cheap = _without_matrix(problem)
        if cheap is not None:
            return cheap
        is_long = problem.longest_query >= _core.LONG_QUERY
        is_cheap = 2 * n_sample > n_rows or (price <= 10 and not is_long)
        if is_cheap and n <= problem.largest_matrix:
            return Carried(lambda point, _: point, patience=price // 2 + 1)

    def on_sample(point: Any, k: int) -> Any:
        sample: Any = problem.sample(min(n_sample * 4**k, n_rows))
        factor = point.parts[1].risk.C / problem.C
        return replace(sample, C=factor * sample.C).objective().at(point.w)

    return Carried(on_sample, patience=8)


def _without_matrix(problem: Plannable) -> Preconditioner | None:
    """A preconditioner for more features than a Cholesky factor is worth; None below that."""
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    if n <= MOST_FACTORED and (n <= 300 or n_rows >= 2 * n):
        return None
    if 2 * n_rows < n:
        return Plain()
    return Diagonal(memory=min(24, int(_entries(problem.rows) * n_rows / n) + 1))


def _hessian_price(rows: Extent) -> int:
    """Cost of the explicit Hessian in Hessian products; the ns a row were fitted to timings."""
    n = rows.shape[1]
    entries = _entries(rows)
    product = 12 + (1.5 if rows.is_sparse else 0.35) * entries
    return max(1, round((100 + n * n / 60) / product))


def _entries(rows: Extent) -> float:
    """Entries of a row, of float32 and an index of 32 bits; wider ones count more."""
    return rows.nbytes / (8 if rows.is_sparse else 4) / max(1, rows.shape[0])
