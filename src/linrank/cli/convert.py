"""linrank convert DATA... -o OUT [options]

Convert data to another format: SVMlight/LETOR text, Parquet, Arrow, CSV, TSV and stores
to any of these, or to judgments (qrels). A store is a folder of arrays that is
read without parsing, and trained from where it does not fit in memory; it is written from text and
tables of any size, with the rows of queries in any order. A fault, Ctrl-C or a full disk leave
nothing behind.
"""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING

from linrank.cli import files
from linrank.cli.console import Console, Result
from linrank.cli.main import UsageError
from linrank.cli.options import INDEX_BASE, STANDARD, Parser, add_common, declare
from linrank.io.formats import WRITTEN
from linrank.system.resources import bytes_text, count, seconds

if TYPE_CHECKING:
    from linrank.io.store.store import Store
    from linrank.io.write import Written

OPTIONS = f"""
  DATA...            data files, read as one, or a store; - for stdin
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


# What the library calls as the command line does.
ALIKE = ("to", "memory_limit", "storage", "dtype", "n_features", "format", "features", "missing")


def configure(parser: Parser) -> None:
    """Declare the options."""
    declare(parser, OPTIONS, to=WRITTEN)
    add_common(parser)


def run(args: Namespace, console: Console) -> Result:
    """Convert, and say what came out."""
    _check(args)
    watch, start = _Watch(console), time.perf_counter()
    try:
        with files.in_options(console):
            written = _convert(args, console, watch)
    except FileExistsError as error:
        raise FileExistsError(str(error).replace("overwrite=True", "--force")) from None
    finally:
        console.clear()
    return _result(written, args, watch, time.perf_counter() - start, console)


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
        files.check_data(path)


def _convert(args: Namespace, console: Console, watch: _Watch) -> Store | Written:
    from linrank.io.convert import convert

    return convert(
        args.data if len(args.data) > 1 else args.data[0],
        args.output,
        zero_based=INDEX_BASE[args.index_base],
        chunk_bytes=args.chunk_size,
        n_jobs=args.jobs,
        progress=watch.show,
        rows_progress=watch.show_rows,
        note=console.note,
        overwrite=args.force,
        sidecars=False if args.no_sidecars else None,
        **{name: getattr(args, name) for name in ALIKE},
        **files.column_options(args),
        **files.judgment_options(args),
    )


class _Watch:
    """Counts the bytes that are read, and the passes over them."""

    def __init__(self, console: Console) -> None:
        self._console, self._show = console, console.byte_progress("converting")
        self.n_bytes, self.n_passes = 0, 1

    def show(self, done: int, total: int | None) -> None:
        """The progress of what is read."""
        if done < self.n_bytes:
            self.n_passes += 1
            self._console.detail(
                f"pass {self.n_passes}: a line asked for another layout or order, or for what "
                "stands in for missing values"
            )
        elif self.n_bytes == 0:
            self._console.detail("converting")
        self.n_bytes = done
        self._show(done, total)

    def show_rows(self, done: int, total: int | None) -> None:
        """The progress of a file that is written."""
        share = f" of {total:,} ({100 * done // max(total, 1)} %)" if total else ""
        self._console.tell(f"wrote {count(done, 'row')}{share}")


def _result(
    written: Store | Written, args: Namespace, watch: _Watch, took: float, console: Console
) -> Result:
    """Say what was read and written; the same as facts."""
    from linrank.io.write import Written

    size = rate = ""
    if watch.n_bytes:
        size = f"{bytes_text(watch.n_bytes)} in "
        rate = f", {bytes_text(int(watch.n_bytes / max(took, 1e-9)))}/s"
    passes = f", {watch.n_passes} passes" if watch.n_passes > 1 else ""
    console.say("read", f"{' '.join(args.data)}: {size}{seconds(took)}{rate}{passes}")
    facts = {
        "sources": args.data,
        "bytes_read": watch.n_bytes,
        "passes": watch.n_passes,
        "seconds": took,
        "rows": written.n_rows,
        "features": written.n_features,
        "storage": written.storage,
        "dtype": str(written.dtype),
        "bytes": None if written.nbytes is None else int(written.nbytes),
    }
    if not isinstance(written, Written):
        console.say("wrote", files.describe_data(written))
        facts |= {"store": args.output, "queries": written.n_queries, "pairs": written.n_pairs}
        return Result(facts | {"index_base": written.index_base, "chunks": written.n_chunks})
    matrix = f"{written.storage} {written.dtype}, {written.n_rows} × {written.n_features}"
    matrix += "" if written.nbytes is None else f", {bytes_text(int(written.nbytes))}"
    console.say("wrote", f"{args.output}: {written.format}; {matrix}")
    if written.left_out:
        what = " and ".join(written.left_out)
        console.say("note", f"{written.format} has no place for {what}")
    for name in written.misleading:
        console.say("note", f"the feature {name!r} is named like no feature: say --features")
    facts |= {"target": args.output, "format": written.format}
    notes = {"left_out": list(written.left_out), "misleading": list(written.misleading)}
    return Result(facts | notes)
