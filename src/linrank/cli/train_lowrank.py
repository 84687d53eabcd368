"""``linrank train --method factorized`` and ``regularized``: duals of low rank."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.system.words import count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import read_data
from linrank.cli.train_report import data_summary, describe_data, print_json, say_convergence
from linrank.cli.training import check_files, write_and_validate
from linrank.options import FACTORIZED, LOW_RANK, REGULARIZED

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.models.linear import LinearModel


def run_lowrank(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, train, measure, write."""
    check_files(args, parser)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight  # noqa: F401

    train = _trainer(args.method)
    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = read_data(args.data, args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    model, result = _fit(train, data, args, console)
    trained = time.perf_counter()
    console.clear()
    _say_result(result, args, trained - read, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        times = (start, read, trained)
        training = _summary(model, result, args)
        print_json(args, data_summary(data, args), training, evaluation, times)
    return OK if result.converged else NOT_CONVERGED


def _trainer(method: str) -> Callable[..., Any]:
    """What trains by a method; found by its name, to load no other."""
    trainer: Callable[..., Any] = getattr(
        import_module(f"linrank.lowrank.{method}"), f"train_{method}"
    )
    return trainer


def _fit(
    train: Callable[..., Any], data: Dataset, args: argparse.Namespace, console: Console
) -> tuple[LinearModel, Any]:
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel

    scaling = Scaling.fit(args.scale, data.rows, weight=data.weight, n_jobs=args.jobs)
    options = _options(args)
    result = train(
        scaling.transformed(data, n_jobs=args.jobs),
        **options,
        scale=scaling.factors,
        n_jobs=args.jobs,
        callback=console.progress(_line),
    )
    settings = {"method": args.method, **options, "index_base": data.index_base}
    return LinearModel.of(result, data, scaling, **settings), result


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What goes to the training as it is."""
    names = (*FACTORIZED, "seed") if args.method == LOW_RANK[0] else REGULARIZED
    return {name: getattr(args, name) for name in ("C", *names)}


def _line(state: dict[str, Any]) -> str:
    """What is shown of an iteration."""
    gap = state.get("gap", math.nan)
    known = f"  gap {gap:.2e}" if math.isfinite(gap) else ""
    return (
        f"iteration {state['n_iter']:3d}  objective {state['objective']:.8g}{known}  "
        f"{state['seconds']:.2f} s"
    )


def _say_result(result: Any, args: argparse.Namespace, took: float, console: Console) -> None:
    """Work, what is known of the optimum, and convergence on standard error."""
    is_factorized = args.method == LOW_RANK[0]
    told, unit = (
        (f"K = {args.n_components}, {args.constraint}", "epoch")
        if is_factorized
        else (f"γ = {args.gamma:g}, λ = {args.lam:g}", "iteration")
    )
    console.say(
        "trained",
        f"{args.method}, {told}, C = {args.C:g}: {count(result.n_iter, unit)} in {seconds(took)}",
    )
    if is_factorized:
        console.say(
            "hinge",
            f"objective {result.hinge_objective:.10g} of RankSVM with the hinge, whose minimum "
            f"is at least {-result.value:.10g}",
        )
    else:
        share = result.gap / abs(result.value) if result.value else 0.0
        console.say(
            "optimum",
            f"objective {result.value:.10g}, at most {result.gap:.2g} ({share:.1e} of it) above "
            "the minimum",
        )
        ranks = result.ranks[result.duals.query]  # of the queries that have pairs
        console.say(
            "ranks", f"{ranks.min():,} to {ranks.max():,} by query, mean {ranks.mean():.3g}"
        )
    say_convergence(result, console)


def _summary(model: LinearModel, result: Any, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the run."""
    told = {
        "method": args.method,
        **_options(args),
        "scale": args.scale,
        "objective": result.value,
        "duality_gap": result.gap,
    }
    if args.method == LOW_RANK[0]:
        told |= {"lower_bound": -result.value, "hinge_objective": result.hinge_objective}
    else:
        told["ranks"] = result.ranks.tolist()
    return {
        **told,
        "nonzero_weights": model.n_nonzero,
        "iterations": result.n_iter,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }
