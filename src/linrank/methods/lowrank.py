"""Duals of low rank as methods, factorized and regularized: training, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from linrank.choices import FACTORIZED, REGULARIZED
from linrank.lowrank.factorized import train_factorized as solve_factorized
from linrank.lowrank.regularized import train_regularized as solve_regularized
from linrank.methods.base import Description, Task, Trained, values_of
from linrank.methods.description import Line, describe_optimum, optimum_line
from linrank.methods.ground import Ground, Monitor
from linrank.system import count, seed_of


def train_factorized(task: Task) -> Trained:
    """Minimize the dual of RankSVM with the hinge over products of a few numbers a row."""
    p = task.parameters
    options = {**values_of(p, ("C", *FACTORIZED)), "seed": seed_of(p.random_state)}
    trained = _train(solve_factorized, task, {"method": "factorized", **options})
    result = trained.result
    return _showing(
        trained,
        lower_bound=-result.value,
        hinge_objective=result.hinge_objective,
        factors=result.factors if p.keep_factors else None,
    )


def train_regularized(task: Task) -> Trained:
    """Minimize that dual with a weight on the nuclear norm of its variables."""
    p = task.parameters
    options = values_of(p, ("C", *REGULARIZED))
    trained = _train(solve_regularized, task, {"method": "regularized", **options})
    result = trained.result
    duals = result.duals if p.keep_duals else None
    return _showing(trained, ranks=result.ranks, duals=duals)


def _train(solve: Callable[..., Any], task: Task, settings: dict[str, Any]) -> Trained:
    ground = Ground.of(task)
    options = {name: value for name, value in settings.items() if name != "method"}
    run = partial(solve, ground.scaled, **options, **ground.weighing)
    result = run(callback=ground.callback)
    return ground.conclude(result, settings, best=lambda last: _best(last, ground.monitor, run))


def _best(result: Any, monitor: Monitor, run: Callable[..., Any]) -> Any:
    """The iterate that the validation data liked best, with all that belongs to it.

    Another iterate than the one kept is reached by training once more: the same seed gives the same
    bits, and keeping the duals of the best one would cost their memory twice in every fit.
    """
    best = monitor.best_iteration
    if best == result.kept:
        return result
    found = run(callback=lambda state: state["n_iter"] >= best)
    return replace(
        found,
        n_iter=result.n_iter,
        converged=False,
        stopped="callback",
        message=f"iteration {best} had the best {monitor.keys[-1]}",
        history=result.history,
    )


def _showing(trained: Trained, **more: Any) -> Trained:
    return replace(trained, attributes={**trained.attributes, **more})


def describe_factorized(trained: Trained, parameters: Any) -> Description:
    """Epochs, and what they say of RankSVM."""
    result, p = trained.result, parameters
    told = (
        f"objective {result.hinge_objective:.10g} of RankSVM with the hinge, whose minimum "
        f"is at least {-result.value:.10g}"
    )
    work = f"factorized, K = {p.n_components}, {p.constraint}, C = {p.C:g}"
    bounds = {"lower_bound": -result.value, "hinge_objective": result.hinge_objective}
    lines = ("trained", f"{work}: {count(result.n_iter, 'epoch')}"), ("hinge", told)
    return _describe(trained, lines, ("C", *FACTORIZED, "seed"), **bounds)


def describe_regularized(trained: Trained, parameters: Any) -> Description:
    """Iterations, optimum and ranks."""
    result, p = trained.result, parameters
    ranks = result.ranks[result.duals.query]  # of the queries that have pairs
    work = f"regularized, γ = {p.gamma:g}, λ = {p.lam:g}, C = {p.C:g}"
    lines: tuple[Line, ...] = (
        ("trained", f"{work}: {count(result.n_iter, 'iteration')}"),
        optimum_line(result),
        ("ranks", f"{ranks.min():,} to {ranks.max():,} by query, mean {ranks.mean():.3g}"),
    )
    return _describe(trained, lines, ("C", *REGULARIZED), ranks=result.ranks.tolist())


def _describe(
    trained: Trained, lines: tuple[Line, ...], names: tuple[str, ...], **facts: Any
) -> Description:
    model: Any = trained.model
    facts |= {name: model.training[name] for name in ("method", *names)}
    facts["nonzero_weights"] = model.n_nonzero
    return describe_optimum(trained, *lines, **facts)
