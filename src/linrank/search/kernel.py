"""The choice of C and γ: one kernel matrix a γ, and a run over C for each fold and γ."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.kernels.functions import Kernel
from linrank.kernels.train import KernelResult, train_kernel
from linrank.metrics import parse_scoring
from linrank.models.kernel import KernelModel
from linrank.options import KERNELS
from linrank.search.folds import (
    Fold,
    Progress,
    Reports,
    check_selection,
    edge,
    first_best,
    judged,
    side_by_side,
    weight_of_part,
)
from linrank.search.kernel_fit import check_kernel_rows, fit_kernel
from linrank.search.kernel_folds import FoldKernels, Part, Plan
from linrank.search.scores import measured
from linrank.solvers.result import Result
from linrank.system.threads import resolve

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class KernelTuning:
    """The measure of every (γ, C) on every fold, and the one that they speak for.

    Attributes
    ----------
    gammas, Cs : float64 arrays
        Ascending.
    scores : float64 array (n_folds, n_gammas, n_C)
        The measure on the validation part of each fold; an error has a minus sign.
    selection : {"best", "one_se"}
        The rule of choice.
    converged : bool array, of the shape of scores
        Whether each model reached the tolerance.
    n_iter : int64 array, of the shape of scores
        Newton steps of each model, from the one of the C before.
    """

    gammas: Array
    Cs: Array
    scores: Array
    selection: str
    converged: Array
    n_iter: Array

    @property
    def mean_scores(self) -> Array:
        """Mean over folds, (n_gammas, n_C)."""
        mean: Array = self.scores.mean(axis=0)
        return mean

    @property
    def best(self) -> tuple[int, int]:
        """Indices of γ and C of the largest mean; among equals the smallest C, then γ."""
        c, g = divmod(first_best(self.mean_scores.T.ravel()), len(self.gammas))
        return g, c

    @property
    def chosen(self) -> tuple[int, int]:
        """Indices of the γ and the C to use.

        ``one_se`` looks at the models that have neither a larger γ nor a larger C than the best
        one and whose mean is within one standard error, that of the best one, of the largest:
        of these it takes the smallest C, and with it the smallest γ. The model is more regularised
        and smoother than the best one, and the folds cannot tell the two apart.
        """
        g, c = self.best
        if self.selection == "best":
            return g, c
        of_best, mean = self.scores[:, g, c], self.mean_scores
        error = of_best.std(ddof=1) / np.sqrt(len(of_best))
        is_near = mean[: g + 1, : c + 1] >= mean[g, c] - error
        found = np.argwhere(is_near.T)[0]  # ordered by C, then by γ
        return int(found[1]), int(found[0])

    @property
    def gamma(self) -> float:
        """The chosen γ."""
        return float(self.gammas[self.chosen[0]])

    @property
    def C(self) -> float:
        """The chosen C."""
        return float(self.Cs[self.chosen[1]])

    @property
    def score(self) -> float:
        """The mean of what was chosen."""
        return float(self.mean_scores[self.chosen])

    @property
    def edges(self) -> tuple[str, ...]:
        """What to say where the largest mean is at an end of a grid, of C or of γ."""
        g, c = self.best
        mean = self.mean_scores
        told = (edge("C", self.Cs, mean[g]), edge("gamma", self.gammas, mean[:, c]))
        return tuple(one for one in told if one is not None)

    @property
    def edge(self) -> str | None:
        """The same in one line; None where there is nothing to say."""
        return "; ".join(self.edges) or None

    @property
    def open(self) -> str | None:
        """What to say of models that did not reach the tolerance; None if all did."""
        n_open = int(np.count_nonzero(~self.converged))
        if n_open == 0:
            return None
        _, g, c = np.argwhere(~self.converged)[0]
        return (
            f"{n_open} of {self.converged.size} models on the folds did not reach the tolerance, "
            f"C = {self.Cs[c]:g} with gamma = {self.gammas[g]:g} the first of them; raise max_iter "
            "or tol, or try a grid of smaller C"
        )


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
    scoring: str = "ndcg@10",
    convention: str = "linrank",
    selection: str = "best",
    query_weight: Array | None = None,
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> KernelTuning:
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
        The grids, as `as_gammas` and `as_kernel_Cs` return them.
    kernel, degree, coef0
        The kernel, as `Kernel.of` takes it; its γ is that of the grid.
    scale : {"none", "standard", "minmax", "query"}
        Feature scaling, fitted on the training part of each fold.
    scoring, convention : str
        The measure; of an error, less is better.
    selection : {"best", "one_se"}
        How `KernelTuning.chosen` decides.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    memory_limit : int, float, str or None
        Bytes for kernel matrices in all; None is half of what is free.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share, as far as memory allows.
    progress : callable, optional
        Called with ``fold``, ``gamma``, ``C``, ``gap``, ``objective``, ``n_done`` and ``n_total``
        after each model.
    **options
        Of `train_kernel`, for every model.
    """
    parse_scoring(scoring)
    check_selection(selection, len(folds))
    check_kernel_rows(kernel, scale, data)
    n_threads = resolve(n_jobs)
    function = Kernel.of(kernel, gamma=float(gammas[0]), degree=degree, coef0=coef0)
    plan = Plan.of(
        function, data, folds, scale=scale, memory_limit=memory_limit, n_gammas=len(gammas)
    )
    kernels = FoldKernels(
        data,
        folds,
        function,
        scale=scale,
        plan=plan,
        n_threads=n_threads,
    )
    measure = {"scoring": scoring, "convention": convention}
    options["memory_limit"] = memory_limit
    work = _Work(kernels, Cs, measure, query_weight, progress, len(gammas), options)
    found = []
    for gamma in gammas.tolist():
        kernels.turn_to(gamma)
        found.append(side_by_side(work.run, len(folds), plan.n_folds, n_threads, work.cancelled))
    # (n_gammas, n_folds, 3, n_C), and folds come first in what is told.
    scores, converged, n_iter = np.moveaxis(np.array(found), (2, 1), (0, 1))
    return KernelTuning(gammas, Cs, scores, selection, converged > 0, n_iter.astype(np.int64))


