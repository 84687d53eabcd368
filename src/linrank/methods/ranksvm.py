"""RankSVM as a method: its training in memory and in passes, and what is told of it."""

from __future__ import annotations

from typing import Any

from linrank.data.bounds import weight_bounds
from linrank.methods.base import Description, Task, Trained
from linrank.methods.linear import Ground
from linrank.methods.parameters import values_of
from linrank.options import SELECTED_PAIRS, TRAINING
from linrank.parts.stores import train_rank_store
from linrank.ranksvm.train import train as solve
from linrank.system.seeds import seed_of


def options_of(parameters: Any) -> dict[str, Any]:
    """What goes to the training as it is, with a seed where pairs are drawn."""
    options = values_of(parameters, TRAINING)
    if parameters.pairs in SELECTED_PAIRS:
        options["seed"] = seed_of(parameters.random_state)
    return options


def settings_of(parameters: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What the model is to know of the parameters."""
    is_bounded = parameters.coef_bounds is not None
    return options | {"positive": bool(parameters.positive), "bounded": is_bounded}


def train(task: Task) -> Trained:
    """Minimise ``½‖w‖² + C Σ ω_ij l(1 - w·(x_i - x_j))``, over rows in memory or in passes."""
    p, ground = task.parameters, Ground.of(task)
    options = {"C": p.C, **options_of(p)}
    asked: dict[str, Any] = {
        "bounds": weight_bounds(p.positive, p.coef_bounds, ground.columns, ground.scaling.factors),
        "query_weight": ground.query_weight,
        "w0": ground.start,
        "n_jobs": p.n_jobs,
        "callback": ground.monitor,
    }
    n_pairs: int | None = None
    if ground.in_passes:
        result, n_pairs = train_rank_store(
            task.data, ground.scaling, memory_limit=p.memory_limit, options=options, **asked
        )
    else:
        result = solve(
            ground.scaled,
            **options,
            scale=ground.scaling.factors,
            preferences=task.preferences,
            **asked,
        )
    model = ground.model_of(result, n_pairs, settings_of(p, options))
    n_listed = 0 if task.preferences is None else len(task.preferences)
    return ground.conclude(
        result,
        model,
        lambda kept: {
            "kkt_residual": kept.kkt_residual,
            "n_pairs": model.training["n_pairs"] + n_listed,
        },
    )


def describe(trained: Trained, parameters: Any) -> Description:
    """Iterations, objective and gap."""
    raise NotImplementedError
