"""What all ways of tuning share on the command line: what models are measured on, and by what."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.cli.reading import check_metrics, metrics_for, read_data
from linrank.cli.streams import STANDARD, check_apart, check_readable, check_writable
from linrank.cli.tune_report import figure

if TYPE_CHECKING:
    from linrank.cli.console import Console
    from linrank.data.dataset import Dataset
    from linrank.search.folds import Fold

PICTURES = (".png", ".svg", ".pdf")
METRICS = ("ndcg@10", "pairwise_accuracy")  # the second where labels below 0 rule out the first


def check_choosing(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on what can be known to be wrong now rather than after the search."""
    if args.json and args.output == STANDARD:
        parser.error("--json and a model on standard output (-) exclude each other")
    if args.data == args.valid == STANDARD:
        parser.error("DATA and --valid cannot both be standard input")
    if args.valid is None and args.folds < 2:
        parser.error(f"--folds must be ≥ 2, got {args.folds}")
    if args.selection == "one_se" and args.valid is not None:
        parser.error("--selection one_se needs the spread over folds; leave out --valid")
    if args.plot == STANDARD:
        parser.error("--plot needs the name of a file")
    if args.plot is not None and not args.plot.lower().endswith(PICTURES):
        parser.error(f"--plot {args.plot}: the name must end in {', '.join(PICTURES)}")
    for output in (args.output, args.plot):
        if output is not None:
            check_writable(output)
            check_apart(output, args.data, args.valid)
    if args.plot is not None:
        figure()
    if args.valid not in (None, STANDARD):
        check_readable(args.valid)
    check_metrics([args.scoring] if args.scoring else None, args.convention)
    if args.scoring:
        from linrank.metrics import parse_scoring

        parse_scoring(args.scoring)


def read_folds(data: Dataset, args: argparse.Namespace, console: Console) -> list[Fold]:
    """What models are to be measured on; the measure, where none was asked for, suits the data."""
    from linrank.search.folds import Fold, deal

    args.scoring = metrics_for(
        data, [args.scoring] if args.scoring else None, METRICS, args.convention, console
    )[0]
    if args.valid is None:
        return deal(data, args.folds)
    # Features are counted as in the training data, whatever this file happens to lack.
    known = args.index_base == "auto" and data.index_base is not None
    options: dict[str, Any] = {"zero_based": data.index_base == 0} if known else {}
    options["known"] = data.raw_feature_names
    valid = read_data(args.valid, args, console, filling=data.filling, **options)
    if (valid.qid is None) != (data.qid is None):
        lacking = args.data if data.qid is None else args.valid
        raise ValueError(f"{lacking} has no qid, the other file has; give both or neither")
    if valid.n_features > data.n_features:
        console.warn(
            f"{valid.source} has features that {data.source} has not: {valid.n_features:,} against "
            f"{data.n_features:,}; they count nothing"
        )
    return [Fold(None, valid)]
