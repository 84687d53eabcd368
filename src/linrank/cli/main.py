"""The command ``linrank``: find the command, run it, turn what went wrong into an exit status.

Nothing is imported here that Python has not loaded already: all else loads inside ``main``, NumPy
and the library inside the command that needs them. So ``linrank --help`` answers at once, and
Ctrl-C is clean from our first line on.
"""

from __future__ import annotations

import sys
from importlib import import_module

from linrank.errors import LinrankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from linrank.cli.options import Parser

OK, FAILED, USAGE, NOT_CONVERGED, UNFIT = 0, 1, 2, 3, 4
BROKEN_PIPE = 141  # as if ended by that signal

COMMANDS = {
    "sample": "write a small set of judged queries, to try the other commands on",
    "train": "learn a ranker from a data file: text, Parquet, Arrow, CSV",
    "tune": "find the C that ranks unseen queries best, and learn with it",
    "clicks": "learn a ranker from a click log, by the names of queries and documents",
    "predict": "score every row of a data file with a model",
    "evaluate": "measure a ranking: ndcg, map, pairwise accuracy, ...",
    "report": "write a page on what a model does on test queries, and where it fails",
    "compare": "train many methods, or take models, and show which ranks best",
    "convert": "write data as Parquet, Arrow, CSV, text, or a store to train from out of core",
    "export": "write a model for Elasticsearch, Solr, Vespa, ONNX, SQL and others",
    "inspect": "describe a data file or a model, and what looks wrong in it",
    "check": "compare data with what a model was trained on, before it scores them",
}
OF_METHODS = ("train", "tune")  # whose options depend on --method


class UsageError(Exception):
    """The command line is wrong: the message names the option and the remedy."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process when absent.
    """
    try:
        from linrank.cli.console import own_process, steady_errors

        with own_process() if argv is None else steady_errors():
            return _guard(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt as stop:  # before the first line of a command, or a second time
        return _status(stop)


def _guard(arguments: list[str]) -> int:
    """Run the command: faults are one line, interrupts and closed pipes end it quietly."""
    from linrank.cli.console import flush_standard, orderly_end

    try:
        with orderly_end():
            status = _run(arguments or ["--help"])
        flush_standard()
        return status
    except BrokenPipeError:
        return BROKEN_PIPE
    except KeyboardInterrupt as stop:
        print(f"\nlinrank: {str(stop) or 'interrupted'}", file=sys.stderr)
        return _status(stop)
    except (ValueError, OSError, OverflowError, MemoryError, ImportError, LinrankError) as error:
        if not {"-v", "--verbose"}.isdisjoint(arguments):
            import traceback

            traceback.print_exception(error)
        print(f"linrank: error: {_describe(error)}", file=sys.stderr)
        return FAILED


def _status(stop: KeyboardInterrupt) -> int:
    """128 + the number of the signal, as shells count; others than Ctrl-C are an `Ended`."""
    return 128 + int(getattr(stop, "number", 2))


def _run(arguments: list[str]) -> int:
    from linrank.cli.console import Console, Result, print_result

    name = arguments[0]
    try:
        if name in ("-h", "--help", "--version"):
            _print_help(name)
            return OK
        command, parser = _command(arguments)
        args = parser.parse_args(arguments[1:])
        parser.check_rules(args)
        result: Result = command.run(args, Console(quiet=args.quiet, verbose=args.verbose))
        print_result(name, result, as_json=getattr(args, "json", False))
        return result.status
    except UsageError as error:
        prog = f"linrank {name}" if name in COMMANDS else "linrank"
        print(f"{prog}: error: {error}", file=sys.stderr)
        return USAGE
    except SystemExit as stop:  # argparse: 0 after --help, 2 after a wrong option
        return stop.code if isinstance(stop.code, int) else FAILED


def _print_help(option: str) -> None:
    from linrank import __version__, cli

    if option == "--version":
        print(f"linrank {__version__}")
    else:  # the docstring of the package
        commands = "\n".join(f"  {name:<9} {what}" for name, what in COMMANDS.items())
        print((cli.__doc__ or "").format(commands=commands), end="")


def _command(arguments: list[str]) -> tuple[Any, Parser]:
    """The module of the command that was named, and the parser of its options."""
    if arguments[0] not in COMMANDS:
        from linrank.errors import nearest

        kind = "option" if arguments[0].startswith("-") else "command"
        near = nearest(arguments[0], ("--help", "--version") if kind == "option" else COMMANDS)
        hint = f"did you mean {near}?" if near else "linrank --help lists the commands"
        raise UsageError(f"unknown {kind} {arguments[0]}; {hint}")
    command = import_module(f"linrank.cli.{arguments[0]}")
    from linrank.cli.options import Parser

    # The docstring of a command is the head of its help.
    usage, _, description = (command.__doc__ or "").strip().partition("\n\n")
    head = {"usage": usage, "description": description, "rules": getattr(command, "RULES", "")}
    parser = Parser(prog=f"linrank {arguments[0]}", **head)
    of_method = [arguments[1:]] if arguments[0] in OF_METHODS else []
    command.configure(parser, *of_method)
    return command, parser


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory{': ' if str(error) else ''}{error}"
    return " ".join(str(error).split()) or type(error).__name__