def fit_chosen(
    tuning: KernelTuning, data: Dataset, *, scoring: str, **options: Any
) -> tuple[KernelModel, Result]:
    """The model of the chosen C and γ on all data; ``options`` are those of `fit_kernel`."""
    model, result = fit_kernel(data, C=tuning.C, gamma=tuning.gamma, **options)
    training = {**model.training, "scoring": scoring, "score": tuning.score}
    return replace(model, training=training), result


class _Work:
    """The work of all folds for one γ after the other, from any thread."""

    def __init__(
        self,
        kernels: FoldKernels,
        Cs: Array,
        measure: dict[str, str],
        query_weight: Array | None,
        progress: Progress | None,
        n_gammas: int,
        options: dict[str, Any],
    ) -> None:
        self.kernels, self.Cs, self.measure = kernels, Cs, measure
        self.query_weight, self.options = query_weight, options
        self._reports = Reports(progress, len(kernels.folds) * n_gammas * len(Cs))
        self.cancelled = threading.Event()

    def run(self, k: int, n_threads: int) -> Array:
        """Scores, convergence and steps of the models of fold k, in rows."""
        part = self.kernels.part(k, n_threads)
        results = self._solve(k, part, n_threads)
        betas = np.array([result.w for result in results])
        values = measured(betas, part.scores(betas), part.valid, n_jobs=n_threads, **self.measure)
        scores = judged(values, part.valid, k, self.measure["scoring"])
        return np.array([scores, [r.converged for r in results], [r.n_iter for r in results]])

    def _solve(self, k: int, part: Part, n_threads: int) -> list[KernelResult]:
        """The models of a fold for ascending C, each from the last."""
        kernels, results = self.kernels, []
        beta = None
        weight = weight_of_part(self.query_weight, kernels.data, part.data, kernels.folds[k].train)
        for C in self.Cs.tolist():
            result = train_kernel(
                part.data,
                kernel=kernels.kernel,
                matrix=part.matrix,
                C=C,
                beta0=beta,
                settle=False,
                query_weight=weight,
                n_jobs=n_threads,
                callback=lambda _: self.cancelled.is_set(),
                **self.options,
            )
            results.append(result)
            if self.cancelled.is_set():  # the fault of another fold is about to be told
                break
            beta = result.w
            gamma = kernels.kernel.gamma
            self._reports.tell(fold=k, gamma=gamma, C=C, gap=result.gap, objective=result.value)
        return results
