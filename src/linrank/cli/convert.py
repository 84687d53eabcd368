"""``linrank convert``: text of any size becomes a store, a folder that training reads in parts."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linrank.cli.arguments import add_reading, add_reporting, megabytes, positive_int
from linrank.cli.console import Console, bytes_text, count, seconds
from linrank.cli.main import OK
from linrank.cli.models import is_model
from linrank.cli.reading import INDEX_BASE
from linrank.cli.streams import STANDARD, write_standard

if TYPE_CHECKING:
    from linrank.store.store import Store

__all__ = ["configure", "run"]

DESCRIPTION = """\
Convert SVMlight/LETOR text, of any size and with the rows of queries in any order, to a store: a
folder of arrays that is mapped instead of read, and trained from where it does not fit in memory.
A fault, Ctrl-C or a full disk leave nothing behind.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.description = DESCRIPTION
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="data files, read as one; - for stdin"
    )
    parser.add_argument("store", metavar="STORE", help="folder to write")
    group = parser.add_argument_group("the store")
    group.add_argument(
        "--memory-limit",
        type=megabytes,
        metavar="SIZE",
        help="memory of the conversion beside the program itself, as 2GB or 512MiB, or in 10⁶ "
        "bytes (default: 1GiB)",
    )
    group.add_argument(
        "--storage",
        choices=("auto", "dense", "csr"),
        default="auto",
        help="a full matrix, or the entries that are given (default: the smaller of the two)",
    )
    group.add_argument(
        "--n-features",
        type=positive_int,
        metavar="N",
        help="number of features (default: the largest index)",
    )
    group.add_argument(
        "--chunk-size",
        type=megabytes,
        metavar="SIZE",
        help="features of a chunk, as --memory-limit and at most a quarter of it (default: 64MiB)",
    )
    group.add_argument("--force", action="store_true", help="replace a store that is there")
    add_reading(parser)
    add_reporting(parser)


def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Convert, and say what came out."""
    from linrank.store.convert import convert

    console = Console(quiet=args.quiet, verbose=args.verbose)
    for path in args.data:
        if path != STANDARD and is_model(path):
            raise ValueError(
                f"{path}: is JSON, like a model, not data; DATA comes first, then STORE"
            )
    watch, start = _Watch(console), time.perf_counter()
    try:
        store = convert(
            args.data,
            args.store,
            memory_limit=args.memory_limit,
            storage=args.storage,
            dtype=args.dtype,
            n_features=args.n_features,
            zero_based=INDEX_BASE[args.index_base],
            chunk_bytes=args.chunk_size,
            n_jobs=args.jobs,
            progress=watch.show,
            overwrite=args.force,
        )
    except FileExistsError as error:
        raise FileExistsError(str(error).replace("overwrite=True", "--force")) from None
    finally:
        console.clear()
    report = _report(store, args, watch, time.perf_counter() - start)
    for label, text in _lines(report):
        console.say(label, text)
    if args.json:
        import json

        write_standard(json.dumps(report, ensure_ascii=False) + "\n")
    return OK


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
            self._console.detail(f"pass {self.n_passes}: a line asked for another layout or order")
        elif self.n_bytes == 0:
            self._console.detail("converting")
        self.n_bytes = done
        share = f" of {bytes_text(total)} ({100 * done // max(total, 1)} %)" if total else ""
        rate = done / max(now - self._begin, 1e-9)
        self._console.status(f"converting: {bytes_text(done)}{share}, {bytes_text(int(rate))}/s")


def _report(
    store: Store, args: argparse.Namespace, watch: _Watch, duration: float
) -> dict[str, Any]:
    from linrank import __version__

    return {
        "command": "convert",
        "linrank": __version__,
        "sources": args.data,
        "store": args.store,
        "bytes_read": watch.n_bytes,
        "passes": watch.n_passes,
        "seconds": duration,
        "rows": store.n_rows,
        "features": store.n_features,
        "queries": store.n_queries,
        "pairs": store.n_pairs,
        "storage": store.storage,
        "dtype": str(store.dtype),
        "index_base": store.index_base,
        "chunks": store.n_chunks,
        "bytes": int(store.nbytes),
    }


def _lines(report: dict[str, Any]) -> list[tuple[str, str]]:
    rate = report["bytes_read"] / max(report["seconds"], 1e-9)
    passes = f", {report['passes']} passes" if report["passes"] > 1 else ""
    return [
        (
            "read",
            f"{' '.join(report['sources'])}: {bytes_text(report['bytes_read'])} in "
            f"{seconds(report['seconds'])}, {bytes_text(int(rate))}/s{passes}",
        ),
        (
            "wrote",
            f"{report['store']}: {count(report['rows'], 'row')}, "
            f"{count(report['queries'], 'query', 'queries')}, {count(report['pairs'], 'pair')}; "
            f"{report['storage']} {report['dtype']}, {report['rows']} × {report['features']}, "
            f"{bytes_text(report['bytes'])} in {count(report['chunks'], 'chunk')}",
        ),
    ]
