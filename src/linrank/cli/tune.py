"""``linrank tune``: the C that ranks unseen queries best, and the model trained with it."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.arguments import (
    add_reading,
    add_reporting,
    add_training,
    check_training,
    grid,
    positive_int,
)
from linrank.cli.bounding import coef_bounds_of
from linrank.cli.choosing import check_choosing, read_folds
from linrank.cli.console import Console, seconds
from linrank.cli.descent_options import add_descent_grid, check_descent_grid
from linrank.cli.domination_options import (
    METHOD,
    add_domination_grid,
    add_method,
    check_method,
)
from linrank.cli.kernel_grid import add_kernel_grid, check_kernel_grid
from linrank.cli.lowrank_options import refuse_lowrank
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.models import write_model
from linrank.cli.pair_options import say_pairs, seed_of_pairs
from linrank.cli.reading import read_data
from linrank.cli.streams import STANDARD, show_standard
from linrank.cli.train_report import describe_data
from linrank.cli.tune_report import path_summary, plot, print_json, say_result, table
from linrank.options import DOMINATION_SOLVERS, SELECTIONS, SOLVERS, STOCHASTIC, TRAINING

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.ranksvm.path import PathResult
    from linrank.search.folds import Fold
    from linrank.search.tuning import Tuning

CS = "2^-15:2^10"

DESCRIPTION = """\
Train a linear RankSVM for a whole grid of C and take the C that ranks unseen queries best: on
--valid FILE, or on each of --folds parts of the queries of DATA in turn. The table on standard
output has the measure of every C. The model for -o is trained on all of DATA. With --solver sgd, a
grid of λ and algorithms by stochastic descent, all models of a fold in one pass. With
--method domination, a path of α by the domination loss, from no weight to many. With --kernel, a
grid of C and γ, with one kernel matrix for each γ.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument(
        "data", metavar="DATA", help="training data: a file, a store, or - for stdin"
    )
    parser.add_argument(
        "-o", "--output", metavar="MODEL", help="model file to write, or - for stdout"
    )
    add_method(parser)
    choosing = parser.add_argument_group("choosing C, λ or α")
    choosing.add_argument(
        "--Cs",
        type=grid,
        metavar="GRID",
        help="LOW:HIGH, each value twice the one before; LOW:HIGH:FACTOR; or a list, as in "
        f"0.01,0.1,1 (default: {CS})",
    )
    parts = choosing.add_mutually_exclusive_group()
    parts.add_argument("--valid", metavar="FILE", help="measure on this data file")
    parts.add_argument(
        "--folds", type=positive_int, default=5, metavar="N", help="or on N folds (default: 5)"
    )
    choosing.add_argument(
        "--scoring", metavar="METRIC", help="e.g. ndcg@10 (default), map, p@5, mrr, err@10"
    )
    choosing.add_argument(
        "--convention", default="linrank", metavar="NAME", help="whose rules, as in evaluate"
    )
    choosing.add_argument(
        "--selection",
        choices=SELECTIONS,
        default=SELECTIONS[0],
        help="the largest mean (default), or the smallest C, largest λ or α, within one standard "
        "error of it",
    )
    solvers = (*SOLVERS, STOCHASTIC)
    add_training(
        parser,
        tol="certified gap of every model: F(w) - min F ≤ TOL·F(w) (default: 1e-4; the hinge, "
        "and bundle: 1e-3)",
        max_iter="steps at most for each C (default: 100; bundle: 2000), or for each α (100; "
        "sweeps: 1000)",
        takes_C=False,
        solvers=(*solvers, *(name for name in DOMINATION_SOLVERS if name not in solvers)),
    )
    parser.set_defaults(solver=None)  # which one depends on --method
    add_descent_grid(parser)
    add_domination_grid(parser)
    add_kernel_grid(parser)
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the path, or the grid: .png, .svg or .pdf"
    )
    add_reading(parser)
    add_reporting(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Search as ``--method``, ``--kernel`` and ``--solver`` say."""
    refuse_lowrank(args, parser)
    check_kernel_grid(args, parser)
    if args.kernel is not None:
        from linrank.cli.tune_kernel import run_kernel

        check_training(args, parser)
        check_choosing(args, parser)
        return run_kernel(args)
    check_method(args, parser)
    if args.method == METHOD:
        from linrank.cli.tune_domination import run_domination

        check_choosing(args, parser)
        return run_domination(args)
    check_descent_grid(args, parser)
    if args.solver == STOCHASTIC:
        from linrank.cli.tune_sgd import run_sgd

        check_choosing(args, parser)
        return run_sgd(args)
    return _run_exact(args, parser)


def _run_exact(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, solve the paths, measure, choose, write."""
    args.Cs = args.Cs if args.Cs is not None else grid(CS)
    check_training(args, parser)
    check_choosing(args, parser)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.search.ranksvm  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = read_data(args.data, args, console)
    folds = read_folds(data, args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    tuning, path, model = _search(data, folds, args, console)
    tuned = time.perf_counter()
    say_pairs(model.training, console)
    say_result(tuning, path, args, tuned - read, console)
    if args.output is not None:
        write_model(model, args.output, console)
    if args.plot is not None:
        plot(path, tuning.scores, float(tuning.Cs[tuning.chosen]), args)
        console.say("plotted", args.plot)
    if args.json:
        details = path_summary(tuning, path, args, model.training)
        print_json(args, data, tuning, details, (start, read, tuned))
    elif args.output != STANDARD:
        show_standard(table(tuning, path, args.scoring))
    return OK if path.converged[tuning.chosen] else NOT_CONVERGED


def _search(
    data: Dataset, folds: list[Fold], args: argparse.Namespace, console: Console
) -> tuple[Tuning, PathResult, Any]:
    from linrank.models.linear import LinearModel
    from linrank.ranksvm.path import as_Cs, solve_path
    from linrank.search.ranksvm import tune

    solving = {name: getattr(args, name) for name in TRAINING} | seed_of_pairs(args)
    options = {
        **solving,
        "scale": args.scale,
        "positive": args.positive,
        "coef_bounds": coef_bounds_of(args, data),
        "n_jobs": args.jobs,
    }
    Cs = as_Cs(args.Cs)
    tuning = tune(
        data,
        folds,
        Cs,
        scoring=args.scoring,
        convention=args.convention,
        selection=args.selection,
        progress=console.progress(lambda state: _line(state, len(folds))),
        **options,
    )
    path, scaling = solve_path(data, Cs, **options)
    settings = {
        **solving,
        "positive": args.positive,
        "bounded": args.bounds is not None,
        "scoring": args.scoring,
        "index_base": data.index_base,
    }
    known = {**settings, **tuning.choice}
    return tuning, path, LinearModel.of(path.results[tuning.chosen], data, scaling, **known)


def _line(state: dict[str, Any], n_folds: int) -> str:
    """What is shown of a model."""
    return (
        f"{state['n_done']} of {state['n_total']} models  fold {state['fold'] + 1} of {n_folds}  "
        f"C {state['C']:.6g}  objective {state['objective']:.8g}  gap {state['gap']:.2e}"
    )
