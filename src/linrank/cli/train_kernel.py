"""``linrank train --kernel``: a sum of kernels, exact or approximate."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.system.words import count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.pair_options import say_pairs
from linrank.cli.train_report import (
    data_summary,
    describe_data,
    print_json,
    relative_gap,
    say_convergence,
    say_optimum,
)
from linrank.cli.training import (
    check_files,
    check_preferences,
    iteration,
    read_training,
    write_and_validate,
)
from linrank.options import KERNEL, WITH_GAMMA

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.data.preferences import Preferences
    from linrank.models.kernel import KernelModel
    from linrank.solvers.result import Result

_OPTIONS = (
    *("kernel", "gamma", "degree", "coef0", "scale", "C", "approximation", "n_components"),
    *KERNEL,
    "seed",
)


def run_kernel(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, train, measure, write."""
    check_preferences(args, parser)
    check_files(args, parser, args.preferences)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.search.kernel_fit  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data, preferences = read_training(args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    if preferences is not None:
        console.say("read", f"{preferences.source}: {count(len(preferences), 'preference')}")
    model, result = _fit(data, preferences, args, console)
    trained = time.perf_counter()
    _say_result(model, result, args, trained - read, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        n_listed = None if preferences is None else len(preferences)
        summary = {**data_summary(data, args), "preferences": n_listed}
        times = (start, read, trained)
        print_json(args, summary, _summary(model, result, args), evaluation, times)
    return OK if result.converged else NOT_CONVERGED


def _fit(
    data: Dataset, preferences: Preferences | None, args: argparse.Namespace, console: Console
) -> tuple[KernelModel, Result]:
    from linrank.search.kernel_fit import fit_kernel

    fitted = fit_kernel(
        data,
        **{name: getattr(args, name) for name in _OPTIONS},
        preferences=preferences,
        n_jobs=args.jobs,
        callback=console.progress(iteration),
    )
    console.clear()
    return fitted


def _say_result(
    model: KernelModel, result: Result, args: argparse.Namespace, took: float, console: Console
) -> None:
    """Work, optimum, size of the model and convergence on standard error."""
    kernel = args.kernel if args.approximation is None else f"{args.kernel} by {args.approximation}"
    width = f", γ = {model.kernel.gamma:.4g}" if args.kernel in WITH_GAMMA else ""
    console.say(
        "trained",
        f"{kernel}{width}, {args.loss.replace('_', ' ')}, C = {args.C:g}: "
        f"{count(result.n_iter, 'iteration')} in {seconds(took)}",
    )
    say_optimum(result.value, result.gap, console)
    say_pairs(model.training, console)
    console.say("model", _size(model))
    say_convergence(result, console)


def _size(model: KernelModel) -> str:
    """How much a score costs."""
    if model.support is None:
        return f"{count(len(model.coef), 'component')}"
    n_rows = int(model.training["n_rows"])  # type: ignore[arg-type]
    share = f"{100 * len(model.coef) / n_rows:.3g} %"
    return f"{len(model.coef):,} of {count(n_rows, 'row')} support it ({share})"


def _summary(model: KernelModel, result: Result, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the run."""
    return {
        **{name: getattr(args, name) for name in _OPTIONS},
        "gamma": model.kernel.gamma,
        "pairs_compared": model.training["n_pairs"],
        "objective": result.value,
        "duality_gap": result.gap,
        "relative_gap": relative_gap(result),
        "support_rows": len(model.coef),
        "iterations": result.n_iter,
        "hessian_products": result.n_hvp,
        "converged": result.converged,
        "stopped": result.stopped,
        "message": result.message,
    }
