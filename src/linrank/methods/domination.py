"""The domination loss as a method: training and path in memory and in parts, and their words."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from linrank.choices import DOMINATION, DOMINATION_PATH
from linrank.data import Array, Dataset, varying_columns
from linrank.domination import DominationProblem, InductionResult, margin_of_part
from linrank.domination.path import alphas_by_slopes, as_alphas, geometric_alphas
from linrank.domination.path import check_path as check_path
from linrank.domination.path import follow as follow_path
from linrank.domination.train import certify, check_parameters, describe_parameters, make_problem
from linrank.domination.train import train as solve
from linrank.methods import description
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.ground import Ground
from linrank.parts import Totals, evaluate, train_parts
from linrank.parts.recipes import domination_recipe as recipe_of
from linrank.solvers.result import Result
from linrank.system import check_fits, count, seed_of

_REPORTED = ("method", "alpha", *DOMINATION, "seed", "n_pairs")  # of what the model knows


def train(task: Task) -> Trained:
    """Minimize the domination loss and a penalty; with the l2 penalty, over parts too."""
    ground = Ground.of(task, recipe_of)
    p = ground.task.parameters
    options = {"alpha": p.alpha, **values_of(p, DOMINATION)}
    watched: dict[str, Any] = {"w0": ground.minimizer_start, "callback": ground.callback}
    if ground.place.dataset is None:
        watched |= values_of(p, ("alpha", "tol", "max_iter"))
        where = (ground.place, ground.recipe, ground.scaling)
        result, n_pairs = train_parts(*where, **watched)
        settings = describe_parameters(None, seed=0, **options)  # passes draw nothing at random
        return _with_sparsity(ground.conclude(result, settings, n_pairs=n_pairs), result)
    seed = seed_of(p.random_state)
    result = solve(ground.scaled, seed=seed, **options, **ground.weighing, **watched)

    def best(last: Any) -> Any:
        found = ground.monitor.best(last)
        is_other = found is not last and p.feature_induction is not None
        return certify(found, _problem(ground, alpha=p.alpha)) if is_other else found

    settings = describe_parameters(ground.columns, seed=seed, **options)
    return _with_sparsity(ground.conclude(result, settings, best=best), result)


_SOLVING = ("solver", "tol", "max_iter")  # how a problem is solved; all else says what it is


def _problem(ground: Ground, alpha: float = 1.0) -> DominationProblem:
    """What is minimized; all but alpha is the same along a path."""
    p = ground.task.parameters
    check_parameters(**values_of(p, ("penalty", "negative_sampling", *_SOLVING)))
    what = values_of(p, tuple(name for name in DOMINATION_PATH if name not in _SOLVING))
    how = {**ground.weighing, "seed": seed_of(p.random_state)}
    return make_problem(ground.scaled, alpha=alpha, **what, **how)


def grid_of(ground: Ground) -> Array:
    """The grid of alpha, descending."""
    p = ground.task.parameters
    return as_alphas(p.alphas, lambda: _auto_alphas(ground, p.n_alphas, p.eps))


def _auto_alphas(ground: Ground, n_alphas: int, eps: float | None) -> Array:
    """The grid "auto"."""
    scaling = ground.scaling
    if ground.place.dataset is not None:
        return geometric_alphas(_problem(ground), n_alphas, eps)
    with ground.place.opened(replace(ground.recipe, by_query=scaling.needs_queries)) as chunks:
        at_zero = np.zeros(ground.columns.n_features)
        start: Totals = chunks.total(evaluate, at_zero, 1.0, False, True)
    assert start.varies is not None  # it was asked for
    slopes = np.where(start.varies, start.gradient, 0.0)
    slopes = slopes if scaling.factors is None else scaling.factors * slopes
    return alphas_by_slopes(slopes, start.value, "l2", n_alphas, eps)


def path_options(ground: Ground) -> dict[str, Any]:
    """What is asked of a path wherever the rows are."""
    return values_of(ground.task.parameters, ("max_features", "tol", "max_iter"))


def path_in_memory(ground: Ground, alphas: Array, **options: Any) -> tuple[Iterable[Result], Array]:
    """The models of descending alpha, each from the last, and which columns pairs see."""
    n_features = ground.columns.n_features
    check_fits(
        len(alphas) * n_features * 8,
        f"a path of {len(alphas)} models of {n_features} features",
        "use fewer alphas, or max_features with a larger eps",
    )
    problem = _problem(ground)
    found = follow_path(problem, alphas, solver=ground.task.parameters.solver, **options)
    return found, varying_columns(problem.rows, problem.layering.queries)


def path_settings(ground: Ground, alpha: float) -> dict[str, Any]:
    """What the model of a path is to know of the parameters."""
    p = ground.task.parameters
    options = {**values_of(p, DOMINATION_PATH), "alpha": alpha, "feature_induction": None}
    return describe_parameters(ground.place.dataset, seed=seed_of(p.random_state), **options)


def path_attributes(model: Any, tuning: Any, parameters: Any) -> dict[str, Any]:
    """What estimators show of a search beyond what all do."""
    shown = {"n_nonzero": model.n_nonzero, "density": model.density}
    return {**shown, "n_nonzeros": tuning.facts["n_nonzero"]}


def parameters_of_part(parameters: Any, data: Dataset, rows: Array) -> Any:
    """The parameters for some rows of a data set, whose margins may be by row or by layer."""
    own = copy.copy(parameters)
    own.margin = margin_of_part(own.margin, own.layers, data, rows)
    return own


def _with_sparsity(trained: Trained, last: Any) -> Trained:
    """With what is to be shown of sparse models, and the rounds up to the ``last`` iterate."""
    model, monitor = trained.model, trained.monitor
    shown = {"n_nonzero": model.n_nonzero, "density": model.density}  # type: ignore[union-attr]
    if isinstance(last, InductionResult):
        if monitor is not None and monitor.keys:
            last = last.with_measures(monitor.history[monitor.keys[-1]])
        shown |= {"rounds": last.rounds, "feature_order": last.order}
    else:
        shown |= {"rounds": None, "feature_order": None}
    return replace(trained, attributes={**trained.attributes, **shown})


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, optimum, sparsity and convergence."""
    result, model, p = trained.result, trained.model, parameters
    n_nonzero, density = (trained.attributes[name] for name in ("n_nonzero", "density"))
    unit = "Newton step" if model.training["solver"] == "newton" else "sweep"
    penalty = "no penalty" if p.penalty == "none" else f"{p.penalty}, α = {p.alpha:g}"
    # Without a penalty there may be no minimum, and nothing is certified.
    share, is_certified = description.relative_gap(result), math.isfinite(result.gap)
    optimum = ("optimum", f"objective {result.value:.10g}")
    lines: tuple[description.Line, ...] = (
        ("trained", f"domination loss, {penalty}: {count(result.n_iter, unit)}"),
        description.optimum_line(result) if is_certified else optimum,
        description.weight_line(n_nonzero, model.n_features),
    )
    facts = {
        **{key: value for key, value in model.training.items() if key in _REPORTED},
        "duality_gap": result.gap if is_certified else None,
        "relative_gap": share if is_certified else None,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": n_nonzero,
        "density": density,
    }
    if isinstance(result, InductionResult):
        facts["rounds"] = [
            {
                "features": done.features.tolist(),  # counted from 0
                "objective": done.objective,
                "nonzero_weights": done.n_nonzero,
                "sweeps": done.n_sweeps,
            }
            for done in result.rounds
        ]
    return description.describe_optimum(trained, *lines, **facts)
