"""The searches of all methods: a grid over folds, the choice, and the model on all data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.data.scaling import Scaling
from linrank.domination.path import PathProblem, as_alphas, check_path
from linrank.domination.train import describe_parameters
from linrank.lowrank.factorized import train_factorized
from linrank.methods.base import Task, Trained, values_of
from linrank.methods.linear import shape_of
from linrank.methods.ranksvm import options_of, settings_of
from linrank.methods.sgd import average_of
from linrank.models.linear import LinearModel
from linrank.options import DOMINATION_PATH, FACTORIZED, IN_MEMORY_ONLY, KERNEL
from linrank.parts.path import path_of_parts
from linrank.parts.search import tune_parts
from linrank.parts.stores import recipe_of
from linrank.ranksvm.path import PathResult, as_coarse_Cs, as_Cs, solve_path
from linrank.search.kernel import tune_kernel
from linrank.search.kernel_fit import check_kernel_rows, fit_kernel
from linrank.search.kernel_folds import as_gammas
from linrank.search.path_searches import tune, tune_domination, tune_factorized
from linrank.search.sgd import as_algorithms, tune_sgd
from linrank.search.sgd import as_alphas as as_lambdas
from linrank.search.tuning import Tuning
from linrank.stochastic.train import check_descent, descend
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
        options |= {**training, **_common(task, data)}
        tuning = tune(data, folds, grid, **options, **_asked(p, judging), shape=shape)
        columns, design = _columns(data, shape, p.n_jobs)
        if design is not None:
            options["coef_bounds"] = design.bounds
        path, scaling = solve_path(columns, grid, **options)
        result, known = path.results[tuning.chosen], _known(data, settings, tuning)
        model = _model_of(LinearModel.of(result, columns, scaling, **known), design, data)
    else:
        _refuse_shape(p)
        kinds = ("loss", "pairs", "pair_weighting", "query_normalization", "solver")
        recipe = recipe_of(task.query_weight, **values_of(p, kinds))
        options |= values_of(p, ("tol", "max_iter"))
        tuning = tune_parts(data, folds, recipe, grid, **options, **_asked(p, judging))
        found = path_of_parts(data, recipe, grid, **options)
        path, result = found.path, found.path.results[tuning.chosen]
        model = found.model(result, data, **settings, **tuning.choice)
    shown = {**_optimum(result, model), **_along(path, tuning)}
    return Found.of(tuning, Trained(model, result, shown, is_done=result.converged), path)


def search_domination(task: Task, folds: Any, **judging: Any) -> Found:
    """A path over alpha per fold, and one on all data; as `search_ranksvm`."""
    p, data = task.parameters, _in_memory(task)
    check_path(**values_of(p, ("penalty", "n_alphas", "eps", "max_features")))
    seed, training = seed_of(p.random_state), values_of(p, DOMINATION_PATH)
    options = {**training, **_common(task, data), "scale": p.scale, "seed": seed}
    shape = shape_of(p)
    columns, design = _columns(data, shape, p.n_jobs)
    whole = PathProblem.of(columns, **options)
    alphas = as_alphas(p.alphas, whole.problem, p.n_alphas, p.eps)
    asked = {**_asked(p, judging), "shape": shape}
    tuning = tune_domination(data, folds, alphas, max_features=p.max_features, **options, **asked)
    path = whole.solve(tuning.alphas)
    result = path.results[tuning.chosen]
    settings = describe_parameters(
        data, alpha=tuning.alpha, seed=seed, **training, feature_induction=None
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
    p, data = task.parameters, _in_memory(task)
    algorithms, alphas = as_algorithms(p.algorithms), as_lambdas(p.alphas)
    for algorithm in algorithms:
        check_descent(algorithm, p.n_steps, p.record, None)
    training = values_of(p, ("n_steps", "sampling", "aggressiveness"))
    training |= {"average": average_of(p), "seed": seed_of(p.random_state)}
    options = {**training, **_common(task, data)}
    tuning = tune_sgd(
        data, folds, algorithms, alphas, scale=p.scale, **options, **_asked(p, judging)
    )
    scaling = Scaling.fit(p.scale, data.rows, weight=data.weight, n_jobs=p.n_jobs)
    scaled = scaling.applied(data, n_jobs=p.n_jobs)
    result = descend(scaled, record=p.record, **tuning.best_params, **options)
    settings = {**training, "record": p.record, "scoring": p.scoring}
    model = LinearModel.of(result, data, scaling, **_known(data, settings, tuning))
    names = ("alpha", "n_steps", "stopped", "objective", "loss", "history", "n_pairs")
    shown = {**values_of(result, names), "duality_gap": result.gap}
    return Found.of(tuning, Trained(model, result, shown))


def search_factorized(task: Task, folds: Any, **judging: Any) -> Found:
    """Every C of a fold by itself, and the chosen one on all data."""
    p, data, grid = task.parameters, _in_memory(task), as_coarse_Cs(task.parameters.Cs)
    training = {**values_of(p, FACTORIZED), "seed": seed_of(p.random_state)}
    options = {**training, **_common(task, data)}
    tuning = tune_factorized(data, folds, grid, scale=p.scale, **options, **_asked(p, judging))
    scaling = Scaling.fit(p.scale, data.rows, weight=data.weight, n_jobs=p.n_jobs)
    scaled = scaling.transformed(data, n_jobs=p.n_jobs)
    result = train_factorized(scaled, C=tuning.C, scale=scaling.factors, **options)
    settings = {"method": "factorized", **training, "scoring": p.scoring}
    model = LinearModel.of(result, data, scaling, **_known(data, settings, tuning))
    shown = {
        **_optimum(result, model),
        "n_pairs": data.queries.n_pairs,
        "kkt_residual": result.kkt_residual,
        "lower_bound": -result.value,
        "hinge_objective": result.hinge_objective,
    }
    return Found.of(tuning, Trained(model, result, shown, None, *_verdict(result)))


def search_kernel(task: Task, folds: Any, **judging: Any) -> Found:
    """One kernel matrix for each γ, from which all folds take their parts; one fit on all data."""
    p, data, grid = task.parameters, _in_memory(task), as_coarse_Cs(task.parameters.Cs)
    check_kernel_rows(p.kernel, p.scale, data)
    options = values_of(p, (*KERNEL, "kernel", "degree", "coef0", "scale"))
    options |= {"seed": seed_of(p.random_state), **_common(task, data)}
    gammas = as_gammas(p.gammas, p.kernel, data, p.scale)
    tuning = tune_kernel(data, folds, gammas, grid, **options, **_asked(p, judging))
    model, result = fit_kernel(data, **tuning.best_params, **options)
    known = {**model.training, "scoring": p.scoring, "score": tuning.score}
    model = replace(model, training=known)
    shown = {
        **_optimum(result, model),
        "dual_coef": model.coef,
        "support": model.support,
        "n_support": len(model.coef),
        "gamma": model.kernel.gamma,
    }
    return Found.of(tuning, Trained(model, result, shown, None, *_verdict(result)))


def _in_memory(task: Task) -> Dataset:
    """The data of a search that needs them all at hand; shells see to it by ``Method.places``."""
    assert isinstance(task.data, Dataset)
    return task.data


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
        raise ValueError(f"{IN_MEMORY_ONLY}, and these are read in passes; use a linear model")


def _asked(parameters: Any, judging: dict[str, Any]) -> dict[str, Any]:
    """The options of `Judging`."""
    return {**values_of(parameters, ("scoring", "selection")), **judging}


def _common(task: Task, data: Dataset) -> dict[str, Any]:
    """What every training takes: one weight for each query, and threads."""
    weight = query_weights(task.query_weight, data.queries)
    return {"query_weight": weight, "n_jobs": task.parameters.n_jobs}


def _known(data: Dataset, settings: dict[str, Any], tuning: Tuning) -> dict[str, Any]:
    """What the model is to know: its settings, the choice, and how the file counts features."""
    base = {} if data.index_base is None else {"index_base": data.index_base}
    return {**settings, **tuning.choice, **base}


def _optimum(result: Any, model: Any) -> dict[str, Any]:
    """What estimators show of a minimiser."""
    return {
        "n_iter": result.n_iter,
        "converged": result.converged,
        "objective": result.value,
        "duality_gap": result.gap,
        "history": result.history,
        "n_pairs": model.training["n_pairs"],
    }


def _along(path: PathResult, tuning: Tuning) -> dict[str, Any]:
    """What they show of a model on a path: all steps up to it count."""
    k = tuning.chosen
    return {
        "n_iter": int(path.n_iter[: k + 1].sum()),
        "kkt_residual": path.results[k].kkt_residual,
    }


def _verdict(result: Any) -> tuple[bool, str]:
    """Whether the fit on all data reached the tolerance, and what to say if not."""
    if result.converged:
        return True, ""
    return False, f"did not converge on all data: {result.message}"
