"""Folds that keep every query whole."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.queries import Queries

Array = NDArray[Any]


def query_folds(queries: Queries, n_folds: int, order: Array | None = None) -> NDArray[np.int64]:
    """The fold of each row; all rows of a query have the same.

    Parameters
    ----------
    queries : Queries
        The rows by query; at least as many queries as folds.
    n_folds : int
        Number of folds.
    order : array (n_queries,), optional
        The order in which queries are dealt out; the largest first when absent.
    """
    sizes = np.diff(queries.offsets)
    by_query = fold_of_queries(sizes, n_folds, order)
    by_row: NDArray[np.int64] = queries.scatter(np.repeat(by_query, sizes))
    return by_row


def fold_of_queries(
    sizes: NDArray[np.int64], n_folds: int, order: Array | None = None
) -> NDArray[np.int64]:
    """The fold of each query by the numbers of their rows, which is all that it depends on.

    ``order`` is that in which queries are dealt out; the largest first when absent.
    """
    if len(sizes) < n_folds:
        raise ValueError(f"{len(sizes)} queries cannot fill {n_folds} folds; use fewer")
    if order is None:
        order = np.argsort(-sizes, kind="stable")
    return _deal(sizes, order, n_folds)


def row_folds(labels: Array, n_folds: int) -> NDArray[np.int64]:
    """The fold of each row of a single query: every fold gets its share of each label.

    With one query there is nothing to keep together; the rows are dealt out in order of label.
    """
    if len(labels) < n_folds:
        raise ValueError(f"{len(labels)} rows cannot fill {n_folds} folds; lower the number")
    fold = np.empty(len(labels), dtype=np.int64)
    fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % n_folds
    return fold


def _deal(sizes: NDArray[np.int64], order: NDArray[Any], n_folds: int) -> NDArray[np.int64]:
    """The fold of each query: one after the other to the fold with the fewest rows so far.

    Folds differ by at most the size of the largest query; equal folds are filled in turn, and the
    number of queries comes before the number of the fold, so that no fold stays empty.
    """
    fold = np.empty(len(sizes), dtype=np.int64)
    heap = [(0, 0, number) for number in range(n_folds)]
    for query in order.tolist():
        n_rows, n_queries, number = heap[0]
        fold[query] = number
        heapq.heapreplace(heap, (n_rows + int(sizes[query]), n_queries + 1, number))
    return fold
