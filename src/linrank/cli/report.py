"""``linrank report``: one HTML page on what a model does on test queries, and where it fails."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from linrank.cli import options as flags
from linrank.cli import streams
from linrank.cli.console import Console
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import check_metrics, kept_missing, read_data, read_scores
from linrank.options import SCALES
from linrank.system.resources import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from linrank.data.dataset import Dataset
    from linrank.reports.build import Report

CS = "2^-22:2^5"

DESCRIPTION = """\
Judge a model on the queries of TEST and write what there is to see to one HTML file, which needs no
network: measures with intervals, query by query, the worst queries with the features that are to
blame, weights, training, data. With --train a linear RankSVM is trained, C chosen on --valid or on
folds; with --model that model, or a file of scores, is judged. It is compared with --against, or
with the best single feature of the training data.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument(
        "test", metavar="TEST", help="labelled rows to judge by: a file, a store, or - for stdin"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="report.html", help="page (default: report.html)"
    )
    judged = parser.add_argument_group("what is judged")
    judged.add_argument("--model", metavar="FILE", help="this model, or these scores of TEST")
    judged.add_argument("--train", metavar="FILE", help="a model learnt from these data")
    judged.add_argument("--valid", metavar="FILE", help="with --train: choose C on these data")
    judged.add_argument("--against", metavar="FILE", help="compare with this model or these scores")
    _add_training(parser)
    _add_page(parser)
    flags.add_metrics(parser, "-m", "--metric", default="ndcg, map, mrr and pairwise accuracy")
    parser.add_argument(
        "--scoring",
        metavar="METRIC",
        help="the measure to choose C by and to begin with (default: the first -m, or ndcg@10)",
    )
    flags.add_reading(parser)
    flags.add_reporting(parser)


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training, with --train and without --model")
    group.add_argument("--Cs", type=flags.grid, metavar="GRID", help=f"as in tune (default: {CS})")
    group.add_argument(
        "--folds", type=flags.positive_int, metavar="N", help="folds to choose C on (default: 5)"
    )
    group.add_argument(
        "--scale", choices=SCALES, help="scaling of the features (default: standard)"
    )


