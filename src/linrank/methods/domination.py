"""The domination loss as a method: its training in memory and in parts, and what is told of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from linrank.domination.induction import InductionResult
from linrank.domination.train import certified, describe_parameters
from linrank.domination.train import train as solve
from linrank.methods import linear
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.options import DOMINATION
from linrank.parts.recipes import DominationRecipe, domination_recipe
from linrank.parts.train import train_parts
from linrank.system.resources import count
from linrank.system.seeds import seed_of

_REPORTED = ("method", "alpha", *DOMINATION, "seed", "n_pairs")  # of what the model knows


def recipe_of(parameters: Any, where: str, query_weight: Any) -> DominationRecipe:
    """The losses of a part; what parts cannot serve is refused, ``where`` saying what they are."""
    own = [name for name in ("alpha", *DOMINATION) if hasattr(parameters, name)]
    return domination_recipe(where, query_weight, **values_of(parameters, tuple(own)))


def train(task: Task) -> Trained:
    """Minimise the domination loss and a penalty; with the l2 penalty, over parts too."""
    ground = linear.Ground.of(task, recipe_of)
    p = ground.task.parameters
    options = {"alpha": p.alpha, **values_of(p, DOMINATION)}
    watched: dict[str, Any] = {"w0": ground.minimiser_start, "callback": ground.callback}
    if ground.parts is not None:
        recipe = recipe_of(p, ground.parts.where, task.query_weight)
        recipe = replace(recipe, design=ground.design)
        watched |= values_of(p, ("alpha", "tol", "max_iter"))
        result, n_pairs = train_parts(ground.parts, recipe, ground.scaling, **watched)
        settings = describe_parameters(None, seed=0, **options)  # passes draw nothing at random
        return _shown(ground.conclude(result, settings, n_pairs=n_pairs), result)
    asked: dict[str, Any] = {"query_weight": ground.query_weight, "n_jobs": p.n_jobs}
    seed, scaled = seed_of(p.random_state), ground.scaled
    asked |= {"seed": seed, "scale": ground.scaling.factors}
    result = solve(scaled, **options, **asked, **watched)

    def best(last: Any) -> Any:
        found = ground.monitor.best(last)
        is_other = found is not last and p.feature_induction is not None
        return certified(found, scaled, **options, **asked) if is_other else found

    settings = describe_parameters(ground.columns, seed=seed, **options)
    return _shown(ground.conclude(result, settings, best=best), result)


def _shown(trained: Trained, last: Any) -> Trained:
    """With what is to be shown of sparse models, and the rounds up to the ``last`` iterate."""
    model, monitor = trained.model, trained.monitor
    shown = {"n_nonzero": model.n_nonzero, "density": model.density}  # type: ignore[union-attr]
    if isinstance(last, InductionResult):
        if monitor is not None and monitor.keys:
            last = last.validated(monitor.history[monitor.keys[-1]])
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
    share, is_certified = linear.relative_gap(result), math.isfinite(result.gap)
    optimum = ("optimum", f"objective {result.value:.10g}")
    lines: tuple[linear.Line, ...] = (
        ("trained", f"domination loss, {penalty}: {count(result.n_iter, unit)}"),
        linear.optimum_line(result) if is_certified else optimum,
        linear.weight_line(n_nonzero, model.n_features),
        *linear.converged_lines(trained),
    )
    facts = {
        **{key: value for key, value in model.training.items() if key in _REPORTED},
        "scale": model.scaling.kind,
        "objective": result.value,
        "duality_gap": result.gap if is_certified else None,
        "relative_gap": share if is_certified else None,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": n_nonzero,
        "density": density,
        **linear.ending(result),
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
    return Description(lines, facts)
