"""The client of a call, and the results of its tasks in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributed import Client, Future, get_client, wait

__all__ = ["client_of", "results_of"]


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
    if client.asynchronous:
        raise TypeError(
            "client is asynchronous; linrank waits for its tasks: start it with "
            "Client(address, asynchronous=False)"
        )
    return client


def results_of(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Return the results of futures; of several failures the first in their order is raised.

    Which of the partitions at fault is named then does not depend on who was quicker.
    """
    wait(list(futures))
    for future in futures:
        if future.status == "error":
            raise future.exception()
    results: list[Any] = client.gather(list(futures))
    return results
