"""Rows of some queries taken out of a dataset, and datasets put one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset, join_ids, join_optional, join_rows
from linrank.data.queries import Queries

Array = NDArray[Any]


def rows_of_queries(queries: Queries, which: Array) -> Array:
    """Return the rows of some queries, query by query, each in its order.

    Examples
    --------
    >>> rows_of_queries(Queries.of([0, 0, 0, 0], qid=[5, 6, 5, 7]), np.array([2, 0])).tolist()
    [3, 0, 2]
    """
    starts, sizes = queries.offsets[which], np.diff(queries.offsets)[which]
    ends = np.cumsum(sizes)
    # Position k of the result is position k - (its query's start there) + (its start here).
    positions = np.arange(int(ends[-1]) if len(ends) else 0)
    positions += np.repeat(starts - (ends - sizes), sizes)
    return positions if queries.order is None else queries.order[positions]


def join_datasets(parts: Sequence[Dataset]) -> Dataset:
    """Return the rows of datasets, one after the other; they are alike, as summaries tell."""
    first = parts[0]
    ids = [part.qid for part in parts]
    joined = Dataset(
        join_rows([part.rows for part in parts]),
        np.concatenate([part.labels for part in parts]),
        join_ids([a for a in ids if a is not None]),
        join_optional([part.weight for part in parts]),
        first.feature_names,
    )
    joined.__dict__["queries"] = Queries.of(joined.labels, joined.qid, n_jobs=1)
    return joined
