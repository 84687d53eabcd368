"""``linrank predict``: one score per row, or a TREC run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from linrank.cli.arguments import add_reading, add_volume, positive_int
from linrank.cli.console import Console, count
from linrank.cli.main import OK
from linrank.cli.models import read_model
from linrank.cli.reading import read_and_score
from linrank.cli.streams import STANDARD, check_apart, check_writable, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from linrank.data.dataset import Dataset

__all__ = ["configure", "run"]

BLOCK = 1 << 16  # lines formatted at a time

DESCRIPTION = """\
Score every row of DATA with MODEL: one number per line, in the order of the file, written so
that reading it back gives the same bits. With --trec, a run for trec_eval: for each query its
rows by falling score, as `qid Q0 docid rank score tag`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument("data", metavar="DATA", help="rows to score: text, - for stdin, or a store")
    parser.add_argument("model", metavar="MODEL", help="model file written by linrank train")
    parser.add_argument(
        "scores", metavar="SCORES", nargs="?", help="file to write (default: -, standard output)"
    )
    parser.add_argument("-o", "--output", metavar="SCORES", help="the same as an option")
    trec = parser.add_argument_group("TREC run")
    trec.add_argument("--trec", action="store_true", help="write a run instead of bare scores")
    trec.add_argument("--tag", default="linrank", help="name of the run (default: linrank)")
    trec.add_argument(
        "--topk", type=positive_int, metavar="K", help="only the best K rows of each query"
    )
    add_reading(parser)
    add_volume(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Read the model and the data, write the scores."""
    if args.topk is not None and not args.trec:
        parser.error("--topk needs --trec: bare scores are one per row")
    if not args.tag or len(args.tag.split()) != 1:
        parser.error(f"--tag must be one word, got {args.tag!r}")
    if args.data == args.model == STANDARD:
        parser.error("DATA and MODEL cannot both be standard input")
    if args.scores is not None and args.output is not None:
        parser.error("SCORES and -o name the same file; give one of them")
    output = args.scores or args.output or STANDARD
    check_writable(output)
    check_apart(output, args.data, args.model)

    console = Console(quiet=args.quiet, verbose=args.verbose)
    model = read_model(args.model)
    data, scores = read_and_score(model, args.data, args, console, labelled=False)
    blocks = _run_lines(data, scores, args.tag, args.topk) if args.trec else _score_lines(scores)
    write_lines(output, blocks)
    if output != STANDARD:
        console.say("scored", f"{count(data.n_rows, 'row')} of {data.source}; written to {output}")
    return OK


def _score_lines(scores: NDArray[np.float64]) -> Iterator[str]:
    # repr of a float is the shortest decimal that reads back as the same float64.
    for start in range(0, len(scores), BLOCK):
        yield "\n".join(map(repr, scores[start : start + BLOCK].tolist())) + "\n"


def _run_lines(
    data: Dataset, scores: NDArray[np.float64], tag: str, topk: int | None
) -> Iterator[str]:
    """`qid Q0 docid rank score tag`, ties in input order; a row without docid gets its number."""
    import numpy as np

    from linrank.data.trec_text import run_lines

    queries, docids = data.queries, data.docids or [None] * data.n_rows
    query = queries.scatter(np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets)))
    names = [docid or str(row) for row, docid in enumerate(docids, 1)]
    return run_lines(query, [1] if queries.ids is None else queries.ids, names, scores, tag, topk)
