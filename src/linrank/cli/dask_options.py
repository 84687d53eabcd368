"""Options of training on a Dask cluster, and which others they exclude."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.arguments import positive_float
from linrank.system.words import count
from linrank.cli.domination_options import METHOD
from linrank.cli.streams import STANDARD
from linrank.options import SELECTED_PAIRS

if TYPE_CHECKING:
    from linrank.cli.console import Console

_LOCAL = "local:"


def add_dask(parser: argparse.ArgumentParser) -> None:
    """Declare the options; --checkpoint is declared with streams."""
    group = parser.add_argument_group("clusters (--dask)")
    group.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="train on the Dask cluster of this scheduler (tcp://host:8786), or on N worker "
        "processes of this machine (local:N); DATA is a store that all workers see",
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on from the weights in --checkpoint FILE, where there are some",
    )
    group.add_argument(
        "--patience",
        type=positive_float,
        metavar="SECONDS",
        help="fail when there is no worker for so long (default: 60)",
    )


def check_dask(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go together."""
    if args.dask is None:
        if args.resume:
            parser.error("--resume needs --dask and --checkpoint FILE")
        if args.patience is not None:
            parser.error("--patience needs --dask ADDRESS")
        return
    n_workers = args.dask.removeprefix(_LOCAL)
    if args.dask.startswith(_LOCAL) and not (n_workers.isdecimal() and int(n_workers) > 0):
        parser.error(f"--dask {args.dask}: give a number of workers, as in {_LOCAL}2")
    _check_method(args, parser)
    for name in ("memory_limit", "missing", "preferences", "stream"):
        if getattr(args, name):
            parser.error(f"--dask excludes --{name.replace('_', '-')}")
    if args.resume and args.checkpoint is None:
        parser.error("--resume needs --checkpoint FILE, the weights to go on from")
    if args.checkpoint == STANDARD:
        parser.error("--checkpoint needs a file, not a standard stream (-)")
    if args.checkpoint and os.path.realpath(args.checkpoint) == os.path.realpath(args.model):
        parser.error(f"MODEL and --checkpoint are one file, {args.model}; name two")
    if not os.path.exists(args.data) and args.data != STANDARD:
        parser.error(f"--dask: there is no store {args.data}")
    if not os.path.isdir(args.data):
        parser.error(
            f"--dask trains on a store, which {args.data} is not; write one first: "
            f"linrank convert {args.data} STORE"
        )


def _check_method(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.kernel is not None or args.method not in (None, "ranksvm", METHOD):
        parser.error("--dask trains a linear RankSVM, or --method domination --penalty l2")
    if args.solver not in (None, "auto", "newton"):
        parser.error(f"--dask needs --solver newton, not --solver {args.solver}")
    if args.pairs in SELECTED_PAIRS:
        parser.error(f"--dask excludes --pairs {args.pairs}, which lists pairs of the whole data")


@contextmanager
def connected(args: argparse.Namespace, console: Console) -> Iterator[Any]:
    """A client of the cluster of ``--dask``, which is ended if it was started here."""
    from linrank.dask.connecting import cluster_at

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
