"""Partitions: distributed data as datasets on the workers, every query whole in one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from distributed import Client, Future

from linrank.dask.clients import (
    Watch,
    client_of,
    delay_task,
    map_tasks,
    release,
    release_on_error,
    results_of,
)
from linrank.dask.inputs import blocks_of, chunks_of, dataset_of_block, store_of
from linrank.dask.repair import Repair, assign, move, refuse_split, split_queries
from linrank.dask.rounds import DaskChunks, make_chunk
from linrank.data import Array, Dataset, DenseRows, Queries, join_ids
from linrank.errors import NoPairsError, check_one_of
from linrank.io.store.store import Store
from linrank.parts import MemoryParts, Parts, Recipe, gather_rows
from linrank.system.resources import resolve

# Of the rows that come to the client to find a start from. Ten times as many save no round on
# MSLR's shape, and cost the client as much as three products of two workers.
_SAMPLE_BYTES = 32 << 20
_SAMPLE_ROWS = 50  # for each feature: as many as a preconditioner wants, whatever their bytes


class Partitions(Parts):
    """Datasets on the workers of a cluster, one a partition, none of them without rows.

    They are a place to train on: the solver runs here, every pass there.

    Parameters
    ----------
    watch : Watch
        Of the client whose workers they are.
    futures : sequence of Future
        Each of a `linrank.Dataset`, checked; they are released when nobody holds this object, or
        at the end of a ``with``: the traceback of an error would hold it, and them.
    summaries : sequence of Summary
        Of the same datasets.
    query_ids : array (n_queries,) or None
        Ids of all queries by first appearance in the input, partition after partition; None
        without ids, when the rows of all partitions are one query.
    query_numbers : sequence of int64 arrays
        For each partition, where its queries are in `query_ids`, in their order there.
    repair : Repair or None
        What was moved to make split queries whole.
    store : Store or None
        What they were read from.
    checkpoint, resume
        As in `linrank.dask.checkpoints.Keeper`, of a training.
    keep : bool
        Whether the partitions are needed after a training. Its last chunks take the rows over
        otherwise: the datasets are forgotten at once, and the partitions are used up.

    Attributes
    ----------
    n_rounds, n_repeated : int
        Rounds of tasks so far, and those of them that had to be repeated.
    n_before : int
        Iterations of the fits that a training went on from.
    """

    where: ClassVar[str] = "a cluster"
    query_numbers: Sequence[Array] = ()  # a property of other places

    def __init__(
        self,
        watch: Watch,
        futures: Sequence[Future],
        summaries: Sequence[Summary],
        query_ids: Array | None,
        query_numbers: Sequence[Array],
        repair: Repair | None = None,
        store: Store | None = None,
        *,
        checkpoint: Any = None,
        resume: bool = False,
        keep: bool = False,
    ) -> None:
        self.checkpoint, self.resume, self.keep = checkpoint, resume, keep
        self.n_rounds = self.n_repeated = self.n_before = 0
        self._is_used_up = False
        self.watch, self.futures, self.summaries = watch, tuple(futures), tuple(summaries)
        self.query_ids, self.query_numbers = query_ids, tuple(query_numbers)
        self.repair, n_features = repair or Repair(), summaries[0].n_features
        columns = Dataset(
            DenseRows(np.empty((0, n_features))),
            np.empty(0),
            None if query_ids is None else query_ids[:0],
            feature_names=summaries[0].feature_names,
            filling=None if store is None else store.filling,
        )
        n_rows = sum(s.n_rows for s in summaries)
        super().__init__(columns, n_rows, 1 if query_ids is None else len(query_ids))
        # Rows that may come here as a sample; a twentieth of them all would not fit. It depends on
        # the data alone: with the number of workers in it, the result would.
        nbytes = sum(s.nbytes for s in summaries)
        row = max(1, nbytes // max(1, n_rows))
        self.capacity = max(_SAMPLE_ROWS * n_features, _SAMPLE_BYTES // row)
        self.row_bytes = max(1.0, nbytes / max(1, n_rows))
        if store is not None:
            self.statistics, self.index_base = store.statistics, store.index_base

    def __enter__(self) -> Partitions:
        return self

    def __exit__(self, *_: object) -> None:
        release(self.futures)

    @property
    def one_query(self) -> bool:
        """Whether the rows, of several partitions, are one query: no sum over partitions then."""
        return self.query_ids is None and len(self.futures) > 1

    @property
    def is_split(self) -> bool:
        """Whether a query has rows in several partitions: scores have to be gathered then."""
        return sum(map(len, self.query_numbers)) > self.n_queries

    @property
    def lengths(self) -> Sequence[Array]:
        return [summary.lengths for summary in self.summaries]

    @contextmanager
    def opened(self, recipe: Recipe | None, is_last: bool = False) -> Iterator[DaskChunks]:
        if self._is_used_up:
            raise RuntimeError("the partitions were released when a training opened them last")
        keep, futures = self.keep or not is_last, list(self.futures)
        if recipe is not None:
            kept = [None] * len(futures) if self.kept is None else list(self.kept)
            common = {"recipe": recipe, "is_shared": keep}
            futures = map_tasks(self.watch.client, "chunk", make_chunk, futures, kept, **common)
        numbers = [summary.number for summary in self.summaries]
        chunks = DaskChunks(self.watch, futures, numbers, is_shared=recipe is None)
        if not keep:
            self._is_used_up = True
            release(self.futures)
        try:
            yield chunks
        finally:
            self.n_rounds += chunks.n_rounds
            self.n_repeated += chunks.n_repeated
            chunks.release()

    @contextmanager
    def open_data(self) -> Iterator[Parts]:
        """The parts, or all rows by gathered scores where queries lie in several of them."""
        if not self.is_split:
            yield self
            return
        with self.opened(None) as blocks:
            yield MemoryParts(gather_rows(blocks), self.n_threads)


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
    n_jobs: int | None = None,
    checkpoint: Any = None,
    resume: bool = False,
    keep: bool = False,
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
    n_jobs : int or None
        Threads of the work on samples, which is done here.
    checkpoint, resume, keep
        Of a training, as `Partitions` have them.

    Raises
    ------
    TypeError, ValueError
        With the partition at fault, and the row where there is one.
    NoPairsError
        If no query has two different labels.
    ClusterError
        If the cluster is gone, or nobody works for so long.
    """
    check_one_of("on_split", on_split, ("repair", "error", *(["gather"] if gathers else [])))
    watch = Watch(client_of(client), patience)
    if (store := store_of(X, y, qid, sample_weight)) is not None:
        lazy = chunks_of(store)
    else:
        blocks = blocks_of(X, y, qid, sample_weight)[1]
        lazy = [delay_task(dataset_of_block, number, *block) for number, block in enumerate(blocks)]
    training = {"checkpoint": checkpoint, "resume": resume, "keep": keep}
    found = assemble(watch, lazy, on_split, store, **training)
    with release_on_error(found.futures):
        _check_learnable(found)
    found.n_threads = resolve(n_jobs)
    return found


