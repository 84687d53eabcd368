"""Chunks on the workers of a cluster: rounds of stateless tasks, added in a fixed order.

A round is one task a worker, on all chunks that it holds: a task costs the scheduler a fraction of
a millisecond, and thousands of chunks would make that seconds. Sums come to the client in pieces of
the tree that `linrank.parts.chunk.tree_sum` adds by, so that it does not matter who holds what.
Where results are large, a round is a task a chunk, and groups of results are added on the cluster.

Nothing lives on a worker but the chunks, which Dask computes again when a worker is lost, and the
state in them, which a task computes again when it is not that of its ``w``. A round during which a
worker is lost is repeated, and gives the same bits.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import KilledWorker

from linrank.dask import rounds
from linrank.dask.clients import Interrupted, Watch, check_made, killers, release
from linrank.errors import ClusterError
from linrank.parts.chunk import GROUP, Task

_log = logging.getLogger("linrank")
_ATTEMPTS = 10  # of a round, each of which has lost a worker
_INLINE = 1 << 16  # bytes of an argument that travels with every task, of a result with each
_AT_CLIENT = 8 << 20  # bytes of results that the client adds; more are added on the cluster

Placement = dict[str, list[int]]  # worker -> the chunks that it holds, ascending


class DaskChunks:
    """Chunks that lie on workers; a `linrank.parts.chunk.Gathering`.

    Parameters
    ----------
    client : distributed.Client
        A synchronous one.
    chunks : sequence of futures
        Of `linrank.parts.chunk.Chunk`, at least one. Those of Dask tasks can be computed again on
        another worker; what was scattered is lost with its worker.
    patience : float, default=60
        Seconds for which no worker may be there, or the scheduler silent.
    numbers : sequence of int, optional
        The partitions that the chunks are of, as an error is to name them.
    """

    def __init__(
        self,
        client: Any,
        chunks: Sequence[Any],
        patience: float = 60.0,
        numbers: Sequence[int] | None = None,
    ) -> None:
        if not chunks:
            raise ValueError("there must be at least one chunk")
        self.watch = Watch(client, patience)
        self.client = client
        self.chunks = list(chunks)
        self.numbers = list(range(len(chunks))) if numbers is None else list(numbers)
        self.n_rounds = 0  # that were asked for
        self.n_repeated = 0  # that a lost worker made necessary beyond those
        self._name = uuid.uuid4().hex
        self._numbers = itertools.count()  # of submissions: no key is used twice
        self._placement: Placement | None = None
        self._open: list[Any] = []  # futures of the round that is under way
        self._spent: list[Any] = []  # those of the round before
        self._last: list[tuple[Any, Any]] = []  # large arguments of that round, and their futures
        self._sizes: dict[Any, int] = {}  # task and its switches -> bytes of its last result

    @property
    def n_chunks(self) -> int:
        return len(self.chunks)

    def total(self, task: Task, *args: Any) -> Any:
        """``Σ task(chunk, *args)`` over the chunks, by the tree of `tree_sum`."""
        kind = (_name_of(task), *(a for a in args if isinstance(a, bool)))
        size = self._sizes.get(kind)
        # A small result costs the client less than the task that would add it elsewhere.
        if size is None or (size > _INLINE and size * self.n_chunks > _AT_CLIENT):
            found = self._repeated(lambda: self._added_there(task, args))
        else:
            found = self._repeated(lambda: self._added_here(task, args))
        self._sizes[kind] = _n_bytes(found)
        return found

    def each(
        self, task: Task, *args: Any, per_chunk: Sequence[tuple[Any, ...] | None] | None = None
    ) -> list[Any]:
        """``task(chunk, *own, *args)`` of each chunk, in order; ``per_chunk`` are its own.

        A chunk whose ``own`` is None is left out: its result is None.
        """
        own = [()] * self.n_chunks if per_chunk is None else list(per_chunk)
        if len(own) != self.n_chunks:
            raise ValueError(f"{len(own)} arguments for {self.n_chunks} chunks")
        found: list[Any] = self._repeated(lambda: self._listed(task, args, own))
        return found

    def release(self) -> None:
        """Let the cluster forget the chunks; also after an error, also when it is gone."""
        release(self.chunks)
        self.chunks, self._placement = [], None
        self.forget()

    def forget(self) -> None:
        """Release what is left of rounds, not the chunks: nobody needs or can trust it."""
        release([*self._open, *self._spent, *(future for _, future in self._last)])
        self._open.clear()
        self._spent.clear()
        self._last.clear()

    # ---- rounds ----------------------------------------------------------------------------------

    def _repeated(self, attempt: Callable[[], Any]) -> Any:
        """What a round gives, repeated where it loses a worker."""
        self.n_rounds += 1
        for _ in range(_ATTEMPTS):
            try:
                found = attempt()
            except Interrupted as reason:
                self.n_repeated += 1
                self._placement = None
                self.forget()
                _log.info("a round is repeated: %s", reason)
            except BaseException as error:  # Ctrl-C too: its traceback would keep futures alive
                self.forget()
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

    def _added_here(self, task: Task, args: Sequence[Any]) -> Any:
        placement = self._placed()
        groups = list(placement.values())
        held = [[self.chunks[i] for i in group] for group in groups]
        futures = self._submit(rounds.sum_here, task, held, groups, args=self._sent(args))
        return rounds.joined(
            piece for reply in self._replies(futures, placement) for piece in reply
        )

    def _added_there(self, task: Task, args: Sequence[Any]) -> Any:
        """The sum where parts are added on the cluster, in aligned groups, and then the groups."""
        placement = self._placed()
        share = max(map(len, placement.values()))
        sent = self._sent(args)
        parts = self._submit(rounds.one, task, self.chunks, args=sent, n_neighbours=share)
        while len(parts) > 1:
            groups = [parts[k : k + GROUP] for k in range(0, len(parts), GROUP)]
            parts = self._submit(rounds.add_group, task, groups)
        return self.watch.results(parts, list(placement))[0]

    def _listed(
        self, task: Task, args: Sequence[Any], own: Sequence[tuple[Any, ...] | None]
    ) -> list[Any]:
        placement = self._placed()
        asked = {a: [i for i in held if own[i] is not None] for a, held in placement.items()}
        asked = {address: held for address, held in asked.items() if held}
        results: list[Any] = [None] * self.n_chunks
        if not asked:
            return results
        held = [[self.chunks[i] for i in group] for group in asked.values()]
        mine = [self._delivered([own[i] for i in group], a) for a, group in asked.items()]
        futures = self._submit(rounds.list_here, task, held, mine, args=self._sent(args))
        for group, reply in zip(asked.values(), self._replies(futures, asked), strict=True):
            for i, value in zip(group, reply, strict=True):
                results[i] = value
        return results

    def _submit(
        self, work: Callable[..., Any], task: Task, *lists: Sequence[Any], **common: Any
    ) -> list[Any]:
        """Futures of ``work``, called once for each place of the lists, in one message."""
        self.watch.check_scheduler()
        name = f"linrank-{_name_of(task)}-{self._name}-{next(self._numbers)}"
        keys = [f"{name}-{i}" for i in range(len(lists[0]))]
        futures: list[Any] = self.client.map(work, *lists, task=task, key=keys, **common)
        self._open += futures
        release(self._spent)
        self._spent.clear()
        return futures

    def _replies(self, futures: Sequence[Any], placement: Placement) -> list[Any]:
        """What the tasks returned; if one ran elsewhere than planned, placement is asked anew."""
        replies = self.watch.results(futures, list(placement))
        if [address for address, _ in replies] != list(placement):
            self._placement = None
        return [reply for _, reply in replies]

    # ---- where things are ------------------------------------------------------------------------

    def _placed(self) -> Placement:
        """Which worker holds which chunks, all of them being in memory."""
        if self._placement is not None:
            return self._placement
        for _ in range(_ATTEMPTS):
            self.watch.finished(self.chunks)
            check_made(self.watch, self.chunks, self.numbers)
            found = self.watch.call(lambda: self.client.who_has(self.chunks))
            holders = [found.get(chunk.key, ()) for chunk in self.chunks]
            if all(holders):
                self._placement = _shared_out(holders)
                return self._placement
        raise ClusterError("chunks were lost as soon as they were computed; look at the workers")

    def _sent(self, args: Sequence[Any]) -> list[Any]:
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
                known = [(copy.copy(value), self._scattered(value))]
                self._open.remove(known[0][1])
            self._last.append(known[0])
            sent.append(known[0][1])
        kept = [future for _, future in self._last]
        self._spent += [future for _, future in before if future not in kept]
        return sent

    def _delivered(self, own: Sequence[Any], address: str) -> list[Any]:
        """Arguments of single chunks: large ones on the worker that will need them."""
        return [
            tuple(self._scattered(a, [address]) if _n_bytes(a) > _INLINE else a for a in mine)
            for mine in own
        ]

    def _scattered(self, value: Any, workers: Sequence[str] | None = None) -> Any:
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


def _shared_out(holders: Sequence[Sequence[str]]) -> Placement:
    """Each chunk to one of those that hold it, the one with the fewest so far."""
    placement: Placement = {}
    for i, found in enumerate(holders):
        chosen = min(sorted(found), key=lambda address: len(placement.get(address, ())))
        placement.setdefault(chosen, []).append(i)
    return placement


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
