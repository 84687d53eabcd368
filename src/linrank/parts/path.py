"""Regularisation paths of data in parts: scaling, chunks, the path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linrank.data.bounds import weight_bounds
from linrank.data.rows import ColumnStatistics
from linrank.data.scaling import Scaling
from linrank.models.linear import LinearModel
from linrank.parts.chunk import tree_sum
from linrank.parts.fold_recipes import FoldRecipe, statistics_of_queries
from linrank.parts.parts import Parts
from linrank.parts.recipes import RankRecipe
from linrank.parts.risk import sizes_of
from linrank.parts.train import train_path_chunks
from linrank.ranksvm.path import PathResult, reporting
from linrank.solvers.result import Callback, Result

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PartsPath:
    """A path, the scaling that went with it, and the sizes of what it was trained on."""

    path: PathResult
    scaling: Scaling
    n_rows: int
    n_queries: int
    n_pairs: int

    def model(self, result: Result, parts: Parts, **settings: Any) -> LinearModel:
        """The model of one of the results, with what it is to know of its training."""
        return LinearModel.of_sizes(
            result,
            parts.feature_names,
            self.scaling,
            n_rows=self.n_rows,
            n_queries=self.n_queries,
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
    tol: float | None = None,
    max_iter: int | None = None,
    callback: Callback | None = None,
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
    tol, max_iter, callback
        As in `linrank.parts.train.train_path_chunks`.
    """
    scaling = scaling_of(parts, scale, kept)
    recipe = replace(recipe, by_query=scaling.needs_queries)
    factors = None
    if kept is not None:
        recipe = FoldRecipe.of(recipe)
        factors = [mask.astype(np.float64) for mask in kept]
    with parts.opened(recipe, factors) as opened:
        sizes = sizes_of(opened.gathering)
        found = train_path_chunks(
            opened.gathering,
            recipe,
            Cs.tolist(),
            tol=tol,
            max_iter=max_iter,
            scale=scaling.factors,
            bounds=weight_bounds(positive, coef_bounds, cast(Any, parts), scaling.factors),
            capacity=opened.capacity,
            n_threads=opened.n_threads,
            callback=callback,
        )
        results = list(reporting(found, progress))
        path = PathResult.of(Cs, results, scaling, n_features=parts.n_features)
    return PartsPath(
        path,
        scaling,
        sum(size.n_rows for size in sizes),
        sum(size.n_queries for size in sizes),
        sum(size.n_pairs for size in sizes),
    )


def scaling_of(parts: Parts, scale: str, kept: Sequence[Array] | None = None) -> Scaling:
    """The scaling for the rows of some queries, all if ``kept`` is None: one pass at most."""
    if Scaling.is_plain(scale):
        return Scaling(scale)
    if kept is None and parts.statistics is not None:
        return Scaling.of_statistics(scale, parts.statistics)
    own = None if kept is None else [(np.flatnonzero(mask),) for mask in kept]
    with parts.opened(None) as data:
        found: list[ColumnStatistics] = data.gathering.each(statistics_of_queries, per_chunk=own)
    return Scaling.of_statistics(scale, tree_sum(found))
