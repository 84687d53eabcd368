"""Chunks on the workers of a cluster: rounds of stateless tasks, added in a fixed order.

A round is one task a worker, on all chunks that it holds: a task costs the scheduler a fraction of
a millisecond, and thousands of chunks would make that seconds. Sums come to the client in pieces of
the tree that `linrank.parts.parts.tree_sum` adds by, so that it does not matter who holds what.
Where results are large, a round is a task a chunk, and groups of results are added on the cluster.

Nothing lives on a worker but the chunks, which Dask computes again when a worker is lost, and the
state in them, which a task computes again when it is not that of its ``w``. A round during which a
worker is lost is repeated, and gives the same bits. Workers that join get their share of the chunks
before the next round.

Workers import this module and `linrank.dask.clients`, not those that use them: that takes a worker
a part of the time.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from dask.sizeof import sizeof
from distributed import KilledWorker, get_worker

from linrank.dask.clients import Interrupted, Watch, check_made, killers, map_tasks, release
from linrank.data.dataset import Dataset
from linrank.errors import ClusterError
from linrank.parts.parts import GROUP, Gathering, OfEach, Task, joined, pieces, tree_sum
from linrank.parts.recipes import Chunk, Recipe, SharedChunk

_log = logging.getLogger("linrank")
_ATTEMPTS = 10  # of a round, each of which has lost a worker
_INLINE = 1 << 16  # bytes of an argument that travels with every task, of a result with each
_AT_CLIENT = 8 << 20  # bytes of results that the client adds; more are added on the cluster

Placement = dict[str, list[int]]  # worker -> the chunks that it holds, ascending


class DaskChunks(Gathering):
    """Chunks that lie on workers, which work on them.

    Parameters
    ----------
    watch : Watch
        Of the client whose workers they are; workers that join after it began get chunks, too.
    chunks : sequence of futures
        Of `linrank.parts.recipes.Chunk`, at least one. Those of Dask tasks can be computed again on
        another worker; what was scattered is lost with its worker.
    numbers : sequence of int, optional
        The partitions that the chunks are of, as an error is to name them.
    is_shared : bool, default=False
        Whether somebody else needs the futures and will release them.
    """

    def __init__(
        self,
        watch: Watch,
        chunks: Sequence[Any],
        numbers: Sequence[int] | None = None,
        is_shared: bool = False,
    ) -> None:
        if not chunks:
            raise ValueError("there must be at least one chunk")
        self.watch = watch
        self.client = watch.client
        self.chunks, self.n_chunks = list(chunks), len(chunks)
        self._shared = list(chunks) if is_shared else []
        self.numbers = list(range(len(chunks))) if numbers is None else list(numbers)
        self.n_rounds = 0  # that were asked for
        self.n_repeated = 0  # that a lost worker made necessary beyond those
        self._placement: Placement | None = None
        self._joined: frozenset[str] = frozenset()  # workers that have got their share of them
        self._open: list[Any] = []  # futures of the round that is under way
        self._spent: list[Any] = []  # those of the round before
        self._last: list[tuple[Any, Any]] = []  # large arguments of that round, and their futures
        self._sizes: dict[Any, int] = {}  # task and its switches -> bytes of its last result

    def total(self, task: Task, *args: Any) -> Any:
        kind = (_name_of(task), *(a for a in args if isinstance(a, bool)))
        size = self._sizes.get(kind)
        # A small result costs the client less than the task that would add it elsewhere.
        if size is None or (size > _INLINE and size * self.n_chunks > _AT_CLIENT):
            found = self._run_round(lambda: self._add_there(task, args))
        else:
            found = self._run_round(lambda: self._add_here(task, args))
        self._sizes[kind] = _n_bytes(found)
        return found

    def each(self, task: Task, *args: Any, per_chunk: OfEach = None) -> list[Any]:
        own = [()] * self.n_chunks if per_chunk is None else list(per_chunk)
        if len(own) != self.n_chunks:
            raise ValueError(f"{len(own)} arguments for {self.n_chunks} chunks")
        return self._run_round(lambda: self._list_results(task, args, own))

    def release(self) -> None:
        """Let the cluster forget the chunks; also after an error, also when it is gone."""
        release(chunk for chunk in self.chunks if chunk not in self._shared)
        self.chunks, self._placement = [], None
        self._forget()

    def _forget(self) -> None:
        """Release what is left of rounds, not the chunks: nobody needs or can trust it."""
        release([*self._open, *self._spent, *(future for _, future in self._last)])
        self._open.clear()
        self._spent.clear()
        self._last.clear()

    # ---- rounds ----------------------------------------------------------------------------------

    def _run_round(self, attempt: Callable[[], Any]) -> Any:
        """What a round gives, repeated where it loses a worker."""
        self.n_rounds += 1
        for _ in range(_ATTEMPTS):
            try:
                found = attempt()
            except Interrupted as reason:
                self.n_repeated += 1
                self._placement = None
                self._forget()
                _log.info("a round is repeated: %s", reason)
            except BaseException as error:  # Ctrl-C too: its traceback would keep futures alive
                self._forget()
                if isinstance(error, KilledWorker):
                    raise ClusterError(killers(error)) from error
                if isinstance(error, MemoryError):
                    raise ClusterError(
                        "a worker holds more of the data, what it moved to disk included, than its "
                        f"memory_limit: {str(error).split('.')[0]}; give the workers more memory, "
                        "or use more workers"
                    ) from error
                raise
            else:
                # A message to the scheduler holds the next one up for 10 ms: these are released
                # together with what the next round submits.
                self._spent += self._open
                self._open.clear()
                return found
        raise ClusterError(
            f"a round of tasks lost workers {_ATTEMPTS} times in a row; look at the logs of the "
            "workers: most often their memory is too small"
        )

    def _add_here(self, task: Task, args: Sequence[Any]) -> Any:
        own: list[tuple[Any, ...]] = [()] * self.n_chunks
        replies = self._round(task, args, self._place_chunks(), own, adds=True)
        return joined(piece for _, reply in replies for piece in reply)

    def _add_there(self, task: Task, args: Sequence[Any]) -> Any:
        """The sum where parts are added on the cluster, in aligned groups, and then the groups."""
        placement = self._place_chunks()
        share = max(map(len, placement.values()))
        sent = self._send(args)
        parts = self._submit(run_one, task, self.chunks, args=sent, n_neighbors=share)
        while len(parts) > 1:
            groups = [parts[k : k + GROUP] for k in range(0, len(parts), GROUP)]
            parts = self._submit(add_group, task, groups)
        return self.watch.results(parts, list(placement))[0]

    def _list_results(
        self, task: Task, args: Sequence[Any], own: Sequence[tuple[Any, ...] | None]
    ) -> list[Any]:
        placement = self._place_chunks()
        asked = {a: [i for i in held if own[i] is not None] for a, held in placement.items()}
        asked = {address: held for address, held in asked.items() if held}
        results: list[Any] = [None] * self.n_chunks
        if not asked:
            return results
        for group, reply in self._round(task, args, asked, own):
            for i, value in zip(group, reply, strict=True):
                results[i] = value
        return results

    def _round(
        self, task: Task, args: Any, placement: Placement, own: Sequence[Any], adds: bool = False
    ) -> list[tuple[list[int], Any]]:
        """For each worker the chunks that `run_here` worked on, and what it returned.

        If a task ran elsewhere than planned, placement is asked anew the next time.
        """
        groups = list(placement.values())
        held = [[self.chunks[i] for i in group] for group in groups]
        mine = [self._deliver([own[i] for i in group], a) for a, group in placement.items()]
        futures = self._submit(run_here, task, held, groups, mine, args=self._send(args), adds=adds)
        replies = self.watch.results(futures, list(placement))
        if [address for address, _ in replies] != list(placement):
            self._placement = None
        return [(group, reply) for group, (_, reply) in zip(groups, replies, strict=True)]

    def _submit(
        self, work: Callable[..., Any], task: Task, *lists: Sequence[Any], **common: Any
    ) -> list[Any]:
        """Futures of ``work``, called once for each place of the lists, in one message."""
        self.watch.check_scheduler()
        futures = map_tasks(self.client, _name_of(task), work, *lists, task=task, **common)
        self._open += futures
        release(self._spent)
        self._spent.clear()
        return futures

    # ---- where things are ------------------------------------------------------------------------

    def _place_chunks(self) -> Placement:
        """Which worker holds which chunks, all of them being in memory."""
        joined = self.watch.new_workers()
        if self._placement is None or joined != self._joined:
            self._placement = self._find_chunks()
            moves = _relief(self._placement, joined)
            if moves:
                self._move(moves)
                self._placement = self._find_chunks()
            self._joined = joined
        return self._placement

    def _find_chunks(self) -> Placement:
        for _ in range(_ATTEMPTS):
            self.watch.wait(self.chunks)
            check_made(self.watch, self.chunks, self.numbers)
            found = self.watch.call(lambda: self.client.who_has(self.chunks))
            holders = [found.get(chunk.key, ()) for chunk in self.chunks]
            if all(holders):
                return _share_out(holders)
        raise ClusterError("chunks were lost as soon as they were computed; look at the workers")

    def _move(self, moves: Placement) -> None:
        """Bring chunks to workers, or to others where these are gone by then."""
        _log.info("%d chunks move to %d new workers", sum(map(len, moves.values())), len(moves))
        # One at a time for each of them: from a worker with a queue Dask would steal tasks.
        for step in itertools.zip_longest(*moves.values()):
            moving = {a: i for a, i in zip(moves, step, strict=True) if i is not None}
            for address, i in moving.items():
                old = self.chunks[i]
                where = {"workers": [address], "allow_other_workers": True}
                (self.chunks[i],) = map_tasks(self.client, "moved", copy_chunk, [old], **where)
                if old not in self._shared:
                    old.release()  # if the new one is lost Dask makes it again from the beginning
            self.watch.wait([self.chunks[i] for i in moving.values()])

    def _send(self, args: Sequence[Any]) -> list[Any]:
        """The arguments as tasks take them: large ones once on a worker, the others fetch them.

        What the round before had as well, as ``w`` is that of many products, is there already.
        """
        before, self._last = self._last, []
        sent = []
        for value in args:
            if _n_bytes(value) <= _INLINE:
                sent.append(value)
                continue
            known = [pair for pair in before if _is_same(pair[0], value)]
            if not known:  # a copy: solvers may write into theirs
                known = [(copy.copy(value), self._scatter(value))]
                self._open.remove(known[0][1])
            self._last.append(known[0])
            sent.append(known[0][1])
        kept = [future for _, future in self._last]
        self._spent += [future for _, future in before if future not in kept]
        return sent

    def _deliver(self, own: Sequence[Any], address: str) -> list[Any]:
        """Arguments of single chunks: large ones on the worker that will need them."""
        return [
            tuple(self._scatter(a, [address]) if _n_bytes(a) > _INLINE else a for a in mine)
            for mine in own
        ]

    def _scatter(self, value: Any, workers: Sequence[str] | None = None) -> Any:
        # hash=False: two vectors of the same bits must not share a key that one round releases.
        try:
            future = self.watch.call(
                lambda: self.client.scatter(value, workers=workers, hash=False, asynchronous=True)
            )
        except (KeyError, OSError, TimeoutError, asyncio.TimeoutError) as error:
            # Whom it was meant for is gone, which nobody has noticed yet.
            raise Interrupted(f"an argument reached no worker ({error!r})") from error
        self._open.append(future)
        return future


def _share_out(holders: Sequence[Sequence[str]]) -> Placement:
    """Each chunk to one of those that hold it, the one with the fewest so far."""
    placement: Placement = {}
    for i, found in enumerate(holders):
        chosen = min(sorted(found), key=lambda address: len(placement.get(address, ())))
        placement.setdefault(chosen, []).append(i)
    return placement


def _relief(placement: Placement, joined: Collection[str]) -> Placement:
    """What workers that joined take over: each time the last chunk of whoever has the most.

    Examples
    --------
    >>> _relief({"a": [0, 1, 2, 3, 4], "b": [5]}, ["c"])
    {'c': [3, 4]}
    """
    held = {address: list(which) for address, which in placement.items()}
    held |= {address: [] for address in sorted(joined) if address not in held}
    moves: Placement = {}
    while joined:
        fullest = max(held, key=lambda address: len(held[address]))
        emptiest = min(sorted(joined), key=lambda address: len(held[address]))
        if len(held[fullest]) < len(held[emptiest]) + 2:
            break
        chunk = held[fullest].pop()
        held[emptiest].append(chunk)
        moves.setdefault(emptiest, []).append(chunk)
    return {address: sorted(which) for address, which in moves.items()}


def _is_same(a: Any, b: Any) -> bool:
    """Whether two arguments are arrays of the same bits."""
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return arrays and a.dtype == b.dtype and np.array_equal(a, b)


def _name_of(task: Task) -> str:
    return str(getattr(task, "__name__", "task"))


def _n_bytes(value: Any) -> int:
    """Bytes of the arrays of a value, which may be an object that has some."""
    found = getattr(value, "nbytes", None)
    if isinstance(found, int):
        return found
    if isinstance(value, list | tuple):
        return sum(map(_n_bytes, value))
    return sum(getattr(part, "nbytes", 0) for part in getattr(value, "__dict__", {}).values())


# ---- on the workers ------------------------------------------------------------------------------
def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C, which a terminal sends to all its processes, to the command that started them.

    Dask calls it in the main thread of a worker that has this module as a preload.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def make_chunk(data: Dataset, kept: Any, recipe: Recipe, is_shared: bool) -> Chunk:
    """The chunk of the queries ``kept`` of a partition, all if None.

    ``is_shared`` says that the partition stays beside it.
    """
    chunk = recipe.chunk(data, 1, kept)
    if not is_shared or chunk.rows is not data.rows:  # scaled within queries, in a copy
        return chunk
    return SharedChunk(chunk.rows, chunk.terms, chunk.sizes)


def copy_chunk(chunk: Any) -> Any:
    """The chunk, where this runs; its rows are a copy, which counts."""
    if isinstance(chunk, SharedChunk):
        return Chunk(chunk.rows, chunk.terms, chunk.sizes)
    return chunk


def run_here(
    chunks: Sequence[Any], indices: Any, own: Sequence[Any], task: Task, args: Any, adds: bool
) -> tuple[str, list[Any]]:
    """Where this ran, and ``task(chunk, *own, *args)`` of each chunk, or sums over runs of them."""
    found = _results(task, chunks, own, args)
    told = pieces(zip(indices, found, strict=True)) if adds else list(found)
    return str(get_worker().address), told


def run_one(chunk: Any, task: Task, args: Sequence[Any], n_neighbors: int) -> Any:
    """``task(chunk, *args)``, with a share of the threads: that of one of ``n_neighbors``."""
    return task(chunk, *args, n_threads=max(1, _threads() // n_neighbors))


def add_group(parts: Sequence[Any], task: Task) -> Any:
    """The sum of a group of results of ``task``, by the tree that all sums have."""
    return tree_sum(parts)


def _results(
    task: Task, chunks: Sequence[Any], own: Sequence[tuple[Any, ...]], args: Sequence[Any]
) -> Iterator[Any]:
    """The results in order, chunk by chunk with all threads, or where chunks are many side by side.

    A chunk is best left to one thread: threads that share one wait for each other at its end.
    """
    n_threads = _threads()
    if len(chunks) < n_threads or n_threads == 1:
        for chunk, mine in zip(chunks, own, strict=True):
            yield task(chunk, *mine, *args, n_threads=n_threads)
        return

    def alone(chunk: Any, mine: tuple[Any, ...]) -> Any:
        return task(chunk, *mine, *args, n_threads=1)

    with ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(alone, chunks, own)


def _threads() -> int:
    return int(get_worker().state.nthreads)


# ---- sizes --------------------------------------------------------------------------------------
# Dask sends a task to where most of its bytes lie. Without these a dataset counts as the 56 bytes
# of a bare object: its rows would travel for nothing, and a worker would never spill them.

_BY_ROW = 32  # bytes of a chunk for each row beside its features: levels, weights, scores, order


@sizeof.register(Dataset)  # type: ignore[untyped-decorator]
def bytes_of_dataset(data: Dataset) -> int:
    """Bytes of the rows, the vectors beside them and the queries, as far as these are grouped."""
    arrays: list[Any] = [data.labels, data.qid, data.weight]
    if (queries := data.__dict__.get("queries")) is not None:
        arrays += [queries.offsets, queries.order, queries.levels, queries.n_levels, queries.ids]
    return data.rows.nbytes + sum(int(a.nbytes) for a in arrays if a is not None)


@sizeof.register(Chunk)  # type: ignore[untyped-decorator]
def bytes_of_chunk(chunk: Chunk) -> int:
    """Bytes of the rows and of what a chunk keeps by row."""
    return chunk.rows.nbytes + _BY_ROW * chunk.sizes.n_rows


@sizeof.register(SharedChunk)  # type: ignore[untyped-decorator]
def bytes_of_shared_chunk(chunk: SharedChunk) -> int:
    """What a chunk keeps by row; its rows count where the partition does."""
    return _BY_ROW * chunk.sizes.n_rows
