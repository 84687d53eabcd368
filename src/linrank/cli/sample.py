"""``linrank sample``: a small, made-up set of judged queries with names, to try everything on."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.cli.options import add_reporting, declare
from linrank.cli.streams import write_standard
from linrank.system.resources import bytes_text, count

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset

DESCRIPTION = """\
Write train.csv, valid.csv and test.csv to the folder DIR: judged queries of a made-up shop,
with a query and a url in each row, a grade from 0 to 4, and 13 named features, one of them
with gaps. The files are the same each time.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "linrank sample DIR [options]"
    parser.description = DESCRIPTION
    parser.add_argument("folder", metavar="DIR", help="folder to write to; it is made if need be")
    declare(parser, "  --force  replace files that are there")
    add_reporting(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the three files, and say what is in them."""
    from linrank.data.synthetic import make_sample
    from linrank.io.write import write_columns

    console = Console(quiet=args.quiet, verbose=args.verbose)
    parts = {os.path.join(args.folder, f"{name}.csv"): d for name, d in make_sample().items()}
    there = [path for path in parts if os.path.exists(path)]
    if there and not args.force:
        raise FileExistsError(f"{there[0]} is there already; --force replaces it")
    os.makedirs(args.folder, exist_ok=True)
    for path, data in parts.items():
        write_columns(_columns(data), path, "csv")
        rows, queries = count(data.n_rows, "row"), count(data.queries.n_queries, "query", "queries")
        features = count(data.n_features, "feature")
        console.say(
            "wrote", f"{path}: {rows}, {queries}, {features}, {bytes_text(os.path.getsize(path))}"
        )
    train = next(iter(parts))
    console.say("next", f"linrank inspect {train}")
    if args.json:
        import json

        write_standard(json.dumps({"command": "sample", "files": list(parts)}) + "\n")
    return OK


def _columns(data: Dataset) -> dict[str, Any]:
    """The columns of the table, by names that a shop would give them."""
    fields = {"query": data.qid, "url": data.docids, "grade": data.y.astype(int)}
    return fields | dict(zip(data.feature_names or (), data.X.T, strict=True))
