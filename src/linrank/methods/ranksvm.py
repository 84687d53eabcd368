"""RankSVM as a method: training and path, in memory and in parts, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.choices import PAIR_WEIGHTINGS, SELECTED_PAIRS, TRAINING
from linrank.data import Array, Dataset, weight_bounds
from linrank.methods import description
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.ground import SETTINGS, Ground, is_auto
from linrank.parts.parts import Facts, Parts
from linrank.ranksvm.train import Balance, Problem
from linrank.ranksvm.train import train as solve
from linrank.solvers.result import Result
from linrank.system import count, seed_of

if TYPE_CHECKING:
    from linrank.parts.recipes import RankRecipe

# Of the parameters, for programs; the published baselines have some of them.
_REPORTED = ("C", *TRAINING, "counting", "scale", "positive", "curves", "n_knots", "interactions")


def options_of(parameters: Any) -> dict[str, Any]:
    """What goes to the training as it is, with a seed where pairs are drawn."""
    options = values_of(parameters, TRAINING)
    if parameters.pairs in SELECTED_PAIRS:
        options["seed"] = seed_of(parameters.random_state)
    return options


def settings_of(parameters: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What the model is to know of the parameters."""
    p = parameters
    is_bounded = any(x is not None for x in (p.coef_bounds, p.increasing, p.decreasing))
    return options | {"positive": bool(parameters.positive), "bounded": is_bounded}


def _bounds(ground: Ground) -> Any:
    p, design = ground.task.parameters, ground.design
    given = p.coef_bounds if design is None else design.bounds
    return weight_bounds(p.positive, given, ground.columns, ground.scaling.factors)


def recipe_of(parameters: Any, where: str, query_weight: Any) -> RankRecipe:
    """The losses of a part; what parts cannot serve is refused, ``where`` saying what they are."""
    from linrank.parts.recipes import RANK_KINDS, rank_recipe

    given = values_of(parameters, RANK_KINDS)  # what is left to the data can be served
    return rank_recipe(where, query_weight, **{k: v for k, v in given.items() if not is_auto(v)})


def train(task: Task) -> Trained:
    """Minimize ``½‖w‖² + C Σ ω_ij l(1 - w·(x_i - x_j))``, over rows in memory or in parts."""
    ground = Ground.of(task, recipe_of)
    p = ground.task.parameters
    options = {"C": ground.C, **options_of(p)}
    asked: dict[str, Any] = {
        "bounds": _bounds(ground),
        "w0": ground.minimizer_start,
        "callback": ground.monitor,
    }
    n_pairs: int | None = None
    if ground.place.dataset is None:
        from linrank.parts.train import train_parts

        asked |= {"C": options["C"], **values_of(p, ("tol", "max_iter"))}
        result, n_pairs = train_parts(ground.place, ground.recipe, ground.scaling, **asked)
    else:
        asked |= {"preferences": task.preferences, **ground.weighing}
        result = solve(ground.scaled, **options, **asked)
    if result.C is not None:
        options["C"] = result.C
    settings = settings_of(p, options)
    trained = ground.conclude(result, settings, n_pairs=n_pairs, bounds=asked["bounds"])
    return replace(trained, attributes={**trained.attributes, **settings_shown(options, p)})


def path_options(ground: Ground) -> dict[str, Any]:
    """What is asked of a path wherever the rows are."""
    return {"bounds": _bounds(ground), **values_of(ground.task.parameters, ("tol", "max_iter"))}


def path_in_memory(ground: Ground, Cs: Array, **asked: Any) -> tuple[Iterable[Result], Array]:
    """The models of ascending C, each from the last, and which columns pairs see."""
    from linrank.ranksvm.path import train_path  # which a fit does not need

    options = {**options_of(ground.task.parameters), **ground.weighing, **asked}
    varies = ground.varying(np.ones(ground.columns.n_features, dtype=bool))
    return train_path(ground.scaled, Cs.tolist(), **options), varies


def check_path(parameters: Any) -> None:
    """Raise ValueError for parameters that no path can be made of."""
    from linrank.ranksvm.path import as_Cs

    as_Cs(parameters.Cs)


def grid_of(ground: Ground) -> Array:
    """The values of C of a search or path, ascending."""
    from linrank.ranksvm.path import as_Cs

    return as_Cs(ground.task.parameters.Cs, lambda: unit_of(ground))


def path_settings(ground: Ground, C: float) -> dict[str, Any]:
    """What the model of a path is to know of the parameters."""
    p = ground.task.parameters
    return settings_of(p, options_of(p))


def path_attributes(model: Any, tuning: Any, parameters: Any) -> dict[str, Any]:
    """What estimators show of a search beyond what all do."""
    return settings_shown(tuning.best_params, parameters)


