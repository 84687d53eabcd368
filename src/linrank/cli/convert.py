"""``linrank convert``: data of any format that is read into any that is written, or a store."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, Result
from linrank.cli.files import check_data, column_options, in_options, judgement_options
from linrank.cli.main import UsageError
from linrank.cli.options import INDEX_BASE, STANDARD, Parser, add_reading, add_reporting, declare
from linrank.io.formats import WRITTEN
from linrank.system.resources import bytes_text, count, seconds

if TYPE_CHECKING:
    from linrank.io.store.store import Store
    from linrank.io.write import Written

OPTIONS = f"""
  DATA...            data files, read as one (runs: side by side), or a store; - for stdin
  -o, --output OUT   file or store to write; - for stdout, with --to (default: the last DATA)
writing:
  --to FORMAT:to     one of {", ".join(WRITTEN)} (default: by the extension of OUT; a store has
                     none, or .store)
  --memory-limit SIZE:size_in_bytes  memory of the conversion beside the program itself, as 2GB or
                     512MiB (default: 1GiB for a store)
  --storage {{auto,dense,csr}}:str=auto  a full matrix, or the entries that are given (default: the
                     smaller of the two for text, else as it is)
  --n-features N:count  number of features (default: the largest index)
  --chunk-size SIZE:size_in_bytes  features of a chunk of a store, as --memory-limit and at most a
                     quarter of it (default: 64MiB)
  --force            replace a file or store that is there
"""
DESCRIPTION = """\
Convert data to another format: SVMlight/LETOR text, Parquet, Arrow, CSV, TSV, TREC runs and stores
to any of these but runs, or to judgements (qrels). A store is a folder of arrays that is
read without parsing, and trained from where it does not fit in memory; it is written from text and
tables of any size, with the rows of queries in any order. A fault, Ctrl-C or a full disk leave
nothing behind.
"""


def configure(parser: Parser) -> None:
    """Declare the options."""
    parser.usage = "linrank convert DATA... -o OUT [options]"
    parser.description = DESCRIPTION
    declare(parser, OPTIONS, to=WRITTEN)
    add_reading(parser)
    add_reporting(parser)


def run(args: Namespace, console: Console) -> Result:
    """Convert, and say what came out."""
    _check(args)
    watch, start = _Watch(console), time.perf_counter()
    try:
        with in_options(console):
            written = _convert(args, console, watch)
    except FileExistsError as error:
        raise FileExistsError(str(error).replace("overwrite=True", "--force")) from None
    finally:
        console.clear()
    report = _report(written, args, watch, time.perf_counter() - start)
    _say(report, console)
    return Result(report)


def _check(args: Namespace) -> None:
    """Fail on what cannot be before anything is read."""
    if args.output is None:
        *args.data, args.output = args.data
    if not args.data:
        raise UsageError("name what to write as well: linrank convert DATA -o OUT")
    if args.output == STANDARD and args.to in (None, "store"):
        raise UsageError("OUT is -, standard output: say with --to which format, but a store")
    if args.output == STANDARD and args.json:
        raise UsageError("--json and OUT both want standard output; name a file for OUT")
    for path in args.data:
        check_data(path)


def _convert(args: Namespace, console: Console, watch: _Watch) -> Store | Written:
    from linrank.io.convert import convert

    return convert(
        args.data if len(args.data) > 1 else args.data[0],
        args.output,
        to=args.to,
        memory_limit=args.memory_limit,
        storage=args.storage,
        dtype=args.dtype,
        n_features=args.n_features,
        zero_based=INDEX_BASE[args.index_base],
        chunk_bytes=args.chunk_size,
        n_jobs=args.jobs,
        progress=watch.show,
        rows_progress=watch.show_rows,
        note=console.note,
        overwrite=args.force,
        format=args.format,
        features=args.features,
        missing=args.missing,
        sidecars=False if args.no_sidecars else None,
        **column_options(args),
        **judgement_options(args),
    )


class _Watch:
    """Counts bytes and passes, and draws the status line."""

    def __init__(self, console: Console) -> None:
        self._console, self._begin = console, time.perf_counter()
        self.n_bytes, self.n_passes = 0, 1

    def show(self, done: int, total: int | None) -> None:
        """The progress callback."""
        now = time.perf_counter()
        if done < self.n_bytes:
            self.n_passes += 1
            self._begin = now
            self._console.detail(
                f"pass {self.n_passes}: a line asked for another layout or order, or for what "
                "stands in for missing values"
            )
        elif self.n_bytes == 0:
            self._console.detail("converting")
        self.n_bytes = done
        share = f" of {bytes_text(total)} ({100 * done // max(total, 1)} %)" if total else ""
        rate = done / max(now - self._begin, 1e-9)
        self._console.status(f"converting: {bytes_text(done)}{share}, {bytes_text(int(rate))}/s")

    def show_rows(self, done: int, total: int | None) -> None:
        """The progress of a file that is written."""
        share = f" of {total:,} ({100 * done // max(total, 1)} %)" if total else ""
        self._console.detail(f"wrote {count(done, 'row')}{share}")
        self._console.status(f"writing: {count(done, 'row')}{share}")


def _report(
    written: Store | Written, args: Namespace, watch: _Watch, duration: float
) -> dict[str, Any]:
    from linrank.io.write import Written

    report = {
        "sources": args.data,
        "bytes_read": watch.n_bytes,
        "passes": watch.n_passes,
        "seconds": duration,
        "rows": written.n_rows,
        "features": written.n_features,
        "storage": written.storage,
        "dtype": str(written.dtype),
    }
    if isinstance(written, Written):
        report |= {"target": args.output, "format": written.format, "bytes": written.nbytes}
        return report | {
            "left_out": list(written.left_out),
            "misleading": list(written.misleading),
        }
    return report | {
        "store": args.output,
        "queries": written.n_queries,
        "pairs": written.n_pairs,
        "index_base": written.index_base,
        "chunks": written.n_chunks,
        "bytes": int(written.nbytes),
    }


def _say(report: dict[str, Any], console: Console) -> None:
    """What was read and what was written."""
    n_bytes, duration = report["bytes_read"], report["seconds"]
    passes = f", {report['passes']} passes" if report["passes"] > 1 else ""
    size = f"{bytes_text(n_bytes)} in " if n_bytes else ""
    rate = f", {bytes_text(int(n_bytes / max(duration, 1e-9)))}/s" if n_bytes else ""
    sources = " ".join(report["sources"])
    console.say("read", f"{sources}: {size}{seconds(duration)}{rate}{passes}")
    matrix = f"{report['storage']} {report['dtype']}, {report['rows']} × {report['features']}"
    size = "" if report["bytes"] is None else f", {bytes_text(report['bytes'])}"
    if "store" in report:
        counts = (
            f"{count(report['rows'], 'row')}, {count(report['queries'], 'query', 'queries')}, "
            f"{count(report['pairs'], 'pair')}"
        )
        chunks = count(report["chunks"], "chunk")
        console.say("wrote", f"{report['store']}: {counts}; {matrix}{size} in {chunks}")
        return
    console.say("wrote", f"{report['target']}: {report['format']}; {matrix}{size}")
    if report["left_out"]:
        what = " and ".join(report["left_out"])
        console.say("note", f"{report['format']} has no place for {what}")
    for name in report["misleading"]:
        console.say("note", f"the feature {name!r} is named like no feature: say --features")
