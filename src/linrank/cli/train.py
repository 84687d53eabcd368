"""``linrank train``: data file in, model file out, and how far from the optimum it is."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.arguments import (
    add_choices,
    add_metrics,
    add_reading,
    add_reporting,
    positive_float,
    positive_int,
)
from linrank.cli.bounding import add_bounds, bounds_of, check_bounds
from linrank.cli.console import Console, bytes_text, count, seconds
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.measuring import check_metrics, metrics_for
from linrank.cli.models import write_model
from linrank.cli.reading import read_and_score, read_data, read_preferences
from linrank.cli.streams import (
    STANDARD,
    check_apart,
    check_readable,
    check_writable,
    write_standard,
)
from linrank.options import COUNTED, COUNTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.data.preferences import Preferences
    from linrank.metrics import Evaluation
    from linrank.model import LinearModel
    from linrank.solvers.result import Result

__all__ = ["configure", "describe_data", "run"]

# Options that go to the training as they are, and into the summaries of model and run.
TRAINING = ("C", "loss", "pairs", "pair_weighting", "solver", "counting", "tol", "max_iter")
METRICS = ("ndcg@10", "map", "pairwise_accuracy")
LOOSE = 0.01  # a bound wider than this share of F needs a word: the truth may be far smaller

DESCRIPTION = """\
Train a linear RankSVM on all pairs of every query:

  minimise  ½‖w‖² + C Σ max(0, 1 - w·(x_i - x_j))²   over the pairs "i above j" of each query,

or with the hinge max(0, ·) in place of its square (--loss hinge).

