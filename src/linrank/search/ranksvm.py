"""The choice of C: a path per fold, all its models measured on the rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.ranksvm.path import solve_path
from linrank.search.folds import Fold, affordable_folds
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning

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
        path, scaling = solve_path(
            part,
            Cs,
            query_weight=weight,
            n_jobs=run.n_threads,
            callback=run.is_cancelled,
            progress=run.report,
            **options,
        )
        return run.judge(path.coefs, data, scaling), {"path": path}

    return sweep.tuning(sweep.run(train))
