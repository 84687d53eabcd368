"""The client of a call: tasks, their results in order, and waits that end when a cluster is lost.

Dask itself waits for ever: for a scheduler to come back, for a first worker, for memory. Here every
wait goes in short steps; between two of them the scheduler is asked who is there.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import dask
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, get_client

from linrank.errors import ClusterError, is_number
from linrank.system.resources import resolve

_LOCAL = "local:"
_TIMEOUT = 10  # seconds in which a scheduler has to answer
_STARTS = 3  # attempts to start the workers of this machine
_ATTEMPTS = 10  # to fetch results, each of which has lost a worker
_NAMED = 5  # partitions that an error lists
_STEP = 0.5  # seconds between two looks at the cluster; a look costs about a millisecond
_LOOK = 1.0  # seconds after which workers that join are looked for
_SETTLED = 0.1  # seconds after which a worker has begun all that it was told to do before


class Interrupted(Exception):
    """What was awaited will not come as it was planned: a worker is gone, or data with it."""


class Watch:
    """Waits for what a cluster computes, and looks after the cluster meanwhile.

    Parameters
    ----------
    client : distributed.Client
        A synchronous one.
    patience : float
        Seconds for which no worker may be there, or the scheduler silent, before it is an error.
    """

    def __init__(self, client: Any, patience: float = 60.0) -> None:
        if not (is_number(patience) and patience > 0):
            raise ValueError(f"patience must be a number of seconds > 0, got {patience!r}")
        if client.asynchronous:
            raise ValueError(
                "the client is asynchronous; linrank.dask needs one of "
                "distributed.Client(..., asynchronous=False)"
            )
        self.client = client
        self.patience = float(patience)
        self._deserted: float | None = None  # since when there is nobody to work
        self._seen: frozenset[str] = frozenset()  # the workers of the last look
        self._able: frozenset[str] = frozenset()  # those of them that are not paused
        self._looked = 0.0
        self.call(self._look)
        self._first = self._seen

    def new_workers(self) -> frozenset[str]:
        """Workers that have come since this watch began; they are looked for once a second."""
        if time.monotonic() - self._looked >= _LOOK:
            self.call(self._look)
        return self._able - self._first

    def results(self, futures: Sequence[Any], workers: Sequence[str] = ()) -> list[Any]:
        """What the futures hold; `Interrupted` when one of ``workers`` goes before it is there."""
        return list(
            self.call(lambda: self.client.gather(list(futures), asynchronous=True), workers)
        )

    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until each future is in memory, has failed or is cancelled."""
        self.call(lambda: _wait_settled(futures))

    def call(self, start: Callable[[], Awaitable[Any]], workers: Iterable[str] = ()) -> Any:
        """What a request to the scheduler answers; ``start`` is called on the client's loop.

        `Interrupted` when one of ``workers`` goes before.
        """
        try:
            return self.client.sync(self._steps, start, frozenset(workers))
        except (ClusterError, Interrupted):
            raise
        except CancelledError as error:
            self.check_scheduler(error)
            raise Interrupted(str(error)) from error
        except Exception as error:
            self.check_scheduler(error)
            raise

    async def _steps(self, start: Callable[[], Awaitable[Any]], workers: frozenset[str]) -> Any:
        self.check_scheduler()
        awaited = asyncio.ensure_future(start())
        try:
            while True:
                done, _ = await asyncio.wait({awaited}, timeout=_STEP)
                if done:
                    return awaited.result()
                await self._look()
                gone = workers - self._seen
                if gone:
                    raise Interrupted(f"lost {len(gone)} of {len(workers)} workers")
        finally:
            # Left to end by itself: it does so when its futures are released, and a gather that is
            # cancelled leaves exceptions that nobody retrieves in the log.
            awaited.add_done_callback(_forget)

    async def _look(self) -> None:
        """Look who is there; `ClusterError` if nobody was able to work for too long."""
        self.check_scheduler()
        try:
            found = await asyncio.wait_for(self.client.scheduler.identity(), self.patience)
        except asyncio.TimeoutError:
            raise ClusterError(
                f"the Dask scheduler {self._address} has not answered for {self.patience:g} s"
            ) from None
        workers = found["workers"]
        lost, self._seen = self._seen - workers.keys(), frozenset(workers)
        if lost and workers:
            told = self.client.run(drop_connections, lost, on_error="ignore")
            asyncio.ensure_future(told).add_done_callback(_forget)
        self._able = frozenset(a for a, worker in workers.items() if worker["status"] == "running")
        now = self._looked = time.monotonic()
        if self._able:
            self._deserted = None
            return
        self._deserted = self._deserted or now
        if now - self._deserted >= self.patience:
            waited = f"for patience={self.patience:g} s"
            raise ClusterError(
                f"all {len(workers)} workers of the Dask scheduler {self._address} were paused "
                f"{waited}, which Dask does when their memory is nearly full; give them more "
                "memory, or use more workers"
                if workers
                else f"the Dask scheduler {self._address} had no worker {waited}; start workers, "
                "look at the logs of those that ended, or raise patience if they take longer to "
                "come"
            )

    def check_scheduler(self, cause: BaseException | None = None) -> None:
        """Raise `ClusterError` where the connection is lost: what was computed is lost with it."""
        if self.client.status != "running":
            raise ClusterError(
                f"the connection to the Dask scheduler {self._address} is lost "
                f"(the client is {self.client.status!r})"
            ) from cause

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return "(closed)" if scheduler is None else str(scheduler.address)


