"""RankSVM with a kernel as a method, exact or approximate; and the choice of C and γ.

In a search there is one kernel matrix for each γ, and a run over C for each fold and γ. The
matrices of folds are parts of one matrix of all rows, or each is computed for itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linrank.choices import APPROXIMATIONS, KERNEL, KERNELS, SELECTED_PAIRS, WITH_GAMMA
from linrank.data import Array, Dataset, DenseRows, Rows, Scaling, query_weights, resized
from linrank.data.device_rows import DeviceRows
from linrank.data.rows import check_values
from linrank.errors import check_one_of
from linrank.kernels.approximation import train_approximate
from linrank.kernels.device_kernel import DeviceKernel, turn_rows
from linrank.kernels.functions import Kernel, check_kernel_rows
from linrank.kernels.matrices import KernelMatrix, StoredMatrix, kernel_matrix, stored_bytes
from linrank.kernels.train import plan_landmarks, train_kernel
from linrank.methods import description
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.ground import Monitor, is_auto, settle
from linrank.methods.ranksvm import weight_in_memory
from linrank.models.kernel import KernelModel
from linrank.parts.parts import Facts
from linrank.ranksvm.path import as_Cs, as_grid
from linrank.search import Fold, FoldRun, Judged, Judging, Sweep, Tuning, weight_of_part
from linrank.solvers.result import Result
from linrank.system import allowed, count, resolve, seed_of, too_small
from linrank.system.device import Device, check_device, device_of

# What a model knows of the options; where it was trained, in how much memory, is not part of it.
_TOLD = ("C", *(name for name in KERNEL if name not in ("memory_limit", "device")))
# Of the parameters, for programs.
_REPORTED = (
    *("kernel", "gamma", "degree", "coef0", "scale", "C", "approximation", "n_components"),
    *KERNEL,
)


def train(task: Task) -> Trained:
    """Minimize ``½ β'Qβ + C Σ ω_ij l(1 - (s_i - s_j))`` over rows in memory.

    Rows are scaled first, unless they are the kernel matrix; the model scores raw ones.
    """
    task, facts = settle(with_host_rows(task))
    p, data, monitor = task.parameters, task.data.dataset, Monitor(task.parameters)
    assert data is not None  # of a store too: no pass over one has a kernel
    options = {
        **values_of(p, ("C", *KERNEL)),
        "seed": seed_of(p.random_state),
        "query_weight": query_weights(task.query_weight, data.queries),
        "preferences": task.preferences,
        "n_jobs": p.n_jobs,
    }
    check_one_of("approximation", p.approximation, APPROXIMATIONS)
    check_device(p.device)
    if p.approximation is not None and options.pop("device") != "cpu":
        raise ValueError(
            f"device={p.device!r} trains exact models, and approximation={p.approximation!r} is "
            "computed on the host; use approximation=None, or device='cpu'"
        )
    scaling, scaled, function = known = scaled_rows(data, p)
    if is_auto(p.C):
        options["C"] = kernel_unit(task, facts, options, known)
    settings = {name: options[name] for name in _TOLD}
    options["callback"] = monitor if monitor.is_needed else None
    result: Any
    if p.approximation is None:
        result = train_kernel(scaled, kernel=function, **options)
    else:
        settings["approximation"] = p.approximation
        result = train_approximate(scaled, kernel=function, n_components=p.n_components, **options)
    if p.approximation is not None or p.pairs in SELECTED_PAIRS:
        settings["seed"] = options["seed"]  # nothing else is random
    if task.preferences is not None:
        settings["n_preferences"] = len(task.preferences)
    if data.index_base is not None:
        settings["index_base"] = data.index_base
    model = KernelModel.of(result, scaled, scaling, function, **settings)
    shown = {
        **description.optimum_attributes(result),
        "C": options["C"],
        "history": result.history,
        "n_pairs": model.training["n_pairs"],
    }
    return Trained(model, result, shown, monitor, result.converged, description.doubt_of(result))


def with_host_rows(task: Task) -> Task:
    """The task with its rows on the host; those that lie on a device are computed with there."""
    data, p = getattr(task.data, "dataset", task.data), copy.copy(task.parameters)
    if not isinstance(data, Dataset) or not isinstance(data.rows, DeviceRows):
        return task
    rows = data.rows.stored(slice(None), resolve(p.n_jobs))
    check_values(rows, data.feature_names, n_jobs=p.n_jobs)
    if getattr(p, "approximation", None) is None:
        p.device = repr(data.rows.device)
    return replace(task, data=replace(data, rows=rows), parameters=p)


Scaled = tuple[Scaling, Dataset, Kernel]


def scaled_rows(data: Dataset, parameters: Any) -> Scaled:
    """The scaling, the rows that it leads to, and the kernel of these."""
    p = parameters
    check_kernel_rows(p.kernel, p.scale, data)
    scaling = Scaling.fit(p.scale, data.rows, weight=data.weight, n_jobs=p.n_jobs)
    scaled = scaling.applied(data, n_jobs=p.n_jobs)
    width = {"gamma": getattr(p, "gamma", "scale"), "degree": p.degree, "coef0": p.coef0}
    return scaling, scaled, Kernel.of(p.kernel, **width, rows=scaled.rows, weight=data.weight)


def kernel_unit(
    task: Task, facts: Facts | None, options: dict[str, Any], known: Scaled | None = None
) -> float:
    """The C that "auto" is: as of a linear model of the features that the kernel stands for.

    Their variance is that of the rows for the kernel "linear", else the mean of ``k(x, x)``. The
    task is settled by ``facts``; what `scaled_rows` returns may be ``known``.
    """
    place, p = task.data, task.parameters
    data, facts = place.dataset, facts or place.facts()
    scaling, scaled, function = known or scaled_rows(data, p)
    if p.kernel == "linear":
        return weight_in_memory(data, place.balance(scaling, None, facts), options)
    spread = float(np.average(function.diagonal(scaled.rows), weights=data.weight))
    return weight_in_memory(data, facts.balance(spread), options)


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, optimum, size of the model and convergence."""
    result, p, model = trained.result, parameters, trained.model
    assert isinstance(model, KernelModel)
    kernel = p.kernel if isinstance(p.kernel, str) else "function"
    by = "" if p.approximation is None else f" by {p.approximation}"
    width = f", γ = {model.kernel.gamma:.4g}" if kernel in WITH_GAMMA else ""
    told = f"{kernel}{by}{width}, {p.loss.replace('_', ' ')}, C = {model.training['C']:g}"
    lines: tuple[description.Line, ...] = (
        ("trained", f"{told}: {count(result.n_iter, 'iteration')}"),
        description.optimum_line(result),
        *description.pair_lines(model.training),
        ("model", _size(model)),
    )
    facts = {
        **values_of(p, _REPORTED),
        "kernel": kernel,
        **{name: model.training[name] for name in _TOLD if name in model.training},
        "seed": model.training.get("seed"),
        "gamma": model.kernel.gamma,
        "pairs_compared": model.training["n_pairs"],
        "relative_gap": description.relative_gap(result),
        "support_rows": len(model.coef),
        "hessian_products": result.n_hvp,
    }
    return description.describe_optimum(trained, *lines, **facts)


