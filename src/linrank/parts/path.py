"""Regularisation paths: of data in memory, or of parts wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import weight_bounds
from linrank.data.curves import SAMPLE
from linrank.data.dataset import Dataset, join_rows
from linrank.data.queries import query_weights
from linrank.data.rows import ColumnStatistics, DenseRows
from linrank.data.scaling import BY_COLUMN, Scaling
from linrank.domination.path import DominationPathResult, alphas_by_slopes, until_wide
from linrank.io.store.store import Store, is_limited
from linrank.models.design import Design, Shape, with_dense_rows
from linrank.options import AUTO, PAIRS, SELECTED_PAIRS, SOLVERS
from linrank.parts.chunk import tree_sum
from linrank.parts.parts import Parts
from linrank.parts.passes import StoreParts
from linrank.parts.recipes import (
    RANK_KINDS,
    DominationRecipe,
    RankRecipe,
    only_queries,
    rank_recipe,
)
from linrank.parts.risk import Totals, evaluate, sizes_of
from linrank.parts.train import swap_recipe, train_path_chunks, weighs_by_measure
from linrank.ranksvm.path import (
    PathResult,
    as_Cs,
    reporting,
    solve_path,
    warn_unless_certified,
)
from linrank.ranksvm.settings import Facts, is_open, settled, unit_in_memory, weighing
from linrank.ranksvm.train import Balance
from linrank.solvers.result import Callback, Result
from linrank.system.resources import resolve
from linrank.system.seeds import seed_of

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PartsPath:
    """A path, the scaling that went with it, and the number of pairs that it was trained on."""

    path: PathResult
    scaling: Scaling
    n_pairs: int
    design: Design | None = None


def path_of_parts(
    parts: Parts,
    recipe: Any,
    values: Array,
    *,
    scale: str = "none",
    positive: bool = False,
    coef_bounds: Any = None,
    shape: Shape | None = None,
    kept: Sequence[Array] | None = None,
    progress: Callable[[Result], None] | None = None,
    max_features: int | None = None,
    **options: Any,
) -> PartsPath:
    """Train for every C, ascending, or every alpha, descending, as the recipe has it.

    Parameters
    ----------
    parts : Parts
        The data.
    recipe : RankRecipe or DominationRecipe
        The losses; scaling within queries is decided by ``scale``.
    scale, positive, coef_bounds
        As in :class:`linrank.RankSVM`.
    shape : Shape or None
        Of an additive model, in place of a linear one.
    kept : sequence of arrays of bool, optional
        The queries to train on, part by part; all if None.
    progress : callable, optional
        Called with each result.
    max_features : int, optional
        The path ends with the first model of more weights.
    **options
        ``tol``, ``max_iter`` and ``callback``, as in `linrank.parts.train.train_path_chunks`.
    """
    scaling = scaling_of(parts, scale, kept)
    design, columns = None, parts.columns
    if shape is not None:
        design = design_of(parts, shape, kept)
        columns, coef_bounds = design.dataset(columns), design.bounds
    recipe = replace(recipe, by_query=scaling.needs_queries, design=design)
    how: dict[str, Any] = {
        "scale": scaling.factors,
        "bounds": weight_bounds(positive, coef_bounds, columns, scaling.factors),
        "capacity": parts.sample_rows(recipe),
        "n_threads": parts.n_threads,
    }
    n_pairs = 0
    if weighs_by_measure(recipe):
        recipe, _, n_pairs = swap_recipe(parts, recipe, kept, **how)
    with parts.opened(recipe, kept) as chunks:
        found = train_path_chunks(chunks, recipe, values.tolist(), **how, **options)
        results = list(reporting(until_wide(found, max_features), progress))
        n_pairs = n_pairs or sum(size.n_pairs for size in sizes_of(chunks))
    varies = np.ones(columns.n_features, dtype=bool)  # the others have their weights already
    kind = DominationPathResult if recipe.parameter == "alpha" else PathResult
    path = kind.of(values, results, scaling, varies, parameter=recipe.parameter)
    return PartsPath(path, scaling, n_pairs, design)


def scaling_of(parts: Parts, scale: str, kept: Sequence[Array] | None = None) -> Scaling:
    """The scaling for the rows of some queries, all if ``kept`` is None: one pass at most."""
    if scale not in BY_COLUMN:
        return Scaling(scale)
    return Scaling.of_statistics(scale, _statistics(parts, kept))


def _statistics(parts: Parts, kept: Sequence[Array] | None) -> ColumnStatistics:
    if kept is None and parts.statistics is not None:
        return parts.statistics
    own = None if kept is None else [(np.flatnonzero(mask),) for mask in kept]
    with parts.opened(None) as data:
        found: list[ColumnStatistics] = data.each(statistics_of_queries, per_chunk=own)
    return tree_sum(found)


def design_of(parts: Parts, shape: Shape, kept: Sequence[Array] | None = None) -> Design:
    """The columns of curves for the rows of some queries, all if ``kept`` is None.

    Knots are those of a sample, which is that of the same rows in memory where these have the same
    order and no weight is 0; landmarks of interactions are drawn from it. One pass or two.
    """
    masks = [np.ones(len(part), dtype=bool) for part in parts.lengths] if kept is None else kept
    ends = np.cumsum([int(part[own].sum()) for part, own in zip(parts.lengths, masks, strict=True)])
    n_rows = int(ends[-1])
    index = np.arange(min(SAMPLE, n_rows)) * n_rows // max(1, min(SAMPLE, n_rows))
    local = np.split(index, np.searchsorted(index, ends[:-1]))
    per_part = [
        (rows - begin, None if kept is None else np.flatnonzero(own)) if len(rows) else None
        for rows, begin, own in zip(local, [0, *ends[:-1].tolist()], masks, strict=True)
    ]
    with parts.opened(None) as data:
        drawn = data.each(rows_of_queries, per_chunk=per_part)
    statistics = _statistics(parts, kept)
    if kept is None:
        parts.statistics = statistics
    rows = join_rows([part for part in drawn if part is not None])
    sample = replace(parts.columns, rows=rows, labels=np.zeros(rows.shape[0]), qid=None)
    # A chunk's columns are stored: their Hessian is wanted as well.
    return replace(shape, by_products=False).fit(sample, parts.n_threads, statistics)


def rows_of_queries(
    data: Dataset, index: Array, kept: Array | None, *, n_threads: int = 1
) -> DenseRows:
    """Some rows of the queries ``kept``, all if None, by their number among them, in a copy."""
    if kept is not None:
        index = np.sort(np.asarray(data.queries.select(kept).order))[index]
    if data.weight is not None:
        index = index[data.weight[index] > 0.0]
    found = with_dense_rows(data.select(index)).rows
    return DenseRows(np.array(found.to_user()))


def facts_of(parts: Dataset | Parts, n_jobs: int | None = None) -> Facts:
    """What the settings depend on, in one pass."""
    if isinstance(parts, Dataset):
        return Facts.of(parts, n_threads=resolve(n_jobs))
    known = parts.statistics
    empty = None if known is None else ColumnStatistics.empty(known.n_columns)
    with parts.opened(None) as data:
        found: Facts = tree_sum(data.each(facts_of_part, empty))
    return found if known is None else replace(found, statistics=known)


def facts_of_part(
    data: Dataset, known: ColumnStatistics | None, by_query: bool = False, *, n_threads: int = 1
) -> Facts:
    """The same of one part, ``by_query`` of rows that are scaled within their queries."""
    if by_query:
        data = Scaling("query").transformed(data, n_jobs=n_threads)
    return Facts.of(data, known, n_threads)


def balance_of(parts: Parts, scaling: Scaling, facts: Facts | None = None) -> Balance:
    """C Σω where C is "auto"."""
    facts = seen = facts or facts_of(parts)
    if scaling.needs_queries:
        with parts.opened(None) as data:
            seen = tree_sum(data.each(facts_of_part, None, True))
    return facts.balance(seen.spread(scaling))


def unit_of(
    parts: Parts,
    recipe: RankRecipe,
    scale: str,
    facts: Facts | None = None,
    shape: Shape | None = None,
) -> float:
    """The C that "auto" is, and grids are multiples of."""
    if shape is None:
        balance = balance_of(parts, scaling_of(parts, scale), facts)
    else:
        balance = (facts or facts_of(parts)).balance(design_of(parts, shape).spread)
    with parts.opened(replace(recipe, **weighing(vars(recipe)))) as chunks:
        weight = sum(size.weight for size in sizes_of(chunks))
    return balance / weight if weight > 0 else float(balance)


def alphas_of(
    parts: Parts, recipe: DominationRecipe, scale: str, shape: Shape | None, *how: Any
) -> Array:
    """The grid "auto" of alpha; ``how`` are the number of values and eps."""
    scaling = scaling_of(parts, scale)
    design = None if shape is None else design_of(parts, shape)
    recipe = replace(recipe, by_query=scaling.needs_queries, design=design)
    n_columns = parts.columns.n_features if design is None else design.n_columns
    with parts.opened(recipe) as chunks:
        start: Totals = chunks.total(evaluate, np.zeros(n_columns), 1.0, False, True)
    assert start.varies is not None  # it was asked for
    slopes = np.where(start.varies, start.gradient, 0.0)
    slopes = slopes if scaling.factors is None else scaling.factors * slopes
    return alphas_by_slopes(slopes, start.value, "l2", *how)


def statistics_of_queries(
    data: Dataset, kept: Array | None = None, *, n_threads: int = 1
) -> ColumnStatistics:
    """The moments of the columns over the rows of the queries ``kept``, all if None."""
    if kept is not None and len(kept) < data.queries.n_queries:
        data = only_queries(data, kept)
    return ColumnStatistics.of(data.rows, data.weight, n_threads)


def ranksvm_path(
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    Cs: Any = "auto",
    loss: str = "squared_hinge",
    pairs: str = "all",
    n_closest: int | str = "auto",
    n_random: int | str = "auto",
    pair_weighting: str = AUTO,
    n_rounds: int = 1,
    solver: str = "newton",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: str = AUTO,
    query_normalization: str | None = AUTO,
    positive: bool = False,
    coef_bounds: Any = None,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    random_state: Any = None,
    memory_limit: float | str | None = None,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> PathResult:
    """Fit ``RankSVM`` for many C at once, each model certified to ``tol``.

    For every C the objective is ``½‖w‖² + C Σ ω_ij l(1 - w·(x_i - x_j))``, as in
    :class:`linrank.RankSVM`. Each model starts from that of the C before; with the squared hinge,
    25 of them cost about as much as five fits.

    Parameters
    ----------
    X, y, qid, group, sample_weight, query_weight
        The data, as in :meth:`linrank.RankSVM.fit`; a :class:`linrank.Store` stands for all but
        query_weight.
    Cs : "auto" or array of float
        Weights of the pair losses, > 0; sorted, and each used once. ``"auto"`` is 2^-10, 2^-9,
        ..., 2^14 times the C of ``RankSVM(C="auto")``.
    loss, pairs, n_closest, n_random, pair_weighting, n_rounds, solver
        As in :class:`linrank.RankSVM`. The squared hinge by ``newton`` is what the path is fast
        for; other combinations fit one C after the other, each from the last.
    tol : float or None, default=None
        Each model is improved until its certified duality gap is at most ``tol·F(w)``: 1e-4 if
        None, or 1e-3 for the hinge and for ``solver="bundle"``. For the squared hinge this is
        stricter than the `tol` of ``RankSVM``, which looks at an estimate.
    max_iter : int or None, default=None
        Steps at most for each C; 100 if None, of the bundle 2000.
    scale, query_normalization
        As in :class:`linrank.RankSVM`; the scaling is folded into ``coefs``.
    positive, coef_bounds
        Bounds of the coefficients, as in :class:`linrank.RankSVM`; every C is then a fit of its
        own, from the last.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, the same for every C.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVM`: bytes beyond what the process holds already, for a store
        that is then read pass after pass.
    n_jobs : int or None, default=None
        Threads; None or -1 means all cores. The result does not depend on it.
    callback : callable or None
        Called with the state of each iterate, ``"C"`` included; returning True ends the path with
        the values of C that are done.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> from linrank import make_ranking, ranksvm_path
    >>> data = make_ranking(n_queries=20, n_features=3, random_state=0)
    >>> path = ranksvm_path(data.X, data.y, data.qid, Cs=[0.01, 0.1, 1])
    >>> path.coefs.shape, bool((path.gaps <= 1e-4 * path.objectives).all())
    ((3, 3), True)
    """
    own = {"qid": qid, "group": group, "sample_weight": sample_weight}
    data: Any
    if is_limited(X, y, memory_limit, **own):
        data = StoreParts(X, memory_limit, resolve(n_jobs))
    else:
        data = X.dataset() if isinstance(X, Store) else Dataset.of(X, y, **own, n_jobs=n_jobs)
    return certified_path(
        data,
        Cs,
        query_weight=query_weight,
        n_closest=n_closest,
        n_random=n_random,
        random_state=random_state,
        n_jobs=n_jobs,
        loss=loss,
        pairs=pairs,
        pair_weighting=pair_weighting,
        n_rounds=n_rounds,
        solver=solver,
        query_normalization=query_normalization,
        tol=tol,
        max_iter=max_iter,
        scale=scale,
        positive=positive,
        coef_bounds=coef_bounds,
        callback=callback,
    )


# What the settings depend on beside the data.
_SETTLED_BY = {
    **dict.fromkeys(("scale", "pair_weighting", "query_normalization"), AUTO),
    **{"pairs": PAIRS[0], "solver": SOLVERS[0], "n_rounds": 1},
}


def certified_path(
    data: Dataset | Parts,
    Cs: Any = "auto",
    *,
    query_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    **options: Any,
) -> PathResult:
    """The path as users ask for it, wherever the rows are; a warning where a gap is too wide.

    ``options`` are the others of `ranksvm_path`; parts ignore what only listed pairs need.
    """
    as_Cs(Cs)
    options = {**_SETTLED_BY, **options}
    asked, facts = SimpleNamespace(**options), None
    if is_open(asked):
        facts = facts_of(data, n_jobs)
        options = vars(settled(asked, facts))
    if isinstance(data, Dataset):
        options["query_weight"] = query_weights(query_weight, data.queries)
        options["seed"] = seed_of(random_state) if options.get("pairs") in SELECTED_PAIRS else 0
        grid = as_Cs(Cs, lambda: unit_in_memory(data, facts, n_jobs=n_jobs, **options))
        path, _ = solve_path(data, grid, n_jobs=n_jobs, **options)
    else:
        kinds = {name: options.pop(name) for name in RANK_KINDS if name in options}
        recipe = rank_recipe(data.where, query_weight, **kinds)
        for name in ("n_closest", "n_random"):
            options.pop(name, None)
        grid = as_Cs(Cs, lambda: unit_of(data, recipe, options["scale"], facts))
        path = path_of_parts(data, recipe, grid, **options).path
    warn_unless_certified(path)
    return path
