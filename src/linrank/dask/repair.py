"""Split queries made whole: only their rows travel, by ordinary tasks."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from linrank.dask.assignment import Moves
from linrank.dask.joining import rows_of_queries
from linrank.data.queries import Queries

Array = NDArray[Any]
ON_SPLIT = ("repair", "error")
_log = logging.getLogger("linrank.dask")


class Movable(Protocol):
    """Rows in queries that can be taken apart."""

    @property
    def queries(self) -> Queries: ...
    def select(self, rows_index: Any) -> Any: ...


Join = Callable[[list[Any]], Any]


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


def check_on_split(on_split: str, *, gathers: bool = False) -> None:
    """Refuse anything but the ways to deal with a split query; not all can gather scores."""
    known = (*ON_SPLIT, "gather") if gathers else ON_SPLIT
    if on_split not in known:
        expected = ", ".join(map(repr, known[:-1]))
        raise ValueError(f"on_split must be {expected} or {known[-1]!r}, got {on_split!r}")


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


def move(
    client: Client, futures: Sequence[Future], moves: Moves, join: Join
) -> tuple[list[Future], Repair]:
    """Return the partitions with their split queries made whole, and what that took.

    Rows of a query come in the order of the partitions, then in their order there. Partitions
    that no row leaves or reaches are the given futures.

    Parameters
    ----------
    client : distributed.Client
        Runs the tasks.
    futures : sequence of Future
        Of `Movable` objects, one a partition.
    moves : Moves
        What goes where.
    join : callable
        Puts a list of such objects one after the other.
    """
    token = uuid.uuid4().hex
    pieces = {
        (s, t): client.submit(_extracted, futures[s], a, key=f"linrank-moved-{token}-{s}-{t}")
        for (s, t), a in moves.leaving.items()
    }
    sources: dict[int, list[int]] = {}
    for s, t in sorted(pieces):
        sources.setdefault(t, []).append(s)
    gone, none = moves.left(), np.empty(0, np.int64)
    whole = list(futures)
    changed = {p for route in pieces for p in route}
    for p in sorted(changed):
        came = sources.get(p, [])
        whole[p] = client.submit(
            _rejoined,
            [pieces[s, p] for s in came if s < p],
            futures[p],
            gone.get(p, none),
            [pieces[s, p] for s in came if s > p],
            join,
            key=f"linrank-whole-{token}-{p}",
        )
    repair = Repair(moves.n_queries, moves.n_rows, len(changed))
    if moves.n_queries:
        _log.info(
            "%d queries were split over partitions: %d rows moved between %d of %d partitions",
            *(repair.n_queries, repair.n_rows, repair.n_partitions, len(futures)),
        )
    return whole, repair


def _extracted(data: Movable, which: Array) -> Any:
    """The rows of the queries that leave."""
    return data.select(rows_of_queries(data.queries, which))


def _rejoined(before: list[Any], own: Movable, gone: Array, after: list[Any], join: Join) -> Any:
    """A partition less the queries that left it, between what came from those around it."""
    kept: list[Any] = [own]
    if len(gone):
        mask = np.ones(own.queries.n_rows, bool)
        mask[rows_of_queries(own.queries, gone)] = False
        kept = [own.select(mask)] if mask.any() else []
    parts = [*before, *kept, *after]
    # All gone and none came: no rows, yet an object whose summary can be taken.
    return join(parts) if parts else own.select(np.empty(0, np.int64))
