"""``linrank train --solver sgd``: stochastic descent on data in memory, or on a store."""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.system.words import count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import describe_store, open_store, read_data, store_summary
from linrank.cli.train_report import LOOSE, data_summary, describe_data, print_json
from linrank.cli.training import check_files, write_and_validate
from linrank.options import DESCENT

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.io.store.store import Store
    from linrank.models.linear import LinearModel
    from linrank.stochastic.train import DescentResult


def run_sgd(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, descend, measure, write."""
    check_files(args, parser)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.stochastic.train  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    if args.memory_limit is not None:
        store = open_store(args, parser)
        read = time.perf_counter()
        console.say("opened", describe_store(store))
        model, result = _fit_store(store, args, console)
        summary = store_summary(store, args)
    else:
        data = read_data(args.data, args, console)
        read = time.perf_counter()
        console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
        model, result = _fit(data, args, console)
        summary = data_summary(data, args)
    trained = time.perf_counter()
    _say_result(result, args, trained - read, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        times = (start, read, trained)
        print_json(args, summary, _summary(result, args), evaluation, times)
    return OK if _is_done(result, args) else NOT_CONVERGED


def _fit(
    data: Dataset, args: argparse.Namespace, console: Console
) -> tuple[LinearModel, DescentResult]:
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel
    from linrank.stochastic.train import descend

    scaling = Scaling.fit(args.scale, data.rows, weight=data.weight, n_jobs=args.jobs)
    result = descend(scaling.applied(data, n_jobs=args.jobs), **_options(args, console))
    return LinearModel.of(result, data, scaling, **_settings(args, data.index_base)), result


def _fit_store(
    store: Store, args: argparse.Namespace, console: Console
) -> tuple[LinearModel, DescentResult]:
    from linrank.data.scaling import Scaling
    from linrank.io.store.outline import outline
    from linrank.models.linear import LinearModel
    from linrank.stochastic.chunked import descend_store

    scaling = Scaling.of_statistics(args.scale, store.statistics)
    how = {"passes": args.passes, "memory_limit": args.memory_limit}
    result = descend_store(store, scaling, **how, **_options(args, console))
    settings = _settings(args, store.index_base)
    model = LinearModel.of(result, outline(store), scaling, **settings)
    return model.knowing(store.statistics), result


def _options(args: argparse.Namespace, console: Console) -> dict[str, Any]:
    """How to descend."""
    return {
        **{name: getattr(args, name) for name in DESCENT},
        "alpha": args.alpha,
        "C": args.C,
        "seed": args.seed,
        "n_jobs": args.jobs,
        "callback": console.progress(_line),
    }


def _settings(args: argparse.Namespace, index_base: int | None) -> dict[str, Any]:
    """What the model is to know."""
    options = {name: getattr(args, name) for name in DESCENT}
    return {**options, "C": args.C, "seed": args.seed, "index_base": index_base}


def _line(state: dict[str, Any]) -> str:
    """What is shown of a milestone."""
    known = "" if math.isnan(state["objective"]) else f"  objective {state['objective']:.8g}"
    return f"step {state['n_steps']:>11,}{known}  {state['seconds']:.2f} s"


def _say_result(
    result: DescentResult, args: argparse.Namespace, took: float, console: Console
) -> None:
    """Work, objective and why it ended, on standard error."""
    console.clear()
    console.say(
        "trained",
        f"{args.algorithm}, λ = {result.alpha:g}, sampling {args.sampling}: "
        f"{count(result.n_steps, 'step')} in {seconds(took)}",
    )
    if args.record is not None:
        # The bound of a last iterate is often as large as the objective, and then says nothing.
        is_tight = result.gap < LOOSE * result.objective
        known = f", at most {result.gap:.2g} above the minimum" if is_tight else ""
        console.say("objective", f"{result.objective:.10g} ({args.record}){known}")
    if args.tol is None:
        return
    if result.stopped == "tolerance":
        console.say("converged", result.message)
    else:
        console.warn(f"not converged: {result.message}; raise --n-steps, or -e to accept it")


def _summary(result: DescentResult, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the run."""
    return {
        "solver": args.solver,
        **{name: getattr(args, name) for name in DESCENT},
        "alpha": result.alpha,
        "C": args.C,
        "seed": args.seed,
        "scale": args.scale,
        "objective": None if math.isnan(result.objective) else result.objective,
        "duality_gap": None if math.isnan(result.gap) else result.gap,
        "loss": result.loss,
        "steps": result.n_steps,
        "stopped": result.stopped,
        "message": result.message,
    }


def _is_done(result: DescentResult, args: argparse.Namespace) -> bool:
    """Whether what was asked for was reached: the tolerance, or without one the steps."""
    return args.tol is None or result.stopped == "tolerance"
