"""linrank sample DIR [options]

Write train.csv, valid.csv and test.csv to the folder DIR: judged queries of a made-up shop,
with a query and a url in each row, a grade from 0 to 4, and 13 named features, one of them
with gaps. The files are the same each time.
"""

from __future__ import annotations

import os
from argparse import Namespace

from linrank.cli.console import Console, Result
from linrank.cli.options import Parser, add_reporting, declare
from linrank.system.resources import bytes_text, count

OPTIONS = """
  DIR      folder to write to, which is made if need be
  --force  replace files that are there
"""


def configure(parser: Parser) -> None:
    """Declare the options."""
    declare(parser, OPTIONS)
    add_reporting(parser)


def run(args: Namespace, console: Console) -> Result:
    """Write the three files, and say what is in them."""
    from linrank.data.synthetic import make_sample
    from linrank.io.write import write_columns

    parts = {os.path.join(args.dir, f"{name}.csv"): data for name, data in make_sample().items()}
    there = [path for path in parts if os.path.exists(path)]
    if there and not args.force:
        raise FileExistsError(f"{there[0]} is there already; --force replaces it")
    os.makedirs(args.dir, exist_ok=True)
    for path, data in parts.items():
        # The columns of the table have names that a shop would give them.
        fields = {"query": data.qid, "url": data.docids, "grade": data.y.astype(int)}
        features = dict(zip(data.feature_names or (), data.X.T, strict=True))
        write_columns(fields | features, path, "csv")
        rows, queries = count(data.n_rows, "row"), count(data.queries.n_queries, "query", "queries")
        size = f"{count(data.n_features, 'feature')}, {bytes_text(os.path.getsize(path))}"
        console.say("wrote", f"{path}: {rows}, {queries}, {size}")
    console.say("next", f"linrank inspect {next(iter(parts))}")
    return Result({"files": list(parts)})
