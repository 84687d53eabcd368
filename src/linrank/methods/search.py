"""The searches of all methods: a grid over folds, the choice, and the model on all data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank import options as of
from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.domination.path import PathProblem, as_alphas, check_path, geometric_alphas
from linrank.domination.train import describe_parameters
from linrank.kernels.functions import check_kernel_rows
from linrank.methods import domination
from linrank.methods.base import FACTORIZED, KERNEL, SGD, Method, Task, Trained, values_of
from linrank.methods.kernel import kernel_unit
from linrank.methods.linear import model_of, optimum_attributes, settle, shape_of
from linrank.methods.parameters import defaults_of
from linrank.methods.ranksvm import options_of, recipe_of, settings_of, settings_shown
from linrank.methods.sgd import average_of
from linrank.metrics import parse
from linrank.parts.path import alphas_of, path_of_parts, unit_of
from linrank.parts.search import tune_parts
from linrank.ranksvm.path import PathResult, as_Cs, solve_path
from linrank.ranksvm.settings import unit_in_memory
from linrank.search.folds import affordable_folds
from linrank.search.grids import as_algorithms, tune, tune_domination, tune_sgd
from linrank.search.grids import as_alphas as as_lambdas
from linrank.search.kernel import as_gammas, tune_kernel
from linrank.search.tuning import FoldRun, Judged, Judging, Sweep, Tuning
from linrank.stochastic.train import check_descent
from linrank.system.seeds import seed_of

if TYPE_CHECKING:
    from linrank.models.design import Design, Shape
    from linrank.parts.parts import Parts


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
    data = task.data
    as_Cs(task.parameters.Cs)  # a fault is told before the first pass
    task, facts = settle(task, None if isinstance(data, Dataset) else data)
    p = task.parameters
    training = options_of(p)
    options = values_of(p, ("scale", "positive", "coef_bounds"))
    settings = settings_of(p, training) | {"scoring": str(parse(p.scoring))}
    shape = shape_of(p)
    if shape is not None:
        options["scale"] = "none"  # the columns of curves have variance 1
    if isinstance(data, Dataset):
        weight = query_weights(task.query_weight, data.queries)
        options |= {**training, "query_weight": weight, "n_jobs": p.n_jobs}
        columns, design = _columns(data, shape, p.n_jobs)
        spread = None if design is None else design.spread
        grid = as_Cs(p.Cs, lambda: unit_in_memory(data, facts, spread, **options))
        tuning = tune(data, folds, grid, **options, **_asked(p, judging), shape=shape)
        if design is not None:
            options["coef_bounds"] = design.bounds
        path, scaling = solve_path(columns, grid, **options)
        result, known = path.results[tuning.chosen], {**settings, **tuning.choice}
        model: Any = model_of(result, data, columns, scaling, design, None, known)
    else:
        recipe = recipe_of(p, data.where, task.query_weight)
        options |= values_of(p, ("tol", "max_iter"))
        grid = as_Cs(p.Cs, lambda: unit_of(data, recipe, p.scale, facts, shape))
        options["shape"] = shape
        tuning, path, model = _over_parts(task, folds, recipe, grid, options, settings, judging)
        result = path.results[tuning.chosen]
    shown = {**_optimum(result, model), **_along(path, tuning)}
    shown |= settings_shown(tuning.best_params, p)
    return Found.of(tuning, Trained(model, result, shown, is_done=result.converged), path)


def search_domination(task: Task, folds: Any, **judging: Any) -> Found:
    """A path over alpha per fold, and one on all data; as `search_ranksvm`."""
    data = task.data
    task, _ = settle(task, None if isinstance(data, Dataset) else data)
    p = task.parameters
    check_path(**values_of(p, ("penalty", "n_alphas", "eps", "max_features")))
    training = values_of(p, of.DOMINATION_PATH)
    shape = shape_of(p)
    scale = p.scale if shape is None else "none"
    settings = {**training, "feature_induction": None}
    scoring = {"scoring": str(parse(p.scoring))}
    if isinstance(data, Dataset):
        options = {**training, **_common(task, data), "scale": scale}
        columns, design = _columns(data, shape, p.n_jobs)
        whole = PathProblem.of(columns, **options)
        alphas = as_alphas(p.alphas, lambda: geometric_alphas(whole.problem, p.n_alphas, p.eps))
        asked = {**_asked(p, judging), "shape": shape, "max_features": p.max_features}
        tuning = tune_domination(data, folds, alphas, **options, **asked)
        path: PathResult = whole.solve(tuning.alphas)
        result = path.results[tuning.chosen]
        settings |= {"alpha": tuning.alpha, "seed": options["seed"]}
        known = {**describe_parameters(data, **settings), **scoring, **tuning.choice}
        model: Any = model_of(result, data, columns, whole.scaling, design, None, known)
    else:
        recipe = domination.recipe_of(p, data.where, task.query_weight)
        given = (scale, shape, p.n_alphas, p.eps)
        alphas = as_alphas(p.alphas, lambda: alphas_of(data, recipe, *given))
        known = describe_parameters(None, alpha=1.0, seed=0, **settings) | scoring
        options = {"scale": scale, "shape": shape, **values_of(p, ("tol", "max_iter"))}
        options["max_features"] = p.max_features
        tuning, path, model = _over_parts(task, folds, recipe, alphas, options, known, judging)
        result = path.results[tuning.chosen]
    shown = {
        **_optimum(result, model),
        **_along(path, tuning),
        "n_nonzero": model.n_nonzero,
        "density": model.density,
        "n_nonzeros": tuning.facts["n_nonzero"],
    }
    return Found.of(tuning, Trained(model, result, shown, is_done=result.converged), path)


def _over_parts(
    task: Task,
    folds: Any,
    recipe: Any,
    grid: Any,
    options: dict[str, Any],
    settings: dict[str, Any],
    judging: dict[str, Any],
) -> tuple[Tuning, PathResult, Any]:
    """The choice on folds of parts, the path on all of them, and the model of the choice."""
    parts: Parts = task.data
    parts.check_room(recipe)
    tuning = tune_parts(parts, folds, recipe, grid, **options, **_asked(task.parameters, judging))
    found = path_of_parts(parts, recipe, tuning.grid[recipe.parameter], **options)
    result, known = found.path.results[tuning.chosen], {**settings, **tuning.choice}
    where = (parts, parts.columns, found.scaling, found.design, found.n_pairs)
    return tuning, found.path, model_of(result, *where, known)


def search_sgd(task: Task, folds: Any, **judging: Any) -> Found:
    """All algorithms and λ of a fold in one pass, and one descent on all data."""
    task, _ = settle(task)
    p, data = task.parameters, task.data
    algorithms, alphas = as_algorithms(p.algorithms), as_lambdas(p.alphas)
    for algorithm in algorithms:
        check_descent(algorithm, p.n_steps, p.record, None)
    options = values_of(p, ("n_steps", "sampling", "aggressiveness", "scale"))
    options |= {"average": average_of(p), **_common(task, data)}
    tuning = tune_sgd(data, folds, algorithms, alphas, **options, **_asked(p, judging))
    return _on_all(SGD, task, tuning, options["seed"])


def search_factorized(task: Task, folds: Any, **judging: Any) -> Found:
    """Every C of a fold by itself, from the start that the seed draws; as `search_grid`."""
    as_Cs(task.parameters.Cs)
    task, facts = settle(task)
    p, data = task.parameters, task.data
    options = {**values_of(p, ("scale", "query_normalization")), **_common(task, data)}
    plain: dict[str, Any] = {"pair_weighting": of.PAIR_WEIGHTINGS[0]}
    grid = as_Cs(p.Cs, lambda: unit_in_memory(data, facts, **options, **plain), step=2)
    return _search_each(FACTORIZED, task, {"C": grid}, folds, judging)


def search_kernel(task: Task, folds: Any, **judging: Any) -> Found:
    """One kernel matrix for each γ, from which all folds take their parts; one fit on all data."""
    as_Cs(task.parameters.Cs)
    task, facts = settle(task)
    p, data = task.parameters, task.data
    check_kernel_rows(p.kernel, p.scale, data)
    options = values_of(p, (*of.KERNEL, "kernel", "degree", "coef0", "scale"))
    options |= _common(task, data)
    grid = as_Cs(p.Cs, lambda: kernel_unit(data, facts, p, options), step=2)
    gammas = as_gammas(p.gammas, p.kernel, data, p.scale)
    tuning = tune_kernel(data, folds, gammas, grid, **options, **_asked(p, judging))
    return _on_all(KERNEL, task, tuning, options["seed"])


def search_grid(method: Method, task: Task, folds: Any, **judging: Any) -> Found:
    """Every model of a fold by itself, whatever the method, and the chosen one on all data."""
    task, _ = settle(task)
    given = {name: getattr(task.parameters, f"{name}s") for name in method.grid}
    grid = {
        name: values if isinstance(values[0], str) else np.array(values)
        for name, values in given.items()
    }
    return _search_each(method, task, grid, folds, judging)


def _search_each(
    method: Method, task: Task, grid: dict[str, Any], folds: Any, judging: dict[str, Any]
) -> Found:
    """The models of a grid, each trained by the method itself."""
    data, p = task.data, task.parameters
    weights, seed = query_weights(task.query_weight, data.queries), seed_of(p.random_state)
    asked = Judging(**_asked(p, judging))
    sweep = Sweep(grid, folds, asked, most=affordable_folds(data), n_jobs=p.n_jobs)

    def train(run: FoldRun) -> Judged:
        part, weight = run.part(data, weights)
        valid = run.fold.valid
        held_out = valid if isinstance(valid, Dataset) else data.select(valid)
        own: dict[str, Any] = {"n_jobs": run.n_threads}
        if "callback" in defaults_of(method.parameters):
            own["callback"] = run.is_cancelled
        scores, converged = [], []
        for place in product(*(np.asarray(values).tolist() for values in grid.values())):
            point = dict(zip(grid, place, strict=True))
            trained = _train(method, Task(part, p, query_weight=weight), seed, **point, **own)
            if run.is_cancelled():  # the fault of another fold is about to be told
                break
            scores.append(trained.model.predict(held_out, n_jobs=run.n_threads))
            converged.append(trained.is_done)
            run.report(trained.result)
        facts = {"converged": np.array(converged)}
        return run.judge_scores(np.array(scores), np.array(scores), held_out), facts

    return _on_all(method, task, sweep.tuning(sweep.run(train)), seed)


def _on_all(method: Method, task: Task, tuning: Tuning, seed: int) -> Found:
    """The model of the choice on all data, by the method itself, as the folds were trained."""
    trained = _train(method, task, seed, **tuning.best_params)
    known: dict[str, Any] = {"scoring": str(parse(task.parameters.scoring)), "score": tuning.score}
    model = replace(trained.model, training={**trained.model.training, **known})
    return Found.of(tuning, replace(trained, model=model))


def _train(method: Method, task: Task, seed: int, **own: Any) -> Trained:
    """One model by the parameters that a search shares with the method, and its ``own``."""
    shared = tuple(
        name for name in defaults_of(method.parameters) if hasattr(task.parameters, name)
    )
    given = {**values_of(task.parameters, shared), "random_state": seed, "verbose": 0, **own}
    return method.train(replace(task, parameters=method.parameters(**given)))


def _columns(
    data: Dataset, shape: Shape | None, n_jobs: int | None
) -> tuple[Dataset, Design | None]:
    """What is trained on: the data, or with the columns of a design in place of its rows."""
    if shape is None:
        return data, None
    design, columns = shape.mapped(data, n_jobs)
    return columns, design


def _asked(parameters: Any, judging: dict[str, Any]) -> dict[str, Any]:
    """The options of `Judging`."""
    return {**values_of(parameters, ("scoring", "selection")), **judging}


def _common(task: Task, data: Dataset) -> dict[str, Any]:
    """What every training takes: one weight for each query, a seed, and threads."""
    weight, p = query_weights(task.query_weight, data.queries), task.parameters
    return {"query_weight": weight, "seed": seed_of(p.random_state), "n_jobs": p.n_jobs}


def _optimum(result: Any, model: Any) -> dict[str, Any]:
    """What estimators show of a minimizer."""
    known = {"history": result.history, "n_pairs": model.training["n_pairs"]}
    return {**optimum_attributes(result), **known}


def _along(path: PathResult, tuning: Tuning) -> dict[str, Any]:
    """What they show of a model on a path: all steps up to it count."""
    k = tuning.chosen
    return {
        "n_iter": int(path.n_iter[: k + 1].sum()),
        "kkt_residual": path.results[k].kkt_residual,
    }
