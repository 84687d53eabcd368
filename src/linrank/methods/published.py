"""The published baselines as a method: one thread, the squared hinge or the hinge on all pairs."""

from __future__ import annotations

from linrank.methods.base import Task, Trained, values_of
from linrank.methods.linear import Ground
from linrank.methods.ranksvm import describe as describe
from linrank.ranksvm.train import train as solve

_PASSED_ON = ("C", "loss", "solver", "counting", "tol", "max_iter", "query_normalization")


def train(task: Task) -> Trained:
    """Minimise as published, over rows in memory."""
    ground, options = Ground.of(task), values_of(task.parameters, _PASSED_ON)
    result = solve(
        ground.scaled,
        **options,
        scale=ground.scaling.factors,
        query_weight=ground.query_weight,
        n_jobs=task.parameters.n_jobs,
        callback=ground.monitor,
    )
    return ground.conclude(result, {"method": "published", **options})
