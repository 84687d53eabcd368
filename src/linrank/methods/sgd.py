"""Stochastic descent as a method: on rows in memory or part by part, and what is told of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.choices import ALGORITHMS, AVERAGES, DESCENT
from linrank.data import Array, Dataset, Scaling, query_weights, without_rounding
from linrank.io.store.store import outline
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.description import Line, converged_lines
from linrank.methods.ground import Ground
from linrank.parts.parts import Facts
from linrank.ranksvm.path import as_grid
from linrank.search import Fold, FoldRun, Judged, Judging, Models, Sweep, Tuning, affordable_folds
from linrank.solvers.result import certified_share
from linrank.stochastic.chunked import descend_chunks
from linrank.stochastic.descent import Learner, course_over
from linrank.stochastic.samplers import sampler_of
from linrank.stochastic.train import DescentResult, check_descent, descend
from linrank.system import count, seed_of


def average_of(parameters: Any) -> str | None:
    """The one of ``linrank.choices.AVERAGES`` that the parameter stands for, None for none."""
    average = parameters.average
    if average is None or isinstance(average, bool | np.bool_):
        return AVERAGES[0] if average else None
    if average not in AVERAGES:
        expected = ", ".join(map(repr, AVERAGES))
        raise ValueError(f"average must be False, True or one of {expected}, got {average!r}")
    return str(average)


def attributes_of(result: DescentResult) -> dict[str, Any]:
    """What an estimator shows of a descent."""
    names = ("alpha", "n_steps", "stopped", "objective", "loss", "history", "n_pairs")
    return values_of(result, names) | {"duality_gap": result.gap}


def train(task: Task) -> Trained:
    """Descend on pairs drawn at random, from all rows or from those of a chunk at a time."""
    ground = Ground.of(task)
    p = ground.task.parameters
    if p.passes is not None and ground.store is None:
        raise ValueError(
            f"passes={p.passes} is for a store and memory_limit; without them there are "
            "no chunks to go through: leave it out"
        )
    seed, scaling = seed_of(p.random_state), ground.scaling
    settings = {**values_of(p, DESCENT), "average": average_of(p), "C": p.C, "seed": seed}
    asked: dict[str, Any] = {
        **settings,
        "alpha": p.alpha,
        "w0": ground.start,
        "validation": scaling.applied(task.sets[-1]) if task.sets and p.tol is not None else None,
        "n_jobs": p.n_jobs,
        "callback": ground.callback,
    }
    if ground.store is not None:
        asked |= {"passes": p.passes, "memory_limit": p.memory_limit}
        weights = query_weights(task.query_weight, outline(ground.store).queries)
        asked |= {"scaling": scaling, "query_weight": weights}
        result = descend_chunks(ground.store, **asked)
    else:
        scaled = scaling.applied(ground.columns, n_jobs=p.n_jobs)
        result = descend(scaled, query_weight=ground.query_weight, **asked)
    doubt = ""
    if p.tol is not None and result.stopped == "n_steps":
        doubt = f"did not reach tol={p.tol:g}: {result.message}; raise n_steps"
    if p.early_stopping:
        result = _best(result, ground)
    if asked["w0"] is None:  # else weights of columns that do not vary are those of earlier rows
        result = _without_rounding(result, ground)
    shown = attributes_of(result) | {"history": {**result.history, **ground.monitor.history}}
    model = ground.model_of(result, result.n_pairs, settings)
    is_done = p.tol is None or result.stopped == "tolerance"
    return Trained(model, result, shown, ground.monitor, is_done, doubt)


def _best(result: DescentResult, ground: Ground) -> DescentResult:
    """The outcome as it was at the milestone that the validation data liked best."""
    k, w = ground.monitor.best_iteration, ground.monitor.best_w
    if w is None:
        return result
    history = result.history
    return replace(
        result,
        w=w,
        objective=history["objective"][k],
        gap=history["gap"][k],
        n_steps=int(history["n_steps"][k]),
    )


_NOISE = 1e-9  # sums of weights that are averaged lazily round far below that share of them


def _without_rounding(result: DescentResult, ground: Ground) -> DescentResult:
    """The result with exact zeros for columns that no pair sees; a pass over a store if need be."""
    size = np.abs(result.w)
    most = np.inf if ground.place.dataset is not None else _NOISE * size.max(initial=0.0)
    candidates = (size > 0.0) & (size <= most)
    if not candidates.any():
        return result
    return replace(result, w=without_rounding(result.w, ground.varying(candidates)))


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, objective and why it ended."""
    result, p, known = trained.result, parameters, trained.model.training
    told = f"{p.algorithm}, λ = {result.alpha:g}, sampling {p.sampling}"
    lines: list[Line] = [("trained", f"{told}: {count(result.n_steps, 'step')}")]
    if p.record is not None:
        # The bound of a last iterate is often as large as the objective, and then says nothing.
        is_tight = certified_share(result.objective, result.gap) is not None
        bound = f", at most {result.gap:.2g} above the minimum" if is_tight else ""
        lines.append(("objective", f"{result.objective:.10g} ({p.record}){bound}"))
    if p.tol is not None:
        lines += converged_lines(trained)
    facts = {
        "solver": "sgd",
        **{name: known.get(name) for name in (*DESCENT, "alpha", "C", "seed")},
        "scale": trained.model.scaling.kind,
        "objective": None if math.isnan(result.objective) else result.objective,
        "duality_gap": None if math.isnan(result.gap) else result.gap,
        "loss": result.loss,
        "steps": result.n_steps,
        "stopped": result.stopped,
        "message": result.message,
    }
    return Description(tuple(lines), facts)


