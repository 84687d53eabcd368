"""``linrank predict``: one score per row, a table of them, or a TREC run."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from linrank.cli import options, reading, streams
from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.io.formats import binary_format, table_format
from linrank.system.resources import count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset
    from linrank.io.svmlight import TextStream
    from linrank.models.linear import Model


BLOCK = 1 << 16  # lines formatted at a time


def score_lines(scores: NDArray[np.float64]) -> Iterator[str]:
    """Blocks of one score a line."""
    # repr of a float is the shortest decimal that reads back as the same float64.
    for start in range(0, len(scores), BLOCK):
        yield "\n".join(map(repr, scores[start : start + BLOCK].tolist())) + "\n"


def run_lines_of(
    data: Dataset,
    scores: NDArray[np.float64],
    ids: Sequence[Any] | NDArray[Any],
    args: Namespace,
    n_before: int = 0,
) -> Iterator[str]:
    """`qid Q0 docid rank score tag`, ties in input order; a row without docid gets its number.

    ``ids`` are those of the queries of `data`; ``n_before`` rows came before it.
    """

    from linrank.io.trec import check_words, run_lines

    queries, names = data.queries, _documents(data, n_before)
    query = queries.query_of_rows()
    check_words(map(str, ids), "qid")
    check_words(names, "docid")
    return run_lines(query, ids, names, scores, args.tag, args.topk)


def _documents(data: Dataset, n_before: int = 0) -> list[str]:
    """The document of each row; one without an id gets its number, counted from 1."""
    docids = data.docids or [None] * data.n_rows
    return [docid or str(row) for row, docid in enumerate(docids, n_before + 1)]


def can_stream(model: Model) -> bool:
    """Whether rows need nothing but their query to be scored: not for a precomputed kernel, whose
    columns are the training rows, all of them and no others."""
    kernel = getattr(model, "kernel", None)
    return kernel is None or kernel.name != "precomputed"


def run_stream(model: Model, output: str, args: Namespace, console: Console) -> int:
    """Score and write what is read, until the end of it."""
    from linrank.io.svmlight import TextStream, whole_queries

    how = {"zero_based": options.INDEX_BASE[args.index_base], "dtype": args.dtype}
    how |= reading.counted_from(model.training.get("index_base"), args)
    by_query = args.trec or model.scaling.needs_queries
    stream = TextStream(args.data, model.n_features, **how, grouped=by_query)
    parts = whole_queries(stream) if by_query else iter(stream)
    with reading.in_options(console):
        streams.write_lines(output, _blocks(model, stream, parts, args, console))
    if output != streams.STANDARD:
        console.say(
            "scored", f"{count(stream.n_rows, 'row')} of {stream.name}; written to {output}"
        )
    return OK


def _blocks(
    model: Model, stream: TextStream, parts: Iterator[Dataset], args: Namespace, console: Console
) -> Iterator[str]:
    """The lines of each part, scored."""
    n_before, has_warned = 0, False
    for data in parts:
        if stream.beyond is not None and not has_warned:
            place, feature = stream.beyond
            console.warn(
                f"{place}: feature {feature:,} is one that the model has not seen: it knows "
                f"{model.n_features:,}; such features count nothing"
            )
            has_warned = True
        try:
            scores: NDArray[np.float64] = model.predict(data, n_jobs=args.jobs)
        except ValueError as error:  # it counts from the first row that is still here
            raise ValueError(f"{stream.name}: behind {n_before:,} rows: {error}") from None
        if args.trec:
            numbers = data.queries.ids
            ids = ["1"] if numbers is None else [stream.id_of(q) for q in numbers.tolist()]
            yield from run_lines_of(data, scores, ids, args, n_before)
        else:
            yield from score_lines(scores)
        n_before += data.n_rows


OPTIONS = """
  DATA        rows to score: a file, a store, or - for stdin
  MODEL       model file written by linrank train
