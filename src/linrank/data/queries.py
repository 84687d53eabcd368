"""Queries: the only place where query ids turn into offsets and labels into levels."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from linrank import _core
from linrank.data import frames
from linrank.data.rows import Array, CsrRows, DenseRows, Design
from linrank.errors import DataWarning, warn
from linrank.system.resources import cached_property, resolve

_SIZES = "group= takes sizes, the number of rows of each query; for ids, one per row, use qid="
_PARALLEL_ROWS = 100_000  # below this, ranking the labels takes less than a millisecond


@dataclass(frozen=True, eq=False)
class Queries:
    """Rows grouped by query, labels ranked inside each query.

    A *position* numbers the rows query by query: query ``q`` is the positions
    ``offsets[q]:offsets[q+1]``, in the order in which its rows were given. Queries are numbered by
    first appearance.

    Attributes
    ----------
    offsets : int64 array (n_queries + 1,)
        Where each query begins, by position.
    order : int64 array (n_rows,) or None
        Position ``t`` is row ``order[t]`` of the matrix; None if positions are rows, that is, if
        the rows of each query came together.
    levels : int32 array (n_rows,)
        Dense rank, from 0, of the label inside its query, by position.
    n_levels : int32 array (n_queries,)
        Number of different labels in each query.
    ids : array (n_queries,) or None
        The id of each query; None if there were no ids (one query).
    """

    offsets: Array
    order: Array | None
    levels: Array
    n_levels: Array
    ids: Array | None = None

    def __post_init__(self) -> None:
        # The core works by them while other threads run: nobody else may write to them.
        for name in ("offsets", "order", "levels", "n_levels"):
            found = getattr(self, name)
            if found is not None:
                object.__setattr__(self, name, frames.read_only(found))

    def __reduce__(self) -> tuple[Any, ...]:
        # Without what is cached, which may lie on a device.
        return type(self), tuple(getattr(self, one.name) for one in fields(self))

    @property
    def n_rows(self) -> int:
        return len(self.levels)

    @property
    def n_queries(self) -> int:
        return len(self.n_levels)

    @property
    def ranked(self) -> tuple[Array, Array, Array]:
        """Where queries begin and the levels of positions, as the core takes them."""
        return self.offsets, self.levels, self.n_levels

    @property
    def arrays(self) -> tuple[Array, Array | None, Array, Array]:
        """The same with the row of each position."""
        return self.offsets, self.order, self.levels, self.n_levels

    def query_of_rows(self) -> Array:
        """The number of the query of each row."""
        return self.scatter(np.repeat(np.arange(self.n_queries), np.diff(self.offsets)))

    @cached_property
    def pairs_per_query(self) -> Array:
        """Pairs (i above j) in each query, ``(l_q² - Σ_r n_qr²) / 2``, as int64."""
        return _core.count_pairs(self.levels, self.offsets, self.n_levels)

    @cached_property
    def n_pairs(self) -> int:
        """Pairs of all queries, exact: a Python integer cannot overflow."""
        # int64 sums of the two halves: each is exact below 2³¹ queries.
        high, low = self.pairs_per_query >> 32, self.pairs_per_query & 0xFFFFFFFF
        return (int(high.sum()) << 32) + int(low.sum())

    def select(self, which: Array) -> Queries:
        """Some of the queries, in the order of their numbers ``which``; the rows stay the same.

        Examples
        --------
        >>> Queries.of([0, 0, 0, 0], qid=[5, 6, 5, 7]).select(np.array([2, 0])).order.tolist()
        [3, 0, 2]
        """
        begins, sizes = self.offsets[which], np.diff(self.offsets)[which]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        positions = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)
        return Queries(
            offsets,
            positions if self.order is None else self.order[positions],
            self.levels[positions],
            self.n_levels[which],
            None if self.ids is None else self.ids[which],
        )

    def of_rows(self, index: Array) -> Queries | None:
        """The queries of some rows alone, at little cost; None where they are to be found by `of`.

        That is where the rows do not ascend, queries are cut, or their rows are not together.

        Examples
        --------
        >>> queries = Queries.of([0, 1, 0, 2], qid=[5, 5, 6, 7])
        >>> queries.of_rows(np.array([0, 1, 3])).offsets, queries.of_rows(np.array([0, 2]))
        (array([0, 2, 3]), None)
        """
        is_plain = self.order is None and len(index) > 0 and index[0] >= 0
        if not is_plain or (index[1:] <= index[:-1]).any():
            return None
        n_kept = np.diff(np.searchsorted(index, self.offsets))
        which = np.flatnonzero(n_kept)
        if not np.array_equal(n_kept[which], np.diff(self.offsets)[which]):
            return None
        offsets = np.concatenate([[0], np.cumsum(n_kept[which])])
        ids = None if self.ids is None else self.ids[which]
        return Queries(offsets, None, self.levels[index], self.n_levels[which], ids)

    def gather(self, a: Array) -> Array:
        """Return ``a``, given by row, by position (``a`` itself if rows are positions)."""
        return a if self.order is None else a[self.order]

    def scatter(self, a: Array) -> Array:
        """Return ``a``, given by position, by row: the inverse of `gather`."""
        if self.order is None:
            return a
        by_row = np.empty_like(a)
        by_row[self.order] = a
        return by_row

    @classmethod
    def of(
        cls, labels: Any, qid: Any = None, group: Any = None, *, n_jobs: int | None = None
    ) -> Queries:
        """Group rows by ``qid`` (an id per row) or ``group`` (rows per query, in order).

        Parameters
        ----------
        labels : array (n_rows,)
            Real labels; only their order inside a query matters.
        qid : array (n_rows,) of any hashable type, optional
            Query of each row, in any order. Without ``qid`` and ``group`` all rows are one query.
        group : integers (n_queries,), optional
            Sizes of consecutive queries; they sum to ``n_rows``.
        n_jobs : int, optional
            Threads; None uses all cores.

        Examples
        --------
        >>> queries = Queries.of([0, 2, 1, 5], qid=["b", "a", "b", "a"])
        >>> print(queries.ids, queries.order, queries.offsets, queries.levels)
        ['b' 'a'] [0 2 1 3] [0 2 4] [0 1 0 1]
        """
        labels = frames.as_labels(labels)
        if qid is not None and group is not None:
            raise ValueError("give qid (one id per row) or group (sizes), not both")
        if group is not None:
            sizes = as_sizes(group, len(labels))
            offsets, order = np.concatenate([[0], np.cumsum(sizes)]), None
            ids: Array | None = np.arange(len(sizes))
        elif qid is not None:
            by_row = as_ids(qid, len(labels))
            codes, first = _factorize(by_row)
            order, offsets, is_identity = _core.group_rows(codes, len(first))
            order, ids = None if is_identity else order, by_row[first]
        else:
            offsets, order, ids = np.array([0, len(labels)]), None, None
        threads = resolve(n_jobs) if len(labels) >= _PARALLEL_ROWS else 1
        levels, n_levels = _core.rank_levels(labels, offsets, order, threads)
        return cls(offsets, order, levels, n_levels, ids)


def query_runs(offsets: Array, most: int) -> Iterator[tuple[int, int]]:
    """Runs of whole queries, (first, last + 1), of at most so many rows, or of one with more.

    Examples
    --------
    >>> list(query_runs(np.array([0, 2, 3, 9, 10]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    first, n_queries = 0, len(offsets) - 1
    while first < n_queries:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last


class _Unsaid:
    """In place of query ids that nobody spoke of; None says that there are none."""

    def __repr__(self) -> str:
        return "<not given>"


UNSAID: Any = _Unsaid()
_FEWEST_GRADED = 20  # rows: fewer may well be one query
_MOST_GRADES = 31  # more are amounts, as of a regression


def warn_of_one_query(
    who: str, labels: Array, n_rows: int, n_levels: int, more: str = "", fewest: int = 0
) -> None:
    """Warn that rows of grades, which judges give query by query, are taken for one query.

    Parameters
    ----------
    who : str
        What takes them so.
    labels : array
        The labels, or the lowest and the highest of them. -1 and 1 are classes, no grades.
    n_rows, n_levels : int
        Number of rows, and of different labels.
    more : str
        The end of the message.
    fewest : int
        Do not warn of fewer rows.
    """
    low, high = float(labels.min()), float(labels.max())
    is_graded = 1 < n_levels <= min(_MOST_GRADES, n_rows // 4) and (low, high) != (-1.0, 1.0)
    if is_graded and n_rows >= max(_FEWEST_GRADED, fewest):
        warn(
            f"{who} got no query ids, and the labels look like grades ({n_levels} levels from "
            f"{low:g} to {high:g}): all rows count as one query, and each is compared with all. "
            "Pass qid= (the query of each row) or group= (rows of each query), or qid=None if it "
            f"is one query{more}",
            DataWarning,
        )


def as_sizes(group: Any, n_rows: int) -> Array:
    """Return the sizes of consecutive queries as int64, checked against ``n_rows``."""
    sizes = frames.as_array(group, "group")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        hint = "; convert them with .astype(int)" if sizes.dtype.kind == "f" else f"; {_SIZES}"
        raise ValueError(
            f"group must be a 1-D sequence of integer query sizes, "
            f"got shape {sizes.shape} and dtype {sizes.dtype}{hint}"
        )
    sizes = sizes.astype(np.int64, copy=False)
    if (q := frames.first_true(sizes < 1)) is not None:
        raise ValueError(f"group[{q}] is {sizes[q]}, no number of rows; {_SIZES}")
    if int(sizes.sum()) != n_rows:
        raise ValueError(
            f"group sizes sum to {int(sizes.sum())} but there are {n_rows} rows"
            f"{', as many as sizes' if len(sizes) == n_rows else ''}; {_SIZES}"
        )
    return sizes


def as_ids(qid: Any, n_rows: int) -> Array:
    """Return query ids as a 1-D array of ``n_rows`` elements, of any hashable type."""
    if frames.is_frame(qid):
        raise TypeError("qid is a table; pass the column of ids, as in X['qid'] (not X[['qid']])")
    found = frames.as_array(qid, "qid") if isinstance(qid, np.ndarray) else frames.read_column(qid)
    ids = found if isinstance(found, np.ndarray) else _from_sequence(found)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise ValueError(f"qid must be 1-D, one id per row; got shape {ids.shape}")
    if len(ids) != n_rows:
        raise ValueError(
            f"qid has {len(ids)} elements but there are {n_rows} rows; "
            "qid holds one id per row (pass query sizes as group)"
        )
    return ids


def _from_sequence(qid: Iterable[Hashable]) -> Array:
    """An array of a Python sequence; tuples are ids, not further dimensions."""
    if isinstance(qid, (str, bytes)) or not hasattr(qid, "__iter__"):
        raise TypeError(f"qid must hold one id per row, got {qid!r}")
    items = qid if isinstance(qid, (list, tuple)) else list(qid)
    kinds = set(map(type, items))
    if kinds <= {int} or kinds <= {str}:
        return np.asarray(items)  # out-of-range integers become an object array
    ids = np.empty(len(items), dtype=object)  # 1 and "1" differ; np.asarray would merge them
    ids[:] = items
    return ids


def _factorize(ids: Array) -> tuple[Array, Array]:
    """(codes, row of each first appearance); codes number the ids by first appearance."""
    if ids.dtype.kind == "f":
        if (row := frames.first_true(np.isnan(ids))) is not None:
            raise _no_id(row)
        # -0.0 and 0.0 are one id
        ids = (np.ascontiguousarray(ids, dtype=np.float64) + 0.0).view(np.int64)
    elif ids.dtype.kind not in "biu":
        return _factorize_objects(ids)
    elif ids.dtype == np.uint64:
        ids = ids.view(np.int64)  # the same bits: equal stays equal
    codes, first = _core.factorize(np.ascontiguousarray(ids, dtype=np.int64))
    return codes, first


def _factorize_objects(ids: Array) -> tuple[Array, Array]:
    """The same by a dictionary, which asks only for a hash; a run of strings costs one lookup."""
    if ids.dtype.kind in "US":
        heads = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])[: len(ids)])
    else:
        heads = np.arange(len(ids))
    numbers: dict[Hashable, int] = {}
    try:
        head_codes = [numbers.setdefault(id_, len(numbers)) for id_ in ids[heads].tolist()]
    except TypeError as error:
        raise TypeError(f"query ids must be hashable: {error}") from None
    codes = np.repeat(np.array(head_codes, dtype=np.int64), np.diff(np.append(heads, len(ids))))
    _, first = _core.factorize(codes)
    for id_, row in zip(numbers, first.tolist(), strict=True):
        is_nan = isinstance(id_, float) and id_ != id_
        if id_ is None or is_nan or type(id_).__name__ in ("NAType", "NaTType"):
            raise _no_id(row)
    return codes, first


def _no_id(row: int) -> ValueError:
    return ValueError(f"qid of row {row} is missing; every row belongs to a query")


def query_weights(weight: Any, queries: Queries) -> Array | None:
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
        return frames.as_weights(_from_mapping(weight, queries), queries.n_queries, "query_weight")
    vector = frames.as_array(weight, "query_weight")
    if vector.ndim == 1 and len(vector) != queries.n_rows:
        if len(vector) != queries.n_queries:
            raise ValueError(
                f"query_weight has {len(vector)} elements; give one for each of "
                f"{queries.n_queries} queries in order of first appearance, one for each of "
                f"{queries.n_rows} rows, or a mapping from query id to weight"
            )
        return frames.as_weights(vector, queries.n_queries, "query_weight")
    by_row = frames.as_weights(vector, queries.n_rows, "query_weight")
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


def part_query_weights(weight: Mapping[Any, Any] | None, queries: Queries) -> Array | None:
    """The same for a part of the queries, by their ids: all of these may have weight 0."""
    return None if weight is None else _from_mapping(weight, queries)


def _from_mapping(weight: Mapping[Any, Any], queries: Queries) -> Array:
    if queries.ids is None:
        raise ValueError("query_weight maps query ids to weights, but there is no qid; pass qid")
    ids = queries.ids.tolist()
    absent = [id_ for id_ in ids if id_ not in weight]
    if absent:
        raise ValueError(
            f"query_weight has no weight for {len(absent)} of {len(ids)} queries, for instance "
            f"{absent[0]!r}; give one for every query id"
        )
    return frames.as_part_weights([weight[id_] for id_ in ids], len(ids), "query_weight")


def _name(queries: Queries, q: int) -> str:
    return str(q) if queries.ids is None else repr(queries.ids.tolist()[q])


# ---- columns that no pair sees ------------------------------------------------------------------

_FIRST_ROWS, _MOST_VALUES = 1 << 9, 1 << 20  # compared at first, and at most at a time


def varying_columns(
    rows: Design, queries: Queries | None, candidates: Array | None = None
) -> Array:
    """Whether each column has two values within any query.

    Nearly all columns vary within the first rows, which are few; only the others are looked at
    further on, so that mostly a small part of the matrix is read.

    Parameters
    ----------
    rows : DenseRows, CsrRows or StreamedRows
        The columns; those that are computed block by block count as varying.
    queries : Queries or None
        How the rows are grouped; None if all are one query.
    candidates : bool array (n_columns,), optional
        The columns to be looked at; the others count as varying. All if None.

    Examples
    --------
    >>> rows = DenseRows(np.array([[1.0, 5.0], [2.0, 5.0], [2.0, 7.0]]))
    >>> varying_columns(rows, Queries.of([0, 1, 0], ["a", "a", "b"])).tolist()
    [True, False]
    """
    n_rows, n_columns = rows.shape
    same = np.ones(n_columns, dtype=bool) if candidates is None else candidates.copy()
    offsets = np.array([0, n_rows]) if queries is None else queries.offsets
    order = None if queries is None else queries.order
    if not isinstance(rows, DenseRows | CsrRows):
        return np.ones(n_columns, dtype=bool)
    begin, step, width = 0, _FIRST_ROWS, max(1, rows.values.size // max(1, n_rows))
    last = int(offsets[-1])
    while begin < last - 1 and same.any():
        end = min(begin + step + 1, last)
        # Sparse rows are counted query by query, dense ones compared with the next.
        if isinstance(rows, CsrRows):
            end = int(offsets[np.searchsorted(offsets, end)])
        index = slice(begin, end) if order is None else order[begin:end]
        starts = offsets[np.searchsorted(offsets, begin) : np.searchsorted(offsets, end)] - begin
        if isinstance(rows, CsrRows):
            _vary_sparse(rows.take(index), starts, same)
            begin = end
        else:
            _vary_dense(rows.take(index), starts, same)
            begin = end - 1
        step = min(2 * step, max(_FIRST_ROWS, _MOST_VALUES // width))
    return ~same


def _vary_dense(rows: DenseRows, starts: Array, same: Array) -> None:
    """Unmark columns in which a row differs from the one above, unless a query starts there."""
    columns = np.flatnonzero(same)
    values = rows.values if len(columns) == len(same) else rows.values[:, columns]
    differs = values[1:] != values[:-1]
    differs[starts[starts > 0] - 1] = False
    same[columns[differs.any(axis=0)]] = False


def _vary_sparse(rows: CsrRows, starts: Array, same: Array) -> None:
    """Unmark columns of which a query has two values, or not one in each of its rows."""
    sizes = np.diff(np.append(starts, rows.shape[0]))
    query = np.repeat(np.repeat(np.arange(len(starts)), sizes), np.diff(rows.offsets))
    kept = same[rows.columns] & (rows.values != 0)
    if not kept.any():
        return
    query, values = query[kept], rows.values[kept]
    key = query * np.int64(rows.n_columns) + rows.columns[kept]
    order = np.argsort(key, kind="stable")
    key, values = key[order], values[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    n_values = np.diff(np.append(first, len(key)))
    differs = np.minimum.reduceat(values, first) != np.maximum.reduceat(values, first)
    differs |= n_values != sizes[query[order][first]]
    same[rows.columns[kept][order][first][differs]] = False


# ---- folds that keep every query whole ----------------------------------------------------------


def query_folds(queries: Queries, n_folds: int, order: Array | None = None) -> Array:
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
    by_query = fold_of_queries(np.diff(queries.offsets), n_folds, order)
    return by_query[queries.query_of_rows()]


def fold_of_queries(sizes: Array, n_folds: int, order: Array | None = None) -> Array:
    """The fold of each query by the numbers of their rows, which is all that it depends on.

    One query after the other goes to the fold with the fewest rows so far. Folds differ by at most
    the size of the largest query; equal folds are filled in turn, and the number of queries comes
    before the number of the fold, so that no fold stays empty.

    ``order`` is that in which queries are dealt out; the largest first when absent.
    """
    if len(sizes) < n_folds:
        raise ValueError(f"{len(sizes)} queries cannot fill {n_folds} folds; use fewer")
    if order is None:
        order = np.argsort(-sizes, kind="stable")
    fold = np.empty(len(sizes), dtype=np.int64)
    heap = [(0, 0, number) for number in range(n_folds)]
    for query in order.tolist():
        n_rows, n_queries, number = heap[0]
        fold[query] = number
        heapq.heapreplace(heap, (n_rows + int(sizes[query]), n_queries + 1, number))
    return fold


def row_folds(labels: Array, n_folds: int) -> Array:
    """The fold of each row of a single query: every fold gets its share of each label.

    With one query there is nothing to keep together; the rows are dealt out in order of label.
    """
    if len(labels) < n_folds:
        raise ValueError(f"{len(labels)} rows cannot fill {n_folds} folds; lower the number")
    fold = np.empty(len(labels), dtype=np.int64)
    fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % n_folds
    return fold