def _forget(awaited: asyncio.Future[Any]) -> None:
    if not awaited.cancelled():
        awaited.exception()


async def drop_connections(lost: Iterable[str], dask_worker: Any = None) -> None:
    """Let a worker give up reaching others that are gone.

    Dask tells it that they are gone, too. But where that comes in one message with the order to
    fetch data from them, it is heeded before the fetching begins, which then knocks at a closed
    door for ``distributed.comm.timeouts.connect``, 30 s, while the data are computed by nobody.
    """
    await asyncio.sleep(_SETTLED)
    for address in lost:
        dask_worker.rpc.remove(address)


async def _wait_settled(futures: Sequence[Any]) -> None:
    # distributed.wait asks the default client, which need not be that of the futures.
    pause = 0.002
    while any(future.status in ("pending", "lost") for future in futures):
        await asyncio.sleep(pause)
        pause = min(2.0 * pause, 0.1)


def client_of(client: Client | None) -> Client:
    """Return the client that a user gave, or the one in force where there is none."""
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client; start one with dask.distributed.Client(address), or "
                "pass it as client="
            ) from None
    if not isinstance(client, Client):
        raise TypeError(
            f"client must be a dask.distributed.Client, got {type(client).__name__}; for the "
            "address of a scheduler pass Client(address)"
        )
    return client


def release(futures: Iterable[Future]) -> None:
    """Let the cluster forget what the futures stand for, whoever else holds them here."""
    for future in futures:
        future.release()


@contextmanager
def release_on_error(futures: Sequence[Future]) -> Iterator[None]:
    """Release futures where an error or Ctrl-C ends the block.

    A failed future holds its exception, whose traceback holds the frames of all that waited for it,
    and so the futures of all partitions: they would stay on the cluster as long as the client does.
    """
    try:
        yield
    except BaseException:
        release(futures)
        raise


def results_of(watch: Watch, futures: Sequence[Future], numbers: Sequence[int]) -> list[Any]:
    """Return the results of futures, and release these; of several failures the first is raised.

    Which of the partitions at fault is named then does not depend on who was quicker.

    Parameters
    ----------
    watch : Watch
        Waits, and ends the wait where the cluster is gone.
    futures : sequence of Future
        One a partition.
    numbers : sequence of int
        The partitions, for errors.
    """
    try:
        for _ in range(_ATTEMPTS):
            watch.wait(futures)
            check_made(watch, futures, numbers)
            with suppress(Interrupted):
                return watch.results(futures)
    finally:
        release(futures)
    raise ClusterError(
        f"what was computed for {len(futures)} partitions was lost {_ATTEMPTS} times before it "
        "could be fetched; look at the logs of the workers"
    )


