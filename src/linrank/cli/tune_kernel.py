"""``linrank tune --kernel``: the C and the γ of a kernel that rank unseen queries best."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.choosing import read_folds
from linrank.cli.console import Console, count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.models import write_model
from linrank.cli.reading import read_data
from linrank.cli.streams import STANDARD, show_standard
from linrank.cli.train_report import describe_data, say_optimum
from linrank.cli.tune_report import figure, measured_on, print_json, save
from linrank.options import KERNEL, WITH_GAMMA

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.models.kernel import KernelModel
    from linrank.search.folds import Fold
    from linrank.search.tuning import Tuning
    from linrank.solvers.result import Result

_OPTIONS = ("kernel", "degree", "coef0", *KERNEL, "seed", "scale")  # that are no grid


def run_kernel(args: argparse.Namespace) -> int:
    """Read, train the grid on every fold, measure, choose, train on all data, write."""
    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.search.kernel  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = read_data(args.data, args, console)
    folds = read_folds(data, args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    tuning, model, result = _search(data, folds, args, console)
    tuned = time.perf_counter()
    _say_result(tuning, result, args, tuned - read, console)
    if args.output is not None:
        write_model(model, args.output, console)
    if args.plot is not None:
        _plot(tuning, args)
        console.say("plotted", args.plot)
    if args.json:
        print_json(args, data, tuning, _summary(tuning, result, args), (start, read, tuned))
    elif args.output != STANDARD:
        show_standard(_table(tuning, args))
    return OK if result.converged else NOT_CONVERGED


def _search(
    data: Dataset, folds: list[Fold], args: argparse.Namespace, console: Console
) -> tuple[Tuning, KernelModel, Result]:
    from linrank.ranksvm.path import as_coarse_Cs
    from linrank.search.kernel import fit_chosen, tune_kernel
    from linrank.search.kernel_folds import as_gammas

    options = {name: getattr(args, name) for name in _OPTIONS}
    options["n_jobs"] = args.jobs
    tuning = tune_kernel(
        data,
        folds,
        as_gammas(args.gammas, args.kernel, data, args.scale),
        as_coarse_Cs(args.Cs),
        scoring=args.scoring,
        convention=args.convention,
        selection=args.selection,
        progress=console.progress(lambda state: _line(state, len(folds))),
        **options,
    )
    model, result = fit_chosen(tuning, data, scoring=args.scoring, **options)
    return tuning, model, result


def _line(state: dict[str, Any], n_folds: int) -> str:
    """What is shown of a model."""
    return (
        f"{state['n_done']} of {state['n_total']} models  fold {state['fold'] + 1} of {n_folds}  "
        f"γ {state['gamma']:.6g}  C {state['C']:.6g}  objective {state['objective']:.8g}  "
        f"gap {state['gap']:.2e}"
    )


def _say_result(
    tuning: Tuning, result: Result, args: argparse.Namespace, took: float, console: Console
) -> None:
    """The summary on standard error."""
    console.clear()
    where = measured_on(args, len(tuning.scores))
    n_models = count(tuning.scores.size + 1, "model")
    console.say("trained", f"{n_models} with the kernel {args.kernel} in {seconds(took)}")
    place = f"C = {tuning.C:g}" + (f", γ = {tuning.gamma:g}" if _has_gamma(args) else "")
    console.say("chosen", f"{place}: {args.scoring} {tuning.score:.4f} {where}")
    say_optimum(result.value, result.gap, console)
    for told in tuning.edges:
        console.say("note", told)
    if tuning.open is not None:
        console.warn(tuning.open)
    if not result.converged:
        console.warn(f"not converged: {result.message}")


def _has_gamma(args: argparse.Namespace) -> bool:
    return args.kernel in WITH_GAMMA


def _table(tuning: Tuning, args: argparse.Namespace) -> str:
    """A line per model, by γ and then by C; the chosen one has a star."""
    width, means = max(len(args.scoring), 9), tuning.mean_scores
    spread = tuning.scores.std(axis=0, ddof=1) if len(tuning.scores) > 1 else None
    first = f"{'gamma':>12}  " if _has_gamma(args) else ""
    lines = [f"  {first}{'C':>12}  {args.scoring:>{width}}  {'deviation':>9}"]
    for g, gamma in enumerate(tuning.gammas.tolist()):
        for c, C in enumerate(tuning.Cs.tolist()):
            mark = "*" if (g, c) == tuning.chosen else " "
            first = f"{gamma:>12.6g}  " if _has_gamma(args) else ""
            deviation = "" if spread is None else f"{spread[g, c]:.4f}"
            row = f"{mark} {first}{C:>12.6g}  {means[g, c]:>{width}.4f}  {deviation:>9}"
            lines.append(row.rstrip())
    return "\n".join(lines) + "\n"


def _summary(tuning: Tuning, result: Result, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the grid."""
    return {
        **{name: getattr(args, name) for name in _OPTIONS},
        "C": tuning.C,
        "gamma": tuning.gamma if _has_gamma(args) else None,
        "objective": result.value,
        "duality_gap": result.gap,
        "converged": result.converged,
        "grid": {
            "gammas": tuning.gammas.tolist() if _has_gamma(args) else [None],
            "Cs": tuning.Cs.tolist(),
            "mean_scores": tuning.mean_scores.tolist(),
            "scores": tuning.scores.tolist(),
            "iterations": tuning.n_iter.tolist(),
            "converged": tuning.converged.tolist(),
        },
    }


def _plot(tuning: Tuning, args: argparse.Namespace) -> None:
    """Draw the grid to the file of ``--plot``."""
    from linrank import plots

    canvas = figure()
    canvas.set_size_inches(3.0 + 0.6 * len(tuning.Cs), 2.0 + 0.45 * len(tuning.gammas))
    plots.grid(tuning, metric=args.scoring, ax=canvas.subplots())
    save(canvas, args.plot)
