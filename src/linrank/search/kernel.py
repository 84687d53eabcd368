"""The choice of C and γ: one kernel matrix a γ, and a run over C for each fold and γ.

The matrices of folds are parts of one matrix of all rows, or each is computed for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.choices import KERNELS, WITH_GAMMA
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows, Rows, resized
from linrank.data.scaling import Scaling
from linrank.errors import check_one_of
from linrank.kernels.functions import Kernel, check_kernel_rows
from linrank.kernels.matrices import KernelMatrix, StoredMatrix, kernel_matrix, stored_bytes
from linrank.kernels.train import train_kernel
from linrank.ranksvm.path import as_grid
from linrank.search.folds import Fold, weight_of_part
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.solvers.result import Result
from linrank.system.resources import allowed, resolve, too_small

Array = NDArray[Any]

_BLOCK = 256  # rows of a matrix that a thread turns at a time


class KernelFamily:
    """``K(X, X)`` for every γ, from what does not depend on γ where that is kept.

    An rbf kernel is a function of ``γ‖a - b‖²``, "poly" is one of ``γ a·b``. With ``keeps`` the
    squared distances, or the products, are computed once and stay, as large as one matrix; a
    matrix is then one pass over them. Without, each is computed from the rows, as those are that
    have to be checked: "sigmoid", and "poly" with ``coef0 < 0``.
    """

    def __init__(
        self, kernel: Kernel, rows: Rows, *, keeps: bool = False, n_threads: int = 1
    ) -> None:
        self.kernel, self.rows, self.n_threads = kernel, rows, n_threads
        is_sure = kernel.name == "rbf" or (kernel.name == "poly" and kernel.coef0 >= 0.0)
        self._keeps = keeps and is_sure
        self._base: Array | None = None

    def matrix(self, gamma: float) -> StoredMatrix:
        """``K(X, X)`` for this γ, in memory."""
        kernel = replace(self.kernel, gamma=gamma)
        if not self._keeps:
            room = 16 * self.rows.shape[0] ** 2  # that there is some has been seen to
            whole = kernel_matrix(kernel, self.rows, memory_limit=room, n_threads=self.n_threads)
            assert isinstance(whole, StoredMatrix)
            return whole
        if self._base is None:
            self._base = _base(kernel, self.rows, self.n_threads)
        values, base = np.empty_like(self._base), self._base
        turn = _turn(kernel)
        _by_blocks(lambda block: turn(base[block], values[block]), len(base), self.n_threads)
        return StoredMatrix(values, self.n_threads)


def _base(kernel: Kernel, rows: Rows, n_threads: int) -> Array:
    """``‖a - b‖²`` of all pairs of rows for "rbf", else ``a·b``."""
    if kernel.name != "rbf":
        return Kernel("linear").matrix(rows, rows, n_threads)
    if isinstance(rows, DenseRows):
        # ‖a‖² - 2a·b + ‖b‖² loses the digits that the norms have in common: distances do not see
        # the mean, and without it the norms are as small as they can be.
        values = rows.values.astype(np.float64)
        rows = DenseRows(values - values.mean(axis=0))
    squares = Kernel("linear").matrix(rows, rows, n_threads)
    norms = squares.diagonal().copy()

    def finish(block: slice) -> None:
        part = squares[block]
        part *= -2.0
        part += norms[block, np.newaxis] + norms  # in this order the matrix stays symmetric
        np.maximum(part, 0.0, out=part)

    _by_blocks(finish, len(squares), n_threads)
    np.fill_diagonal(squares, 0.0)
    return squares


def _by_blocks(work: Callable[[slice], None], n: int, n_threads: int) -> None:
    """``work`` on all rows, a block at a time; NumPy releases the lock."""
    blocks = [slice(i, i + _BLOCK) for i in range(0, n, _BLOCK)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, blocks))


def _turn(kernel: Kernel) -> Callable[[Array, Array], None]:
    """The function of a block of the base that gives the kernel, into a second block."""

    def rbf(squares: Array, out: Array) -> None:
        np.multiply(squares, -kernel.gamma, out=out)
        np.exp(out, out=out)

    def poly(products: Array, out: Array) -> None:
        np.multiply(products, kernel.gamma, out=out)
        out += kernel.coef0
        np.power(out, kernel.degree, out=out)

    return {"rbf": rbf, "poly": poly}[kernel.name]


_AUTO_FACTORS = tuple(4.0**k for k in range(-3, 4))  # of γ, times that of gamma="scale"


def as_gammas(gammas: Any, kernel: Any, data: Dataset, scale: str = "none") -> Array:
    """The grid of γ, ascending and each once.

    ``"auto"`` is 1/64, 1/16, ..., 64 times ``1 / (n_features·Var X)``, the γ that
    ``gamma="scale"`` takes from the rows, scaled as ``scale`` says. A kernel without γ has a grid
    of one, which says nothing.
    """
    if not callable(kernel):
        check_one_of("kernel", kernel, KERNELS)
    if kernel not in WITH_GAMMA:
        if not (isinstance(gammas, str) and gammas == "auto"):
            raise ValueError(
                f"kernel={kernel!r} has no gamma, got gammas={gammas!r}; leave them out, or use "
                f"the kernel {', '.join(WITH_GAMMA[:-1])} or {WITH_GAMMA[-1]}"
            )
        return np.array([1.0])
    if not isinstance(gammas, str):
        return as_grid("gammas", gammas, ())
    rows = Scaling.fit(scale, data.rows, weight=data.weight).applied(data).rows
    middle = Kernel.of(kernel, gamma="scale", rows=rows, weight=data.weight).gamma
    return as_grid("gammas", gammas, [middle * factor for factor in _AUTO_FACTORS])


Tile = tuple[slice, Array]  # validation rows, and the kernel of them and the training rows

_ANY = 1 << 62  # bytes, where nobody knows how many are free
_TILE_BYTES = 1 << 25  # of the kernel of validation rows that exists at a time
# Values of a row from which on it pays to keep distances: one pass over them takes as long as to
# compute the kernel of dense rows of ten features, and a sparse value takes four times a dense one.
_MANY_FEATURES = 64
_OF_SPARSE = 4


@dataclass(frozen=True)
class Plan:
    """What is kept in memory, and how many folds are trained at a time.

    Attributes
    ----------
    shares : bool
        One matrix of all rows for each γ, of which folds take their parts.
    keeps : bool
        Squared distances, or products, stay beside it from one γ to the next.
    n_folds : int
        Folds whose own matrices may exist at a time.
    limit : int
        Bytes for the matrix of each of them.
    """

    shares: bool
    keeps: bool
    n_folds: int
    limit: int

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        data: Dataset,
        folds: Sequence[Fold],
        *,
        scale: str,
        memory_limit: int | float | str | None,
        n_gammas: int,
    ) -> Plan:
        """The fastest plan within ``memory_limit`` bytes; None is half of what is free."""
        limit = allowed(memory_limit)
        limit = _ANY if limit is None else limit
        whole = stored_bytes(kernel, data.n_rows)
        own = max(8 * len(fold.train) ** 2 if fold.train is not None else 0 for fold in folds)
        # A scaling that differs from fold to fold gives kernels that do.
        common = scale == "none" or (scale == "query" and data.qid is not None)
        if kernel.name == "precomputed":
            _check_precomputed(own, limit)
            return cls._dividing(limit, own, len(folds), shares=True)
        if not common or whole + own > limit:
            return cls._dividing(limit, own, len(folds) if own else 1)
        saves = n_gammas > 1 and _width(data.rows) >= _MANY_FEATURES
        keeps = saves and 2 * whole + own <= limit
        left = limit - whole * (2 if keeps else 1)
        return cls._dividing(left, own, len(folds), shares=True, keeps=keeps)

    @classmethod
    def _dividing(
        cls, limit: int, own: int, most: int, *, shares: bool = False, keeps: bool = False
    ) -> Plan:
        """As many folds at a time as have ``own`` bytes of the ``limit`` each, one at least."""
        n_folds = max(1, min(most, limit // own if own else most))
        return cls(shares, keeps, n_folds, limit // n_folds)


def _check_precomputed(n_bytes: int, limit: int) -> None:
    """A given matrix cannot be computed again: its part for a fold must fit."""
    if n_bytes > limit:
        raise too_small(
            limit,
            "the part of the kernel matrix that a fold trains on",
            n_bytes,
            "measure on a validation set, cv=(K_val, y_val, qid_val), for which no part is copied",
        )


def _width(rows: Rows) -> float:
    """What a product of two rows takes: their mean number of values, sparse ones counted dear."""
    dear = _OF_SPARSE if isinstance(rows, CsrRows) else 1
    return dear * rows.values.size / max(1, rows.shape[0])


@dataclass(frozen=True, eq=False)
class Part:
    """What the models of a fold are trained on, and what they are measured on."""

    data: Dataset  # labels, queries and weights; rows only where the matrix does not stand for them
    matrix: KernelMatrix
    valid: Dataset
    tiles: Callable[[], Iterator[Tile]]  # of all validation rows

    def scores(self, betas: Array) -> Array:
        """``K(valid, train)β`` for every row of ``betas``."""
        scores = np.empty((len(betas), self.valid.n_rows))
        for place, values in self.tiles():
            scores[:, place] = (values @ betas.T).T
        return scores


class FoldKernels:
    """The parts of the folds, for one γ after the other.

    Parameters
    ----------
    data : Dataset
        All rows, as they came.
    folds : sequence of Fold
        Training and validation parts.
    kernel : Kernel
        Its γ is replaced.
    scale : str
        Feature scaling, fitted on the training part of each fold.
    plan : Plan
        What is shared.
    n_threads : int
        Of what is computed for all folds.
    """

    def __init__(
        self,
        data: Dataset,
        folds: Sequence[Fold],
        kernel: Kernel,
        *,
        scale: str,
        plan: Plan,
        n_threads: int,
    ) -> None:
        self.data, self.folds, self.kernel, self.plan = data, folds, kernel, plan
        self._scale = scale
        self._family: KernelFamily | None = None
        self._whole: StoredMatrix | None = None
        if plan.shares:
            rows = Scaling(scale).applied(data, n_jobs=n_threads).rows
            self._family = KernelFamily(kernel, rows, keeps=plan.keeps, n_threads=n_threads)

    def turn_to(self, gamma: float) -> None:
        """Begin with this γ; the matrix of the one before is dropped first."""
        self._whole = None
        self.kernel = replace(self.kernel, gamma=gamma)
        if self._family is not None:
            self._whole = self._family.matrix(gamma)

    def part(self, k: int, n_threads: int) -> Part:
        """Fold k for the γ of `turn_to`."""
        if self._family is None:
            return self._own(self.folds[k], n_threads)
        return self._shared(self.folds[k], n_threads)

    def _shared(self, fold: Fold, n_threads: int) -> Part:
        """A part of the matrix of all rows."""
        assert self._whole is not None
        assert self._family is not None
        whole, train = self._whole, fold.train
        # The rows themselves, which may be the matrix, are not copied: nothing reads them.
        bare = replace(self.data, rows=DenseRows(np.zeros((self.data.n_rows, 1), np.float32)))
        part = bare if train is None else bare.select(train)
        matrix = whole if train is None else whole.submatrix(train)
        matrix = StoredMatrix(matrix.values, n_threads)
        if isinstance(fold.valid, Dataset):
            rows = self._family.rows if train is None else self._family.rows.take(train)
            valid = Scaling(self._scale).applied(fold.valid, n_jobs=n_threads)
            return self._apart(part, matrix, rows, valid, n_threads)
        numbers = fold.valid

        def tiles() -> Iterator[Tile]:
            for place in _places(len(numbers), part.n_rows):
                values = whole.values[numbers[place]]
                yield place, values if train is None else values[:, train]

        return Part(part, matrix, self.data.select(numbers), tiles)

    def _own(self, fold: Fold, n_threads: int) -> Part:
        """A matrix of the rows of the fold alone."""
        data = self.data if fold.train is None else self.data.select(fold.train)
        scaling = Scaling.fit(self._scale, data.rows, weight=data.weight, n_jobs=n_threads)
        part = scaling.applied(data, n_jobs=n_threads)
        matrix = kernel_matrix(
            self.kernel, part.rows, memory_limit=self.plan.limit, n_threads=n_threads
        )
        valid = fold.valid if isinstance(fold.valid, Dataset) else self.data.select(fold.valid)
        valid = replace(valid, rows=resized(valid.rows, data.n_features))
        valid = scaling.applied(valid, n_jobs=n_threads)
        return self._apart(part, matrix, part.rows, valid, n_threads)

    def _apart(
        self, part: Dataset, matrix: KernelMatrix, rows: Rows, valid: Dataset, n_threads: int
    ) -> Part:
        """Validation rows whose kernel is computed."""
        kernel, test = self.kernel, resized(valid.rows, rows.shape[1])

        def tiles() -> Iterator[Tile]:
            for place in _places(test.shape[0], part.n_rows):
                # Of a precomputed kernel, the rows of validation data are those of the matrix.
                yield place, kernel.matrix(test.take(place), rows, n_threads)

        return Part(part, matrix, valid, tiles)


def _places(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of rows whose kernel with so many others stays small."""
    step = max(1, _TILE_BYTES // (8 * max(1, n_columns)))
    return [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]


def tune_kernel(
    data: Dataset,
    folds: Sequence[Fold],
    gammas: Array,
    Cs: Array,
    *,
    kernel: Any = KERNELS[0],
    degree: int = 3,
    coef0: float = 0.0,
    scale: str = "none",
    query_weight: Array | None = None,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Tuning:
    """Measure the models of every fold, γ and C.

    For each γ the kernel matrix of all rows is computed once. A fold trains on a part of it,
    ``K[train, train]``, for ascending C, each model from the last, and reads its validation scores
    from another, ``K[valid, train]β``. Where the features are scaled on the training part of each
    fold, or where the matrix of all rows does not fit, each fold computes its own.

    Parameters
    ----------
    data : Dataset
        What the row numbers of the folds refer to; of ``"precomputed"``, the rows are the matrix.
    folds : sequence of Fold
        Training and validation parts.
    gammas, Cs : arrays
        The grids, as `as_gammas` and `as_Cs` return them.
    kernel, degree, coef0
        The kernel, as `Kernel.of` takes it; its γ is that of the grid.
    scale : {"none", "standard", "minmax", "query"}
        Feature scaling, fitted on the training part of each fold.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    memory_limit : int, float, str or None
        Bytes for kernel matrices in all; None is half of what is free.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share, as far as memory allows.
    **options
        Those of `Judging`, and of `train_kernel` for every model.
    """
    judging = Judging.taken_from(options)
    check_kernel_rows(kernel, scale, data)
    n_threads = resolve(n_jobs)
    function = Kernel.of(kernel, gamma=float(gammas[0]), degree=degree, coef0=coef0)
    plan = Plan.of(
        function, data, folds, scale=scale, memory_limit=memory_limit, n_gammas=len(gammas)
    )
    grid = {"gamma": gammas, "C": Cs}
    sweep = Sweep(grid, folds, judging, most=plan.n_folds, n_jobs=n_threads)
    kernels = FoldKernels(data, folds, function, scale=scale, plan=plan, n_threads=n_threads)
    options["memory_limit"] = memory_limit

    def train(run: FoldRun) -> Judged:
        part = kernels.part(run.k, run.n_threads)
        weight = weight_of_part(query_weight, data, part.data, run.fold.train)

        def fit(C: float, last: Result | None) -> Result:
            return train_kernel(
                part.data,
                kernel=kernels.kernel,
                matrix=part.matrix,
                C=C,
                beta0=None if last is None else last.w,
                settle=False,
                query_weight=weight,
                n_jobs=run.n_threads,
                callback=run.is_cancelled,
                **options,
            )

        results = run.each(Cs, fit)  # ascending, each model from the last
        betas = np.array([result.w for result in results])
        facts = {
            "converged": np.array([result.converged for result in results]),
            "n_iter": np.array([result.n_iter for result in results], dtype=np.int64),
        }
        return run.judge_scores(betas, part.scores(betas), part.valid), facts

    rounds = []
    for gamma in gammas.tolist():
        kernels.turn_to(gamma)
        rounds.append(sweep.run(train, gamma=gamma))
    return sweep.tuning(*rounds)
