"""``linrank evaluate --qrels Q --run R``: a TREC run judged by TREC qrels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from linrank.cli.console import Console, count
from linrank.cli.measuring import check_metrics
from linrank.cli.streams import STANDARD, check_apart, check_writable

if TYPE_CHECKING:
    from linrank.metrics import Evaluation
    from linrank.metrics.runs import JudgedRun

CONVENTION = "trec_eval"  # what the files are made for


def add_run(parser: argparse.ArgumentParser) -> None:
    """The options of TREC files."""
    group = parser.add_argument_group("TREC files, instead of DATA and SCORES")
    group.add_argument("--qrels", metavar="QRELS", help="judgements: qid iteration docid relevance")
    group.add_argument("--run", metavar="RUN", help="run: qid Q0 docid rank score tag")
    group.add_argument(
        "--complete",
        action="store_true",
        help="count queries that RUN lacks, as trec_eval -c: 0 for what nobody found",
    )


def is_run(args: argparse.Namespace) -> bool:
    """Whether TREC files are to be evaluated."""
    return args.qrels is not None or args.run is not None


def evaluate_files(
    args: argparse.Namespace, parser: argparse.ArgumentParser
) -> tuple[JudgedRun, Evaluation]:
    """Check the options, read both files, measure."""
    if args.qrels is None or args.run is None:
        parser.error("--qrels and --run go together: judgements and what was retrieved")
    if args.data is not None or args.model is not None:
        parser.error("--qrels and --run take the place of DATA, SCORES and --model")
    if args.qrels == args.run == STANDARD:
        parser.error("only one of the files can be standard input")
    if args.per_query is not None:
        check_writable(args.per_query)
        check_apart(args.per_query, args.qrels, args.run)
    args.convention = args.convention or CONVENTION
    check_metrics(args.metrics, args.convention)
    from linrank.io.trec import load_qrels, load_run
    from linrank.metrics.runs import RUN_METRICS, JudgedRun

    console = Console(quiet=args.quiet, verbose=args.verbose)
    qrels = load_qrels(args.qrels, progress=console.reading(args.qrels))
    run = load_run(args.run, progress=console.reading(args.run))
    console.clear()
    judged = JudgedRun.of(qrels, run, complete=args.complete, n_jobs=args.jobs)
    _say_what_is_left_out(judged, args.complete, console)
    result = judged.evaluate(
        metrics=args.metrics or RUN_METRICS, convention=args.convention, n_jobs=args.jobs
    )
    return judged, result


def _say_what_is_left_out(judged: JudgedRun, complete: bool, console: Console) -> None:
    if judged.n_not_judged:
        what = count(judged.n_not_judged, "query", "queries")
        console.say("note", f"{what} of the run without judgements left out")
    if judged.n_not_retrieved:
        what = count(judged.n_not_retrieved, "query", "queries")
        how = "counted as found nothing" if complete else "left out; --complete counts them"
        console.say("note", f"{what} of the qrels not in the run: {how}")