DATA is SVMlight/LETOR text (label qid:Q 1:v 2:v ... # docid), plain or .gz .bz2 .xz .zst.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument("data", metavar="DATA", help="training data, or - for standard input")
    parser.add_argument("model", metavar="MODEL", help="model file to write, or - for stdout")
    solving = parser.add_argument_group("training")
    solving.add_argument(
        "-c", "--C", type=positive_float, default=1.0, metavar="C", help="weight of the pair losses"
    )
    solving.add_argument(
        "-e",
        "--tol",
        type=positive_float,
        metavar="TOL",
        help="newton: stop when F is within about TOL·F of its minimum (default: 1e-4), for the "
        "hinge, and bundle always, when certified to be within TOL·F (1e-3); "
        "tron: when ‖∇F(w)‖ ≤ TOL·‖∇F(0)‖ (1e-3)",
    )
    add_choices(solving)
    solving.add_argument(
        "--counting",
        choices=COUNTINGS,
        metavar="WAY",
        help=f"how tron and bundle count violated pairs: {', '.join(COUNTINGS)} "
        f"(default: {COUNTINGS[0]}; bundle: newton's own)",
    )
    solving.add_argument(
        "--max-iter",
        type=positive_int,
        metavar="N",
        help="steps at most (default: 100; bundle: 2000)",
    )
    solving.add_argument(
        "--scale",
        choices=("none", "standard", "minmax", "query"),
        default="none",
        help="scale features by their deviation, their range, or their range in each query; "
        "part of the model, which scores raw rows",
    )
    solving.add_argument(
        "--query-normalization",
        choices=("pairs",),
        help="divide the loss of each query by its number of pairs",
    )
    add_bounds(parser)
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
    """Read, train, measure, write."""
    if args.json and args.model == STANDARD:
        parser.error("--json and a model on standard output (-) exclude each other")
    if args.data == args.valid == STANDARD:
        parser.error("DATA and --valid cannot both be standard input")
    if args.preferences == STANDARD in (args.data, args.valid):
        parser.error("--preferences and other data cannot both be standard input")
    if args.preferences is None and (args.no_labels or args.across_queries):
        parser.error("--no-labels and --across-queries need --preferences FILE")
    if args.metrics and args.valid is None:
        parser.error("--scoring needs --valid FILE, the data to measure on")
    check_bounds(args)
    if args.counting is not None and args.solver not in COUNTED:
        parser.error(f"--counting is an option of --solver {' and '.join(COUNTED)}")
    check_writable(args.model)
    check_apart(args.model, args.data, args.valid, args.preferences)
    if args.preferences not in (None, STANDARD):
        check_readable(args.preferences)
    if args.valid is not None:
        _check_validation(args)

    # Loaded before the clock starts: the time of reading is not that of NumPy.
    import linrank.data.svmlight
    import linrank.ranksvm  # noqa: F401

    start = time.perf_counter()
    console = Console(quiet=args.quiet, verbose=args.verbose)
    data = read_data(args.data, args, console)
    preferences = None
    if args.preferences is not None:
        preferences = read_preferences(args.preferences, data, args.across_queries)
        data = _without_labels(data) if args.no_labels else data
    read = time.perf_counter()
    console.say("read", f"{describe_data(data)} in {seconds(read - start)}")
    if preferences is not None:
        console.say("read", f"{preferences.source}: {count(len(preferences), 'preference')}")
    model, result = _fit(data, preferences, args, console)
    trained = time.perf_counter()
    _say_result(result, args, trained - read, console)
    write_model(model, args.model)  # first: a fault in the validation data must not cost it
    console.say("saved", "standard output" if args.model == STANDARD else args.model)
    evaluation = _validate(model, args, console) if args.valid is not None else None
    if args.json:
        _print_json(args, data, preferences, result, evaluation, (start, read, trained))
    return OK if result.converged else NOT_CONVERGED


def describe_data(data: Dataset) -> str:
    """Source and size of a dataset in a line."""
    queries = data.queries
    return (
        f"{data.source}: {count(data.n_rows, 'row')}, "
        f"{count(queries.n_queries, 'query', 'queries')}{' (no qid)' if data.qid is None else ''}, "
        f"{count(queries.n_pairs, 'pair')}; "
        f"{data.rows.describe()}, {bytes_text(data.rows.nbytes)}"
    )


def _without_labels(data: Dataset) -> Dataset:
    """The same rows, all of one label: no pair comes from the labels."""
    from dataclasses import replace

    import numpy as np

    return replace(data, labels=np.zeros(data.n_rows))


def _fit(
    data: Dataset, preferences: Preferences | None, args: argparse.Namespace, console: Console
) -> tuple[LinearModel, Result]:
    from linrank.model import LinearModel
    from linrank.ranksvm import train
    from linrank.scaling import Scaling

    scaling = Scaling.fit(args.scale, data.rows, weight=data.weight, n_jobs=args.jobs)
    if scaling.needs_queries:
        from dataclasses import replace

        data = replace(data, rows=scaling.transform(data.rows, data.queries, n_jobs=args.jobs))
    options = {name: getattr(args, name) for name in TRAINING}
    result = train(
        data,
        **options,
        scale=scaling.factors,
        query_normalization=args.query_normalization,
        preferences=preferences,
        bounds=bounds_of(args, data, scaling),
        n_jobs=args.jobs,
        callback=_progress(console),
    )
    settings = {
        **options,
        "query_normalization": args.query_normalization,
        "positive": args.positive,
        "bounded": args.bounds is not None,
        "index_base": data.index_base,
    }
    if preferences is not None:
        settings["n_preferences"] = len(preferences)
    return LinearModel.of(result, data, scaling, **settings), result


def _progress(console: Console) -> Callable[[dict[str, Any]], None] | None:
    """A callback for the solver: a kept line per iteration (-v), or the status line."""
    if not (console.verbose or console.live):
        return None

    def show(state: dict[str, Any]) -> None:
        text = (
            f"iteration {state['n_iter']:3d}  objective {state['objective']:.8g}  "
            f"gap {state['gap']:.2e}  {state['seconds']:.2f} s"
        )
        console.detail(text)
        console.status(text)

    return show


def _say_result(result: Result, args: argparse.Namespace, took: float, console: Console) -> None:
    console.clear()
    work = count(result.n_iter, "iteration")
    if result.n_hvp:
        work += f", {count(result.n_hvp, 'Hessian product')}"
    console.say(
        "trained",
        f"{args.solver}, {args.loss.replace('_', ' ')}, C = {args.C:g}: {work} in {seconds(took)}",
    )
    console.say(
        "optimum",
        f"objective {result.value:.10g}, at most {result.gap:.2g} ({_relative_gap(result):.1e} "
        "of it) above the minimum: certified by the dual",
    )
    if result.converged and _relative_gap(result) > LOOSE:
        scale = "--scale standard or " if args.scale == "none" else ""
        console.say(
            "note",
            "this bound is proven but can be loose: it grows with the square of the gradient, "
            f"whatever the curvature; {scale}a smaller -e tightens it",
        )
    if result.converged:
        console.say("converged", result.message)
    else:
        console.warn(f"not converged: {result.message}")


def _relative_gap(result: Result) -> float:
    return result.gap / result.value if result.value > 0 else 0.0


def _check_validation(args: argparse.Namespace) -> None:
    """Fail on a misspelt file or metric now rather than after training."""
    if args.valid != STANDARD:
        check_readable(args.valid)
    check_metrics(args.metrics, args.convention)


def _validate(model: LinearModel, args: argparse.Namespace, console: Console) -> Evaluation:
    from linrank.metrics import evaluate

    data, scores = read_and_score(model, args.valid, args, console)
    result = evaluate(
        data.labels,
        scores,
        qid=data.qid,
        metrics=metrics_for(data, args.metrics, METRICS, args.convention, console),
        convention=args.convention,
        n_jobs=args.jobs,
    )
    console.say("valid", "   ".join(f"{name} {value:.4f}" for name, value in result.items()))
    return result


def _print_json(
    args: argparse.Namespace,
    data: Dataset,
    preferences: Preferences | None,
    result: Result,
    evaluation: Evaluation | None,
    times: tuple[float, float, float],
) -> None:
    import json

    from linrank import __version__

    start, read, trained = times
    queries = data.queries
    report = {
        "command": "train",
        "linrank": __version__,
        "data": {
            "source": args.data,
            "rows": data.n_rows,
            "queries": queries.n_queries,
            "features": data.n_features,
            "pairs": queries.n_pairs,
            "preferences": None if preferences is None else len(preferences),
            "storage": data.rows.describe(),
            "bytes": int(data.rows.nbytes),
        },
        "training": {
            **{name: getattr(args, name) for name in TRAINING[:6]},
            "scale": args.scale,
            "query_normalization": args.query_normalization,
            "positive": args.positive,
            "bounds": args.bounds,
            "objective": result.value,
            "duality_gap": result.gap,
            "relative_gap": _relative_gap(result),
            "gradient_norm": result.gradient_norm,
            "kkt_residual": result.kkt_residual,
            "iterations": result.n_iter,
            "hessian_products": result.n_hvp,
            "converged": result.converged,
            "stopped": result.stopped,
            "message": result.message,
        },
        "seconds": {
            "read": read - start,
            "train": trained - read,
            "total": time.perf_counter() - start,
        },
        "valid": None
        if evaluation is None
        else {
            "source": args.valid,
            "convention": args.convention,
            "metrics": evaluation.to_dict()["means"],
        },
        "model": args.model,
    }
    write_standard(json.dumps(report, ensure_ascii=False) + "\n")