def parameters_of_part(parameters: Any, data: Dataset, rows: Array) -> Any:
    """The parameters for some rows of a data set: the same."""
    return parameters


def unit_of(ground: Ground) -> float:
    """The C that "auto" is, and grids are multiples of."""
    data, balance = ground.place.dataset, ground.balance
    if data is not None:
        asked = {**options_of(ground.task.parameters), **ground.weighing}
        return weight_in_memory(data, balance, asked)
    from linrank.parts.risk import sizes_of

    recipe = ground.recipe
    with ground.place.opened(replace(recipe, design=None, **_weighing(vars(recipe)))) as chunks:
        weight = sum(size.weight for size in sizes_of(chunks))
    return balance / weight if weight > 0 else float(balance)


def unit_in_memory(place: Parts, facts: Facts | None, options: dict[str, Any]) -> float:
    """The same of a method without a `Ground`; ``options`` name a scale and the kinds of pairs."""
    balance = place.balance(place.scaling(options["scale"]), None, facts)
    return weight_in_memory(place.dataset, balance, options)


def weight_in_memory(data: Dataset, balance: Balance, options: dict[str, Any]) -> float:
    """The C of a balance; ``options`` are those of `linrank.ranksvm.train.train`."""
    names = ("pairs", "n_closest", "n_random", "seed", "query_weight", "preferences")
    given = {name: options[name] for name in names if name in options}
    return Problem.of(data, balance, n_jobs=1, **given, **_weighing(options)).C


def _weighing(options: dict[str, Any]) -> dict[str, Any]:
    """How pairs are weighted, in a way whose weights have the same sum without a ranking."""
    weighting = options["pair_weighting"]
    if weighting in PAIR_WEIGHTINGS:
        return {name: options[name] for name in ("pair_weighting", "query_normalization")}
    return {"pair_weighting": PAIR_WEIGHTINGS[0], "query_normalization": "pairs"}


def settings_shown(options: dict[str, Any], parameters: Any) -> dict[str, Any]:
    """What estimators show of the settings that the data may have decided on."""
    settings = {**values_of(parameters, SETTINGS[1:]), "C": float(options["C"])}
    return {"C": settings["C"], "settings": settings}


_PUBLISHED = ("C", "loss", "solver", "counting", "tol", "max_iter", "query_normalization")


def train_published(task: Task) -> Trained:
    """Minimize as published, over rows in memory."""
    ground, options = Ground.of(task), values_of(task.parameters, _PUBLISHED)
    result = solve(ground.scaled, **options, **ground.weighing, callback=ground.monitor)
    return ground.conclude(result, {"method": "published", **options})


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, optimum and convergence."""
    result, p = trained.result, parameters
    work = count(result.n_iter, "iteration")
    if result.n_hvp:
        work += f", {count(result.n_hvp, 'Hessian product')}"
    n_nonzero, known = int((result.w != 0.0).sum()), trained.model.training
    lines = [
        ("trained", f"{p.solver}, {p.loss.replace('_', ' ')}, C = {known['C']:g}: {work}"),
        *_settings_lines(trained.model, p),
        description.optimum_line(result),
        *description.pair_lines(known),
    ]
    if n_nonzero < result.w.size:
        lines.append(description.weight_line(n_nonzero, result.w.size))
    facts = {
        **values_of(p, tuple(name for name in _REPORTED if hasattr(p, name))),
        **{name: known[name] for name in ("C", *TRAINING) if name in known},
        "auto": [name for name in SETTINGS if is_auto(getattr(p, name, None))],
        "bounds": getattr(p, "coef_bounds", None),
        **{name: known.get(name) for name in ("n_closest", "n_random", "seed", "n_pairs")},
        "relative_gap": description.relative_gap(result),
        "gradient_norm": result.gradient_norm,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": n_nonzero,
        "hessian_products": result.n_hvp,
    }
    return description.describe_optimum(trained, *lines, **facts)


describe_published = describe


def _settings_lines(model: Any, parameters: Any) -> tuple[description.Line, ...]:
    """What the data decided on, where anything was left to them."""
    known = model.training
    auto = [name for name in SETTINGS if is_auto(getattr(parameters, name, None))]
    if not auto:
        return ()
    weighting, normalization = known["pair_weighting"], known["query_normalization"]
    is_measure = weighting not in PAIR_WEIGHTINGS
    shaped = getattr(parameters, "curves", None) or getattr(parameters, "interactions", 0)
    told = {
        "C": f"C = {known['C']:.4g}",
        "scale": "" if shaped else f"scale {model.scaling.kind}",
        "pair_weighting": f"pairs {f'by {weighting}' if is_measure else weighting}",
        "query_normalization": "queries equal" if normalization == "pairs" else "",
    }
    marked = (text + (" (auto)" if name in auto else "") for name, text in told.items() if text)
    return (("settings", ", ".join(marked)),)