# ---- the search ---------------------------------------------------------------------------------

_CHUNK = 1 << 16  # steps between two looks at whether the search was called off


def as_alphas(alphas: Any) -> Array:
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
    task: Task, facts: Facts | None, folds: Sequence[Fold], judging: Judging, seed: int
) -> Tuning:
    """Train the models of the whole grid on every fold and measure them on what is left out.

    The models of a fold learn from the same pairs, in one pass. Folds of whole queries copy no
    rows, unless a scaling by columns makes them differ: the sampler leaves the other queries out.

    Parameters
    ----------
    task : Task
        A data set in memory, and parameters of `SGDSearch`, settled by ``facts``.
    facts : Facts or None
        Not looked at.
    folds : sequence of Fold
        Training and validation parts.
    judging : Judging
        Measure, rule of choice, progress.
    seed : int
        Of the pairs of every fold.
    """
    p, data = task.parameters, task.data.dataset
    algorithms, alphas = as_algorithms(p.algorithms), as_alphas(p.alphas)
    for name in algorithms:
        check_descent(name, p.n_steps, p.record, None)
    average, query_weight = average_of(p), query_weights(task.query_weight, data.queries)
    rules = [
        Learner(name, alpha, p.aggressiveness) for name in algorithms for alpha in alphas.tolist()
    ]
    copies = data.qid is None or p.scale != "none"
    most = affordable_folds(data) if copies else len(folds)
    grid = {"algorithm": algorithms, "alpha": alphas}
    sweep = Sweep(grid, folds, judging, most=most, n_jobs=p.n_jobs)

    def train(run: FoldRun) -> Judged:
        rows, keep = run.fold.train, _whole_queries(data, run.fold.train)
        part, c, weight = data, query_weight, data.weight
        if rows is not None and keep is None:  # queries are divided: a copy of the rows
            part, c = run.part(data, query_weight)
            weight = part.weight
        elif rows is not None:  # rows of weight 0 do not count in the scaling
            weight = np.zeros(data.n_rows)
            weight[rows] = 1.0 if data.weight is None else data.weight[rows]
        scaling = Scaling.fit(p.scale, part.rows, weight=weight, n_jobs=run.n_threads)
        part = scaling.applied(part, n_jobs=run.n_threads)
        sampler = sampler_of(part, p.sampling, c, keep)
        models = course_over(part.rows, sampler, rules, p.n_steps, average=average, seed=seed)
        while models.n_steps < p.n_steps and not run.is_cancelled():
            models.until(min(p.n_steps, models.n_steps + _CHUNK), run.n_threads)
        coefs = np.array([scaling.fold(w) for w in models.weights()])
        scores = run.judge(Models(coefs, scaling), data)
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