def assemble(
    watch: Watch,
    lazy: Sequence[Any],
    on_split: str,
    store: Store | None = None,
    **training: Any,
) -> Partitions:
    """Return what delayed tasks make as partitions of one dataset, their queries whole.

    Parameters
    ----------
    watch : Watch
        Of the client that runs them.
    lazy : sequence of Delayed
        Each a `Dataset`; those without rows are left out.
    on_split : {"repair", "error", "gather"}
        See `partitions_of`.
    store : Store or None
        What they read.
    **training
        See `Partitions`.
    """
    futures: list[Future] = watch.client.compute(list(lazy))
    with release_on_error(futures):
        every = _summaries(watch, futures, range(len(futures)))
        held = [p for p, summary in enumerate(every) if summary.n_rows > 0]
        if not held:
            raise ValueError(f"there are no rows in any of the {len(futures)} partitions")
        futures, summaries = [futures[p] for p in held], [every[p] for p in held]
        check_alike(summaries)
        if summaries[0].ids is None:
            numbers = [np.zeros(1, np.int64) for _ in summaries]
            return Partitions(watch, futures, summaries, None, numbers, store=store, **training)
        ids, numbers = number_queries([s.ids for s in summaries])
        repair = None
        if len(split := split_queries(numbers)):
            if on_split == "error":
                refuse_split(ids, numbers, split, held)
            if on_split == "repair":
                futures, summaries, repair = _repair(watch, futures, summaries, numbers)
                numbers = number_queries([ids, *(s.ids for s in summaries)])[1][1:]
        return Partitions(watch, futures, summaries, ids, numbers, repair, store, **training)


def _summaries(watch: Watch, futures: Sequence[Future], numbers: Sequence[int]) -> list[Summary]:
    found = map_tasks(watch.client, "summary", summary_of, numbers, futures)
    return results_of(watch, found, numbers)


def _repair(
    watch: Watch, futures: Sequence[Future], summaries: Sequence[Summary], numbers: Sequence[Array]
) -> tuple[list[Future], list[Summary], Repair]:
    """The same rows, moved so that no query is split, and what that took."""
    whole, repair = move(watch.client, futures, assign(numbers, [s.lengths for s in summaries]))
    changed = [p for p, future in enumerate(whole) if future is not futures[p]]
    there = [summaries[p].number for p in changed]
    with release_on_error(whole):
        fresh = _summaries(watch, [whole[p] for p in changed], there)
    now = dict(enumerate(summaries)) | dict(zip(changed, fresh, strict=True))
    held = [p for p, summary in now.items() if summary.n_rows > 0]
    return [whole[p] for p in held], [now[p] for p in held], repair


def _check_learnable(found: Partitions) -> None:
    summaries = found.summaries
    if summaries[0].weight is not None and not any(s.weight for s in summaries):
        raise ValueError("sample_weight is zero everywhere; at least one weight must be > 0")
    if found.is_split:
        has_pairs = min(s.low for s in summaries) < max(s.high for s in summaries)
    else:
        has_pairs = any(s.n_pairs for s in summaries)
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


def number_queries(parts: Sequence[Any]) -> tuple[Array, list[Array]]:
    """The queries of partitions by first appearance, given the distinct ids of each.

    Returns the id of each query and, for every partition, the numbers of its queries in their
    order there: those that they have in memory, the partitions one after the other.

    Examples
    --------
    >>> number_queries([np.array([7, 3]), np.array([3, 9])])[1]
    [array([0, 1]), array([1, 2])]
    """
    every = join_ids(parts)
    found = Queries.of(np.zeros(len(every)), every, n_jobs=1)
    by_position = np.repeat(np.arange(found.n_queries), np.diff(found.offsets))
    ends = np.cumsum([len(a) for a in parts])[:-1]
    ids = every[:0] if found.ids is None else found.ids
    return ids, np.split(found.scatter(by_position), ends)
