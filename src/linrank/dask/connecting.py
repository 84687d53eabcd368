"""A client for an address as users write it on a command line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linrank.errors import ClusterError
from linrank.system import resources as threads

LOCAL = "local:"
_TIMEOUT = 10  # seconds in which a scheduler has to answer
_ATTEMPTS = 3  # to start the workers of this machine


@contextmanager
def cluster_at(address: str, quiet: bool = True) -> Iterator[Any]:
    """A client of the scheduler at an address, or of ``local:N`` workers that end with it."""
    from distributed import Client

    level = logging.CRITICAL if quiet else logging.WARNING
    _set_level(level)
    if not address.startswith(LOCAL):
        try:
            client = Client(address, timeout=_TIMEOUT)
        except (OSError, ValueError, TimeoutError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {address!r} ({type(error).__name__}); start one "
                f"(`dask scheduler`), check the address, or use {LOCAL}N for this machine"
            ) from error
        with client:
            yield client
        return
    n_workers = int(address.removeprefix(LOCAL))
    with _local_cluster(n_workers, level) as cluster, Client(cluster) as client:
        yield client


def _local_cluster(n_workers: int, level: int) -> Any:
    """The workers of this machine, started anew where one of them ends before it is there.

    Dask takes the loss of a worker for granted from then on, and before for the end of it all.
    """
    from distributed import LocalCluster

    failure: BaseException | None = None
    for _ in range(_ATTEMPTS):
        try:
            return LocalCluster(
                n_workers=n_workers,
                threads_per_worker=max(1, threads.resolve(None) // n_workers),
                processes=True,
                dashboard_address="127.0.0.1:0",  # None: port 8787, and a warning if it is taken
                scheduler_kwargs={"dashboard": False},
                silence_logs=level,
                preload=["linrank.dask.interrupts"],
            )
        except (RuntimeError, asyncio.TimeoutError) as error:
            failure = error
    raise ClusterError(
        f"a worker of {LOCAL}{n_workers} ended while it started, {_ATTEMPTS} times in a row "
        f"({failure}); see that there is memory for {n_workers} processes, or ask for fewer; -v "
        "shows what they say"
    ) from failure


def _set_level(level: int) -> None:
    """Of all loggers of `distributed`, whose configuration gives some levels of their own.

    That of asyncio tells of tasks of workers that were ended while they started.
    """
    for name in ("distributed", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "asyncio"):
            logging.getLogger(name).setLevel(level)
