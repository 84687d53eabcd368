"""``linrank evaluate``: the metrics of scores, given or computed by a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from linrank.cli.arguments import add_metrics, add_reading, add_reporting
from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.cli.measuring import check_metrics, metrics_for
from linrank.cli.models import read_model
from linrank.cli.reading import read_and_score, read_data, read_scores
from linrank.cli.streams import STANDARD, check_apart, check_writable, write_lines, write_standard

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from linrank.cli.console import Console
    from linrank.data.dataset import Dataset
    from linrank.metrics import Evaluation

__all__ = ["configure", "run"]

DESCRIPTION = """\
Rank the rows of each query of DATA by score and compare with the labels. SCORES has one number
per row, in the order of the file (as linrank predict writes it); --model computes them instead.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument("data", metavar="DATA", help="labelled rows, or - for standard input")
    parser.add_argument("scores", metavar="SCORES", nargs="?", help="score file, or - for stdin")
    parser.add_argument("--model", metavar="MODEL", help="score the rows with this model")
    add_metrics(parser, "-m", "--metric", default="ndcg, map, mrr and pairwise accuracy")
    parser.add_argument("--per-query", metavar="FILE.csv", help="write the values of every query")
    add_reading(parser)
    add_reporting(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read, score, measure, print."""
    if (args.scores is None) == (args.model is None):
        parser.error("give either SCORES or --model MODEL")
    if [args.data, args.scores, args.model].count(STANDARD) > 1:
        parser.error("only one of the files can be standard input")
    if args.json and args.per_query == STANDARD:
        parser.error("--json and --per-query - would both write to standard output")
    if args.per_query is not None:
        check_writable(args.per_query)
        check_apart(args.per_query, args.data, args.scores, args.model)
    from linrank.metrics import DEFAULT_METRICS, evaluate

    check_metrics(args.metrics, args.convention)

    console = Console(quiet=args.quiet, verbose=args.verbose)
    data, scores = _read(args, console)
    result = evaluate(
        data.labels,
        scores,
        qid=data.qid,
        metrics=metrics_for(data, args.metrics, DEFAULT_METRICS, args.convention, console),
        convention=args.convention,
        docid=_docids(data),
        n_jobs=args.jobs,
    )
    if args.per_query is not None:
        write_lines(args.per_query, _csv(result))
    if args.json:
        _print_json(args, data, result)
    elif args.per_query != STANDARD:
        write_standard(result.to_text() + "\n")
    return OK


def _read(args: argparse.Namespace, console: Console) -> tuple[Dataset, NDArray[np.float64]]:
    if args.model is not None:
        return read_and_score(read_model(args.model), args.data, args, console)
    scores = read_scores(args.scores)
    data = read_data(args.data, args, console)
    if len(scores) != data.n_rows:
        raise ValueError(
            f"{args.scores} has {len(scores):,} scores, {args.data} has {data.n_rows:,} rows; "
            "one score per row is needed, in the same order"
        )
    return data, scores


def _docids(data: Dataset) -> list[str] | None:
    """Document ids, by which trec_eval breaks ties; None unless every row has one."""
    docids = data.docids
    return None if docids is None or None in docids else [docid or "" for docid in docids]


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


def _print_json(args: argparse.Namespace, data: Dataset, result: Evaluation) -> None:
    import json

    from linrank import __version__

    report = {
        "command": "evaluate",
        "linrank": __version__,
        "data": args.data,
        "scores": args.scores,
        "model": args.model,
        "rows": data.n_rows,
        "queries": data.queries.n_queries,
        "convention": args.convention,
        "rules": result.convention.describe(),
        "metrics": result.to_dict()["means"],
    }
    write_standard(json.dumps(report, ensure_ascii=False) + "\n")
