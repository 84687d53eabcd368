"""Training for many C: by continuation where the objective is smooth, else one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linrank import _core, ranksvm
from linrank.data.dataset import Dataset
from linrank.options import LOSSES, PAIR_WEIGHTINGS, PAIRS, SOLVERS
from linrank.solvers.continuation import follow
from linrank.solvers.newton import Preconditioner
from linrank.solvers.preconditioner import Carried
from linrank.solvers.result import Callback, Result

__all__ = ["train_path"]


def train_path(
    data: Dataset,
    Cs: Sequence[float],
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    loss: str = LOSSES[0],
    pairs: str = PAIRS[0],
    pair_weighting: str = PAIR_WEIGHTINGS[0],
    solver: str = SOLVERS[0],
    query_normalization: str | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Minimise the objective of `ranksvm.train` for every C of the ascending ``Cs``.

    ``options`` are further ones of `train`: scale, query_weight, preferences, bounds, n_jobs.
    Results are
    in the scaled space, and ``converged`` means a certified gap of at most ``tol·F``.
    """
    for C in Cs:
        ranksvm.check_numbers(C, tol, max_iter)
    ranksvm.check_choices(loss, pairs, pair_weighting, solver, query_normalization)
    options |= {
        "loss": loss,
        "pairs": pairs,
        "pair_weighting": pair_weighting,
        "query_normalization": query_normalization,
    }
    is_smooth = solver == "newton" and loss == "squared_hinge" and options.get("bounds") is None
    if tol is None:
        tol = 1e-3 if loss == "hinge" or solver == "bundle" else 1e-4
    if not is_smooth:
        return _one_by_one(data, Cs, tol, callback, solver=solver, max_iter=max_iter, **options)
    problem = ranksvm.problem_of(data, Cs[0], **options)
    return follow(
        problem.objective().at(np.zeros(data.n_features)),
        Cs,
        preconditioner=_carried(problem),
        tol=tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
    )


def _one_by_one(
    data: Dataset,
    Cs: Sequence[float],
    tol: float,
    callback: Callback | None,
    *,
    solver: str,
    **options: Any,
) -> Iterator[Result]:
    """The same by `train`, from the last minimiser, whatever its solver: it ends at the gap."""
    w = None
    is_by_gap = solver == "bundle" or options.get("loss") == "hinge"
    own = tol if is_by_gap else 1e-15  # other rules than the gap are not to stop it
    for C in Cs:
        asked = False

        def watch(state: dict[str, Any], C: float = C) -> bool:
            nonlocal asked
            asked = callback is not None and bool(callback({**state, "C": C}))
            return asked or state["gap"] <= tol * state["objective"]

        result = ranksvm.train(data, C=C, tol=own, w0=w, solver=solver, callback=watch, **options)
        if result.gap <= tol * result.value:
            message = f"certified F - F* <= {tol:g}·F"
            result = replace(result, converged=True, stopped="tolerance", message=message)
        else:
            result = replace(result, converged=False)
        yield result
        if asked:
            return
        w = result.w


def _carried(problem: ranksvm._Problem) -> Preconditioner:
    """The preconditioner of a path.

    One Hessian serves some fifty products, so the whole one is taken up to a price of ten; beyond,
    that of a sample, four times as large each time it disappoints.
    """
    cheap = ranksvm.without_matrix(problem)
    if cheap is not None:
        return cheap
    n_rows, n = problem.n_rows, problem.rows.shape[1]
    price, n_sample = ranksvm.hessian_price(problem.rows), max(50 * n, n_rows // 20)
    is_long = problem.longest_query >= _core.LONG_QUERY
    if 2 * n_sample > n_rows or (price <= 10 and not is_long):
        return Carried(lambda point, _: point, patience=price // 2 + 1)

    def on_sample(point: Any, k: int) -> Any:
        sample = problem.sample(n_sample * 4**k)
        factor = point.parts[1].risk.C / problem.C
        return replace(sample, C=factor * sample.C).objective().at(point.w)

    return Carried(on_sample, patience=8)
