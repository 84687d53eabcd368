"""Fits of estimators to a store: as a whole where memory is not limited, else in passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.bounds import weight_bounds
from linrank.chunks.stores import train_domination_store, train_rank_store
from linrank.data.dataset import Dataset
from linrank.model import LinearModel
from linrank.monitor import Monitor
from linrank.scaling import Scaling
from linrank.store.outline import columns_of
from linrank.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linrank.solvers.result import Result

__all__ = ["fit_domination", "fit_ranksvm", "is_limited", "model_of"]

Fitted = tuple["Result", int, Scaling, Monitor]  # and the number of pairs


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


def fit_ranksvm(
    store: Store, sets: list[Dataset], ranker: Any, options: Mapping[str, Any], query_weight: Any
) -> Fitted:
    """Minimise the objective of a `linrank.RankSVM` in passes over the store.

    ``options`` are what `linrank.ranksvm.train` would be called with.
    """
    scaling = Scaling.of_statistics(ranker.scale, store.statistics)
    monitor = Monitor.of(ranker, sets, scaling)
    bounds = weight_bounds(ranker.positive, ranker.coef_bounds, columns_of(store), scaling.factors)
    result, n_pairs = train_rank_store(
        store,
        scaling,
        bounds=bounds,
        **_asked(ranker, store.n_features, scaling, options, query_weight, monitor),
    )
    return result, n_pairs, scaling, monitor


def fit_domination(
    store: Store, sets: list[Dataset], ranker: Any, options: Mapping[str, Any], query_weight: Any
) -> Fitted:
    """The same for a `linrank.DominationRanker`, with its l2 penalty."""
    scaling = Scaling.of_statistics(ranker.scale, store.statistics)
    monitor = Monitor.of(ranker, sets, scaling)
    result, n_pairs = train_domination_store(
        store, scaling, **_asked(ranker, store.n_features, scaling, options, query_weight, monitor)
    )
    return result, n_pairs, scaling, monitor


def model_of(
    store: Store, result: Result, scaling: Scaling, settings: Mapping[str, Any], n_pairs: int
) -> LinearModel:
    """The model of a training on a store."""
    sizes = {"n_rows": store.n_rows, "n_queries": store.n_queries, "n_pairs": n_pairs}
    known = {**settings, **sizes}
    model = LinearModel.of_sizes(result, store.feature_names, scaling, **known)
    return model.knowing(store.statistics)


def _asked(
    ranker: Any,
    n_features: int,
    scaling: Scaling,
    options: Mapping[str, Any],
    query_weight: Any,
    monitor: Monitor,
) -> dict[str, Any]:
    return {
        "memory_limit": ranker.memory_limit,
        "options": options,
        "query_weight": query_weight,
        "w0": ranker._start(scaling, n_features),
        "n_jobs": ranker.n_jobs,
        "callback": monitor,
    }
