"""RankSVM as a method: its training in memory and in passes, and what is told of it."""

from __future__ import annotations

from typing import Any

from linrank.data.bounds import weight_bounds
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.linear import (
    LOOSE,
    Ground,
    converged_lines,
    ending,
    optimum_line,
    pair_lines,
    relative_gap,
    weight_line,
)
from linrank.options import SELECTED_PAIRS, TRAINING
from linrank.ranksvm.train import train as solve
from linrank.system.seeds import seed_of
from linrank.system.words import count

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


def _bounds(p: Any, ground: Ground) -> Any:
    given = p.coef_bounds if ground.design is None else ground.design.bounds
    return weight_bounds(p.positive, given, ground.columns, ground.scaling.factors)


def train(task: Task) -> Trained:
    """Minimise ``½‖w‖² + C Σ ω_ij l(1 - w·(x_i - x_j))``, over rows in memory or in passes."""
    p, ground = task.parameters, Ground.of(task)
    options = {"C": p.C, **options_of(p)}
    asked: dict[str, Any] = {
        "bounds": _bounds(p, ground),
        "query_weight": ground.query_weight,
        "w0": ground.start,
        "n_jobs": p.n_jobs,
        "callback": ground.monitor,
    }
    n_pairs: int | None = None
    if ground.store is not None:
        from linrank.parts.stores import train_rank_store  # costs 40 ms, and few need it

        result, n_pairs = train_rank_store(
            ground.store, ground.scaling, memory_limit=p.memory_limit, options=options, **asked
        )
    else:
        result = solve(
            ground.scaled,
            **options,
            scale=ground.scaling.factors,
            preferences=task.preferences,
            **asked,
        )
    return ground.conclude(result, settings_of(p, options), n_pairs=n_pairs)


def describe(trained: Trained, parameters: Any) -> Description:
    """Work, optimum and convergence."""
    result, p = trained.result, parameters
    work = count(result.n_iter, "iteration")
    if result.n_hvp:
        work += f", {count(result.n_hvp, 'Hessian product')}"
    n_nonzero, known = int((result.w != 0.0).sum()), trained.model.training
    lines = [
        ("trained", f"{p.solver}, {p.loss.replace('_', ' ')}, C = {p.C:g}: {work}"),
        optimum_line(result),
        *pair_lines(known),
    ]
    if n_nonzero < result.w.size:
        lines.append(weight_line(n_nonzero, result.w.size))
    if result.converged and relative_gap(result) > LOOSE:
        scale = "--scale standard or " if p.scale == "none" else ""
        told = "this bound is proven but can be loose: it grows with the square of the gradient, "
        lines.append(("note", f"{told}whatever the curvature; {scale}a smaller -e tightens it"))
    facts = {
        **values_of(p, tuple(name for name in _REPORTED if hasattr(p, name))),
        "bounds": getattr(p, "coef_bounds", None),
        **{name: known.get(name) for name in ("n_closest", "n_random", "seed", "n_pairs")},
        "objective": result.value,
        "duality_gap": result.gap,
        "relative_gap": relative_gap(result),
        "gradient_norm": result.gradient_norm,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": n_nonzero,
        "hessian_products": result.n_hvp,
        **ending(result),
    }
    return Description((*lines, *converged_lines(trained)), facts)
