"""Chunks that are read again and again: what stays in memory, what is read ahead, what is not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from linrank.system.resources import allowed, cached_property, too_small

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


@dataclass(frozen=True)
class Plan:
    """How a limit on memory is shared out. It decides on time alone, not on a bit of a result.

    Attributes
    ----------
    n_buffers : int
        Chunks under way at a time: the one that is worked on, and those that are read ahead.
    n_states : int
        Chunks, the first ones, of which what was computed is kept from pass to pass.
    n_kept : int
        Chunks, the first ones, whose features are kept too. A fixed set: in passes of any order,
        what was used last is no likelier to be needed next.
    """

    n_buffers: int
    n_states: int
    n_kept: int

    @classmethod
    def of(
        cls,
        memory_limit: Any,
        what: str,
        *,
        beside: int,
        n_buffers: int,
        buffer: int,
        kept: Sequence[int],
        states: Sequence[int] | None = None,
    ) -> Plan:
        """What a limit allows.

        State comes before features: it saves a sort in every pass at a tenth of the memory.

        Parameters
        ----------
        memory_limit : int, float, str or None
            As `linrank.system.resources.allowed` reads it; where that is not known, all stays.
        what : str
            What takes the memory, for the message.
        beside : int
            Bytes of all but chunks.
        n_buffers : int
            Buffers at least; one more where there is room.
        buffer : int
            Bytes of each.
        kept : sequence of int
            Bytes of the features of each chunk, as they are kept.
        states : sequence of int, optional
            Bytes of what is computed of each chunk, where that can be kept by itself.

        Raises
        ------
        MemoryError
            With the least limit that works.
        """
        limit, states = allowed(memory_limit), [0] * len(kept) if states is None else states
        if limit is None or beside + sum(states) + sum(kept) <= limit:
            return cls(n_buffers + 1, len(kept), len(kept))
        free = limit - beside - n_buffers * buffer
        if free < 0:
            raise too_small(
                memory_limit,
                what,
                limit - free,
                "write the store with smaller chunks (--chunk-size, chunk_bytes=)",
            )
        if len(kept) > n_buffers and free >= buffer:
            n_buffers, free = n_buffers + 1, free - buffer
        n_states, free = _first(states, free)
        n_kept, _ = _first(kept[:n_states], free)
        return cls(n_buffers, n_states, n_kept)


def _first(sizes: Sequence[int], free: int) -> tuple[int, int]:
    """How many of the first sizes fit, and what is left."""
    for i, size in enumerate(sizes):
        if size > free:
            return i, free
        free -= size
    return len(sizes), free


@dataclass(eq=False)
class Reader(AbstractContextManager["Reader"]):
    """Reads chunks by number, the next ones in another thread while one is worked on.

    Parameters
    ----------
    load : callable
        ``load(i, buffer)`` is chunk i, with its features in the buffer; that is None for a chunk
        that is to stay. It runs in the other thread where chunks are read ahead.
    make_buffer : callable
        Makes memory for the features of any chunk.
    n_chunks : int
        How many there are.
    plan : Plan
        Which of them stay, and how many are under way at a time.

    Attributes
    ----------
    here : dict
        What stays and is not read again, by number; the caller puts it there.
    """

    load: Callable[[int, Any], Any]
    make_buffer: Callable[[], Any]
    n_chunks: int
    plan: Plan
    here: dict[int, Any] = field(default_factory=dict, init=False)
    _free: deque[Any] = field(default_factory=deque, init=False)

    def walk(self, numbers: Iterable[int]) -> Walk:
        """These chunks, in order. Several walks may be under way, each with its own buffers."""
        return Walk(self, numbers)

    @cached_property
    def thread(self) -> ThreadPoolExecutor:
        """The other thread, which begins with the first chunk that it reads."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1, thread_name_prefix="linrank-read")

    def buffer_for(self, i: int) -> Any:
        """Where to read a chunk; what is to stay gets memory of its own."""
        if i < self.plan.n_kept:
            return None
        return self._free.popleft() if self._free else self.make_buffer()

    def take_back(self, buffer: Any) -> None:
        """Reuse a buffer that is no longer read."""
        if buffer is not None:
            self._free.append(buffer)

    def close(self) -> None:
        """Stop reading, and free what was read: the memory is wanted for what comes next."""
        if "thread" in self.__dict__:
            self.thread.shutdown(wait=True, cancel_futures=True)
        self.here.clear()
        self._free.clear()

    def __exit__(self, *exception: Any) -> None:
        self.close()


class Walk:
    """Pairs of a number and its chunk, which is there until the next one is asked for."""

    def __init__(self, reader: Reader, numbers: Iterable[int]) -> None:
        self._reader, self._numbers = reader, iter(numbers)
        self._queue: deque[tuple[int, Any, Future[Any] | None]] = deque()
        self._staying: set[int] = set()  # chunks that this walk has had read, to stay
        self._held: tuple[Any] | None = None  # the buffer of the chunk that is worked on
        self._n_reading = 0

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self

    def __next__(self) -> tuple[int, Any]:
        self.let_go()
        if not self._queue:
            raise StopIteration
        i, buffer, reading = self._queue.popleft()
        reader = self._reader
        if reading is None and i in reader.here:
            found = reader.here[i]
        elif reading is None:  # there is no room to read ahead
            buffer = reader.buffer_for(i)
            self._held = (buffer,)
            found = reader.load(i, buffer)
        else:
            self._n_reading -= 1
            self._held = (buffer,)
            found = reading.result()
        self._read_ahead()
        return i, found

    def let_go(self) -> None:
        """The chunk that came last is not needed any more: there is room for another."""
        if self._held is not None:
            self._reader.take_back(*self._held)
            self._held = None
        self._read_ahead()

    def close(self) -> None:
        """End the walk, and drop what was read ahead."""
        self._numbers = iter(())
        for _, buffer, reading in self._queue:
            if reading is not None and not reading.cancel():
                reading.exception()  # it writes into the buffer until then
            self._reader.take_back(buffer)
        self._queue.clear()
        self.let_go()

    def _read_ahead(self) -> None:
        """Begin to read the next chunks that have to be read while there is room for them."""
        reader, n_buffers = self._reader, self._reader.plan.n_buffers
        most = 2 * reader.n_chunks
        while self._n_reading + (self._held is not None) < n_buffers and len(self._queue) < most:
            i = next(self._numbers, None)
            if i is None:
                return
            if n_buffers == 1 or i in reader.here or i in self._staying:
                self._queue.append((i, None, None))
                continue
            if i < reader.plan.n_kept:
                self._staying.add(i)
            buffer = reader.buffer_for(i)
            self._queue.append((i, buffer, reader.thread.submit(reader.load, i, buffer)))
            self._n_reading += 1
