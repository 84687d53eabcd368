"""Partitions: distributed data as datasets on the workers, every query whole in one of them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from linrank.dask.clients import (
    Watch,
    client_of,
    delayed,
    release,
    released_on_error,
    results_of,
)
from linrank.dask.inputs import blocks_of, chunks_of, dataset_of_block, store_of
from linrank.dask.repair import (
    Repair,
    assign,
    check_on_split,
    move,
    refuse_split,
    split_queries,
)
from linrank.data.dataset import Dataset, join_ids
from linrank.data.queries import Queries
from linrank.data.rows import DenseRows
from linrank.errors import NoPairsError
from linrank.io.store.store import Store

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Partitions:
    """Datasets on the workers of a cluster, one a partition, none of them without rows.

    Attributes
    ----------
    futures : tuple of Future
        Each of a `linrank.Dataset`, checked; they are released when nobody holds this object, or
        at the end of a ``with``: the traceback of an error would hold it, and them.
    summaries : tuple of Summary
        Of the same datasets.
    query_ids : array (n_queries,) or None
        Ids of all queries by first appearance in the input, partition after partition; None
        without ids, when the rows of all partitions are one query.
    query_numbers : tuple of int64 arrays
        For each partition, where its queries are in `query_ids`, in their order there.
    repair : Repair
        What was moved to make split queries whole.
    store : Store or None
        What they were read from.
    """

    client: Client
    futures: tuple[Future, ...]
    summaries: tuple[Summary, ...]
    query_ids: Array | None
    query_numbers: tuple[Array, ...]
    repair: Repair = field(default_factory=Repair)
    store: Store | None = None

    def __enter__(self) -> Partitions:
        return self

    def __exit__(self, *_: object) -> None:
        release(self.futures)

    @property
    def columns(self) -> Dataset:
        """A data set with the same columns and no row."""
        ids = None if self.query_ids is None else self.query_ids[:0]
        rows = DenseRows(np.empty((0, self.n_features)))
        filling = None if self.store is None else self.store.filling
        names = self.summaries[0].feature_names
        return Dataset(rows, np.empty(0), ids, feature_names=names, filling=filling)

    @property
    def one_query(self) -> bool:
        """Whether the rows, of several partitions, are one query: no sum over partitions then."""
        return self.query_ids is None and len(self.futures) > 1

    @property
    def is_split(self) -> bool:
        """Whether a query has rows in several partitions: scores have to be gathered then."""
        if self.query_ids is None:
            return self.one_query
        return sum(map(len, self.query_numbers)) > len(self.query_ids)

    @property
    def n_rows(self) -> int:
        return sum(s.n_rows for s in self.summaries)

    @property
    def n_features(self) -> int:
        return self.summaries[0].n_features

    @property
    def n_queries(self) -> int:
        return 1 if self.query_ids is None else len(self.query_ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return sum(s.nbytes for s in self.summaries)

    @property
    def n_pairs(self) -> int:
        """Pairs within the partitions; not all of them where they are `one_query`."""
        return sum(s.n_pairs for s in self.summaries)

    @property
    def has_weights(self) -> bool:
        return self.summaries[0].weight is not None


def partitions_of(
    X: Any,
    y: Any = None,
    qid: Any = None,
    sample_weight: Any = None,
    client: Client | None = None,
    *,
    on_split: str = "repair",
    gathers: bool = False,
    patience: float = 60.0,
) -> Partitions:
    """Return distributed data as checked datasets on the workers, every query in one of them.

    Parameters
    ----------
    X : dask array or dataframe, list of delayed blocks or of futures, Store or its path
        The rows; see `linrank.dask.inputs.blocks_of`. A store is read by the workers, chunk by
        chunk: they must see its folder.
    y, qid, sample_weight : dask array or series, list of blocks, array, name of a column, or None
        One element a row. Without `qid`, all rows of all partitions are one query.
    client : distributed.Client, optional
        None takes the one in force.
    on_split : {"repair", "error", "gather"}
        What to do with a query whose rows lie in several partitions: move them to the one that
        holds most of them, raise, or leave them, for a training that gathers the scores.
    gathers : bool
        Whether the training is one that can.
    patience : float
        Seconds for which no worker may be there, or the scheduler silent.

    Raises
    ------
    TypeError, ValueError
        With the partition at fault, and the row where there is one.
    NoPairsError
        If no query has two different labels.
    ClusterError
        If the cluster is gone, or nobody works for so long.
    """
    check_on_split(on_split, gathers=gathers)
    watch = Watch(client_of(client), patience)
    if (store := store_of(X, y, qid, sample_weight)) is not None:
        lazy = chunks_of(store)
    else:
        blocks = blocks_of(X, y, qid, sample_weight)[1]
        lazy = [delayed(dataset_of_block, number, *block) for number, block in enumerate(blocks)]
    found = assembled(watch, lazy, on_split)
    with released_on_error(found.futures):
        _check_learnable(found)
    return replace(found, store=store)


def assembled(watch: Watch, lazy: Sequence[Any], on_split: str) -> Partitions:
    """Return what delayed tasks make as partitions of one dataset, their queries whole.

    Parameters
    ----------
    watch : Watch
        Of the client that runs them.
    lazy : sequence of Delayed
        Each a `Dataset`; those without rows are left out.
    on_split : {"repair", "error", "gather"}
        See `partitions_of`.
    """
    futures: list[Future] = watch.client.compute(list(lazy))
    with released_on_error(futures):
        return _whole(watch, futures, on_split)


def _whole(watch: Watch, futures: Sequence[Future], on_split: str) -> Partitions:
    summaries = _summaries(watch, futures, range(len(futures)))
    held = [p for p, summary in enumerate(summaries) if summary.n_rows > 0]
    if not held:
        raise ValueError(f"there are no rows in any of the {len(futures)} partitions")
    found = _with_queries(watch.client, [futures[p] for p in held], [summaries[p] for p in held])
    if found.query_ids is None or not len(split := split_queries(found.query_numbers)):
        return found
    if on_split == "error":
        refuse_split(found.query_ids, found.query_numbers, split, held)
    return found if on_split == "gather" else _repaired(watch, found, found.query_ids)


def _summaries(watch: Watch, futures: Sequence[Future], numbers: Sequence[int]) -> list[Summary]:
    name = f"linrank-summary-{uuid.uuid4().hex}"
    keys = [f"{name}-{number}" for number in numbers]
    lazy = watch.client.map(summary_of, list(numbers), list(futures), key=keys)
    return results_of(watch, lazy, numbers)


def _with_queries(
    client: Client, futures: Sequence[Future], summaries: Sequence[Summary]
) -> Partitions:
    """Partitions that are parts of one dataset, their queries numbered."""
    check_alike(summaries)
    ids = [s.ids for s in summaries if s.ids is not None]
    if not ids:
        numbers = tuple(np.zeros(1, np.int64) for _ in summaries)
        return Partitions(client, tuple(futures), tuple(summaries), None, numbers)
    census = Census.of(ids)
    return Partitions(client, tuple(futures), tuple(summaries), census.ids, census.numbers)


def _repaired(watch: Watch, found: Partitions, ids: Array) -> Partitions:
    """The same rows, moved so that no query is split."""
    moves = assign(found.query_numbers, [s.lengths for s in found.summaries])
    whole, repair = move(watch.client, found.futures, moves)
    changed = [p for p, future in enumerate(whole) if future is not found.futures[p]]
    summaries = list(found.summaries)
    numbers = [summaries[p].number for p in changed]
    with released_on_error(whole):
        fresh = _summaries(watch, [whole[p] for p in changed], numbers)
    for p, summary in zip(changed, fresh, strict=True):
        summaries[p] = summary
    held = [p for p, summary in enumerate(summaries) if summary.n_rows > 0]
    summaries = [summaries[p] for p in held]
    census = Census(ids, ()).renumbered([s.ids for s in summaries if s.ids is not None])
    return replace(
        found,
        futures=tuple(whole[p] for p in held),
        summaries=tuple(summaries),
        query_numbers=census.numbers,
        repair=repair,
    )


def _check_learnable(found: Partitions) -> None:
    summaries = found.summaries
    if found.has_weights and not any(s.weight for s in summaries):
        raise ValueError("sample_weight is zero everywhere; at least one weight must be > 0")
    if found.is_split:
        has_pairs = min(s.low for s in summaries) < max(s.high for s in summaries)
    else:
        has_pairs = found.n_pairs > 0
    if not has_pairs:
        raise NoPairsError(
            f"none of the {found.n_queries} queries in {len(summaries)} partitions has two "
            "different labels; check that qid is not a row id"
        )


# ---- what the client knows of them ---------------------------------------------------------------
_CLASSES = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings"}


@dataclass(frozen=True, eq=False)
class Summary:
    """A partition in a few numbers, and for each of its queries an id and 12 bytes.

    Attributes
    ----------
    number : int
        The partition, counted from 0 as the user gave them.
    n_rows, n_features, n_pairs, nbytes : int
        Sizes; pairs are those of queries as far as they are in this partition.
    feature_names : tuple of str or None
        Names of the columns, if they have any.
    ids : array (n_queries,) or None
        The queries in the order in which they first appear; None if the rows have no ids.
    lengths, n_levels : integer array (n_queries,)
        Rows and different labels of each query.
    low, high : float
        Least and largest label.
    weight : float or None
        Sum of the weights of the rows; None if they have none.
    """

    number: int
    n_rows: int
    n_features: int
    n_pairs: int
    nbytes: int
    feature_names: tuple[str, ...] | None
    ids: Array | None
    lengths: Array
    n_levels: Array
    low: float
    high: float
    weight: float | None

    @property
    def n_queries(self) -> int:
        return len(self.lengths)


def summary_of(number: int, data: Dataset) -> Summary:
    """Return the summary of partition `number`; it runs where the data are."""
    queries = data.queries
    return Summary(
        number,
        data.n_rows,
        data.n_features,
        queries.n_pairs,
        data.rows.nbytes,
        data.feature_names,
        None if data.qid is None else queries.ids,
        np.diff(queries.offsets),
        queries.n_levels,
        float(data.labels.min(initial=np.inf)),
        float(data.labels.max(initial=-np.inf)),
        None if data.weight is None else float(data.weight.sum()),
    )


def check_alike(summaries: Sequence[Summary]) -> None:
    """Refuse partitions that are no parts of one dataset, naming two that differ."""
    first = summaries[0]
    for other in summaries[1:]:
        both = f"partition {first.number} has {{}} but partition {other.number} has {{}}"
        if first.n_features != other.n_features:
            counts = both.format(f"{first.n_features} features", other.n_features)
            raise ValueError(f"{counts}; all partitions need the same columns")
        _check_names(first, other, both)
        for what, one, two in (
            ("qid", first.ids, other.ids),
            ("sample_weight", first.weight, other.weight),
        ):
            if (one is None) != (two is None):
                found = [f"no {what}" if v is None else what for v in (one, two)]
                raise ValueError(f"{both.format(*found)}; give {what} with all or with none")
        if first.ids is not None and other.ids is not None:
            kinds = [_CLASSES.get(a.dtype.kind, a.dtype.kind) for a in (first.ids, other.ids)]
            if kinds[0] != kinds[1] and "O" not in kinds:
                found = [f"qid of {a.dtype}" for a in (first.ids, other.ids)]
                raise ValueError(f"{both.format(*found)}; convert them to one type")


def _check_names(first: Summary, other: Summary, both: str) -> None:
    one, two = first.feature_names, other.feature_names
    if one == two:
        return
    if one is None or two is None:
        found = ["no column names" if names is None else "column names" for names in (one, two)]
        raise ValueError(f"{both.format(*found)}; give all of them as tables, or none")
    j = next(j for j, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    raise ValueError(
        f"{both.format(f'the column {one[j]!r} at {j}', f'{two[j]!r} there')}; "
        "select the same columns in the same order in all partitions"
    )


@dataclass(frozen=True, eq=False)
class Census:
    """The queries of all partitions, numbered by first appearance.

    They are the numbers that the queries have in memory, the partitions one after the other.

    Attributes
    ----------
    ids : array (n_queries,)
        The id of each query.
    numbers : tuple of int64 arrays
        For every partition, the numbers of its queries, in their order there.
    """

    ids: Array
    numbers: tuple[Array, ...]

    @classmethod
    def of(cls, parts: Sequence[Array]) -> Census:
        """Number the queries of partitions, given the distinct ids of each.

        Examples
        --------
        >>> Census.of([np.array([7, 3]), np.array([3, 9])]).numbers
        (array([0, 1]), array([1, 2]))
        """
        every = join_ids(parts)
        found = Queries.of(np.zeros(len(every)), every, n_jobs=1)
        by_position = np.repeat(np.arange(found.n_queries), np.diff(found.offsets))
        ends = np.cumsum([len(a) for a in parts])[:-1]
        ids = every[:0] if found.ids is None else found.ids
        return cls(ids, tuple(np.split(found.scatter(by_position), ends)))

    def renumbered(self, parts: Sequence[Array]) -> Census:
        """The same numbers for queries that lie in other partitions now, in another order."""
        return Census(self.ids, Census.of([self.ids, *parts]).numbers[1:])
