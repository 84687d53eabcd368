"""Where ``linrank train`` and ``tune`` find their rows: memory, a store, a Dask cluster."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Clock, Console
from linrank.cli.files import describe_data, read_data
from linrank.cli.main import UsageError
from linrank.cli.options import STANDARD, flag, flags_in, given
from linrank.methods.base import Method, Task, Trained
from linrank.options import SELECTED_PAIRS
from linrank.system.resources import count, seconds

if TYPE_CHECKING:
    from linrank.dask.partitions import Partitions
    from linrank.data.dataset import Dataset
    from linrank.io.store.store import Store

PATIENCE = "--patience SECONDS:positive  fail when there is no worker for so long (default: 60)"
_LOCAL = "local:"


def is_store(method: Method, args: Namespace) -> bool:
    """Whether the data are to stay where they are: a limit or a cluster goes through a store."""
    is_limited = "store" in method.places and getattr(args, "memory_limit", None) is not None
    return is_limited or getattr(args, "dask", None) is not None


def check_place(args: Namespace, is_store: bool, groups: Mapping[str, str]) -> None:
    """Fail on options that do not go with the place; ``groups`` has those that need a place."""
    if getattr(args, "dask", None) is not None:
        _check_cluster(args)
    else:
        for group in ("cluster", "stream"):
            names = [name[2:].replace("-", "_") for name in flags_in(groups.get(group, ""))]
            for name in given(args, names):
                needed = "--dask" if hasattr(args, "dask") else "--stream"
                raise UsageError(f"{flag(name)} needs {needed}")
    if is_store and not os.path.isdir(args.data):
        if args.data != STANDARD:
            os.stat(args.data)
        raise UsageError(
            f"--memory-limit and --dask need a store, and {args.data} is none; write one first: "
            f"linrank convert {args.data} -o STORE"
        )


def _check_cluster(args: Namespace) -> None:
    n_workers = args.dask.removeprefix(_LOCAL)
    checkpoint = getattr(args, "checkpoint", None)
    if args.dask.startswith(_LOCAL) and not (n_workers.isdecimal() and int(n_workers) > 0):
        raise UsageError(f"--dask {args.dask}: give a number of workers, as in {_LOCAL}2")
    if args.solver not in (None, "auto", "newton"):
        raise UsageError(f"--dask needs --solver newton, not --solver {args.solver}")
    if getattr(args, "pairs", None) in SELECTED_PAIRS:
        raise UsageError(f"--dask excludes --pairs {args.pairs}, which looks at all rows at once")
    for name in given(args, ("memory_limit", "missing", "preferences")):
        raise UsageError(f"--dask excludes {flag(name)}")
    if getattr(args, "resume", False) and checkpoint is None:
        raise UsageError("--resume needs --checkpoint FILE, the weights to go on from")
    if checkpoint is not None:
        check_checkpoint(checkpoint, args)


def check_checkpoint(path: str, args: Namespace) -> None:
    """Fail on a checkpoint that is no file of its own."""
    if path == STANDARD:
        raise UsageError("--checkpoint needs a file, not a standard stream (-)")
    # Neither need be there yet; the last checkpoint and then the model would replace it.
    if os.path.realpath(path) == os.path.realpath(args.output):
        raise UsageError(f"MODEL and --checkpoint are one file, {args.output}; name two")


def open_data(args: Namespace, console: Console, is_store: bool) -> tuple[Dataset | Store, Clock]:
    """The data, or their store, and the clock that started with reading; say what they are."""
    import linrank.io.svmlight  # noqa: F401  (the time of reading is not that of NumPy)

    clock = Clock()
    data = _open_store(args) if is_store else read_data(args.data, args, console)
    took = clock.end("read")
    label, since = ("opened", "") if is_store else ("read", f" in {seconds(took)}")
    console.say(label, f"{describe_data(data)}{since}")
    return data, clock


def _open_store(args: Namespace) -> Store:
    """The store at ``DATA``; options that say how to read text have no place here."""
    from linrank.io.store.store import Store

    store = Store(args.data)
    if args.index_base != "auto":
        raise ValueError("--index-base is for text; a store has its features numbered")
    if getattr(args, "missing", None) is not None:
        raise ValueError("--missing is decided when a store is written; leave it out")
    return store


# ---- clusters -----------------------------------------------------------------------------------


def train_on_cluster(
    method: Method, store: Store, parameters: Any, args: Namespace, console: Console
) -> Trained:
    """Train as the method does, the rows staying with the workers."""
    from linrank.dask.parts import on_cluster

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
    from linrank.dask.clients import cluster_at

    try:
        with cluster_at(args.dask, quiet=not args.verbose) as client:
            threads = client.nthreads()
            workers = count(len(threads), "worker")
            size = f"{workers}, {count(sum(threads.values()), 'thread')}"
            console.say("cluster", f"{args.dask}: {size if threads else 'no worker yet'}")
            yield client
    except KeyboardInterrupt:
        # The command ends. Futures that the traceback still holds are released after their client
        # is closed, and would each say so.
        sys.unraisablehook = lambda _: None
        raise
