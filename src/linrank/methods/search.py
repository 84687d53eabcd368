"""The searches of all methods: a grid over folds, the choice, and the model on all data."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import options as of
from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.domination.path import PathProblem, as_alphas, check_path
from linrank.domination.train import describe_parameters
from linrank.kernels.functions import check_kernel_rows
from linrank.methods.base import FACTORIZED, KERNEL, SGD, Method, Task, Trained, values_of
from linrank.methods.linear import optimum_attributes, shape_of
from linrank.methods.parameters import defaults_of
from linrank.methods.ranksvm import options_of, recipe_of, settings_of
from linrank.methods.sgd import average_of
from linrank.models.linear import LinearModel
from linrank.parts.path import path_of_parts
from linrank.parts.search import tune_parts
from linrank.ranksvm.path import PathResult, as_coarse_Cs, as_Cs, solve_path
from linrank.search.folds import affordable_folds
from linrank.search.grids import as_algorithms, tune, tune_domination, tune_factorized, tune_sgd
from linrank.search.grids import as_alphas as as_lambdas
from linrank.search.kernel import as_gammas, tune_kernel
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.stochastic.train import check_descent
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from linrank.models.design import Design, Shape


@dataclass(frozen=True, eq=False, kw_only=True)
class Found(Tuning):
    """What a search has found: the choice, and the model that was trained with it on all data.

    Attributes
    ----------
    trained : Trained
        That model, and what estimators show of it.
    path : PathResult or None
        The path on all data, where the method follows one.
    """

    trained: Trained
    path: PathResult | None = None

    @classmethod
    def of(cls, tuning: Tuning, trained: Trained, path: PathResult | None = None) -> Found:
        """The choice and what came of it."""
        return cls(**vars(tuning), trained=trained, path=path)

    @property
    def model(self) -> Any:
        """The model of the choice."""
        return self.trained.model

    @property
    def result(self) -> Any:
        """What the solver returned for it."""
        return self.trained.result


def search_ranksvm(task: Task, folds: Any, **judging: Any) -> Found:
    """A path over C per fold, and one on all data: in memory, or over parts in passes.

    Parameters
    ----------
    task : Task
        Its data are a data set or parts; its parameters those of `RankSVMSearch`.
    folds : sequence of Fold, or of PartsFold
        Training and validation parts.
    **judging
        ``convention`` and ``progress``, as `linrank.search.tuning.Judging` has them.
    """
    p, data = task.parameters, task.data
    grid, training = as_Cs(p.Cs), options_of(p)
    options = values_of(p, ("scale", "positive", "coef_bounds"))
    settings = settings_of(p, training) | {"scoring": p.scoring}
    if isinstance(data, Dataset):
        shape = shape_of(p)
        weight = query_weights(task.query_weight, data.queries)
        options |= {**training, "query_weight": weight, "n_jobs": p.n_jobs}
        if shape is not None:
            options["scale"] = "none"  # the columns of curves have variance 1
        tuning = tune(data, folds, grid, **options, **_asked(p, judging), shape=shape)
        columns, design = _columns(data, shape, p.n_jobs)
        if design is not None:
            options["coef_bounds"] = design.bounds
        path, scaling = solve_path(columns, grid, **options)
        result, known = path.results[tuning.chosen], _known(data, settings, tuning)
        model = _model_of(LinearModel.of(result, columns, scaling, **known), design, data)
    else:
        _refuse_shape(p)
        recipe = recipe_of(p, data.where, task.query_weight)
        options |= values_of(p, ("tol", "max_iter"))
        tuning = tune_parts(data, folds, recipe, grid, **options, **_asked(p, judging))
        found = path_of_parts(data, recipe, grid, **options)
        path, result = found.path, found.path.results[tuning.chosen]
        model = found.model(result, data, **settings, **tuning.choice)
    shown = {**_optimum(result, model), **_along(path, tuning)}
    return Found.of(tuning, Trained(model, result, shown, is_done=result.converged), path)


def search_domination(task: Task, folds: Any, **judging: Any) -> Found:
    """A path over alpha per fold, and one on all data; as `search_ranksvm`."""
    p, data = task.parameters, task.data
    check_path(**values_of(p, ("penalty", "n_alphas", "eps", "max_features")))
    training = values_of(p, of.DOMINATION_PATH)
    shape = shape_of(p)
    scale = p.scale if shape is None else "none"
    options = {**training, **_common(task, data), "scale": scale}
    columns, design = _columns(data, shape, p.n_jobs)
    whole = PathProblem.of(columns, **options)
    alphas = as_alphas(p.alphas, whole.problem, p.n_alphas, p.eps)
    asked = {**_asked(p, judging), "shape": shape}
    tuning = tune_domination(data, folds, alphas, max_features=p.max_features, **options, **asked)
    path = whole.solve(tuning.alphas)
    result = path.results[tuning.chosen]
    settings = describe_parameters(
        data, alpha=tuning.alpha, seed=options["seed"], **training, feature_induction=None
    )
    known = _known(data, settings | {"scoring": p.scoring}, tuning)
    model = _model_of(LinearModel.of(result, columns, whole.scaling, **known), design, data)
    shown = {
        **_optimum(result, model),
        **_along(path, tuning),
        "n_nonzero": model.n_nonzero,
        "density": model.density,
        "n_nonzeros": tuning.facts["n_nonzero"],
    }
    return Found.of(tuning, Trained(model, result, shown, is_done=result.converged), path)


def search_sgd(task: Task, folds: Any, **judging: Any) -> Found:
    """All algorithms and λ of a fold in one pass, and one descent on all data."""
    p, data = task.parameters, task.data
    algorithms, alphas = as_algorithms(p.algorithms), as_lambdas(p.alphas)
    for algorithm in algorithms:
        check_descent(algorithm, p.n_steps, p.record, None)
    options = values_of(p, ("n_steps", "sampling", "aggressiveness", "scale"))
    options |= {"average": average_of(p), **_common(task, data)}
    tuning = tune_sgd(data, folds, algorithms, alphas, **options, **_asked(p, judging))
    return _on_all(SGD, task, tuning, options["seed"])


def search_factorized(task: Task, folds: Any, **judging: Any) -> Found:
    """Every C of a fold by itself, and the chosen one on all data."""
    p, data, grid = task.parameters, task.data, as_coarse_Cs(task.parameters.Cs)
    options = {**values_of(p, ("scale", *of.FACTORIZED)), **_common(task, data)}
    tuning = tune_factorized(data, folds, grid, **options, **_asked(p, judging))
    return _on_all(FACTORIZED, task, tuning, options["seed"])


def search_kernel(task: Task, folds: Any, **judging: Any) -> Found:
    """One kernel matrix for each γ, from which all folds take their parts; one fit on all data."""
    p, data, grid = task.parameters, task.data, as_coarse_Cs(task.parameters.Cs)
    check_kernel_rows(p.kernel, p.scale, data)
    options = values_of(p, (*of.KERNEL, "kernel", "degree", "coef0", "scale"))
    options |= _common(task, data)
    gammas = as_gammas(p.gammas, p.kernel, data, p.scale)
    tuning = tune_kernel(data, folds, gammas, grid, **options, **_asked(p, judging))
    return _on_all(KERNEL, task, tuning, options["seed"])


def _on_all(method: Method, task: Task, tuning: Tuning, seed: int) -> Found:
    """The model of the choice on all data, by the method itself, as the folds were trained."""
    p = task.parameters
    shared = tuple(name for name in defaults_of(method.parameters) if hasattr(p, name))
    own = {"random_state": seed, "verbose": 0, **tuning.best_params}
    asked = replace(task, parameters=method.parameters(**values_of(p, shared) | own))
    trained = method.train(asked)
    known = {**trained.model.training, "scoring": p.scoring, "score": tuning.score}
    model = replace(trained.model, training=known)
    return Found.of(tuning, replace(trained, model=model))


def search_grid(method: Method, task: Task, folds: Any, **judging: Any) -> Found:
    """Every model of a fold by itself, whatever the method, and the chosen one on all data."""
    p, data = task.parameters, task.data
    names = {each.name for each in fields(method.parameters)}
    shared = {name: getattr(p, name) for name in names - set(method.grid) if hasattr(p, name)}
    given = {name: getattr(p, f"{name}s") for name in method.grid}
    grid = {
        name: values if isinstance(values[0], str) else np.array(values)
        for name, values in given.items()
    }
    weights = query_weights(task.query_weight, data.queries)
    asked = Judging(**_asked(p, judging))
    sweep = Sweep(grid, folds, asked, most=affordable_folds(data), n_jobs=p.n_jobs)

    def fit(part: Dataset, weight: Any, n_jobs: int | None, point: dict[str, Any]) -> Trained:
        chosen = method.parameters(**{**shared, **point, "n_jobs": n_jobs})
        return method.train(Task(part, chosen, query_weight=weight))

    def train(run: FoldRun) -> Judged:
        part, weight = run.part(data, weights)
        valid = run.fold.valid
        held_out = valid if isinstance(valid, Dataset) else data.select(valid)
        scores = []
        for place in product(*given.values()):
            point = dict(zip(given, place, strict=True))
            model = fit(part, weight, run.n_threads, point).model
            scores.append(model.predict(held_out, n_jobs=run.n_threads))
            run.tell()
        return run.judge_scores(np.array(scores), np.array(scores), held_out), {}

    tuning = sweep.tuning(sweep.run(train))
    return Found.of(tuning, fit(data, weights, p.n_jobs, tuning.best_params))


def _columns(
    data: Dataset, shape: Shape | None, n_jobs: int | None
) -> tuple[Dataset, Design | None]:
    """What is trained on: the data, or with the columns of a design in place of its rows."""
    design = None if shape is None else shape.fit(data, n_jobs)
    return (data if design is None else design.dataset(data, n_jobs)), design


def _model_of(linear: LinearModel, design: Design | None, data: Dataset) -> Any:
    """The model of raw rows."""
    return linear if design is None else design.model(linear, data)


def _refuse_shape(parameters: Any) -> None:
    """Refuse curves where rows are read in passes."""
    if shape_of(parameters) is not None:
        raise ValueError(f"{of.IN_MEMORY_ONLY}, and these are read in passes; use a linear model")


def _asked(parameters: Any, judging: dict[str, Any]) -> dict[str, Any]:
    """The options of `Judging`."""
    return {**values_of(parameters, ("scoring", "selection")), **judging}


def _common(task: Task, data: Dataset) -> dict[str, Any]:
    """What every training takes: one weight for each query, a seed, and threads."""
    weight, p = query_weights(task.query_weight, data.queries), task.parameters
    return {"query_weight": weight, "seed": seed_of(p.random_state), "n_jobs": p.n_jobs}


def _known(data: Dataset, settings: dict[str, Any], tuning: Tuning) -> dict[str, Any]:
    """What the model is to know: its settings, the choice, and how the file counts features."""
    base = {} if data.index_base is None else {"index_base": data.index_base}
    return {**settings, **tuning.choice, **base}


def _optimum(result: Any, model: Any) -> dict[str, Any]:
    """What estimators show of a minimiser."""
    known = {"history": result.history, "n_pairs": model.training["n_pairs"]}
    return {**optimum_attributes(result), **known}


def _along(path: PathResult, tuning: Tuning) -> dict[str, Any]:
    """What they show of a model on a path: all steps up to it count."""
    k = tuning.chosen
    return {
        "n_iter": int(path.n_iter[: k + 1].sum()),
        "kkt_residual": path.results[k].kkt_residual,
    }
