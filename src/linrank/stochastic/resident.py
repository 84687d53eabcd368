"""Loader: chunks with their samplers, one after the other, the next one read in the background."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.errors import NoPairsError
from linrank.stochastic.samplers import pair_sampler
from linrank.system.resources import allowed, describe_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.data.queries import Queries
    from linrank.data.rows import Rows
    from linrank.io.store.store import Store
    from linrank.stochastic.chunked import Visit
    from linrank.stochastic.samplers import PairSampler

    Array = NDArray[Any]


def chunk_sampler(
    queries: Queries, weight: Array | None, sampling: str, query_weight: Array | None
) -> PairSampler | None:
    """The sampler of one chunk; None if it has no pair to draw."""
    for factors in (weight, query_weight):
        if factors is not None and not factors.any():
            return None
    try:
        return pair_sampler(queries, sampling, row_weight=weight, query_weight=query_weight)
    except NoPairsError:
        return None


# Beside the features: label, level, weight and id of a row, and the tables of a sampler while they
# are built, where a weighted row is twice, with running sums, and a level of a query is a cell.
_BYTES_A_ROW = 120
_BYTES_A_LEVEL = 200


def room_of_chunk(nbytes: int, n_rows: int, n_levels: int, *, is_scaled: bool) -> int:
    """Bytes that a chunk takes while it is stepped on; scaled rows are a copy."""
    return nbytes * (2 if is_scaled else 1) + _BYTES_A_ROW * n_rows + _BYTES_A_LEVEL * n_levels


@dataclass(frozen=True)
class Residence:
    """What the memory allows.

    Attributes
    ----------
    kept : frozenset of int
        Chunks that stay once they were read. A fixed set: in passes of random order, what was used
        last is no likelier to be needed next.
    reads_ahead : bool
        Whether there is room for a second chunk while one is at work.
    """

    kept: frozenset[int]
    reads_ahead: bool

    @classmethod
    def of(
        cls, memory_limit: Any, rooms: Sequence[int], *, beside: int, n_readers: int = 1
    ) -> Residence:
        """The residence of chunks that take so many bytes each.

        Parameters
        ----------
        memory_limit : int, float, str or None
            See :func:`linrank.system.resources.allowed`; where that is not known, everything stays.
        rooms : sequence of int
            Bytes of each chunk at work.
        beside : int
            Bytes of everything else.
        n_readers : int
            How many walk over the chunks at a time, each with a chunk of its own.

        Raises
        ------
        MemoryError
            With the least limit that works.
        """
        limit = allowed(memory_limit)
        if limit is None or sum(rooms) + beside <= limit:
            return cls(frozenset(range(len(rooms))), reads_ahead=True)
        largest = max(rooms)
        least = beside + n_readers * largest
        if limit < least:
            told = "half of the free memory" if memory_limit is None else f"{memory_limit!r}"
            raise MemoryError(
                f"memory_limit allows {describe_bytes(limit)} ({told}), but a descent over chunks "
                f"of up to {describe_bytes(largest)} (features, labels and tables of pairs) takes "
                f"{describe_bytes(least)}, {describe_bytes(beside)} of them for the process "
                f"itself; raise it to {least}, or write the store with smaller chunks "
                "(--chunk-size, chunk_bytes=)"
            )
        reads_ahead = limit >= beside + 2 * n_readers * largest
        rest = limit - beside - (2 if reads_ahead else 1) * n_readers * largest
        n_kept = int(np.searchsorted(np.cumsum(rooms), rest, side="right"))
        return cls(frozenset(range(n_kept)), reads_ahead)


@dataclass(frozen=True, eq=False)
class Loaded:
    """A chunk that steps can be taken on; ``buffer`` is where its rows are, if it will not stay."""

    rows: Rows
    sampler: PairSampler
    buffer: Any = None


class Loader:
    """The chunks of a source.

    Parameters
    ----------
    source : Store
        Where they are.
    sampling : str
        The distribution of the pairs.
    query_weight : array by query of the whole, or None
        Factors c.
    prepare : callable
        From a chunk as it is stored to one whose rows are scaled.
    residence : Residence
        Which chunks stay, and whether to read ahead.
    """

    def __init__(
        self,
        source: Store,
        sampling: str,
        query_weight: Array | None,
        prepare: Callable[[Dataset], Dataset],
        residence: Residence,
    ) -> None:
        self._source, self._sampling, self._query_weight = source, sampling, query_weight
        self._prepare, self._residence = prepare, residence
        self._here: dict[int, Loaded] = {}

    def visit(self, plan: Iterable[Visit]) -> Generator[tuple[Visit, Loaded], None, None]:
        """Each visit with its chunk, which is there until the next visit is asked for.

        Two walks may be under way at the same time; each has buffers of its own.
        """
        walk = _Walk(self, iter(plan), 2 * self._source.n_chunks)
        with ThreadPoolExecutor(1, "linrank-read") as pool:
            try:
                yield from walk.over(pool if self._residence.reads_ahead else None)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def is_here(self, chunk: int) -> bool:
        """Whether it need not be read."""
        return chunk in self._here

    @property
    def all_here(self) -> bool:
        """Whether nothing need be read any more."""
        return len(self._here) == self._source.n_chunks

    def load(self, chunk: int, free: deque[Any]) -> Loaded:
        """The chunk, from memory or read, into one of the free buffers if it will not stay."""
        if chunk in self._here:
            return self._here[chunk]
        stays = chunk in self._residence.kept
        buffer = None if stays else (free.popleft() if free else self._source.buffer())
        data = self._prepare(self._source.read(chunk, into=buffer))
        c = self._query_weight
        part = None if c is None else c[self._source.chunks[chunk].queries]
        sampler = chunk_sampler(data.queries, data.weight, self._sampling, part)
        if sampler is None:
            raise NoPairsError(f"chunk {chunk} has no pairs any more: the data have changed")
        _ = sampler.core, data.rows.core  # made here, beside the steps on the chunk before
        loaded = Loaded(data.rows, sampler, buffer)
        if stays:
            self._here[chunk] = loaded
        return loaded


class _Walk:
    """One walk over visits: what is being read, and the buffers."""

    def __init__(self, loader: Loader, plan: Iterator[Visit], most_ahead: int) -> None:
        self._loader, self._plan, self._most_ahead = loader, plan, most_ahead
        self._queue: deque[Visit] = deque()
        self._free: deque[Any] = deque()
        self._coming: tuple[Visit, Future[Loaded]] | None = None

    def over(self, pool: ThreadPoolExecutor | None) -> Iterator[tuple[Visit, Loaded]]:
        held = None
        while (visit := self._next()) is not None:
            if held is not None:
                self._free.append(held)
            loaded = self._get(visit)
            held = loaded.buffer
            if pool is not None and self._coming is None:
                self._read_ahead(pool)
            yield visit, loaded

    def _next(self) -> Visit | None:
        return self._queue.popleft() if self._queue else next(self._plan, None)

    def _get(self, visit: Visit) -> Loaded:
        if self._coming is not None and self._coming[0] is visit:
            future, self._coming = self._coming[1], None
            return future.result()
        return self._loader.load(visit.chunk, self._free)

    def _read_ahead(self, pool: ThreadPoolExecutor) -> None:
        """Begin to read the chunk of the next visit that has to be read."""
        loader = self._loader
        if loader.all_here:
            return
        self._queue.extend(islice(self._plan, self._most_ahead - len(self._queue)))
        for visit in self._queue:
            if not loader.is_here(visit.chunk):
                self._coming = visit, pool.submit(loader.load, visit.chunk, self._free)
                return
