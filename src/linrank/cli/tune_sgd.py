"""``linrank tune --solver sgd``: the λ and the algorithm that rank unseen queries best."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.choosing import read_folds
from linrank.cli.console import Console, count, seconds
from linrank.cli.main import OK
from linrank.cli.models import write_model
from linrank.cli.reading import read_data
from linrank.cli.streams import STANDARD, show_standard
from linrank.cli.train_report import describe_data
from linrank.cli.tune_report import measured_on, print_json

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.models.linear import LinearModel
    from linrank.search.folds import Fold
    from linrank.search.tuning import Tuning

_OPTIONS = ("n_steps", "sampling", "average", "aggressiveness", "seed")


def run_sgd(args: argparse.Namespace) -> int:
    """Read, train the grid on every fold, measure, choose, write."""
    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.search.sgd  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = read_data(args.data, args, console)
    folds = read_folds(data, args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    tuning = _search(data, folds, args)
    model = None if args.output is None else _model(data, tuning, args)
    tuned = time.perf_counter()
    _say_result(tuning, args, tuned - read, console)
    if model is not None:
        write_model(model, args.output, console)
    if args.json:
        print_json(args, data, tuning, _summary(tuning, args), (start, read, tuned))
    elif args.output != STANDARD:
        show_standard(_table(tuning, args.scoring))
    return OK


def _search(data: Dataset, folds: list[Fold], args: argparse.Namespace) -> Tuning:
    from linrank.search.sgd import as_algorithms, as_alphas, tune_sgd

    return tune_sgd(
        data,
        folds,
        as_algorithms(args.algorithms),
        as_alphas(args.alphas),
        **{name: getattr(args, name) for name in _OPTIONS},
        scale=args.scale,
        scoring=args.scoring,
        convention=args.convention,
        selection=args.selection,
        n_jobs=args.jobs,
    )


def _model(data: Dataset, tuning: Tuning, args: argparse.Namespace) -> LinearModel:
    """The chosen model, on all of the data."""
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel
    from linrank.stochastic.train import descend

    scaling = Scaling.fit(args.scale, data.rows, weight=data.weight, n_jobs=args.jobs)
    algorithm, alpha = tuning.algorithm, tuning.alpha
    options = {name: getattr(args, name) for name in _OPTIONS}
    rows = scaling.applied(data, n_jobs=args.jobs)
    result = descend(rows, algorithm=algorithm, alpha=alpha, n_jobs=args.jobs, **options)
    known = {
        "algorithm": algorithm,
        "scoring": args.scoring,
        "score": float(tuning.mean_scores[tuning.chosen]),
        "index_base": data.index_base,
    }
    return LinearModel.of(result, data, scaling, **options, **known)


def _say_result(tuning: Tuning, args: argparse.Namespace, took: float, console: Console) -> None:
    algorithm, alpha = tuning.algorithm, tuning.alpha
    where = measured_on(args, len(tuning.scores))
    n_models = count(tuning.scores.size, "model")
    console.say("trained", f"{n_models} of {count(args.n_steps, 'step')} in {seconds(took)}")
    best = f"{args.scoring} {tuning.mean_scores[tuning.chosen]:.4f}"
    console.say("chosen", f"{algorithm}, λ = {alpha:g}: {best} {where}")
    if tuning.edge is not None:
        console.say("note", tuning.edge)


def _table(tuning: Tuning, scoring: str) -> str:
    """A line per model; the chosen one has a star."""
    width, means = max(len(scoring), 9), tuning.mean_scores
    spread = tuning.scores.std(axis=0, ddof=1) if len(tuning.scores) > 1 else None
    lines = [f"  {'algorithm':<10}  {'alpha':>12}  {scoring:>{width}}  {'deviation':>9}"]
    for a, algorithm in enumerate(tuning.algorithms):
        for k, alpha in enumerate(tuning.alphas.tolist()):
            mark = "*" if (a, k) == tuning.chosen else " "
            deviation = "" if spread is None else f"{spread[a, k]:.4f}"
            row = f"{mark} {algorithm:<10}  {alpha:>12.6g}  {means[a, k]:>{width}.4f}"
            lines.append(f"{row}  {deviation:>9}".rstrip())
    return "\n".join(lines) + "\n"


def _summary(tuning: Tuning, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON report says of the grid."""
    algorithm, alpha = tuning.algorithm, tuning.alpha
    return {
        "solver": args.solver,
        "scale": args.scale,
        **{name: getattr(args, name) for name in _OPTIONS},
        "algorithm": algorithm,
        "alpha": alpha,
        "grid": {
            "algorithms": list(tuning.algorithms),
            "alphas": tuning.alphas.tolist(),
            "mean_scores": tuning.mean_scores.tolist(),
            "scores": tuning.scores.tolist(),
        },
    }
