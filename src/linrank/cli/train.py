"""``linrank train``: data file in, model file out, and how far from the optimum it is."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from linrank.cli.arguments import (
    add_metrics,
    add_reading,
    add_reporting,
    add_training,
    check_training,
)
from linrank.cli.bounding import coef_bounds_of
from linrank.cli.console import Console
from linrank.system.words import count, seconds
from linrank.cli.dask_options import add_dask, check_dask
from linrank.cli.descent_options import add_descent, check_descent
from linrank.cli.domination_options import METHOD, add_domination, add_method, check_method
from linrank.cli.kernel_options import add_kernel, check_kernel
from linrank.cli.lowrank_options import add_lowrank, check_lowrank
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.pair_options import say_pairs, seed_of_pairs
from linrank.cli.stream import add_streaming, check_streaming
from linrank.cli.train_report import (
    data_summary,
    describe_data,
    print_json,
    say_result,
    training_summary,
)
from linrank.cli.training import (
    METRICS,
    check_files,
    check_preferences,
    iteration,
    read_training,
    write_and_validate,
)
from linrank.options import DOMINATION_SOLVERS, LOW_RANK, SOLVERS, STOCHASTIC, TRAINING

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.data.preferences import Preferences
    from linrank.models.linear import LinearModel
    from linrank.solvers.result import Result

DESCRIPTION = """\
Train a linear RankSVM on all pairs of every query:

  minimise  ½‖w‖² + C Σ max(0, 1 - w·(x_i - x_j))²   over the pairs "i above j" of each query,

or with the hinge max(0, ·) in place of its square (--loss hinge). With --solver sgd: the hinge on
pairs drawn at random, at a cost that does not depend on the size of the data. With
--method domination: few weights, and every row is to beat all rows below it at once,

  minimise  Σ log(1 + Σ exp(w·(x_j - x_i))) + α‖w‖₁   over rows i and, inside, those below i.

With --method factorized and --method regularized: the hinge, its dual variables α, a matrix for
each query, made of factors with few components (α_ij = v_i·v_j), or pulled to low rank by a
nuclear norm. With --kernel: scores Σ β_i k(x_i, x) that are not linear, exact on all pairs too.

