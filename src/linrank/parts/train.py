"""Training on chunks: what `linrank.ranksvm.train.train` and the domination loss do, in passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import Box
from linrank.data.scaling import Scaling
from linrank.domination.newton import minimise
from linrank.errors import check_numbers
from linrank.parts.chunk import Gathering
from linrank.parts.parts import Parts
from linrank.parts.recipes import DominationRecipe, RankRecipe
from linrank.parts.risk import ChunkedProblem, sizes_of
from linrank.ranksvm.path import one_by_one
from linrank.ranksvm.train import carried, is_small, plan
from linrank.solvers.continuation import follow
from linrank.solvers.newton import newton
from linrank.solvers.result import Callback, Result

Array = NDArray[Any]


def train_parts(
    fit: Callable[..., tuple[Result, ChunkedProblem]],
    parts: Parts,
    recipe: RankRecipe | DominationRecipe,
    scaling: Scaling,
    **options: Any,
) -> tuple[Result, int]:
    """Train on parts wherever they are; the result, and the number of pairs.

    ``fit`` is `train_rank_chunks` or `train_domination_chunks`, ``options`` are its own.
    """
    recipe = replace(recipe, by_query=scaling.needs_queries)
    with parts.opened(recipe) as chunks:
        result, problem = fit(
            chunks,
            recipe,
            scale=scaling.factors,
            capacity=parts.capacity,
            n_threads=parts.n_threads,
            **options,
        )
    return result, problem.n_pairs


def train_rank_chunks(
    gathering: Gathering,
    recipe: RankRecipe,
    *,
    C: float = 1.0,
    tol: float | None = None,
    max_iter: int | None = None,
    bounds: tuple[Array, Array] | None = None,
    w0: Array | None = None,
    callback: Callback | None = None,
    **how: Any,
) -> tuple[Result, ChunkedProblem]:
    """Minimise the RankSVM objective of all chunks by Newton's method.

    Parameters
    ----------
    gathering : Gathering
        The chunks, made by ``recipe``.
    recipe : RankRecipe
        The losses.
    C, tol, max_iter, bounds, w0, callback
        As in `linrank.ranksvm.train.train`, with its defaults.
    **how
        ``scale``, and ``capacity`` and ``n_threads`` of samples, as in `ChunkedProblem`.
    """
    check_numbers(C, tol, max_iter)
    started = time.perf_counter()
    if tol is None:
        tol = 1e-3 if recipe.loss == "hinge" else 1e-4
    box = None if bounds is None else Box(*bounds)
    problem = ChunkedProblem(gathering, recipe, sizes_of(gathering), float(C), box=box, **how)
    problem.check()
    start, preconditioner = plan(problem, w0)
    result = newton(
        problem.objective(),
        start,
        preconditioner=preconditioner,
        tol=tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
        started=started,
        sharpen=problem.sharpening(tol),
        proven=is_small(problem),
    )
    return result, problem


def train_domination_chunks(
    gathering: Gathering,
    recipe: DominationRecipe,
    *,
    alpha: float = 1.0,
    tol: float | None = None,
    max_iter: int | None = None,
    w0: Array | None = None,
    callback: Callback | None = None,
    **how: Any,
) -> tuple[Result, ChunkedProblem]:
    """Minimise ``L(X D w) + alpha‖w‖²`` over all chunks, L the domination loss.

    Parameters are those of `train_rank_chunks`, and alpha > 0.
    """
    C = 1.0 / (2.0 * alpha)
    problem = ChunkedProblem(gathering, recipe, sizes_of(gathering), C, **how)
    problem.check()
    result = minimise(
        problem,
        alpha,
        w0=w0,
        tol=1e-4 if tol is None else tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
    )
    return result, problem


def train_path_chunks(
    gathering: Gathering,
    recipe: RankRecipe,
    Cs: Sequence[float],
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    bounds: tuple[Array, Array] | None = None,
    callback: Callback | None = None,
    **how: Any,
) -> Iterator[Result]:
    """Minimise the objective of `train_rank_chunks` for every C of the ascending ``Cs``.

    Each model starts from that of the C before, and costs no pass where that is certified for this
    C too. Parameters are those of `train_rank_chunks`; ``tol`` is that of
    `linrank.ranksvm.path.train_path`: ``converged`` means a certified gap of at most ``tol·F``.
    """
    for C in Cs:
        check_numbers(C, tol, max_iter)
    if tol is None:
        tol = 1e-3 if recipe.loss == "hinge" else 1e-4
    if recipe.loss == "hinge" or bounds is not None:
        fit = partial(_fit, gathering, recipe, max_iter=max_iter, bounds=bounds, **how)
        return one_by_one(fit, Cs, tol, callback, by_gap=recipe.loss == "hinge")
    problem = ChunkedProblem(gathering, recipe, sizes_of(gathering), float(Cs[0]), **how)
    problem.check()
    return follow(
        problem.objective().at(np.zeros(problem.rows.shape[1])),
        Cs,
        preconditioner=carried(problem),
        tol=tol,
        max_iter=100 if max_iter is None else max_iter,
        callback=callback,
    )


def _fit(gathering: Gathering, recipe: RankRecipe, **options: Any) -> Result:
    result, _ = train_rank_chunks(gathering, recipe, **options)
    return result
