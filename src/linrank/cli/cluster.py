"""``linrank train|tune STORE --dask``: training on the workers of a Dask cluster."""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.streams import STANDARD
from linrank.errors import ClusterError
from linrank.methods.base import Method, Task, Trained
from linrank.options import SELECTED_PAIRS
from linrank.system.resources import count

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.dask.partitions import Partitions
    from linrank.io.store.store import Store

_LOCAL = "local:"
_TIMEOUT = 10  # seconds in which a scheduler has to answer
_ATTEMPTS = 3  # to start the workers of this machine


def check_cluster(args: Namespace, parser: ArgumentParser) -> None:
    """Fail on options that do not go together."""
    n_workers = args.dask.removeprefix(_LOCAL)
    if args.dask.startswith(_LOCAL) and not (n_workers.isdecimal() and int(n_workers) > 0):
        parser.error(f"--dask {args.dask}: give a number of workers, as in {_LOCAL}2")
    if args.solver not in (None, "auto", "newton"):
        parser.error(f"--dask needs --solver newton, not --solver {args.solver}")
    if getattr(args, "pairs", None) in SELECTED_PAIRS:
        parser.error(f"--dask excludes --pairs {args.pairs}, which lists pairs of the whole data")
    for name in ("memory_limit", "missing", "preferences"):
        if getattr(args, name, None):
            parser.error(f"--dask excludes --{name.replace('_', '-')}")
    checkpoint = getattr(args, "checkpoint", None)
    if getattr(args, "resume", False) and checkpoint is None:
        parser.error("--resume needs --checkpoint FILE, the weights to go on from")
    if checkpoint == STANDARD:
        parser.error("--checkpoint needs a file, not a standard stream (-)")
    if checkpoint and os.path.realpath(checkpoint) == os.path.realpath(args.model):
        parser.error(f"MODEL and --checkpoint are one file, {args.model}; name two")
    if not os.path.exists(args.data) and args.data != STANDARD:
        parser.error(f"--dask: there is no store {args.data}")


def train_on_cluster(
    method: Method, store: Store, parameters: Any, args: Namespace, console: Console
) -> Trained:
    """Train as the method does, the rows staying with the workers."""
    from linrank.dask.checkpoints import on_cluster

    kept = {"checkpoint": args.checkpoint, "resume": args.resume}
    with cluster_parts(method, store, parameters, args, console, **kept) as place:
        trained = on_cluster(method).train(Task(place, parameters))
    if place.n_before:
        console.say("resumed", f"{args.checkpoint}: after {place.n_before} iterations")
    return trained


@contextmanager
def cluster_parts(
    method: Method, store: Store, parameters: Any, args: Namespace, console: Console, **kept: Any
) -> Iterator[Partitions]:
    """The chunks of a store as partitions of the cluster of ``--dask``; ``kept`` as they take it.

    What the method cannot do there is refused before a cluster starts.
    """
    from linrank.dask.partitions import Partitions, partitions_of

    assert method.recipe is not None
    method.recipe(parameters, Partitions.where, None)
    patience = 60.0 if args.patience is None else args.patience
    # By a path that means the same to processes that run in other folders.
    path = os.path.abspath(store.path)
    with (
        _connected(args, console) as client,
        partitions_of(path, client=client, patience=patience, n_jobs=args.jobs, **kept) as place,
    ):
        yield place
    console.clear()
    repeated = f", {place.n_repeated} repeated" if place.n_repeated else ""
    console.say("cluster", f"{place.n_rounds} rounds of tasks{repeated}")


@contextmanager
def _connected(args: Namespace, console: Console) -> Iterator[Any]:
    """A client of the cluster of ``--dask``, which is ended if it was started here."""
    try:
        with cluster_at(args.dask, quiet=not args.verbose) as client:
            n_threads = sum(client.nthreads().values())
            n_workers = len(client.nthreads())
            told = f"{count(n_workers, 'worker')}, {count(n_threads, 'thread')}"
            if not n_workers:
                told = "no worker yet"
            console.say("cluster", f"{args.dask}: {told}")
            yield client
    except KeyboardInterrupt:
        # The command ends. Futures that the traceback still holds are released after their client
        # is closed, and would each say so.
        sys.unraisablehook = lambda _: None
        raise


@contextmanager
def cluster_at(address: str, quiet: bool = True) -> Iterator[Any]:
    """A client of the scheduler at an address, or of ``local:N`` workers that end with it."""
    from distributed import Client

    level = logging.CRITICAL if quiet else logging.WARNING
    _set_level(level)
    if not address.startswith(_LOCAL):
        try:
            client = Client(address, timeout=_TIMEOUT)
        except (OSError, ValueError, TimeoutError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {address!r} ({type(error).__name__}); start one "
                f"(`dask scheduler`), check the address, or use {_LOCAL}N for this machine"
            ) from error
        with client:
            yield client
        return
    n_workers = int(address.removeprefix(_LOCAL))
    with _local_cluster(n_workers, level) as cluster, Client(cluster) as client:
        yield client


def _local_cluster(n_workers: int, level: int) -> Any:
    """The workers of this machine, started anew where one of them ends before it is there.

    Dask takes the loss of a worker for granted from then on, and before for the end of it all.
    """
    import asyncio

    from distributed import LocalCluster

    from linrank.system import resources as threads

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
                preload=["linrank.dask.rounds"],
            )
        except (RuntimeError, asyncio.TimeoutError) as error:
            failure = error
    raise ClusterError(
        f"a worker of {_LOCAL}{n_workers} ended while it started, {_ATTEMPTS} times in a row "
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
