"""The choice of alpha for the domination loss: a path per fold, measured on the rows left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.domination.path import PathProblem
from linrank.pairs.layering import margin_of_part
from linrank.search.folds import Fold, affordable_folds
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.solvers.result import Result

Array = NDArray[Any]


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
        As in `linrank.search.ranksvm.tune`.
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
