"""RankSVM as a method: its training in memory and in passes, and what is told of it."""

from __future__ import annotations

from typing import Any

from linrank.data.bounds import weight_bounds
from linrank.methods.base import Description, Task, Trained
from linrank.methods.linear import Ground
from linrank.methods.lines import LOOSE, optimum_line, pairs_line, relative_gap, weights_line
from linrank.methods.parameters import values_of
from linrank.options import SELECTED_PAIRS, TRAINING
from linrank.parts.stores import train_rank_store
from linrank.ranksvm.train import train as solve
from linrank.system.seeds import seed_of
from linrank.system.words import count


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
    """Iterations, the optimum and its certificate, weights of 0, and whether to trust the bound."""
    result, known, p = trained.result, trained.model.training, parameters
    work = count(result.n_iter, "iteration")
    if result.n_hvp:
        work += f", {count(result.n_hvp, 'Hessian product')}"
    share = relative_gap(result)
    lines = [
        ("trained", f"{p.solver}, {p.loss.replace('_', ' ')}, C = {p.C:g}: {work}"),
        optimum_line(result.value, result.gap),
    ]
    if known.get("pairs") in SELECTED_PAIRS and known.get("n_closest") is not None:
        lines.append(pairs_line(known))
    n_nonzero = int((result.w != 0.0).sum())
    if n_nonzero < result.w.size:
        lines.append(weights_line(n_nonzero, result.w.size))
    if result.converged and share > LOOSE:
        scale = "--scale standard or " if p.scale == "none" else ""
        told = (
            "this bound is proven but can be loose: it grows with the square of the gradient, "
            f"whatever the curvature; {scale}a smaller -e tightens it"
        )
        lines.append(("note", told))
    if result.converged:
        lines.append(("converged", result.message))
    options = {name: getattr(p, name) for name in ("C", *TRAINING, "scale") if hasattr(p, name)}
    facts = {
        **options,
        **{name: getattr(p, name) for name in ("counting", "positive") if hasattr(p, name)},
        **{name: known.get(name) for name in ("n_closest", "n_random", "seed", "n_pairs")},
        "objective": result.value,
        "duality_gap": result.gap,
        "relative_gap": share,
        "gradient_norm": result.gradient_norm,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": n_nonzero,
        "iterations": result.n_iter,
        "hessian_products": result.n_hvp,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }
    return Description(tuple(lines), facts)
