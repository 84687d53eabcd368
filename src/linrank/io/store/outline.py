"""What is known of a store without its features: columns alone, or queries too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, DenseRows
from linrank.io.store.store import Store

Array = NDArray[Any]


def columns_of(store: Store) -> Dataset:
    """A dataset with the columns of the store and no row: what checks of columns look at."""
    rows = DenseRows(np.empty((0, store.n_features), dtype=store.dtype))
    ids = np.empty(0, dtype=np.int64) if store.has_ids else None
    return Dataset(rows, np.empty(0), ids, feature_names=store.feature_names, source=store.path)


def outline(store: Store) -> Dataset:
    """A dataset of the shape of a store, with its queries, names and ids, and nothing in its rows.

    What an estimator asks of its data beside the training itself needs no more; it takes some bytes
    a query, whatever the number of rows. Labels and levels are all 0.
    """
    lengths, n_levels = [], []
    names: list[Any] = []
    for i in range(store.n_chunks):
        part = store.read_queries(i)  # with a level for each row, which does not stay
        lengths.append(np.diff(part.offsets))
        n_levels.append(part.n_levels)
        names.append(part.ids)
    ids: Array | None = np.concatenate(names) if store.has_ids else None
    n_rows, zero = store.n_rows, np.zeros(1)
    rows = CsrRows(
        np.empty(0, store.dtype),
        np.empty(0, np.int32),
        np.broadcast_to(np.zeros(1, np.int64), n_rows + 1),
        store.n_features,
    )
    qid = None if ids is None else np.broadcast_to(ids[:1], n_rows)
    data = Dataset(
        rows,
        np.broadcast_to(zero, n_rows),
        qid,
        feature_names=store.feature_names,
        source=store.path,
        index_base=store.index_base,
    )
    data.__dict__["queries"] = Queries(
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        None,
        np.broadcast_to(np.zeros(1, np.int32), n_rows),
        np.concatenate(n_levels),
        ids,
    )
    return data


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
