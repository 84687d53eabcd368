"""``linrank train STORE --dask``: exact training on the workers of a Dask cluster."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.bounding import coef_bounds_of
from linrank.cli.console import Console
from linrank.cli.dask_options import connected
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import describe_store, open_store, store_summary
from linrank.cli.train_report import print_json, say_result, training_summary
from linrank.cli.training import iteration, write_and_validate
from linrank.options import TRAINING

if TYPE_CHECKING:
    from linrank.dask.training import Options, Outcome
    from linrank.io.store.store import Store
    from linrank.models.linear import LinearModel
    from linrank.solvers.result import Callback, Result


def run_exact_dask(
    args: argparse.Namespace, parser: argparse.ArgumentParser, console: Console, start: float
) -> int:
    """Open, connect, train, measure, write: a RankSVM on a cluster."""
    store = open_store(args, parser)
    console.say("opened", describe_store(store))
    opened = time.perf_counter()
    with connected(args, console) as client:
        model, result = _fit(store, args, client, console)
    trained = time.perf_counter()
    say_result(result, args, trained - opened, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        summary = {**store_summary(store, args), "preferences": None, "dask": args.dask}
        training = training_summary(result, args, model.training)
        print_json(args, summary, training, evaluation, (start, opened, trained))
    return OK if result.converged else NOT_CONVERGED


def _fit(
    store: Store, args: argparse.Namespace, client: Any, console: Console
) -> tuple[LinearModel, Result]:
    from linrank.dask.partitions import partitions_of
    from linrank.dask.training import train_ranksvm
    from linrank.data.bounds import weight_bounds
    from linrank.data.scaling import Scaling
    from linrank.io.store.outline import outline
    from linrank.parts.recipes import RankRecipe

    columns = outline(store)
    scaling = Scaling.of_statistics(args.scale, store.statistics)
    bounds = weight_bounds(args.positive, coef_bounds_of(args, columns), columns, scaling.factors)
    options = _options(args, console.progress(iteration))
    data = partitions_of(_seen_by_all(store), client=client, patience=options.patience)
    recipe = RankRecipe(
        args.loss,
        args.pairs,
        args.pair_weighting,
        args.query_normalization,
        by_query=scaling.needs_queries,
    )
    found = train_ranksvm(data, recipe, C=args.C, scaling=scaling, options=options, bounds=bounds)
    _say_cluster(found, args, console)
    settings = {
        **{name: getattr(args, name) for name in ("C", *TRAINING)},
        "positive": args.positive,
        "bounded": args.bounds is not None,
        "index_base": store.index_base,
    }
    return found.model(data, scaling, **settings), found.result


def fit_domination_dask(
    store: Store,
    args: argparse.Namespace,
    options: dict[str, Any],
    callback: Callback | None,
    console: Console,
) -> tuple[LinearModel, Result]:
    """The model of the domination loss on a cluster."""
    from linrank.dask.partitions import partitions_of
    from linrank.dask.training import train_domination
    from linrank.data.scaling import Scaling
    from linrank.domination.train import describe_parameters
    from linrank.parts.choices import check_domination
    from linrank.parts.recipes import DominationRecipe

    check_domination("a cluster", alpha=args.alpha, **options)
    scaling = Scaling.of_statistics(args.scale, store.statistics)
    running = _options(args, callback)
    recipe = DominationRecipe(options["layers"], options["margin"], by_query=scaling.needs_queries)
    with connected(args, console) as client:
        data = partitions_of(_seen_by_all(store), client=client, patience=running.patience)
        found = train_domination(data, recipe, alpha=args.alpha, scaling=scaling, options=running)
    _say_cluster(found, args, console)
    settings = describe_parameters(None, alpha=args.alpha, seed=args.seed, **options)
    settings["index_base"] = store.index_base
    return found.model(data, scaling, **settings), found.result


def _options(args: argparse.Namespace, callback: Callback | None) -> Options:
    from linrank.dask.training import Options

    return Options(
        tol=args.tol,
        max_iter=args.max_iter,
        patience=60.0 if args.patience is None else args.patience,
        checkpoint=args.checkpoint,
        resume=args.resume,
        n_jobs=args.jobs,
        callback=callback,
    )


def _seen_by_all(store: Store) -> str:
    """The path of a store for processes that may run in other folders."""
    return os.path.abspath(store.path)


def _say_cluster(found: Outcome, args: argparse.Namespace, console: Console) -> None:
    console.clear()
    repeated = f", {found.n_repeated} repeated" if found.n_repeated else ""
    console.say("cluster", f"{found.n_rounds} rounds of tasks{repeated}")
    if found.n_before:
        console.say("resumed", f"{args.checkpoint}: after {found.n_before} iterations")