TREC run:
  --trec      write a run instead of bare scores
  --tag TAG:str=linrank  name of the run (default: linrank)
  --topk K:count  only the best K rows of each query
"""
DESCRIPTION = """\
Score every row of DATA with MODEL, in the order of the file: one number per line, written so that
reading it back gives the same bits; or, where the name of SCORES ends in .csv, .tsv, .parquet or
.arrow, a table of qid, docid and score. With --trec, a run for trec_eval: for each query its
rows by falling score, as `qid Q0 docid rank score tag`.

Text on standard input (DATA is -) is scored as it arrives, whatever its length: a line is answered
at once; where the query matters, for --trec and models of --scale query, a query is answered when
the next one begins, and its rows must come together. --stream reads a file in the same way.
"""


def configure(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "linrank predict DATA MODEL [-o SCORES] [options]"
    parser.description = DESCRIPTION
    options.declare(parser, OPTIONS)
    options.add_output(
        parser,
        "SCORES",
        "file to write: .csv, .tsv, .parquet and .arrow are tables, others text (default: -, "
        "standard output)",
    )
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        help="score text as it is read, in bounded memory (default: of standard input only); "
        "--no-stream reads all of it first",
    )
    options.add_reading(parser)
    options.add_volume(parser)


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Read the model and the data, write the scores."""
    if args.topk is not None and not args.trec:
        parser.error("--topk needs --trec: bare scores are one per row")
    if not args.tag or len(args.tag.split()) != 1:
        parser.error(f"--tag must be one word, got {args.tag!r}")
    if args.data == args.model == streams.STANDARD:
        parser.error("DATA and MODEL cannot both be standard input")
    output = options.output_of(args, parser, "SCORES", streams.STANDARD)
    table = table_format(output)
    for name in ("trec", "stream") if table else ():
        if getattr(args, name):
            parser.error(f"--{name} writes lines of text, and {output} would be a table")
    streams.check_output(output, args.data, args.model)

    console = Console(quiet=args.quiet, verbose=args.verbose)
    model = streams.read_model(args.model)
    if table is None and _streams(args, model):
        return run_stream(model, output, args, console)
    data, scores = reading.read_and_score(model, args.data, args, console, labelled=False)
    if args.trec:
        ids = data.queries.ids
        streams.write_lines(output, run_lines_of(data, scores, [1] if ids is None else ids, args))
    elif table is not None:
        from linrank.io.write import write_columns

        qid = [1] * data.n_rows if data.qid is None else data.qid.tolist()
        columns = {"qid": qid, "docid": _documents(data), "score": scores}
        write_columns(columns, output, table)
    else:
        streams.write_lines(output, score_lines(scores))
    if output != streams.STANDARD:
        console.say("scored", f"{count(data.n_rows, 'row')} of {data.source}; written to {output}")
    return OK


# What is told of a table; text has no columns.
COLUMNS = ("label", "qid", "docid", "weight", "position", "features", "qrels")


def _streams(args: Namespace, model: Model) -> bool:
    """Whether rows are scored as they come: text of standard input, unless told otherwise."""
    told = options.given(args, COLUMNS)
    is_text = getattr(args, "format", None) in (None, "svmlight") and not told
    if args.stream is None:
        return args.data == streams.STANDARD and can_stream(model) and is_text and not _is_table()
    if not args.stream:
        return False
    if not can_stream(model):
        raise ValueError(
            f"{args.model}: a model of a precomputed kernel scores whole matrices; "
            "leave out --stream"
        )
    if os.path.isdir(args.data):
        raise ValueError(f"{args.data}: is a folder, and --stream reads text; leave it out")
    reading.check_text(args.data)
    if not is_text:
        named = ", ".join(map(options.flag, told or ["format"]))
        raise ValueError(f"--stream reads SVMlight text, and {named} is for tables; leave it out")
    return True


def _is_table() -> bool:
    """Whether standard input begins like a table; looks without reading."""
    peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
    return peek is not None and binary_format(bytes(peek(8)[:8])) is not None
