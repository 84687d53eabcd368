"""The choice of C for factorized duals: one training after the other on every fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.scaling import Scaling
from linrank.lowrank.factorized import train_factorized
from linrank.search.folds import Fold, affordable_folds
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning

Array = NDArray[Any]


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
        As in `linrank.search.ranksvm.tune`.
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
