"""The client of a call, and the results of its tasks in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, KilledWorker, get_client

from linrank.dask.waiting import Interrupted, Watch
from linrank.errors import ClusterError

_ATTEMPTS = 10  # to fetch results, each of which has lost a worker
_NAMED = 5  # partitions that an error lists


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
def released_on_error(futures: Sequence[Future]) -> Iterator[None]:
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
        return _fetched(watch, futures, numbers)
    finally:
        release(futures)


def _fetched(watch: Watch, futures: Sequence[Future], numbers: Sequence[int]) -> list[Any]:
    for _ in range(_ATTEMPTS):
        watch.finished(futures)
        check_made(watch, futures, numbers)
        try:
            return watch.results(futures)
        except Interrupted:
            continue
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