DATA is SVMlight/LETOR text (label qid:Q 1:v 2:v ... # docid), plain or .gz .bz2 .xz .zst; a table
(Parquet, Arrow, CSV, TSV), whose columns have their roles by name: label, qid, docid, all other
numbers are features (see "tables" below); or the folder of a store (linrank convert). A store is
read as a whole; with --memory-limit in passes (newton, sgd, domination with l2), with --dask by the
workers of a cluster.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument(
        "data", metavar="DATA", help="training data: a file, a store, or - for stdin"
    )
    parser.add_argument("model", metavar="MODEL", help="model file to write, or - for stdout")
    add_method(parser)
    solvers = (*SOLVERS, STOCHASTIC)
    add_training(
        parser,
        tol="newton: stop when F is within about TOL·F of its minimum (default: 1e-4), for the "
        "hinge, and bundle always, when certified to be within TOL·F (1e-3); "
        "tron: when ‖∇F(w)‖ ≤ TOL·‖∇F(0)‖ (1e-3); sgd: when the objective has stopped falling by "
        "the share TOL (default: never); domination: when certified to be within TOL·F (1e-4); "
        "factorized: when f falls by at most TOL·|f| an epoch (1e-6); regularized: when certified "
        "to be within TOL·|Ψ| (1e-6)",
        max_iter="steps at most (default: 100; bundle: 2000; hinge with --kernel: 500; "
        "sweeps of domination: 1000; "
        "epochs of factorized: 2000; steps of regularized: 1000)",
        takes_C=True,
        solvers=(*solvers, *(name for name in DOMINATION_SOLVERS if name not in solvers)),
    )
    parser.set_defaults(solver=None)  # which one depends on --method
    add_descent(parser)
    add_domination(parser)
    add_lowrank(parser)
    add_kernel(parser)
    add_streaming(parser)
    add_dask(parser)
    _add_preferences(parser)
    parser.add_argument("--valid", metavar="FILE", help="also measure the model on this data file")
    add_metrics(parser, "--scoring", default=", ".join(METRICS))
    add_reading(parser)
    add_reporting(parser)


def _add_preferences(parser: argparse.ArgumentParser) -> None:
    listed = parser.add_argument_group("preferences")
    listed.add_argument(
        "--preferences",
        metavar="FILE",
        help="pairs to learn from beside those of the labels: 'winner loser [weight]' a line, by "
        "row of DATA counted from 0",
    )
    listed.add_argument(
        "--no-labels", action="store_true", help="learn from the preferences only, not from labels"
    )
    listed.add_argument(
        "--across-queries", action="store_true", help="preferences may compare two queries"
    )


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Train as ``--kernel``, ``--method`` and ``--solver`` say."""
    check_dask(args, parser)
    check_kernel(args, parser)
    if args.kernel is not None:
        from linrank.cli.train_kernel import run_kernel

        return run_kernel(args, parser)
    check_lowrank(args, parser)
    if args.method in LOW_RANK:
        from linrank.cli.train_lowrank import run_lowrank

        return run_lowrank(args, parser)
    check_method(args, parser)
    if args.method == METHOD:
        from linrank.cli.train_domination import run_domination

        return run_domination(args, parser)
    check_streaming(args, parser)
    check_descent(args, parser)
    if args.stream:
        from linrank.cli.stream import run_stream

        return run_stream(args, parser)
    if args.solver == STOCHASTIC:
        from linrank.cli.train_sgd import run_sgd

        return run_sgd(args, parser)
    return _run_exact(args, parser)


def _run_exact(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, train, measure, write."""
    check_preferences(args, parser)
    check_training(args, parser)
    check_files(args, parser, args.preferences)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.io.svmlight
    import linrank.ranksvm.train  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    if args.dask is not None:
        from linrank.cli.train_dask import run_exact_dask

        return run_exact_dask(args, parser, console, start)
    if args.memory_limit is not None:
        from linrank.cli.train_store import run_exact_store

        return run_exact_store(args, parser, console, start)
    data, preferences = read_training(args, console)
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    if preferences is not None:
        console.say("read", f"{preferences.source}: {count(len(preferences), 'preference')}")
    model, result = _fit(data, preferences, args, console)
    trained = time.perf_counter()
    say_pairs(model.training, console)
    say_result(result, args, trained - read, console)
    evaluation = write_and_validate(model, args, console)
    if args.json:
        n_listed = None if preferences is None else len(preferences)
        summary = {**data_summary(data, args), "preferences": n_listed}
        training = training_summary(result, args, model.training)
        print_json(args, summary, training, evaluation, (start, read, trained))
    return OK if result.converged else NOT_CONVERGED


def _fit(
    data: Dataset, preferences: Preferences | None, args: argparse.Namespace, console: Console
) -> tuple[LinearModel, Result]:
    from linrank.data.bounds import weight_bounds
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel
    from linrank.ranksvm.train import train

    scaling = Scaling.fit(args.scale, data.rows, weight=data.weight, n_jobs=args.jobs)
    options = {name: getattr(args, name) for name in ("C", *TRAINING)} | seed_of_pairs(args)
    result = train(
        scaling.transformed(data, n_jobs=args.jobs),
        **options,
        scale=scaling.factors,
        preferences=preferences,
        bounds=weight_bounds(args.positive, coef_bounds_of(args, data), data, scaling.factors),
        n_jobs=args.jobs,
        callback=console.progress(iteration),
    )
    settings = {
        **options,
        "positive": args.positive,
        "bounded": args.bounds is not None,
        "index_base": data.index_base,
    }
    if preferences is not None:
        settings["n_preferences"] = len(preferences)
    return LinearModel.of(result, data, scaling, **settings), result
