"""``linrank evaluate``: the metrics of scores, given or computed by a model, or of a TREC run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from linrank.cli import streams
from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.cli.options import add_metrics, add_reading, add_reporting, declare
from linrank.cli.reading import (
    check_metrics,
    metrics_for,
    read_and_score,
    read_data,
    read_scores_of,
)
from linrank.system.resources import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linrank.data.dataset import Dataset
    from linrank.metrics import Evaluation
    from linrank.metrics.runs import JudgedRun


CONVENTION = "trec_eval"  # what the files are made for


def evaluate_files(args: Namespace, parser: ArgumentParser) -> tuple[JudgedRun, Evaluation]:
    """Check the options, read both files, measure."""
    if args.qrels is None or args.run is None:
        parser.error("--qrels and --run go together: judgements and what was retrieved")
    if args.data is not None or args.model is not None:
        parser.error("--qrels and --run take the place of DATA, SCORES and --model")
    if args.qrels == args.run == streams.STANDARD:
        parser.error("only one of the files can be standard input")
    streams.check_output(args.output, args.qrels, args.run)
    args.convention = args.convention or CONVENTION
    check_metrics(args.metrics, args.convention)
    from linrank.io.trec import load_qrels, load_run
    from linrank.metrics.runs import RUN_METRICS, JudgedRun

    console = Console(quiet=args.quiet, verbose=args.verbose)
    qrels = load_qrels(args.qrels, progress=console.reading(args.qrels))
    run = load_run(args.run, progress=console.reading(args.run))
    console.clear()
    judged = JudgedRun(qrels, run, complete=args.complete, n_jobs=args.jobs)
    if judged.n_not_judged:
        what = count(judged.n_not_judged, "query", "queries")
        console.say("note", f"{what} of the run without judgements left out")
    if judged.n_not_retrieved:
        what = count(judged.n_not_retrieved, "query", "queries")
        how = "counted as found nothing" if args.complete else "left out; --complete counts them"
        console.say("note", f"{what} of the qrels not in the run: {how}")
    result = judged.evaluate(
        metrics=args.metrics or RUN_METRICS, convention=args.convention, n_jobs=args.jobs
    )
    return judged, result


RUN = """
TREC files, instead of DATA and SCORES:
  --qrels QRELS  judgements: qid iteration docid relevance
  --run RUN      run: qid Q0 docid rank score tag
  --complete     count queries that RUN lacks, as trec_eval -c: 0 for what nobody found
"""
OUTPUT = """
  -o, --output FILE.csv  write the values of every query, or - for stdout
  --per-query@output FILE.csv
"""
DESCRIPTION = """\
Rank the rows of each query of DATA by score and compare with the labels. SCORES has one number
per row, in the order of the file (as linrank predict writes it); --model computes them instead.
With --qrels and --run, the same for a TREC run, by the rules of trec_eval.
"""


def configure(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "linrank evaluate DATA (SCORES | --model MODEL) [-m METRIC] [options]"
    parser.description = DESCRIPTION
    parser.add_argument(
        "data", metavar="DATA", nargs="?", help="labelled rows: a file, a store, or - for stdin"
    )
    parser.add_argument("scores", metavar="SCORES", nargs="?", help="score file, or - for stdin")
    declare(parser, "  --model MODEL  score the rows with this model" + RUN)
    add_metrics(parser, default="ndcg, map, mrr and pairwise accuracy")
    parser.set_defaults(convention=None)  # depends on what is evaluated
    declare(parser, OUTPUT)
    add_reading(parser, judgements=False)
    add_reporting(parser)


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Read, score, measure, print."""
    if args.json and args.output == streams.STANDARD:
        parser.error("--json and -o - would both write to standard output")
    if args.qrels is not None or args.run is not None:
        judged, result = evaluate_files(args, parser)
        sources = {"qrels": args.qrels, "run": args.run, "rows": judged.run.n_rows}
    else:
        data, result = _evaluate_data(args, parser)
        sources = {name: getattr(args, name) for name in ("data", "scores", "model")}
        sources["rows"] = data.n_rows
    if args.output is not None:
        streams.write_lines(args.output, _csv(result))
    if args.json:
        facts = {
            **sources,
            "queries": result.n_queries,
            "convention": args.convention,
            "rules": result.convention.describe(),
            "metrics": result.to_dict()["means"],
        }
        streams.write_standard(streams.json_report("evaluate", facts))
    elif args.output != streams.STANDARD:
        streams.show_standard(result.to_text() + "\n")
    return OK


def _evaluate_data(args: Namespace, parser: ArgumentParser) -> tuple[Dataset, Evaluation]:
    if args.data is None:
        parser.error("give DATA and its scores, or --qrels and --run")
    if args.complete:
        parser.error("--complete is an option of --qrels and --run")
    if (args.scores is None) == (args.model is None):
        parser.error("give either SCORES or --model MODEL")
    if [args.data, args.scores, args.model].count(streams.STANDARD) > 1:
        parser.error("only one of the files can be standard input")
    streams.check_output(args.output, args.data, args.scores, args.model)
    from linrank.metrics import DEFAULT_METRICS, evaluate

    args.convention = args.convention or "linrank"
    check_metrics(args.metrics, args.convention)

    console = Console(quiet=args.quiet, verbose=args.verbose)
    if args.model is not None:
        data, scores = read_and_score(streams.read_model(args.model), args.data, args, console)
    else:
        data = read_data(args.data, args, console, missing="keep")  # no feature is looked at
        scores = read_scores_of(args.scores, data)
    result = evaluate(
        data.labels,
        scores,
        qid=data.qid,
        metrics=metrics_for(data, args.metrics, DEFAULT_METRICS, args.convention, console),
        convention=args.convention,
        docid=data.all_docids,
        n_jobs=args.jobs,
    )
    return data, result


def _csv(result: Evaluation) -> Iterator[str]:
    """A header, then one line per query; an empty field where the metric leaves the query out."""
    names = list(result.per_query)
    yield ",".join(["qid", *map(_quoted, names)]) + "\n"
    columns = [result.per_query[name].tolist() for name in names]
    ids = [1] if result.query_ids is None else result.query_ids.tolist()
    for qid, *values in zip(ids, *columns, strict=True):
        fields = ["" if value != value else repr(value) for value in values]
        yield ",".join([_quoted(str(qid)), *fields]) + "\n"


def _quoted(text: str) -> str:
    """A field of CSV: in quotes, with quotes doubled, where it holds a separator or a quote."""
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text
