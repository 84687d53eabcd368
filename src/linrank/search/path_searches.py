"""The choice of C: a path per fold, all its models measured on the rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.domination.path import PathProblem
from linrank.lowrank.factorized import train_factorized
from linrank.pairs.layering import margin_of_part
from linrank.ranksvm.path import solve_path
from linrank.search.folds import Fold, affordable_folds
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.solvers.result import Result

Array = NDArray[Any]


def tune(
    data: Dataset,
    folds: Sequence[Fold],
    Cs: Array,
    *,
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Tuning:
    """Measure the models of every fold's path.

    Parameters
    ----------
    data : Dataset
        What the row numbers of the folds refer to.
    folds : sequence of Fold
        Training and validation parts.
    Cs : array
        The grid, as `linrank.ranksvm.path.as_Cs` returns it.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share. Results do not depend on it.
    **options
        Those of `Judging`, and of `solve_path` for every fold.
    """
    judging = Judging.taken_from(options)
    sweep = Sweep({"C": Cs}, folds, judging, most=affordable_folds(data), n_jobs=n_jobs)

    def train(run: FoldRun) -> Judged:
        part, weight = run.part(data, query_weight)
        bounds = {} if run.design is None else {"coef_bounds": run.design.bounds}
        path, scaling = solve_path(
            part,
            Cs,
            query_weight=weight,
            n_jobs=run.n_threads,
            callback=run.is_cancelled,
            progress=run.report,
            **{**options, **bounds},
        )
        return run.judge(path.coefs, data, scaling), {"path": path}

    return sweep.tuning(sweep.run(train))


def tune_domination(
    data: Dataset,
    folds: Sequence[Fold],
    alphas: Array,
    *,
    max_features: int | None = None,
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Tuning:
    """Measure the models of every fold's path.

    Parameters
    ----------
    data, folds, query_weight, n_jobs
        As in `linrank.search.path_searches.tune`.
    alphas : array
        The grid, descending.
    max_features : int, optional
        Where a path ends; the alphas that not all folds have come to are left out.
    **options
        Those of `Judging`, and of `PathProblem.of` for every fold; margins of rows and of layers
        are those of `data`.
    """
    judging = Judging.taken_from(options)
    most = max(1, affordable_folds(data) // 2)  # a fold has its rows by column, too
    sweep = Sweep({"alpha": alphas}, folds, judging, most=most, n_jobs=n_jobs)

    def train(run: FoldRun) -> Judged:
        part, weight = run.part(data, query_weight)
        margin, rows = options.get("margin"), run.fold.train
        if rows is not None:
            margin = margin_of_part(margin, options.get("layers", "labels"), data, rows)
        problem = PathProblem.of(
            part, query_weight=weight, n_jobs=run.n_threads, **{**options, "margin": margin}
        )

        def report(result: Result) -> None:
            run.report(result, n_nonzero=int(np.count_nonzero(result.w)))

        path = problem.solve(
            alphas, max_features=max_features, callback=run.is_cancelled, progress=report
        )
        return run.judge(path.coefs, data, problem.scaling), {"n_nonzero": path.n_nonzero}

    return sweep.tuning(sweep.run(train))


def tune_factorized(
    data: Dataset,
    folds: Sequence[Fold],
    Cs: Array,
    *,
    scale: str = "none",
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Tuning:
    """Measure the models of every fold and C, each from the start that the seed draws.

    Parameters
    ----------
    data, folds, Cs, query_weight, n_jobs
        As in `linrank.search.path_searches.tune`.
    scale : {"none", "standard", "minmax", "query"}
        Feature scaling, fitted on the training part of each fold.
    **options
        Those of `Judging`, and of `train_factorized` for every model.
    """
    judging = Judging.taken_from(options)
    sweep = Sweep({"C": Cs}, folds, judging, most=affordable_folds(data), n_jobs=n_jobs)

    def train(run: FoldRun) -> Judged:
        part, weight = run.part(data, query_weight)
        scaling = Scaling.fit(scale, part.rows, weight=part.weight, n_jobs=run.n_threads)
        scaled = scaling.transformed(part, n_jobs=run.n_threads)
        results = []
        for C in Cs.tolist():
            result = train_factorized(
                scaled,
                C=C,
                scale=scaling.factors,
                query_weight=weight,
                n_jobs=run.n_threads,
                callback=run.is_cancelled,
                **options,
            )
            results.append(result)
            if run.is_cancelled():  # the fault of another fold is about to be told
                break
            run.report(result)
        coefs = np.array([scaling.fold(result.w) for result in results])
        facts = {"converged": np.array([r.converged for r in results])}
        return run.judge(coefs, data, scaling), facts

    return sweep.tuning(sweep.run(train))
