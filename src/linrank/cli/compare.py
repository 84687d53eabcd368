"""``linrank compare``: which ranker to ship, of methods to be trained or of models at hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.cli.arguments import (
    add_metrics,
    add_reading,
    add_reporting,
    natural,
    positive_float,
    positive_int,
)
from linrank.cli.compare_report import FORMATS, check_output
from linrank.cli.console import Console
from linrank.cli.main import FAILED, OK
from linrank.cli.measuring import check_metrics
from linrank.cli.streams import STANDARD, check_apart, check_readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linrank.data.dataset import Dataset

CORRECTIONS = ("holm", "bonferroni", "bh", "none")
SCALES = ("standard", "minmax", "none")

DESCRIPTION = """\
Train every method on the same data, choose its parameters on validation queries, measure it on test
queries that it has not seen, and compare all of them with one: time, size, metrics with intervals,
significance. Each method of each fold runs in a process of its own, -j at a time.

  linrank compare TRAIN VALID TEST            one split
  linrank compare --folds S1 S2 S3 S4 S5      LETOR's rotation: three train, one chooses, one tests
  linrank compare TEST --models A.json B.json --scores C.txt      no training
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument("files", metavar="FILE", nargs="*", help="TRAIN VALID TEST, or TEST")
    parser.add_argument("--folds", nargs="+", metavar="S", help="subsets of whole queries instead")
    parser.add_argument(
        "--models", nargs="+", default=[], metavar="MODEL", help="models to compare"
    )
    parser.add_argument(
        "--scores", nargs="+", default=[], metavar="FILE", help="scores to compare, one a row"
    )
    group = parser.add_argument_group("methods")
    group.add_argument("--methods", metavar="A,B,...", help="train these (default: all)")
    group.add_argument("--without", metavar="A,B,...", help="train all but these")
    group.add_argument("--list-methods", action="store_true", help="say which there are")
    group.add_argument(
        "--scoring",
        metavar="METRIC",
        help="parameters are chosen by this (default: ndcg@10, of negative labels "
        "pairwise_accuracy)",
    )
    group.add_argument(
        "--scale",
        choices=SCALES,
        help="of the features, for linear methods and kernels; trees get them as they are "
        "(default: standard)",
    )
    group.add_argument(
        "--budget",
        type=positive_float,
        metavar="SECONDS",
        help="for one method on one fold; the best so far counts (default: 300)",
    )
    group.add_argument("--seed", type=natural, default=0, metavar="N", help="default: 0")
    group = parser.add_argument_group("comparing")
    group.add_argument("--baseline", metavar="NAME", help="compare with this (default: ranksvm)")
    group.add_argument(
        "--correction",
        choices=CORRECTIONS,
        default=CORRECTIONS[0],
        help="of p for the number of comparisons (default: holm)",
    )
    add_metrics(parser, "-m", "--metric", default="ndcg@10, map and pairwise_accuracy")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=f"write the tables: {', '.join(FORMATS)}"
    )
    add_reading(parser)
    parser.add_argument(
        "--n-features",
        type=positive_int,
        metavar="N",
        help="features of every file, where some leave out the last ones because they are 0",
    )
    add_reporting(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """List, compare what is there, or train and compare."""
    if args.list_methods:
        from linrank.cli.compare_report import show_methods

        show_methods(args.json)
        return OK
    _check(args, parser)
    if args.models or args.scores:
        from linrank.cli.compare_models import run_models

        return run_models(args)
    return _run_contest(args)


def _check(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on what can be known to be wrong now rather than after the training."""
    at_hand = args.models or args.scores
    if at_hand and (args.folds or len(args.files) != 1):
        parser.error("with --models or --scores, give one FILE: the rows to rank")
    if args.folds and args.files:
        parser.error("give the files after --folds, or TRAIN VALID TEST, not both")
    if not at_hand and not args.folds and len(args.files) != 3:
        parser.error(
            f"give TRAIN VALID TEST, three files, got {len(args.files)}; or --folds S1 S2 ...; or "
            "TEST --models A.json ..."
        )
    if args.folds and len(args.folds) < 3:
        parser.error(f"--folds needs at least 3 files (LETOR has 5), got {len(args.folds)}")
    if at_hand:
        for name in ("methods", "without", "scoring", "scale", "budget"):
            if getattr(args, name) is not None:
                parser.error(f"--{name} is for training; --models and --scores are compared as is")
    inputs = [*args.files, *(args.folds or []), *args.models, *args.scores]
    if inputs.count(STANDARD) > (1 if at_hand else 0):
        parser.error(
            "only one of the files can be standard input"
            if at_hand
            else "the files cannot be standard input: there are several"
        )
    for path in inputs:
        if path != STANDARD:
            check_readable(path)
    if args.output is not None:
        check_output(args.output, parser)
        for path in inputs:
            check_apart(args.output, path)
    check_metrics(args.metrics, args.convention)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _run_contest(args: argparse.Namespace) -> int:
    from linrank.cli.compare_report import contest_progress, say_warnings, show
    from linrank.judging.contest.contest import compare_methods
    from linrank.judging.contest.methods import BASELINE, chosen_methods
    from linrank.metrics import parse_scoring

    methods = "all" if args.methods is None else _names(args.methods)
    without = [] if args.without is None else _names(args.without)
    baseline = args.baseline or BASELINE
    chosen = chosen_methods(methods, without, baseline)  # a slip of the pen is told before reading
    scoring = None if args.scoring is None else parse_scoring(args.scoring)
    console = Console(quiet=args.quiet, verbose=args.verbose)
    parts = _read_parts(args.folds or args.files, args, console)
    with say_warnings(console):
        contest = compare_methods(
            *([] if args.folds else parts),
            folds=parts if args.folds else None,
            methods=chosen,
            baseline=baseline,
            metrics=args.metrics,
            scoring=scoring,
            convention=args.convention,
            scale=args.scale or SCALES[0],
            budget=args.budget or 300.0,
            correction=None if args.correction == "none" else args.correction,
            random_state=args.seed,
            n_jobs=args.jobs,
            progress=contest_progress(console),
        )
    console.clear()
    show(contest, args, console)
    return FAILED if contest.comparison is None else OK


def _read_parts(paths: Sequence[str], args: argparse.Namespace, console: Console) -> list[Dataset]:
    """The files, counted from the same first feature: that of the first, unless told."""
    from linrank.cli.console import count
    from linrank.cli.reading import read_data

    options: dict[str, Any] = {} if args.n_features is None else {"n_features": args.n_features}
    parts: list[Dataset] = []
    for path in paths:
        if parts:  # features as in the first
            options.update(filling=parts[0].filling, known=parts[0].raw_feature_names)
        data = read_data(path, args, console, **options)
        queries = data.queries
        console.say(
            "read",
            f"{path}: {count(data.n_rows, 'row')}, "
            f"{count(queries.n_queries, 'query', 'queries')}, {count(queries.n_pairs, 'pair')}",
        )
        parts.append(data)
    return parts
