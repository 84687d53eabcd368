"""``linrank train STORE --memory-limit``: exact training in passes over a store."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.bounding import coef_bounds_of
from linrank.cli.console import Console
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import describe_store, open_store, store_summary
from linrank.cli.train_report import print_json, say_result, training_summary
from linrank.cli.training import iteration, write_and_validate
from linrank.options import TRAINING

if TYPE_CHECKING:
    from linrank.io.store.store import Store
    from linrank.models.linear import LinearModel
    from linrank.solvers.result import Result


def run_exact_store(
    args: argparse.Namespace, parser: argparse.ArgumentParser, console: Console, start: float
) -> int:
    """Open, train, measure, write: a RankSVM within ``--memory-limit``."""
    if args.preferences is not None:
        parser.error("--preferences compare any two rows, which passes over a store cannot")
    store = open_store(args, parser)
    console.say("opened", describe_store(store))
    opened = time.perf_counter()
    model, result = _fit(store, args, console)
    trained = time.perf_counter()
    say_result(result, args, trained - opened, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        summary = {**store_summary(store, args), "preferences": None}
        training = training_summary(result, args, model.training)
        print_json(args, summary, training, evaluation, (start, opened, trained))
    return OK if result.converged else NOT_CONVERGED


def _fit(store: Store, args: argparse.Namespace, console: Console) -> tuple[LinearModel, Result]:
    from linrank.data.bounds import weight_bounds
    from linrank.data.scaling import Scaling
    from linrank.io.store.outline import outline
    from linrank.models.linear import LinearModel
    from linrank.parts.stores import train_rank_store

    columns = outline(store)
    scaling = Scaling.of_statistics(args.scale, store.statistics)
    options = {name: getattr(args, name) for name in ("C", *TRAINING)}
    bounds = weight_bounds(args.positive, coef_bounds_of(args, columns), columns, scaling.factors)
    result, n_pairs = train_rank_store(
        store,
        scaling,
        memory_limit=args.memory_limit,
        options=options,
        bounds=bounds,
        n_jobs=args.jobs,
        callback=console.progress(iteration),
    )
    settings = {
        **options,
        "positive": args.positive,
        "bounded": args.bounds is not None,
        "index_base": store.index_base,
        "n_pairs": n_pairs,
    }
    model = LinearModel.of(result, columns, scaling, **settings)
    return model.knowing(store.statistics), result


def fit_domination_store(
    store: Store, args: argparse.Namespace, options: dict[str, Any], callback: Any
) -> tuple[LinearModel, Result]:
    """The model of the domination loss within ``--memory-limit``."""
    from linrank.data.scaling import Scaling
    from linrank.domination.train import describe_parameters
    from linrank.io.store.outline import outline
    from linrank.models.linear import LinearModel
    from linrank.parts.stores import train_domination_store

    scaling = Scaling.of_statistics(args.scale, store.statistics)
    options = {"alpha": args.alpha, **options}
    result, n_pairs = train_domination_store(
        store,
        scaling,
        memory_limit=args.memory_limit,
        options=options,
        n_jobs=args.jobs,
        callback=callback,
    )
    settings = describe_parameters(None, seed=args.seed, **options)
    known = {"index_base": store.index_base, "n_pairs": n_pairs}
    model = LinearModel.of(result, outline(store), scaling, **settings, **known)
    return model.knowing(store.statistics), result
