"""Split queries made whole: which partition each goes to, and its rows, which travel by tasks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from distributed import Client, Future

from linrank.dask.clients import map_tasks
from linrank.data import Array, Dataset, Queries, join_datasets, keep_queries

_log = logging.getLogger("linrank.dask")
_SLACK = 1.25  # what a partition may hold, in shares of its own rows or of the mean


@dataclass(frozen=True, eq=False)
class Moves:
    """What has to move so that every query lies in one partition.

    Attributes
    ----------
    owner : dict of int to int
        The partition that each split query, by its number, is to lie in.
    shares : dict of (int, int) to int64 array
        For a source and a target, the split queries that come together in the target, as positions
        among the queries of the source; a target has a share of its own.
    n_rows : int
        Rows that move.
    """

    owner: dict[int, int] = field(default_factory=dict)
    shares: dict[tuple[int, int], Array] = field(default_factory=dict)
    n_rows: int = 0

    @property
    def leaving(self) -> dict[tuple[int, int], Array]:
        """The shares of other partitions than the target."""
        return {route: share for route, share in self.shares.items() if route[0] != route[1]}

    def departures(self) -> dict[int, Array]:
        """For each source, all queries that leave it, as positions among its queries."""
        gone: dict[int, list[Array]] = {}
        for (source, _), positions in self.leaving.items():
            gone.setdefault(source, []).append(positions)
        return {source: np.concatenate(several) for source, several in gone.items()}


def split_queries(numbers: Sequence[Array]) -> Array:
    """Return the queries that are in more than one partition, ascending.

    Examples
    --------
    >>> split_queries([np.array([0, 1]), np.array([1, 2]), np.array([3])])
    array([1])
    """
    return np.flatnonzero(np.bincount(np.concatenate(list(numbers))) > 1)


def assign(numbers: Sequence[Array], lengths: Sequence[Array]) -> Moves:
    """Return the moves that make split queries whole.

    A split query goes to the partition that holds most of its rows, among equals to the one with
    the fewest rows so far, then to the first. So that shuffled rows end in partitions of like size,
    one that would hold more than 1.25 times its own rows, or the mean, is passed over where another
    holder of the query has room; queries with many rows choose first.

    Parameters
    ----------
    numbers : sequence of int64 arrays
        For every partition, the numbers of its queries, from 0 on without gaps over all of them.
    lengths : sequence of int64 arrays
        For every partition, the rows of each of these queries.

    Examples
    --------
    >>> moves = assign([np.array([0, 1]), np.array([1, 2])], [np.array([5, 1]), np.array([3, 4])])
    >>> moves.owner, moves.leaving, moves.n_rows
    ({1: 1}, {(0, 1): array([1])}, 1)
    """
    split = split_queries(numbers)
    if len(split) == 0:
        return Moves()
    # Every occurrence of a query in a partition, ordered by query, then by partition.
    query = np.concatenate(list(numbers))
    order = np.argsort(query, kind="stable")
    query = query[order]
    part = np.repeat(np.arange(len(numbers)), [len(a) for a in numbers])[order]
    position = np.concatenate([np.arange(len(a)) for a in numbers])[order]
    rows = np.concatenate(list(lengths)).astype(np.int64)[order]
    owner = _owners(query, part, rows, split, len(numbers))
    target = np.full(query[-1] + 1, -1)
    target[split] = owner
    at = np.flatnonzero(target[query] >= 0)
    at = at[np.lexsort((position[at], target[query[at]], part[at]))]
    source, to = part[at], target[query[at]]
    heads = np.flatnonzero(np.diff(source, prepend=-1) | np.diff(to, prepend=-1))
    routes = zip(source[heads].tolist(), to[heads].tolist(), strict=True)
    return Moves(
        dict(zip(split.tolist(), owner.tolist(), strict=True)),
        dict(zip(routes, np.split(position[at], heads[1:]), strict=True)),
        int(rows[at][source != to].sum()),
    )


def _owners(query: Array, part: Array, rows: Array, split: Array, n_parts: int) -> Array:
    """The partition of each split query, in the order of ``split``; see `assign`."""
    starts = np.searchsorted(query, np.arange(query[-1] + 2))
    totals = np.add.reduceat(rows, starts[:-1])
    held = np.bincount(part, rows, n_parts)
    capacity = _SLACK * np.maximum(held, held.mean())
    is_whole = (np.diff(starts) == 1)[query]
    load = np.bincount(part[is_whole], rows[is_whole], n_parts)
    owner = np.empty(len(split), np.int64)
    for k in np.argsort(-totals[split], kind="stable").tolist():
        q = split[k]
        holders, theirs = (a[starts[q] : starts[q + 1]] for a in (part, rows))
        has_room = load[holders] + totals[q] <= capacity[holders]
        theirs = np.where(has_room, theirs, 0) if has_room.any() else theirs
        best = holders[theirs == theirs.max()]  # ascending: the first of equal loads is taken
        owner[k] = best[np.argmin(load[best])]
        load[owner[k]] += totals[q]
    return owner


@dataclass(frozen=True)
class Repair:
    """What was moved before the work began.

    Attributes
    ----------
    n_queries : int
        Queries that were split over partitions.
    n_rows : int
        Rows that moved to make them whole.
    n_partitions : int
        Partitions that gave or got rows.
    """

    n_queries: int = 0
    n_rows: int = 0
    n_partitions: int = 0


def refuse_split(ids: Array, numbers: Sequence[Array], split: Array, labels: Sequence[int]) -> None:
    """Raise for the first split query, naming its partitions; `labels` are their numbers."""
    first = int(split[0])
    id_ = ids[first : first + 1].tolist()[0]
    held = [str(label) for label, a in zip(labels, numbers, strict=True) if first in a]
    others = "" if len(split) == 1 else f" ({len(split)} queries are split)"
    raise ValueError(
        f"query {id_!r} is in partitions {', '.join(held)}{others}; keep the rows of a query in "
        "one partition, or use on_split='repair', which moves them"
    )


def move(client: Client, futures: Sequence[Future], moves: Moves) -> tuple[list[Future], Repair]:
    """Return the partitions with their split queries made whole, and what that took.

    Rows of a query come in the order of the partitions, then in their order there. Partitions
    that no row leaves or reaches are the given futures.

    Parameters
    ----------
    client : distributed.Client
        Runs the tasks.
    futures : sequence of Future
        Of data sets, one a partition.
    moves : Moves
        What goes where.
    """
    routes, gone, none = moves.leaving, moves.departures(), np.empty(0, np.int64)
    sources = [futures[s] for s, _ in routes]
    moved = map_tasks(client, "moved", rows_of, sources, [*routes.values()])
    pieces = dict(zip(routes, moved, strict=True))
    changed = sorted({p for route in routes for p in route})
    came = [sorted(route for route in routes if route[1] == p) for p in changed]
    rejoined = map_tasks(
        *(client, "whole", _rejoin),
        [[pieces[s, t] for s, t in own if s < t] for own in came],
        [futures[p] for p in changed],
        [gone.get(p, none) for p in changed],
        [[pieces[s, t] for s, t in own if s > t] for own in came],
    )
    whole = list(futures)
    for p, future in zip(changed, rejoined, strict=True):
        whole[p] = future
    _log.info(
        "%d queries were split over partitions: %d rows moved between %d of %d partitions",
        *(len(moves.owner), moves.n_rows, len(changed), len(futures)),
    )
    return whole, Repair(len(moves.owner), moves.n_rows, len(changed))


def rows_of(data: Dataset, which: Array) -> Dataset:
    """The rows of some queries of a partition."""
    return data.select(data.queries.select(which).order)


def _rejoin(before: list[Dataset], own: Dataset, gone: Array, after: list[Dataset]) -> Dataset:
    """A partition less the queries that left it, between what came from those around it."""
    kept = [own]
    if len(gone):
        mask = np.ones(own.n_rows, bool)
        mask[own.queries.select(gone).order] = False
        kept = [own.select(mask)] if mask.any() else []
    parts = [*before, *kept, *after]
    # All gone and none came: no rows, yet an object whose summary can be taken.
    return join_parts(parts) if parts else own.select(np.empty(0, np.int64))


def join_parts(parts: Sequence[Dataset]) -> Dataset:
    """Return the rows of datasets, which are alike, as one; on one thread, as a worker has many."""
    joined = join_datasets(parts)
    return keep_queries(joined, Queries.of(joined.labels, joined.qid, n_jobs=1))
