"""Fits of estimators to a store: mapped where memory is not limited, else pass after pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.bounds import weight_bounds
from linrank.chunks.choices import check_domination, check_query_weight, check_rank
from linrank.chunks.recipes import DominationRecipe, RankRecipe
from linrank.chunks.stores import passes_over
from linrank.chunks.training import train_domination_chunks, train_rank_chunks
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.model import LinearModel
from linrank.monitor import Monitor
from linrank.scaling import Scaling
from linrank.store.store import Store
from linrank.threads import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linrank.solvers.result import Result

__all__ = ["columns_of", "fit_domination", "fit_ranksvm", "is_limited"]

_WHERE = "a store within memory_limit"


def is_limited(X: Any, y: Any, memory_limit: Any, **others: Any) -> bool:
    """Whether a fit is to go over a store in passes; what does not belong together is refused.

    ``others`` are arguments of ``fit`` that a store answers itself.
    """
    if not isinstance(X, Store):
        if memory_limit is not None:
            raise ValueError(
                f"memory_limit={memory_limit!r} is for a store, got {type(X).__name__}: what is in "
                "memory cannot be kept out of it; write it with linrank.Store.write, or leave "
                "memory_limit out"
            )
        return False
    for name, value in {"y": y, **others}.items():
        if value is not None:
            raise ValueError(f"{name} is part of the store {X.path}; call fit(store) without it")
    return memory_limit is not None


def columns_of(store: Store) -> Dataset:
    """A dataset with the columns of the store and no row: what checks of columns look at."""
    rows = DenseRows(np.empty((0, store.n_features), dtype=store.dtype))
    ids = np.empty(0, dtype=np.int64) if store.has_ids else None
    return Dataset(rows, np.empty(0), ids, feature_names=store.feature_names, source=store.path)


def fit_ranksvm(
    store: Store,
    sets: list[Dataset],
    ranker: Any,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    query_weight: Any,
) -> tuple[Result, LinearModel, Scaling, Monitor]:
    """Minimise the objective of a `linrank.RankSVM` in passes over the store.

    ``options`` are what `linrank.ranksvm.train` would be called with, ``settings`` what the model
    is to know of them.
    """
    kinds = ("loss", "pairs", "pair_weighting", "query_normalization")
    given = {name: options[name] for name in (*kinds, "solver", "counting")}
    check_rank(_WHERE, **given)
    weight = check_query_weight(query_weight)
    scaling = Scaling.of_statistics(ranker.scale, store.statistics)
    monitor = Monitor.of(ranker, sets, scaling)
    recipe = RankRecipe(
        **{name: options[name] for name in kinds},
        query_weight=weight,
        by_query=scaling.needs_queries,
    )
    n_threads = resolve(ranker.n_jobs)
    columns = columns_of(store)
    with passes_over(store, recipe, ranker.memory_limit, n_threads) as passes:
        result, problem = train_rank_chunks(
            passes,
            recipe,
            C=options["C"],
            tol=options["tol"],
            max_iter=options["max_iter"],
            scale=scaling.factors,
            bounds=weight_bounds(ranker.positive, ranker.coef_bounds, columns, scaling.factors),
            w0=ranker._start(scaling, store.n_features),
            capacity=passes.budget.capacity,
            n_threads=n_threads,
            callback=monitor,
        )
    model = _model(store, result, scaling, problem.n_pairs, settings)
    return result, model, scaling, monitor


def fit_domination(
    store: Store,
    sets: list[Dataset],
    ranker: Any,
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    query_weight: Any,
) -> tuple[Result, LinearModel, Scaling, Monitor]:
    """The same for a `linrank.DominationRanker`, with its l2 penalty."""
    check_domination(_WHERE, **options)
    weight = check_query_weight(query_weight)
    scaling = Scaling.of_statistics(ranker.scale, store.statistics)
    monitor = Monitor.of(ranker, sets, scaling)
    recipe = DominationRecipe(
        options["layers"], options["margin"], weight, by_query=scaling.needs_queries
    )
    n_threads = resolve(ranker.n_jobs)
    with passes_over(store, recipe, ranker.memory_limit, n_threads) as passes:
        result, problem = train_domination_chunks(
            passes,
            recipe,
            alpha=options["alpha"],
            tol=options["tol"],
            max_iter=options["max_iter"],
            scale=scaling.factors,
            w0=ranker._start(scaling, store.n_features),
            capacity=passes.budget.capacity,
            n_threads=n_threads,
            callback=monitor,
        )
    model = _model(store, result, scaling, problem.n_pairs, settings)
    return result, model, scaling, monitor


def _model(
    store: Store, result: Result, scaling: Scaling, n_pairs: int, settings: Mapping[str, Any]
) -> LinearModel:
    return LinearModel.of_sizes(
        result,
        store.feature_names,
        scaling,
        n_rows=store.n_rows,
        n_queries=store.n_queries,
        **{**settings, "n_pairs": n_pairs},
    )
