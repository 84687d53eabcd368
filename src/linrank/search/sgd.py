"""The choice of λ and of the algorithm of stochastic descent: all models of a fold in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.choices import ALGORITHMS
from linrank.data.dataset import Dataset
from linrank.data.rows import Array
from linrank.data.scaling import Scaling
from linrank.ranksvm.path import as_grid
from linrank.search.folds import Fold, affordable_folds
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.stochastic.descent import Rule, course_over
from linrank.stochastic.samplers import pair_sampler

_CHUNK = 1 << 16  # steps between two looks at whether the search was called off


def as_alphas(alphas: Any) -> NDArray[np.float64]:
    """The grid of λ, descending; ``"auto"`` is 1, 0.1, ..., 1e-7: eight models fill a vector."""
    ascending = as_grid("alphas", alphas, [10.0**-k for k in range(8)])
    return np.ascontiguousarray(ascending[::-1])


def as_algorithms(algorithms: Any) -> tuple[str, ...]:
    """The algorithms of a grid: one name or several."""
    names = (algorithms,) if isinstance(algorithms, str) else tuple(algorithms)
    for name in names:
        if name not in ALGORITHMS:
            expected = ", ".join(map(repr, ALGORITHMS))
            raise ValueError(f"algorithms must be some of {expected}, got {name!r}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"algorithms must be different and at least one, got {algorithms!r}")
    return names


def tune_sgd(
    data: Dataset,
    folds: Sequence[Fold],
    algorithms: tuple[str, ...],
    alphas: Array,
    *,
    n_steps: int,
    sampling: str = "pairs",
    average: str | None = None,
    aggressiveness: float = 1.0,
    scale: str = "none",
    seed: int = 0,
    query_weight: Array | None = None,
    n_jobs: int | None = None,
    **judging: Any,
) -> Tuning:
    """Train the models of the whole grid on every fold and measure them on what is left out.

    The models of a fold learn from the same pairs, in one pass. Folds of whole queries copy no
    rows, unless a scaling by columns makes them differ: the sampler leaves the other queries out.

    Parameters
    ----------
    data : Dataset
        What the row numbers of the folds refer to.
    folds : sequence of Fold
        Training and validation parts.
    algorithms, alphas
        The grid, as `as_algorithms` and `as_alphas` return it.
    n_steps, sampling, average, aggressiveness, seed
        Of every fold, as in :func:`linrank.stochastic.train.descend`.
    scale : {"none", "standard", "minmax", "query"}
        Feature scaling, fitted on the training part of each fold.
    query_weight : array (n_queries,), optional
        The factors c_q, in the order of ``data.queries``.
    n_jobs : int or None
        Threads in all: folds run side by side, each with its share. Results do not depend on it.
    **judging
        As `Judging` takes it.
    """
    rules = [Rule(name, alpha, aggressiveness) for name in algorithms for alpha in alphas.tolist()]
    copies = data.qid is None or scale != "none"
    most = affordable_folds(data) if copies else len(folds)
    grid = {"algorithm": algorithms, "alpha": alphas}
    sweep = Sweep(grid, folds, Judging(**judging), most=most, n_jobs=n_jobs)

    def train(run: FoldRun) -> Judged:
        rows, keep = run.fold.train, _whole_queries(data, run.fold.train)
        part, c, weight = data, query_weight, data.weight
        if rows is not None and keep is None:  # queries are divided: a copy of the rows
            part, c = run.part(data, query_weight)
            weight = part.weight
        elif rows is not None:  # rows of weight 0 do not count in the scaling
            weight = np.zeros(data.n_rows)
            weight[rows] = 1.0 if data.weight is None else data.weight[rows]
        scaling = Scaling.fit(scale, part.rows, weight=weight, n_jobs=run.n_threads)
        part = scaling.applied(part, n_jobs=run.n_threads)
        sampler = pair_sampler(
            part.queries,
            sampling,
            labels=part.labels,
            row_weight=part.weight,
            query_weight=c,
            keep=keep,
        )
        models = course_over(part.rows, sampler, rules, n_steps, average=average, seed=seed)
        while models.n_steps < n_steps and not run.is_cancelled():
            models.until(min(n_steps, models.n_steps + _CHUNK), run.n_threads)
        coefs = np.array([scaling.fold(w) for w in models.weights()])
        scores = run.judge(coefs, data, scaling)
        for score in scores.tolist():
            run.tell(score=score)
        return scores, {}

    return sweep.tuning(sweep.run(train))


def _whole_queries(data: Dataset, train: Array | None) -> Array | None:
    """The queries that consist of training rows, if the others have none of them; else None."""
    if train is None:
        return None
    queries = data.queries
    is_train = np.zeros(data.n_rows, dtype=np.int64)
    is_train[train] = 1
    n_train = np.add.reduceat(queries.gather(is_train), queries.offsets[:-1])
    keep: Array = n_train == np.diff(queries.offsets)
    return keep if int(n_train.sum()) == int(n_train[keep].sum()) else None
