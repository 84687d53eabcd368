"""The command ``linrank``: find the command, run it, turn what went wrong into an exit status.

Nothing heavy is imported here. NumPy and the library load inside the command that needs them,
so that ``linrank --help`` answers at once and Ctrl-C is clean from the first millisecond.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from linrank.cli.ending import Ended, orderly_end
from linrank.durable import naming
from linrank.errors import ClusterError

__all__ = ["COMMANDS", "main"]

OK, FAILED, USAGE, NOT_CONVERGED, UNFIT = 0, 1, 2, 3, 4
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the number of the signal, as shells count

COMMANDS = {
    "train": "learn a ranker from a data file: text, Parquet, Arrow, CSV",
    "tune": "find the C that ranks unseen queries best, and learn with it",
    "predict": "score every row of a data file with a model",
    "evaluate": "measure a ranking: ndcg, map, pairwise accuracy, ...",
    "report": "write a page on what a model does on test queries, and where it fails",
    "compare": "train many methods, or take models, and show which ranks best",
    "convert": "write data as Parquet, Arrow, CSV, text, or a store to train from out of core",
    "export": "write a model for Elasticsearch, Solr, Vespa, ONNX, SQL and others",
    "inspect": "describe a data file or a model, and what looks wrong in it",
    "check": "compare data with what a model was trained on, before it scores them",
}

EPILOG = """\
commands:
{commands}

`linrank COMMAND --help` describes each. `-` as a file name is standard input or output.

exit status:
  0    done
  1    bad data, a bad file or a bad value; one line on standard error says which
  2    wrong usage of the command line
  3    train, tune, report: all was written, but the solver stopped before its tolerance
  4    check: the data do not fit the model
  130  interrupted (Ctrl-C); no half-written file is left behind
  143  told to end (SIGTERM), likewise; 129 for a terminal that was closed (SIGHUP)
  141  the reader of our output went away (linrank predict ... | head)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process when absent.
    """
    if argv is not None:
        return _guard(list(argv))
    # This process is ours and short-lived. Imports make 100,000 objects and no garbage: looking
    # for some every 700, and once more at exit, takes a tenth of the time of a small command.
    gc.set_threshold(50_000)
    try:
        return _guard(sys.argv[1:])
    finally:
        gc.freeze()


def _guard(arguments: list[str]) -> int:
    """Run the command; interrupts and closed pipes end it quietly."""
    try:
        return _dispatch(arguments)
    except SystemExit as stop:  # argparse: 0 after --help and --version, 2 after a wrong option
        return stop.code if isinstance(stop.code, int) else FAILED
    except Ended as stop:
        with suppress(OSError):  # the terminal may be gone
            print(f"\nlinrank: ended by {signal.Signals(stop.number).name}", file=sys.stderr)
        if stop.number != signal.SIGTERM:
            _forget_stdout()
        return 128 + stop.number
    except KeyboardInterrupt:
        print("\nlinrank: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        _top_parser().print_help()
        return OK
    if arguments[0] not in COMMANDS:
        _top_parser().parse_args(arguments)  # --help, --version, or the error about the command
        raise AssertionError("argparse accepts nothing but a known command")
    command = import_module(f"linrank.cli.{arguments[0]}")
    parser = argparse.ArgumentParser(
        prog=f"linrank {arguments[0]}",
        allow_abbrev=False,
        formatter_class=_Help,
    )
    command.configure(parser)
    args = parser.parse_args(arguments[1:])
    try:
        with orderly_end():
            status: int = command.run(args, parser)
        with naming("standard output"):
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        raise
    except (ValueError, OSError, OverflowError, MemoryError, ImportError, ClusterError) as error:
        return _report(error, verbose=getattr(args, "verbose", False))


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, up to 100 columns.

    argparse makes a formatter for every option it is told of; without a width that imports shutil,
    and with it the compression libraries.
    """

    def __init__(self, prog: str) -> None:
        try:
            columns = os.get_terminal_size(1).columns
        except OSError:  # standard output is no terminal
            columns = 80
        super().__init__(prog, width=max(40, min(columns, 100)))


def _top_parser() -> argparse.ArgumentParser:
    from linrank import __version__

    rows = "\n".join(f"  {name:<9} {what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="linrank",
        usage="linrank COMMAND [options]",
        description="Learning to rank from preferences: exact linear RankSVM on all pairs.",
        epilog=EPILOG.format(commands=rows),
        allow_abbrev=False,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"linrank {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _report(error: Exception, *, verbose: bool) -> int:
    """One line for a person; the traceback only for someone who asked for detail."""
    if verbose:
        import traceback

        traceback.print_exception(error)
    print(f"linrank: error: {_describe(error)}", file=sys.stderr)
    return FAILED


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory{': ' if str(error) else ''}{error}"
    return " ".join(str(error).split()) or type(error).__name__


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, or the interpreter complains about it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file (captured by a test) or already closed
        return
