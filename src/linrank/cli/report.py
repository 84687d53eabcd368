"""``linrank report``: one HTML page on what a model does on test queries, and where it fails."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from linrank.cli import options as flags
from linrank.cli import streams
from linrank.cli.console import Console
from linrank.cli.main import NOT_CONVERGED, OK
from linrank.cli.reading import (
    check_metrics,
    check_qids,
    counted_from,
    kept_missing,
    read_data,
    read_scores,
)
from linrank.methods.parameters import GRID_OF_C
from linrank.options import N_FOLDS, SCALES
from linrank.system.resources import bytes_text

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset
    from linrank.reports import Report

OPTIONS = f"""
  TEST               labelled rows to judge by: a file, a store, or - for stdin
  -o, --output FILE  page to write, or - (default: report.html)
what is judged:
  --model FILE       this model, or these scores of TEST
  --train FILE       a model learnt from these data
  --valid FILE       with --train: choose C on these data
  --against FILE     compare with this model or these scores
training, with --train and without --model:
  --Cs GRID:grid     as in tune (default: {GRID_OF_C})
  --folds N:folds    without --valid, choose C on each of N folds of the queries (default: 5)
  --scale NAME:scale  scaling of the features: {", ".join(SCALES)} (default: auto, as in train)
  --save-model MODEL  write the model that is trained
the page:
  --title TEXT       of the page
  --names FILE       names of the features, one a line, the first one first
  --worst N:natural=5  queries to explain (default: 5)
  --seed N:natural=0  of the resampling (default: 0)
"""
DESCRIPTION = """\
Judge a model on the queries of TEST and write what there is to see to one HTML file, which needs no
network: measures with intervals, query by query, the worst queries with the features that are to
blame, weights, training, data. With --train a linear RankSVM is trained, C chosen on --valid or on
folds; with --model that model, or a file of scores, is judged. It is compared with --against, or
with the best single feature of the training data.
"""


def configure(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "linrank report TEST (--train DATA | --model MODEL) [-o FILE] [options]"
    parser.description = DESCRIPTION
    flags.declare(parser, OPTIONS, scale=SCALES)
    flags.add_metrics(
        parser,
        default="ndcg, map, mrr and pairwise accuracy; ndcg@10 chooses",
        selects="chooses C and begins the page",
    )
    flags.add_reading(parser)
    flags.add_reporting(parser)


def run(args: Namespace, parser: ArgumentParser) -> int:
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
    training = page.material.training
    if args.save_model is not None and training is not None:
        streams.write_model(training.model, args.save_model, console)
    if args.json:
        told = {"output": args.output, "model_file": args.save_model, "bytes": len(html.encode())}
        told |= page.to_dict()
        streams.write_standard(streams.json_report("report", told, default=str))
    return OK if training is None or training.result.converged else NOT_CONVERGED


def _check(args: Namespace, parser: ArgumentParser) -> None:
    """Fail on what can be known to be wrong now rather than after training."""
    if args.model is None and args.train is None:
        parser.error("give --model MODEL to judge, or --train DATA to learn one from")
    if args.valid is not None and args.train is None:
        parser.error("--valid is what C is chosen on; it needs --train")
    training = () if args.model is None else ("Cs", "folds", "scale", "save_model")
    for name in flags.given(args, training):
        told = flags.flag(name)
        parser.error(f"{told} is for a model that is trained here; leave out --model")
    if args.valid is not None and args.folds is not None:
        parser.error("--folds and --valid exclude each other: C is chosen on one of them")
    args.output = args.output or "report.html"
    inputs = [args.test, args.train, args.valid, args.model, args.against, args.names]
    if inputs.count(streams.STANDARD) > 1:
        parser.error("only one of the files can be standard input")
    if args.json and args.output == streams.STANDARD:
        parser.error("--json and a page on standard output (-) exclude each other")
    if args.save_model == args.output:
        parser.error(f"-o and --save-model both name {args.output}; name two files")
    if args.save_model == streams.STANDARD and args.json:
        parser.error("--json and a model on standard output (-) exclude each other")
    streams.check_output(args.output, *inputs)
    streams.check_output(args.save_model, *inputs)
    streams.check_inputs(*inputs)
    check_metrics(args.metrics, args.convention, selects=True)


def _report(args: Namespace, console: Console) -> Report:
    from linrank.reports import report

    scoring, metrics = flags.selecting_metric(args)
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
        scoring=scoring,
        metrics=metrics,
        convention=args.convention,
        Cs=args.Cs if args.Cs is not None else "auto",
        scale=args.scale or SCALES[0],
        n_folds=args.folds or N_FOLDS,
        feature_names=None if args.names is None else _names(args.names),
        n_worst=args.worst,
        title=args.title,
        random_state=args.seed,
        n_jobs=args.jobs,
        progress=console.tell,
    )


def _read_parts(
    args: Namespace, model: Any, console: Console
) -> tuple[Dataset | None, Dataset | None, Dataset]:
    """Training, validation and test data; features of all counted as in the first that is known."""
    kept: dict[str, Any] = {}
    if hasattr(model, "missing"):
        kept["missing"] = kept_missing(args, model)
    train = None if args.train is None else read_data(args.train, args, console, **kept)
    base = getattr(model, "training", {}).get("index_base") if model is not None else None
    if base is None and train is not None:
        base = train.index_base
    options: dict[str, Any] = {**kept, **counted_from(base, args)}
    if train is not None:
        options["known"] = train.raw_feature_names
        if train.filling is not None:  # the report fills in the others as these were
            options["missing"] = "keep"
    elif model is not None:
        options["known"] = getattr(model, "feature_names", None)
    valid = None if args.valid is None else read_data(args.valid, args, console, **options)
    test = read_data(args.test, args, console, **options)
    parts = [part for part in (train, valid, test) if part is not None]
    for part in parts:
        check_qids(part if train is None else train, part)
    for part in parts:
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