def _size(model: KernelModel) -> str:
    """How much a score costs."""
    if model.support is None:
        return count(len(model.coef), "component")
    n_rows = int(model.training["n_rows"])  # type: ignore[arg-type]
    share = f"{100 * len(model.coef) / n_rows:.3g} %"
    return f"{len(model.coef):,} of {count(n_rows, 'row')} support it ({share})"


# ---- the search ---------------------------------------------------------------------------------

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


_ANY = 1 << 62  # bytes, where nobody knows how many are free
_TILE_BYTES = 1 << 25  # of the kernel of validation rows that exists at a time


@dataclass(frozen=True)
class Plan:
    """What is kept in memory, and how many folds are trained at a time.

    Attributes
    ----------
    scale : str
        Feature scaling, fitted on the training part of each fold.
    shares : bool
        One matrix of all rows for each γ, of which folds take their parts.
    n_folds : int
        Folds whose own matrices may exist at a time.
    limit : int
        Bytes for the matrix of each of them.
    beside : int
        Bytes of these for what its training takes.
    device : Device or None
        Where the matrices are; None is the memory of the host.
    """

    scale: str
    shares: bool
    n_folds: int
    limit: int
    beside: int = 0
    device: Device | None = None

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        data: Dataset,
        folds: Sequence[Fold],
        scale: str,
        memory_limit: Any,
        device: Device | None = None,
    ) -> Plan:
        """The fastest plan within ``memory_limit`` bytes; None is half of what is free."""
        limit, beside = allowed(memory_limit), 0
        limit = _ANY if limit is None else limit
        if device is not None:
            limit = device.limit(memory_limit)
            beside = plan_landmarks(data.n_rows, limit, device)[1]
        # A scaling that differs from fold to fold gives kernels that do.
        common = scale == "none" or (scale == "query" and data.qid is not None)
        is_given = kernel.name == "precomputed"
        whole = 0 if is_given and device is None else stored_bytes(kernel, data.n_rows)
        own = max(8 * len(fold.train) ** 2 if fold.train is not None else 0 for fold in folds)
        needed = own + beside + (0 if device is None else whole)
        if is_given and needed > limit:  # it cannot be computed again
            raise too_small(
                limit,
                "the part of the kernel matrix that a fold trains on",
                needed,
                "measure on a validation set, cv=(K_val, y_val, qid_val), for which no part is "
                "copied",
            )
        shares = is_given or (common and whole + own + beside <= limit)
        left = limit - whole if shares else limit
        most = len(folds) if (own or shares) and device is None else 1
        n_folds = max(1, min(most, left // own if own else most))
        return cls(scale, shares, n_folds, left // n_folds, beside, device)


@dataclass(frozen=True, eq=False)
class Part:
    """What the models of a fold are trained on, and what they are measured on."""

    data: Dataset  # labels, queries and weights; rows only where the matrix does not stand for them
    matrix: KernelMatrix
    valid: Dataset
    tile: Callable[[slice], Array]  # the kernel of some validation rows and the training rows

    def scores(self, betas: Array) -> Array:
        """``K(valid, train)β`` for every row of ``betas``, tile by tile."""
        n_rows, step = self.valid.n_rows, max(1, _TILE_BYTES // (8 * max(1, self.data.n_rows)))
        scores = np.empty((len(betas), n_rows))
        for begin in range(0, n_rows, step):
            place = slice(begin, begin + step)
            scores[:, place] = (self.tile(place) @ betas.T).T
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
    plan : Plan
        What is shared.
    n_threads : int
        Of what is computed for all folds.
    """

    def __init__(
        self, data: Dataset, folds: Sequence[Fold], kernel: Kernel, plan: Plan, n_threads: int
    ) -> None:
        self.data, self.folds, self.kernel, self.plan = data, folds, kernel, plan
        self._n_threads, self._rows = n_threads, None
        if plan.shares:
            self._rows = Scaling(plan.scale).applied(data, n_jobs=n_threads).rows
        self._whole: Any = None  # a KernelMatrix that is stored

    def turn_to(self, gamma: float) -> None:
        """Begin with this γ; the matrix of the one before is dropped first."""
        self._whole = None
        self.kernel = replace(self.kernel, gamma=gamma)
        if self._rows is not None:
            # That there is room has been seen to.
            room = 16 * self._rows.shape[0] ** 2 if self.plan.device is None else None
            how: dict[str, Any] = {"memory_limit": room, "n_threads": self._n_threads}
            self._whole = kernel_matrix(self.kernel, self._rows, device=self.plan.device, **how)

    def part(self, k: int, n_threads: int) -> Part:
        """Fold k for the γ of `turn_to`."""
        if self._whole is None:
            return self._own_part(self.folds[k], n_threads)
        return self._shared_part(self.folds[k], n_threads)

    def _shared_part(self, fold: Fold, n_threads: int) -> Part:
        """A part of the matrix of all rows."""
        assert self._rows is not None
        whole, train = self._whole, fold.train
        # The rows themselves, which may be the matrix, are not copied: nothing reads them.
        bare = replace(self.data, rows=DenseRows(np.zeros((self.data.n_rows, 1), np.float32)))
        part = bare if train is None else bare.select(train)
        matrix = whole if train is None else whole.submatrix(train)
        if isinstance(matrix, StoredMatrix):
            matrix = StoredMatrix(matrix.values, n_threads)
        if isinstance(fold.valid, Dataset):
            rows = self._rows if train is None else self._rows.take(train)
            valid = Scaling(self.plan.scale).applied(fold.valid, n_jobs=n_threads)
            return self._separate_part(part, matrix, rows, valid, n_threads)

        def tile(place: slice) -> Array:
            return whole.entries(fold.valid[place], train)

        return Part(part, matrix, self.data.select(fold.valid), tile)

    def _own_part(self, fold: Fold, n_threads: int) -> Part:
        """A matrix of the rows of the fold alone."""
        data = self.data if fold.train is None else self.data.select(fold.train)
        scaling = Scaling.fit(self.plan.scale, data.rows, weight=data.weight, n_jobs=n_threads)
        part = scaling.applied(data, n_jobs=n_threads)
        how: dict[str, Any] = {"memory_limit": self.plan.limit, "beside": self.plan.beside}
        how |= {"n_threads": n_threads, "device": self.plan.device}
        matrix = kernel_matrix(self.kernel, part.rows, **how)
        valid = fold.valid if isinstance(fold.valid, Dataset) else self.data.select(fold.valid)
        valid = replace(valid, rows=resized(valid.rows, data.n_features))
        valid = scaling.applied(valid, n_jobs=n_threads)
        return self._separate_part(part, matrix, part.rows, valid, n_threads)

    def _separate_part(
        self, part: Dataset, matrix: KernelMatrix, rows: Rows, valid: Dataset, n_threads: int
    ) -> Part:
        """Validation rows whose kernel is computed."""
        test = resized(valid.rows, rows.shape[1])
        # Of a precomputed kernel, the rows of validation data are those of the matrix.
        return Part(part, matrix, valid, lambda at: self._matrix(test.take(at), rows, n_threads))

    def _matrix(self, A: Rows, B: Rows, n_threads: int) -> Array:
        """``K(A, B)`` on the host, computed where the matrices are."""
        device, kernel = self.plan.device, self.kernel
        if device is None or kernel.core is None:
            return kernel.matrix(A, B, n_threads)
        there = DeviceKernel(kernel, device).matrix(turn_rows(A, device), turn_rows(B, device))
        return device.get(there)


def tune_kernel(
    task: Task, facts: Facts | None, folds: Sequence[Fold], judging: Judging, seed: int
) -> Tuning:
    """Measure the models of every fold, γ and C.

    For each γ the kernel matrix of all rows is computed once. A fold trains on a part of it,
    ``K[train, train]``, for ascending C, each model from the last, and reads its validation scores
    from another, ``K[valid, train]β``. Where the features are scaled on the training part of each
    fold, or where the matrix of all rows does not fit, each fold computes its own.

    Parameters
    ----------
    task : Task
        A data set in memory, whose rows are the matrix if it is ``"precomputed"``, and parameters
        of `KernelSearch`, settled by ``facts``. Its ``memory_limit`` is for kernel matrices in all.
    facts : Facts or None
        As `kernel_unit` takes them.
    folds : sequence of Fold
        Training and validation parts.
    judging : Judging
        Measure, rule of choice, progress.
    seed : int
        Of pairs drawn at random.
    """
    p, data = task.parameters, task.data.dataset
    check_kernel_rows(p.kernel, p.scale, data)
    check_device(p.device)
    device = None if p.device == "cpu" else device_of(p.device)
    n_threads, weights = resolve(p.n_jobs), query_weights(task.query_weight, data.queries)
    options = {**values_of(p, KERNEL), "seed": seed}
    Cs = as_Cs(p.Cs, lambda: kernel_unit(task, facts, {**options, "query_weight": weights}), step=2)
    gammas = as_gammas(p.gammas, p.kernel, data, p.scale)
    function = Kernel.of(p.kernel, gamma=float(gammas[0]), degree=p.degree, coef0=p.coef0)
    plan = Plan.of(function, data, folds, p.scale, p.memory_limit, device)
    kernels = FoldKernels(data, folds, function, plan, n_threads)
    grid = {"gamma": gammas, "C": Cs}
    sweep = Sweep(grid, folds, judging, most=plan.n_folds, n_jobs=n_threads)

    def train(run: FoldRun) -> Judged:
        part = kernels.part(run.k, run.n_threads)
        weight = weight_of_part(weights, data, part.data, run.fold.train)
        results: list[Result] = []
        for C in Cs.tolist():  # ascending, each model from the last
            result = train_kernel(
                part.data,
                kernel=kernels.kernel,
                matrix=part.matrix,
                C=C,
                beta0=results[-1].w if results else None,
                settle=False,
                query_weight=weight,
                n_jobs=run.n_threads,
                callback=run.is_cancelled,
                **options,
            )
            results.append(result)
            if run.is_cancelled():  # the fault of another fold is about to be told
                break
            run.report(result)
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
