"""A client for an address as users write it on a command line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linrank import threads
from linrank.errors import ClusterError

__all__ = ["LOCAL", "cluster_at"]

LOCAL = "local:"
_TIMEOUT = 10  # seconds in which a scheduler has to answer


@contextmanager
def cluster_at(address: str, quiet: bool = True) -> Iterator[Any]:
    """A client of the scheduler at an address, or of ``local:N`` workers that end with it."""
    from distributed import Client, LocalCluster

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
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=max(1, threads.resolve(None) // n_workers),
            processes=True,
            dashboard_address="127.0.0.1:0",  # None means port 8787, and a warning if it is taken
            scheduler_kwargs={"dashboard": False},
            silence_logs=level,
            preload=["linrank.dask.interrupts"],
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _set_level(level: int) -> None:
    """Of all loggers of `distributed`, whose configuration gives some levels of their own."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(level)
