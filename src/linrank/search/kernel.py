"""The choice of C and γ: one kernel matrix a γ, and a run over C for each fold and γ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.kernels.functions import Kernel
from linrank.kernels.train import KernelResult, train_kernel
from linrank.models.kernel import KernelModel
from linrank.options import KERNELS
from linrank.search.folds import Fold, weight_of_part
from linrank.search.kernel_fit import check_kernel_rows, fit_kernel
from linrank.search.kernel_folds import FoldKernels, Plan
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.solvers.result import Result
from linrank.system.threads import resolve

Array = NDArray[Any]


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
        The grids, as `as_gammas` and `as_coarse_Cs` return them.
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
        results: list[KernelResult] = []
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


def fit_chosen(
    tuning: Tuning, data: Dataset, *, scoring: str, **options: Any
) -> tuple[KernelModel, Result]:
    """The model of the chosen C and γ on all data; ``options`` are those of `fit_kernel`."""
    model, result = fit_kernel(data, C=tuning.C, gamma=tuning.gamma, **options)
    training = {**model.training, "scoring": scoring, "score": tuning.score}
    return replace(model, training=training), result