def _add_page(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the page")
    group.add_argument("--title", metavar="TEXT", help="of the page")
    group.add_argument(
        "--names", metavar="FILE", help="names of the features, one a line, the first one first"
    )
    group.add_argument(
        "--worst",
        type=flags.natural,
        default=5,
        metavar="N",
        help="queries to explain (default: 5)",
    )
    group.add_argument(
        "--seed", type=flags.natural, default=0, metavar="N", help="of the resampling (default: 0)"
    )


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, train or load, judge, write."""
    _check(args, parser)
    console = Console(quiet=args.quiet, verbose=args.verbose)
    page = _report(args, console)
    console.clear()
    for caveat in page.material.caveats:
        if caveat.grave:
            console.warn(f"{caveat.message} [{caveat.code}]")
    html = page.to_html()
    streams.write_lines(args.output, [html])
    if args.output != streams.STANDARD:
        console.say("wrote", f"{args.output}, {bytes_text(len(html.encode()))}")
    if args.json:
        _print_json(args, page, html)
    training = page.material.training
    return OK if training is None or training.result.converged else NOT_CONVERGED


def _check(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    if args.model is None and args.train is None:
        parser.error("give --model MODEL to judge, or --train DATA to learn one from")
    if args.valid is not None and args.train is None:
        parser.error("--valid is what C is chosen on; it needs --train")
    _check_idle(args, parser)
    if args.folds is not None and args.folds < 2:
        parser.error(f"--folds must be ≥ 2, got {args.folds}")
    inputs = [args.test, args.train, args.valid, args.model, args.against, args.names]
    if inputs.count(streams.STANDARD) > 1:
        parser.error("only one of the files can be standard input")
    if args.json and args.output == streams.STANDARD:
        parser.error("--json and a page on standard output (-) exclude each other")
    streams.check_writable(args.output)
    streams.check_apart(args.output, *inputs)
    for path in inputs:
        if path not in (None, streams.STANDARD):
            streams.check_readable(path)
    check_metrics(
        [*(args.metrics or ()), *([args.scoring] if args.scoring else ())], args.convention
    )
    if args.scoring:
        from linrank.metrics import parse_scoring

        parse_scoring(args.scoring)


def _check_idle(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Options of a training that does not take place."""
    given = [
        flag
        for flag, value in (("--Cs", args.Cs), ("--folds", args.folds), ("--scale", args.scale))
        if value is not None
    ]
    if given and args.model is not None:
        parser.error(f"{given[0]} is for a model that is trained here; leave out --model")
    if args.valid is not None and args.folds is not None:
        parser.error("--folds and --valid exclude each other: C is chosen on one of them")


def _report(args: argparse.Namespace, console: Console) -> Report:
    from linrank.reports.build import report

    model = None if args.model is None else _judged(args.model, "--model")
    train, valid, test = _read_parts(args, model, console)
    return report(
        test,
        train=train,
        valid=valid,
        model=model,
        against=None if args.against is None else _judged(args.against, "--against"),
        model_name=None if args.model is None else _short(args.model),
        against_name=None if args.against is None else _short(args.against),
        scoring=args.scoring,
        metrics=args.metrics,
        convention=args.convention,
        Cs=args.Cs if args.Cs is not None else "auto",
        scale=args.scale or "standard",
        n_folds=args.folds or 5,
        feature_names=None if args.names is None else _names(args.names),
        n_worst=args.worst,
        title=args.title,
        random_state=args.seed,
        n_jobs=args.jobs,
        progress=_teller(console),
    )


def _teller(console: Console) -> Callable[[str], None]:
    """What is being done, as a status line or with ``-v`` as lines."""

    def tell(text: str) -> None:
        console.detail(text)
        console.status(text)

    return tell


def _read_parts(
    args: argparse.Namespace, model: Any, console: Console
) -> tuple[Dataset | None, Dataset | None, Dataset]:
    """Training, validation and test data; features of all counted as in the first that is known."""
    kept: dict[str, Any] = {}
    if hasattr(model, "missing"):
        kept["missing"] = kept_missing(args, model)
    train = None if args.train is None else read_data(args.train, args, console, **kept)
    base = getattr(model, "training", {}).get("index_base") if model is not None else None
    if base is None and train is not None:
        base = train.index_base
    known = args.index_base == "auto" and base is not None
    options: dict[str, Any] = {**kept, **({"zero_based": base == 0} if known else {})}
    if train is not None:
        options["known"] = train.raw_feature_names
        if train.filling is not None:  # the report fills in the others as these were
            options["missing"] = "keep"
    elif model is not None:
        options["known"] = getattr(model, "feature_names", None)
    valid = None if args.valid is None else read_data(args.valid, args, console, **options)
    test = read_data(args.test, args, console, **options)
    for part in (valid, test):
        if train is not None and part is not None and (part.qid is None) != (train.qid is None):
            lacking = train if train.qid is None else part
            raise ValueError(
                f"{lacking.source} has no qid, the other file has; give both or neither"
            )
    for part in (train, valid, test):
        if part is not None:
            queries = f"{part.queries.n_queries:,} queries"
            console.say("read", f"{part.source}: {part.n_rows:,} rows, {queries}")
    return train, valid, test


def _judged(path: str, option: str) -> Any:
    """The model of a file, or its scores."""
    if path == streams.STANDARD:
        raise ValueError(f"{option} - : a model or scores must be a file here")
    return streams.read_model(path) if streams.is_model(path) else read_scores(path)


def _short(path: str) -> str:
    """A file as the page calls it: without folders, and without the usual endings."""
    name = os.path.basename(path)
    return name.removesuffix(".json").removesuffix(".txt") or name


def _names(path: str) -> list[str]:
    """One name a line; empty lines at the end do not count."""
    lines = streams.read_text(path).splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise ValueError(f"{path}:{number}: a name is missing; give one for each feature")
    return [line.strip() for line in lines]


def _print_json(args: argparse.Namespace, page: Report, html: str) -> None:
    import json

    from linrank import __version__

    told = {
        "command": "report",
        "linrank": __version__,
        "output": args.output,
        "bytes": len(html.encode()),
        **page.to_dict(),
    }
    streams.write_standard(json.dumps(told, ensure_ascii=False, default=str) + "\n")
