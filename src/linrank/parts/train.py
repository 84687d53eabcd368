"""Training on chunks: what `linrank.ranksvm.train.train` and the domination loss do, in passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from linrank.choices import PAIR_WEIGHTINGS
from linrank.data import Array, Box, Dataset, Scaling
from linrank.domination import each_from_last, minimize_ridge, until_wide
from linrank.errors import check_numbers
from linrank.losses.swaps import check_longest, swap_measure
from linrank.metrics import ERR, Measure
from linrank.parts.parts import Gathering, Parts
from linrank.parts.recipes import RankRecipe, Recipe, SwapRecipe
from linrank.parts.risk import ChunkedProblem, sizes_of
from linrank.ranksvm.path import follow_path, one_by_one, reporting
from linrank.ranksvm.train import FIRST, START, Balance, by_newton, default_tol
from linrank.solvers.result import Callback, Result


def train_parts(
    parts: Parts, recipe: Any, scaling: Scaling, *, bounds: Any = None, **options: Any
) -> tuple[Result, int]:
    """Train on parts wherever they are; the result, and the number of pairs.

    ``options`` are those of `train_chunks`.
    """
    recipe, how, start, n_pairs = _weigh_pairs(parts, recipe, scaling, bounds)
    if options.get("w0") is None:
        options["w0"] = start
    with parts.opened(recipe, is_last=True) as chunks:
        result, problem = train_chunks(chunks, recipe, **how, **options)
    return result, n_pairs or problem.n_pairs


def train_path_parts(
    parts: Parts,
    recipe: Any,
    scaling: Scaling,
    values: Sequence[float],
    *,
    bounds: Any = None,
    tol: float | None = None,
    max_iter: int | None = None,
    max_features: int | None = None,
    callback: Callback | None = None,
    progress: Callable[[Result], None] | None = None,
) -> tuple[list[Result], int]:
    """The same for every C, ascending, or every alpha, descending, of a path.

    Each model starts from that of the value before; of the squared hinge it costs no pass where
    that is certified for this C too. The path ends with the first model of more weights than
    ``max_features``; ``progress`` is called with each result. Other parameters are those of
    `train_chunks`; ``tol`` is that of `linrank.ranksvm.path.train_path`: ``converged`` means a
    certified gap of at most ``tol·F``.
    """
    for value in values:
        check_numbers(value, tol, max_iter)
    recipe, how, _, n_pairs = _weigh_pairs(parts, recipe, scaling, bounds)
    is_hinge, enough = recipe.loss == "hinge", tol or default_tol(recipe.loss)
    with parts.opened(recipe) as chunks:

        def fit(**options: Any) -> Result:
            return train_chunks(chunks, recipe, max_iter=max_iter, **how, **options)[0]

        found: Iterable[Result]
        if recipe.parameter == "alpha":
            found = each_from_last(partial(fit, tol=tol), values, callback)
        elif is_hinge or bounds is not None:
            found = one_by_one(fit, values, enough, callback, by_gap=is_hinge)
        else:
            problem = replace(_problem_of(chunks, recipe, **how), C=float(values[0]))
            path = follow_path(problem, values, enough, max_iter, callback)
            found = map(problem.conclude, path)
        results = list(reporting(until_wide(found, max_features), progress))
        n_pairs = n_pairs or sum(size.n_pairs for size in sizes_of(chunks))
    return results, n_pairs


def _weigh_pairs(
    parts: Parts, recipe: Any, scaling: Scaling, bounds: Any
) -> tuple[Any, dict[str, Any], Array | None, int]:
    """The recipe whose pairs have their weights, and the options of `train_chunks` beside it.

    Where a measure weighs the pairs, also where the training may begin and the number of pairs.
    """
    recipe = replace(recipe, by_query=scaling.needs_queries)
    how = {
        "scale": scaling.factors,
        "bounds": bounds,
        "capacity": parts.sample_rows(recipe),
        "n_threads": parts.n_threads,
    }
    start, n_pairs = None, 0
    if weighs_by_measure(recipe):
        recipe, start, n_pairs = swap_recipe(parts, recipe, **how)
    return recipe, how, start, n_pairs


def weighs_by_measure(recipe: Any) -> bool:
    """Whether pairs are to weigh what swapping them changes in a measure."""
    return getattr(recipe, "pair_weighting", PAIR_WEIGHTINGS[0]) not in PAIR_WEIGHTINGS


def swap_recipe(
    parts: Parts, recipe: RankRecipe, **how: Any
) -> tuple[RankRecipe, Array | None, int]:
    """The recipe of the last round of weighting by a measure, as `ranksvm.train.swapped_pairs`.

    Beside it where its training may begin, and the number of pairs of the labels. ``how`` are the
    options of `train_chunks`.
    """
    measure, scale = swap_measure(recipe.pair_weighting), how.get("scale")
    check_longest(measure, max(int(part.max(initial=0)) for part in parts.lengths))
    start = np.zeros(parts.columns.n_features if recipe.design is None else recipe.design.n_columns)
    parts.check_room(SwapRecipe(**vars(recipe), measure=measure, ranking=start))
    measure = with_highest_label(measure, parts)
    step = replace(recipe, pair_weighting=PAIR_WEIGHTINGS[0], query_normalization="pairs")
    w, n_pairs = None, 0
    for _ in range(recipe.n_rounds):
        with parts.opened(step) as chunks:
            found, problem = train_chunks(chunks, step, C=FIRST, tol=START, w0=w, **how)
        w, n_pairs = found.w, n_pairs or problem.n_pairs
        ranking = w if scale is None else scale * w
        step = SwapRecipe(**vars(recipe), measure=measure, ranking=ranking)
        if recipe.query_normalization is None:
            with parts.opened(step) as chunks:
                n_queries, weight = chunks.total(step.totals)
            step = replace(step, share=n_queries / weight if weight > 0 else 1.0)
    return step, w, n_pairs


def with_highest_label(measure: Measure, parts: Parts) -> Measure:
    """The measure with the highest label of all parts, if it looks at that."""
    if not isinstance(measure, ERR) or measure.y_max is not None:
        return measure
    return replace(measure, y_max=max(0.0, *parts.each(highest_label)))


def highest_label(data: Dataset, kept: Array | None, *, n_threads: int = 1) -> float:
    """The largest label of the queries ``kept``, all if None; -inf where there are none."""
    labels = data.labels if kept is None else data.labels[data.queries.select(kept).order]
    return float(labels.max(initial=-np.inf))


def train_chunks(
    gathering: Gathering,
    recipe: Recipe,
    *,
    C: float = 1.0,
    alpha: float = 1.0,
    tol: float | None = None,
    max_iter: int | None = None,
    w0: Array | None = None,
    callback: Callback | None = None,
    **how: Any,
) -> tuple[Result, ChunkedProblem]:
    """Minimize the objective of all chunks by Newton's method.

    It is that of RankSVM, or ``L(X D w) + alpha‖w‖²`` where L is the domination loss.

    Parameters
    ----------
    gathering : Gathering
        The chunks, made by ``recipe``.
    recipe : Recipe
        The losses.
    C, tol, max_iter, w0, callback
        As in `linrank.ranksvm.train.train`, with its defaults.
    alpha : float
        In place of C, of the domination loss; > 0.
    **how
        ``bounds``, as there, ``scale``, and ``capacity`` and ``n_threads`` of samples, as in
        `ChunkedProblem`.
    """
    is_rank = recipe.parameter == "C"
    check_numbers(C if is_rank else alpha, tol, max_iter)
    started = time.perf_counter()
    problem = _problem_of(gathering, recipe, **how)
    n_steps = 100 if max_iter is None else max_iter
    solving: dict[str, Any] = {"max_iter": n_steps, "callback": callback}
    if is_rank:
        problem = replace(problem, C=C / problem.weight if isinstance(C, Balance) else float(C))
        result = by_newton(problem, w0, tol=tol, started=started, **solving)
        return replace(problem.conclude(result), C=problem.C), problem
    problem = replace(problem, C=1.0 / (2.0 * alpha))
    found = minimize_ridge(problem, alpha=alpha, w0=w0, tol=1e-4 if tol is None else tol, **solving)
    return problem.conclude(found), problem


def _problem_of(
    gathering: Gathering, recipe: Recipe, bounds: tuple[Array, Array] | None = None, **how: Any
) -> ChunkedProblem:
    """The problem of all chunks; NoPairsError where there is nothing to learn from."""
    box = None if bounds is None else Box(*bounds)
    problem = ChunkedProblem(gathering, recipe, sizes_of(gathering), 1.0, box=box, **how)
    problem.check()
    return problem