def check_made(watch: Watch, futures: Sequence[Future], numbers: Sequence[int]) -> None:
    """Raise what keeps a partition from being made, or `ClusterError` where it is lost for good."""
    named = list(zip(numbers, futures, strict=True))
    lost = [number for number, future in named if future.status == "cancelled"]
    if lost:
        watch.check_scheduler()
        raise ClusterError(
            f"{_partitions(lost)} lost for good: the data were put onto a worker that is gone, or "
            "the scheduler was restarted. Give data that can be read again: a linrank.Store, a "
            "dask collection or delayed blocks that read files"
        )
    for number, future in named:
        if future.status == "error":
            error = watch.call(future.exception)
            if isinstance(error, KilledWorker):
                raise ClusterError(f"{_partitions([number])} lost: {killers(error)}") from error
            raise error


def _partitions(numbers: Sequence[int]) -> str:
    """Partitions by number, the first few of them, with the verb."""
    if len(numbers) == 1:
        return f"partition {numbers[0]} is"
    shown = ", ".join(map(str, numbers[:_NAMED]))
    rest = f" and {len(numbers) - _NAMED} others" if len(numbers) > _NAMED else ""
    return f"partitions {shown}{rest} are"


def killers(error: Exception) -> str:
    """What Dask says of a task that ended its workers, with what to do."""
    first = str(error).split("\n")[0].strip()
    return (
        f"{first} Look at the logs of the workers: most often a partition does not fit their "
        "memory; use smaller partitions or larger workers"
    )


def map_tasks(
    client: Client, name: str, work: Callable[..., Any], *lists: Sequence[Any], **common: Any
) -> list[Future]:
    """Futures of ``work``, called for each place of the lists, under keys that no other has.

    Dask takes tasks of one ``name`` to last alike.
    """
    unique = f"linrank-{name}-{uuid.uuid4().hex}"
    keys = [f"{unique}-{i}" for i in range(len(lists[0]))]
    return client.map(work, *map(list, lists), key=keys, **common)


def delay_task(task: Callable[..., Any], number: int, *args: Any) -> Any:
    """Return ``task(number, *args)`` on a partition, delayed, under a key that no other has."""
    key = f"linrank-{task.__name__.lstrip('_')}-{uuid.uuid4().hex}-{number}"
    return dask.delayed(task, pure=False)(number, *args, dask_key_name=key)


@contextmanager
def cluster_at(address: str, quiet: bool = True) -> Iterator[Any]:
    """A client of the scheduler at an address, or of ``local:N`` workers that end with it."""
    level = logging.CRITICAL if quiet else logging.WARNING
    # `distributed` gives some of its loggers levels of their own; that of asyncio reports tasks of
    # workers that were ended while they started.
    for name in ("distributed", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "asyncio"):
            logging.getLogger(name).setLevel(level)
    if address.startswith(_LOCAL):
        n_workers = int(address.removeprefix(_LOCAL))
        with _local_cluster(n_workers, level) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=_TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}); start one "
            f"(`dask scheduler`), check the address, or use {_LOCAL}N for this machine"
        ) from error
    with client:
        yield client


def _local_cluster(n_workers: int, level: int) -> Any:
    """The workers of this machine, started anew where one of them ends before it is there.

    Dask takes the loss of a worker for granted from then on, and before for the end of it all.
    """
    failure: BaseException | None = None
    for _ in range(_STARTS):
        try:
            return LocalCluster(
                n_workers=n_workers,
                threads_per_worker=max(1, resolve(None) // n_workers),
                processes=True,
                dashboard_address="127.0.0.1:0",  # None: port 8787, and a warning if it is taken
                scheduler_kwargs={"dashboard": False},
                silence_logs=level,
                preload=["linrank.dask.rounds"],
            )
        except (RuntimeError, asyncio.TimeoutError) as error:
            failure = error
    raise ClusterError(
        f"a worker of {_LOCAL}{n_workers} ended while it started, {_STARTS} times in a row "
        f"({failure}); see that there is memory for {n_workers} processes, or ask for fewer; -v "
        "shows what they say"
    ) from failure
