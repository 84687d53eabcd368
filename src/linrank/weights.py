"""Query weights as users give them, turned into one number per query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.data.frames import as_array
from linrank.data.vectors import as_part_weights, as_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.queries import Queries

__all__ = ["part_query_weights", "query_weights"]


def query_weights(weight: Any, queries: Queries) -> NDArray[np.float64] | None:
    """The factor ``c_q`` of the pair losses of each query, in the order of `queries`.

    Parameters
    ----------
    weight : None, mapping or array of shape (n_rows,) or (n_queries,)
        A mapping from query id to weight, which may hold further ids; the weight of each row's
        query, which must not vary within a query; or one weight per query, by first appearance.
    queries : Queries
        The queries of the rows.
    """
    if weight is None:
        return None
    if isinstance(weight, Mapping):
        return as_weights(_from_mapping(weight, queries), queries.n_queries, "query_weight")
    vector = as_array(weight, "query_weight")
    if vector.ndim == 1 and len(vector) != queries.n_rows:
        return _by_query(vector, queries)
    by_row = as_weights(vector, queries.n_rows, "query_weight")
    by_position = queries.gather(by_row)
    first = by_position[queries.offsets[:-1]]
    odd = np.flatnonzero(by_position != np.repeat(first, np.diff(queries.offsets)))
    if odd.size:
        q = int(np.searchsorted(queries.offsets, odd[0], side="right")) - 1
        raise ValueError(
            f"query_weight is {first[q]:g} and {by_position[odd[0]]:g} within query "
            f"{_name(queries, q)}; it must be constant within a query (weights of single rows go "
            "to sample_weight)"
        )
    return np.ascontiguousarray(first)


def part_query_weights(
    weight: Mapping[Any, Any] | None, queries: Queries
) -> NDArray[np.float64] | None:
    """The same for a part of the queries, by their ids: all of these may have weight 0."""
    return None if weight is None else _from_mapping(weight, queries)


def _by_query(weight: NDArray[Any], queries: Queries) -> NDArray[np.float64]:
    if len(weight) != queries.n_queries:
        raise ValueError(
            f"query_weight has {len(weight)} elements; give one for each of {queries.n_queries} "
            f"queries in order of first appearance, one for each of {queries.n_rows} rows, or a "
            "mapping from query id to weight"
        )
    return as_weights(weight, queries.n_queries, "query_weight")


def _from_mapping(weight: Mapping[Any, Any], queries: Queries) -> NDArray[np.float64]:
    if queries.ids is None:
        raise ValueError("query_weight maps query ids to weights, but there is no qid; pass qid")
    ids = queries.ids.tolist()
    absent = [id_ for id_ in ids if id_ not in weight]
    if absent:
        raise ValueError(
            f"query_weight has no weight for {len(absent)} of {len(ids)} queries, for instance "
            f"{absent[0]!r}; give one for every query id"
        )
    return as_part_weights([weight[id_] for id_ in ids], len(ids), "query_weight")


def _name(queries: Queries, q: int) -> str:
    return str(q) if queries.ids is None else repr(queries.ids.tolist()[q])
