"""linrank predict DATA MODEL [-o SCORES] [options]

Score every row of DATA with MODEL, in the order of the file: one number per line, written so that
reading it back gives the same bits; or, where the name of SCORES ends in .csv, .tsv, .parquet or
.arrow, a table of qid, docid and score. With --trec, a run for trec_eval: for each query its
rows by falling score, as `qid Q0 docid rank score tag`.

Text on standard input (DATA is -) is scored as it arrives, whatever its length: a line is answered
at once; where the query matters, for --trec and models of --scale query, a query is answered when
the next one begins, and its rows must come together. --stream reads a file in the same way.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from linrank.cli import files, options
from linrank.cli.console import Console, Result
from linrank.cli.main import UsageError
from linrank.cli.options import INDEX_BASE, STANDARD
from linrank.system.resources import count

if TYPE_CHECKING:
    from linrank.data import Array, Dataset
    from linrank.io.svmlight import TextStream
    from linrank.models.linear import Model

BLOCK = 1 << 16  # lines formatted at a time
# What is said of a table; text has no columns.
COLUMNS = ("label", "qid", "docid", "weight", "position", "features", "qrels")

OPTIONS = """
  DATA        rows to score: a file, a store, or - for stdin
  MODEL       model file written by linrank train
  -o, --output SCORES:last=-  file to write: .csv, .tsv, .parquet and .arrow are tables, others text
      (default: -)
  --[no-]stream  score text as it is read, in bounded memory (default: of standard input only);
      --no-stream reads all of it first
TREC run:
  --trec      write a run instead of bare scores
  --tag TAG:str=linrank  name of the run (default: linrank)
  --topk K:count  only the best K rows of each query
"""
RULES = "--topk needs --trec: bare scores are one per row"


def configure(parser: options.Parser) -> None:
    """Declare the options."""
    options.declare(parser, OPTIONS)
    options.add_common(parser, json=False)


def run(args: Namespace, console: Console) -> Result:
    """Read the model and the data, write the scores."""
    from linrank.io.formats import table_format

    if len(args.tag.split()) != 1:
        raise UsageError(f"--tag must be one word, got {args.tag!r}")
    table = table_format(args.output)
    for name in ("trec", "stream") if table else ():
        if getattr(args, name):
            raise UsageError(f"--{name} writes lines of text, and {args.output} would be a table")
    files.check_files([args.data, args.model], args.output)

    model = files.read_model(args.model)
    if table is None and _is_streamed(args, model):
        n_rows, name = _score_stream(model, args, console)
    else:
        n_rows, name = _score_all(model, table, args, console)
    if args.output != STANDARD:
        console.say("scored", f"{count(n_rows, 'row')} of {name}; written to {args.output}")
    return Result({})


# ---- rows in memory -----------------------------------------------------------------------------


def _score_all(
    model: Model, table: str | None, args: Namespace, console: Console
) -> tuple[int, str]:
    """Read all rows, write their scores; how many they were, and where they came from."""
    data, scores = files.read_and_score(model, args.data, args, console, labeled=False)
    if table is not None:
        from linrank.io.write import write_columns

        qid = [1] * data.n_rows if data.qid is None else data.qid.tolist()
        columns = {"qid": qid, "docid": _documents(data), "score": scores}
        write_columns(columns, args.output, table)
    else:
        ids = data.queries.ids if args.trec else None
        files.write_lines(args.output, _lines(data, scores, [1] if ids is None else ids, args))
    return data.n_rows, data.source


def _lines(
    data: Dataset,
    scores: Array,
    ids: Sequence[Any] | Array,
    args: Namespace,
    n_before: int = 0,
) -> Iterator[str]:
    """Blocks of lines: a score, or of a run `qid Q0 docid rank score tag`, ties in input order.

    ``ids`` are those of the queries of `data`; ``n_before`` rows came before it.
    """
    if not args.trec:
        # repr of a float is the shortest decimal that reads back as the same float64.
        for start in range(0, len(scores), BLOCK):
            yield "\n".join(map(repr, scores[start : start + BLOCK].tolist())) + "\n"
        return
    import numpy as np

    from linrank.io.trec import check_words, run_lines

    queries, names = data.queries, _documents(data, n_before)
    query = queries.scatter(np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets)))
    check_words(map(str, ids), "qid")
    check_words(names, "docid")
    yield from run_lines(query, ids, names, scores, args.tag, args.topk)


def _documents(data: Dataset, n_before: int = 0) -> list[str]:
    """The document of each row; one without an id gets its number, counted from 1."""
    docids = data.docids or [None] * data.n_rows
    return [docid or str(row) for row, docid in enumerate(docids, n_before + 1)]


# ---- a stream of rows ---------------------------------------------------------------------------


def _is_streamed(args: Namespace, model: Model) -> bool:
    """Whether rows are scored as they come: text of standard input, unless told otherwise."""
    # The columns of a precomputed kernel are the training rows, all of them and no others.
    can_stream = getattr(getattr(model, "kernel", None), "name", None) != "precomputed"
    given = options.find_given(args, COLUMNS)
    is_text = args.format in (None, "svmlight") and not given
    if args.stream is None:
        return args.data == STANDARD and can_stream and is_text and not _is_table()
    if not args.stream:
        return False
    if not can_stream:
        raise ValueError(
            f"{args.model}: a model of a precomputed kernel scores whole matrices; "
            "leave out --stream"
        )
    files.check_text(args.data)
    if not is_text:
        named = ", ".join(map(options.flag, given or ["format"]))
        raise ValueError(f"--stream reads SVMlight text, and {named} is for tables; leave it out")
    return True


def _is_table() -> bool:
    """Whether standard input begins like a table; looks without reading."""
    from linrank.io.formats import binary_format

    peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
    return peek is not None and binary_format(bytes(peek(8)[:8])) is not None


def _score_stream(model: Model, args: Namespace, console: Console) -> tuple[int, str]:
    """Score and write what is read, until the end of it; how many rows, and of what."""
    from linrank.io.svmlight import TextStream

    how = {"zero_based": INDEX_BASE[args.index_base], "dtype": args.dtype}
    how |= files.index_options(model.training.get("index_base"), args)
    by_query = args.trec or model.scaling.needs_queries
    stream = TextStream(args.data, model.n_features, **how, grouped=by_query)
    with files.in_options(console):
        files.write_lines(args.output, _stream_lines(model, stream, by_query, args, console))
    return stream.n_rows, stream.name


def _stream_lines(
    model: Model, stream: TextStream, by_query: bool, args: Namespace, console: Console
) -> Iterator[str]:
    """The lines of each part, scored."""
    from linrank.io.svmlight import whole_queries

    n_before, has_warned = 0, False
    for data in whole_queries(stream) if by_query else stream:
        if stream.beyond is not None and not has_warned:
            place, feature = stream.beyond
            console.warn(
                f"{place}: feature {feature:,} is one that the model has not seen: it knows "
                f"{model.n_features:,}; such features count nothing"
            )
            has_warned = True
        try:
            scores: Array = model.predict(data, n_jobs=args.jobs)
        except ValueError as error:  # it counts from the first row that is still here
            raise ValueError(f"{stream.name}: behind {n_before:,} rows: {error}") from None
        numbers = data.queries.ids if args.trec else None
        ids = ["1"] if numbers is None else [stream.id_of(q) for q in numbers.tolist()]
        yield from _lines(data, scores, ids, args, n_before)
        n_before += data.n_rows
