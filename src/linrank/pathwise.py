"""Training for many C: by continuation where the objective is smooth, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from linrank import ranksvm
from linrank.checks import check_numbers
from linrank.data.dataset import Dataset
from linrank.options import LOSSES, PAIR_WEIGHTINGS, PAIRS, SOLVERS
from linrank.planning import carried
from linrank.problem import Problem
from linrank.published.method import check_counting
from linrank.solvers.continuation import follow
from linrank.solvers.result import Callback, Result

__all__ = ["one_by_one", "train_path"]


def train_path(
    data: Dataset,
    Cs: Sequence[float],
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    loss: str = LOSSES[0],
    pairs: str = PAIRS[0],
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    seed: int = 0,
    pair_weighting: str = PAIR_WEIGHTINGS[0],
    solver: str = SOLVERS[0],
    counting: str | None = None,
    query_normalization: str | None = None,
    callback: Callback | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Minimise the objective of `ranksvm.train` for every C of the ascending ``Cs``.

    ``options`` are further ones of `train`: scale, query_weight, preferences, bounds, n_jobs.
    Results are in the scaled space, and ``converged`` means a certified gap of at most ``tol·F``.
    """
    for C in Cs:
        check_numbers(C, tol, max_iter)
    ranksvm.check_choices(loss, pairs, pair_weighting, solver, query_normalization)
    check_counting(solver, counting)
    options |= {
        "loss": loss,
        "pairs": pairs,
        "n_closest": n_closest,
        "n_random": n_random,
        "seed": seed,
        "pair_weighting": pair_weighting,
        "query_normalization": query_normalization,
    }
    is_smooth = solver == "newton" and loss == "squared_hinge" and options.get("bounds") is None
    if tol is None:
        tol = 1e-3 if loss == "hinge" or solver == "bundle" else 1e-4
    if not is_smooth:
        options |= {"solver": solver, "counting": counting, "max_iter": max_iter}
        by_gap = solver == "bundle" or loss == "hinge"
        fit = partial(ranksvm.train, data, **options)
        return one_by_one(fit, Cs, tol, callback, by_gap=by_gap)
    problem = Problem.of(data, Cs[0], **options)
    return follow(
        problem.objective().at(np.zeros(data.n_features)),
        Cs,
        preconditioner=carried(problem),
        tol=tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
    )


def one_by_one(
    fit: Callable[..., Result],
    Cs: Sequence[float],
    tol: float,
    callback: Callback | None,
    *,
    by_gap: bool,
) -> Iterator[Result]:
    """The minimisers by ``fit(C=, tol=, w0=, callback=)``, from the last, to a certified gap.

    ``by_gap`` says whether the gap is what ``fit`` itself stops at.
    """
    w = None
    own = tol if by_gap else 1e-15  # other rules than the gap are not to stop it
    for C in Cs:
        asked = False

        def watch(state: dict[str, Any], C: float = C) -> bool:
            nonlocal asked
            asked = callback is not None and bool(callback({**state, "C": C}))
            return asked or state["gap"] <= tol * state["objective"]

        result = fit(C=C, tol=own, w0=w, callback=watch)
        if result.gap <= tol * result.value:
            message = f"certified F - F* <= {tol:g}·F"
            result = replace(result, converged=True, stopped="tolerance", message=message)
        else:
            result = replace(result, converged=False)
        yield result
        if asked:
            return
        w = result.w
