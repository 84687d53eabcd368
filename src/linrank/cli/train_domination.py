"""``linrank train --method domination``: sparse models by the domination loss."""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.system.words import count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import describe_store, open_store, read_data, store_summary
from linrank.cli.train_dask import fit_domination_dask
from linrank.cli.train_report import (
    LOOSE,
    data_summary,
    describe_data,
    print_json,
    relative_gap,
    say_convergence,
)
from linrank.cli.train_store import fit_domination_store
from linrank.cli.training import check_files, write_and_validate
from linrank.options import CURVATURES, DOMINATION

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.models.linear import LinearModel
    from linrank.solvers.result import Result

_REPORTED = ("method", "alpha", *DOMINATION, "seed", "n_pairs")  # of what the model knows


def run_domination(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, train, measure, write."""
    check_files(args, parser)

    # Loaded before the clock starts: the time of reading is not that of NumPy.

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    if args.memory_limit is not None or args.dask is not None:
        store = open_store(args, parser)
        read = time.perf_counter()
        console.say("opened", describe_store(store))
        options, progress = _options(args), console.progress(_line)
        if args.dask is not None:
            model, result = fit_domination_dask(store, args, options, progress, console)
        else:
            model, result = fit_domination_store(store, args, options, progress)
        summary = store_summary(store, args)
    else:
        data = read_data(args.data, args, console)
        read = time.perf_counter()
        console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
        model, result = _fit(data, args, console)
        summary = data_summary(data, args)
    trained = time.perf_counter()
    _say_result(model, result, args, trained - read, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        times = (start, read, trained)
        training = _summary(model, result, args)
        print_json(args, summary, training, evaluation, times)
    return OK if result.converged else NOT_CONVERGED


def _fit(data: Dataset, args: argparse.Namespace, console: Console) -> tuple[LinearModel, Result]:
    from linrank.data.scaling import Scaling
    from linrank.domination.train import describe_parameters, train
    from linrank.models.linear import LinearModel

    scaling = Scaling.fit(args.scale, data.rows, weight=data.weight, n_jobs=args.jobs)
    result = train(
        scaling.transformed(data, n_jobs=args.jobs),
        alpha=args.alpha,
        **_options(args),
        scale=scaling.factors,
        seed=args.seed,
        n_jobs=args.jobs,
        callback=console.progress(_line),
    )
    settings = describe_parameters(data, alpha=args.alpha, seed=args.seed, **_options(args))
    settings["index_base"] = data.index_base
    return LinearModel.of(result, data, scaling, **settings), result


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """What goes to the training as it is; curvature changes the time only, and has no option."""
    return {"curvature": CURVATURES[0]} | {
        name: getattr(args, name) for name in DOMINATION if name != "curvature"
    }


def _line(state: dict[str, Any]) -> str:
    """What is shown of an iteration."""
    n_nonzero = int((state["w"] != 0).sum())
    return (
        f"iteration {state['n_iter']:3d}  objective {state['objective']:.8g}  "
        f"gap {state['gap']:.2e}  {count(n_nonzero, 'weight')}  {state['seconds']:.2f} s"
    )


def _say_result(
    model: LinearModel, result: Result, args: argparse.Namespace, took: float, console: Console
) -> None:
    """Work, optimum, sparsity and convergence on standard error."""
    console.clear()
    unit = "Newton step" if model.training["solver"] == "newton" else "sweep"
    penalty = "no penalty" if args.penalty == "none" else f"{args.penalty}, α = {args.alpha:g}"
    console.say(
        "trained",
        f"domination loss, {penalty}: {count(result.n_iter, unit)} in {seconds(took)}",
    )
    # Without a penalty there may be no minimum, and nothing is certified.
    known = f", at most {result.gap:.2g} ({relative_gap(result):.1e} of it) above the minimum"
    is_known = relative_gap(result) < LOOSE
    console.say("optimum", f"objective {result.value:.10g}{known if is_known else ''}")
    console.say(
        "weights",
        f"{model.n_nonzero:,} of {count(model.n_features, 'feature')} "
        f"({100 * model.density:.3g} %)",
    )
    say_convergence(result, console)


def _summary(model: LinearModel, result: Result, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the run."""
    return {
        **{key: value for key, value in model.training.items() if key in _REPORTED},
        "scale": args.scale,
        "objective": result.value,
        "duality_gap": result.gap if math.isfinite(result.gap) else None,
        "relative_gap": relative_gap(result) if math.isfinite(result.gap) else None,
        "kkt_residual": result.kkt_residual,
        "nonzero_weights": model.n_nonzero,
        "density": model.density,
        "iterations": result.n_iter,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
        **_rounds(result),
    }


def _rounds(result: Result) -> dict[str, Any]:
    """Those of feature induction, if there were any; features counted from 0."""
    rounds = getattr(result, "rounds", None)
    if rounds is None:
        return {}
    return {
        "rounds": [
            {
                "features": done.features.tolist(),
                "objective": done.objective,
                "nonzero_weights": done.n_nonzero,
                "sweeps": done.n_sweeps,
            }
            for done in rounds
        ]
    }
