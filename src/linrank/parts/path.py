"""Regularisation paths: of data in memory, or of parts wherever they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import weight_bounds
from linrank.data.dataset import Dataset
from linrank.data.queries import query_weights
from linrank.data.rows import ColumnStatistics
from linrank.data.scaling import Scaling
from linrank.errors import ConvergenceWarning
from linrank.io.store.outline import is_limited
from linrank.io.store.store import Store
from linrank.models.linear import LinearModel
from linrank.options import SELECTED_PAIRS
from linrank.parts.chunk import tree_sum
from linrank.parts.parts import Parts, StoreParts
from linrank.parts.recipes import RANK_KINDS, RankRecipe, only_queries, rank_recipe
from linrank.parts.risk import sizes_of
from linrank.parts.train import swap_recipe, train_path_chunks, weighs_by_measure
from linrank.ranksvm.path import PathResult, as_Cs, reporting, solve_path
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

    def model(self, result: Result, parts: Parts, **settings: Any) -> LinearModel:
        """The model of one of the results, with what it is to know of its training."""
        return LinearModel.of_sizes(
            result,
            parts.columns.feature_names,
            self.scaling,
            n_rows=parts.n_rows,
            n_queries=parts.n_queries,
            n_pairs=self.n_pairs,
            **settings,
        )


def path_of_parts(
    parts: Parts,
    recipe: RankRecipe,
    Cs: Array,
    *,
    scale: str = "none",
    positive: bool = False,
    coef_bounds: Any = None,
    kept: Sequence[Array] | None = None,
    progress: Callable[[Result], None] | None = None,
    **options: Any,
) -> PartsPath:
    """Train for every C; ``Cs`` as `linrank.ranksvm.path.as_Cs` returns them.

    Parameters
    ----------
    parts : Parts
        The data.
    recipe : RankRecipe
        The losses; scaling within queries is decided by ``scale``.
    scale, positive, coef_bounds
        As in :class:`linrank.RankSVM`.
    kept : sequence of arrays of bool, optional
        The queries to train on, part by part; all if None.
    progress : callable, optional
        Called with the result of each C.
    **options
        ``tol``, ``max_iter`` and ``callback``, as in `linrank.parts.train.train_path_chunks`.
    """
    scaling = scaling_of(parts, scale, kept)
    recipe = replace(recipe, by_query=scaling.needs_queries)
    how: dict[str, Any] = {
        "scale": scaling.factors,
        "bounds": weight_bounds(positive, coef_bounds, parts.columns, scaling.factors),
        "capacity": parts.capacity,
        "n_threads": parts.n_threads,
    }
    n_pairs = 0
    if weighs_by_measure(recipe):
        recipe, _, n_pairs = swap_recipe(parts, recipe, kept, **how)
    with parts.opened(recipe, kept) as chunks:
        found = train_path_chunks(chunks, recipe, Cs.tolist(), **how, **options)
        results = list(reporting(found, progress))
        n_pairs = n_pairs or sum(size.n_pairs for size in sizes_of(chunks))
    path = PathResult.of(Cs, results, scaling, n_features=parts.columns.n_features)
    return PartsPath(path, scaling, n_pairs)


def scaling_of(parts: Parts, scale: str, kept: Sequence[Array] | None = None) -> Scaling:
    """The scaling for the rows of some queries, all if ``kept`` is None: one pass at most."""
    if Scaling.is_plain(scale):
        return Scaling(scale)
    if kept is None and parts.statistics is not None:
        return Scaling.of_statistics(scale, parts.statistics)
    own = None if kept is None else [(np.flatnonzero(mask),) for mask in kept]
    with parts.opened(None) as data:
        found: list[ColumnStatistics] = data.each(statistics_of_queries, per_chunk=own)
    return Scaling.of_statistics(scale, tree_sum(found))


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
    pair_weighting: str = "uniform",
    n_rounds: int = 1,
    solver: str = "newton",
    tol: float | None = None,
    max_iter: int | None = None,
    scale: str = "none",
    query_normalization: str | None = None,
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
    26 of them cost about as much as five fits.

    Parameters
    ----------
    X, y, qid, group, sample_weight, query_weight
        The data, as in :meth:`linrank.RankSVM.fit`; a :class:`linrank.Store` stands for all but
        query_weight.
    Cs : "auto" or array of float
        Weights of the pair losses, > 0; sorted, and each used once. ``"auto"`` is 2^-15, 2^-14,
        ..., 2^10.
    loss, pairs, n_closest, n_random, pair_weighting, n_rounds, solver
        As in :class:`linrank.RankSVM`. The squared hinge by ``newton`` is what the path is fast
        for; other combinations fit one C after the other, each from the last.
    tol : float or None, default=None
        Each model is improved until its certified duality gap is at most ``tol·F(w)``: 1e-4 if
        None, or 1e-3 for the hinge and for ``solver="bundle"``. For the squared hinge this is
        stricter than the `tol` of ``RankSVM``, which looks at an estimate.
    max_iter : int or None, default=None
        Steps at most for each C; 100 if None, of the bundle 2000.
    scale : {"none", "standard", "minmax", "query"}, default="none"
        Feature scaling, folded into ``coefs``.
    query_normalization : {None, "pairs"}, default=None
        ``"pairs"`` makes every query count the same.
    positive, coef_bounds
        Bounds of the coefficients, as in :class:`linrank.RankSVM`; every C is then a fit of its
        own, from the last.
    random_state : int, RandomState, Generator or None, default=None
        Of the pairs drawn for ``pairs="closest"`` and ``"pruned"``, the same for every C.
    memory_limit : int, float, str or None, default=None
        As in :class:`linrank.RankSVM`: what the process may have in memory, for a store that is
        then read pass after pass.
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
    grid = as_Cs(Cs)
    if isinstance(data, Dataset):
        options["query_weight"] = query_weights(query_weight, data.queries)
        options["seed"] = seed_of(random_state) if options.get("pairs") in SELECTED_PAIRS else 0
        path, _ = solve_path(data, grid, n_jobs=n_jobs, **options)
    else:
        kinds = {name: options.pop(name) for name in RANK_KINDS if name in options}
        recipe = rank_recipe(data.where, query_weight, **kinds)
        for name in ("n_closest", "n_random"):
            options.pop(name, None)
        path = path_of_parts(data, recipe, grid, **options).path
    if path.doubt:
        warnings.warn(path.doubt, ConvergenceWarning, stacklevel=3)
    return path
