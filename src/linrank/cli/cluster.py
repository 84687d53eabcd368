"""``linrank train STORE --dask``: training on the workers of a Dask cluster."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.streams import STANDARD
from linrank.methods.base import Trained
from linrank.options import DOMINATION, SELECTED_PAIRS
from linrank.system.words import count

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.dask.training import Outcome
    from linrank.data.scaling import Scaling
    from linrank.io.store.store import Store

_LOCAL = "local:"


def check_cluster(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go together."""
    n_workers = args.dask.removeprefix(_LOCAL)
    if args.dask.startswith(_LOCAL) and not (n_workers.isdecimal() and int(n_workers) > 0):
        parser.error(f"--dask {args.dask}: give a number of workers, as in {_LOCAL}2")
    if args.solver not in (None, "auto", "newton"):
        parser.error(f"--dask needs --solver newton, not --solver {args.solver}")
    if getattr(args, "pairs", None) in SELECTED_PAIRS:
        parser.error(f"--dask excludes --pairs {args.pairs}, which lists pairs of the whole data")
    for name in ("memory_limit", "missing", "preferences", "curves", "interactions"):
        if getattr(args, name, None):
            parser.error(f"--dask excludes --{name.replace('_', '-')}")
    if args.resume and args.checkpoint is None:
        parser.error("--resume needs --checkpoint FILE, the weights to go on from")
    if args.checkpoint == STANDARD:
        parser.error("--checkpoint needs a file, not a standard stream (-)")
    if args.checkpoint and os.path.realpath(args.checkpoint) == os.path.realpath(args.model):
        parser.error(f"MODEL and --checkpoint are one file, {args.model}; name two")
    if not os.path.exists(args.data) and args.data != STANDARD:
        parser.error(f"--dask: there is no store {args.data}")


def train_on_cluster(
    store: Store, parameters: Any, args: argparse.Namespace, console: Console
) -> Trained:
    """Train as the method of the command does, the rows staying with the workers."""
    from linrank.dask.partitions import partitions_of
    from linrank.dask.training import Options
    from linrank.data.scaling import Scaling

    scaling = Scaling.of_statistics(parameters.scale, store.statistics)
    options = Options(
        tol=parameters.tol,
        max_iter=parameters.max_iter,
        patience=60.0 if args.patience is None else args.patience,
        checkpoint=args.checkpoint,
        resume=args.resume,
        n_jobs=args.jobs,
        callback=parameters.callback,
    )
    train = {"ranksvm": _ranksvm, "domination": _domination}[args.method]
    with connected(args, console) as client:
        # By a path that means the same to processes that run in other folders.
        data = partitions_of(os.path.abspath(store.path), client=client, patience=options.patience)
        found, settings = train(data, scaling, store, parameters, options)
    console.clear()
    repeated = f", {found.n_repeated} repeated" if found.n_repeated else ""
    console.say("cluster", f"{found.n_rounds} rounds of tasks{repeated}")
    if found.n_before:
        console.say("resumed", f"{args.checkpoint}: after {found.n_before} iterations")
    if store.index_base is not None:
        settings["index_base"] = store.index_base
    model = found.model(data, scaling, **settings)
    shown = {"n_nonzero": model.n_nonzero, "density": model.density}
    return Trained(model, found.result, shown, is_done=found.result.converged)


def _ranksvm(
    data: Any, scaling: Scaling, store: Store, p: Any, options: Any
) -> tuple[Outcome, dict[str, Any]]:
    from linrank.dask.training import train_ranksvm
    from linrank.data.bounds import weight_bounds
    from linrank.io.store.outline import columns_of
    from linrank.methods.ranksvm import options_of, settings_of
    from linrank.parts.recipes import RankRecipe

    bounds = weight_bounds(p.positive, p.coef_bounds, columns_of(store), scaling.factors)
    recipe = RankRecipe(
        p.loss, p.pairs, p.pair_weighting, p.query_normalization, by_query=scaling.needs_queries
    )
    found = train_ranksvm(data, recipe, C=p.C, scaling=scaling, options=options, bounds=bounds)
    return found, settings_of(p, {"C": p.C, **options_of(p)})


def _domination(
    data: Any, scaling: Scaling, store: Store, p: Any, options: Any
) -> tuple[Outcome, dict[str, Any]]:
    from linrank.dask.training import train_domination
    from linrank.domination.train import describe_parameters
    from linrank.parts.choices import check_domination
    from linrank.parts.recipes import DominationRecipe

    own = {name: getattr(p, name) for name in DOMINATION}
    check_domination("a cluster", alpha=p.alpha, **own)
    recipe = DominationRecipe(p.layers, p.margin, by_query=scaling.needs_queries)
    found = train_domination(data, recipe, alpha=p.alpha, scaling=scaling, options=options)
    return found, describe_parameters(None, alpha=p.alpha, seed=p.random_state, **own)


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
