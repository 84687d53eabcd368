"""Regularisation paths over chunks: what `linrank.pathwise` does, in passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.checks import check_numbers
from linrank.chunks.gathering import Gathering
from linrank.chunks.problem import ChunkedProblem, sizes_of
from linrank.chunks.recipes import RankRecipe
from linrank.chunks.training import train_rank_chunks
from linrank.pathwise import one_by_one
from linrank.planning import carried
from linrank.solvers.continuation import follow
from linrank.solvers.result import Callback, Result

__all__ = ["train_path_chunks"]

Array = NDArray[Any]


def train_path_chunks(
    gathering: Gathering,
    recipe: RankRecipe,
    Cs: Sequence[float],
    *,
    tol: float | None = None,
    max_iter: int | None = None,
    scale: Array | None = None,
    bounds: tuple[Array, Array] | None = None,
    capacity: int = 1 << 62,
    n_threads: int = 1,
    callback: Callback | None = None,
) -> Iterator[Result]:
    """Minimise the objective of `train_rank_chunks` for every C of the ascending ``Cs``.

    Each model starts from that of the C before, and costs no pass where that is certified for this
    C too. Parameters are those of `train_rank_chunks`; ``tol`` is that of
    `linrank.pathwise.train_path`: ``converged`` means a certified gap of at most ``tol·F``.
    """
    for C in Cs:
        check_numbers(C, tol, max_iter)
    if tol is None:
        tol = 1e-3 if recipe.loss == "hinge" else 1e-4
    options: dict[str, Any] = {"scale": scale, "capacity": capacity, "n_threads": n_threads}
    if recipe.loss == "hinge" or bounds is not None:
        fit = partial(_fit, gathering, recipe, max_iter=max_iter, bounds=bounds, **options)
        return one_by_one(fit, Cs, tol, callback, by_gap=recipe.loss == "hinge")
    problem = ChunkedProblem(gathering, recipe, sizes_of(gathering), float(Cs[0]), **options)
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
