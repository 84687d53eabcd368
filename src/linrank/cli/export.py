"""``linrank export``: a linear model as a search engine or another program takes it."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console
from linrank.cli.main import OK
from linrank.cli.options import add_reporting, declare
from linrank.cli.streams import STANDARD, check_apart, json_report, read_model, write_standard
from linrank.errors import ExportWarning
from linrank.export.targets import ALIASES, TARGETS, options_of, target_name
from linrank.io.blocks import StandardOutput

if TYPE_CHECKING:
    from linrank.export.artefact import Artefact

OPTIONS = """
  MODEL               a model of linrank; - for stdin
  -o, --output PATH   file to write, others of the result beside it; or a folder for all: one that
                      is there, PATH/, or for several files a name without extension (default: -,
                      stdout)
  --name NAME:str=linrank  what the model is called there (default: linrank)
  --feature-map FILE  names of features in the engine: a JSON object, or lines of two columns, the
                      name or number in the model first
"""
DESCRIPTION = """\
Write a linear model as a search engine, a database or another program takes it. Scaling is folded
into the weights, which apply to raw values; the order of any rows is that of the model. Where an
engine cannot express that, a warning says so. Where to put the result, and the request that uses
it, goes to standard error, and beside the result when that is a file.
"""


def configure(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.usage = "linrank export MODEL --to TARGET [-o PATH] [options]"
    parser.description = DESCRIPTION
    width = max(map(len, TARGETS))
    short = ", ".join(f"{alias} is {name}" for alias, name in ALIASES.items())
    targets = "\n".join(f"  {name:<{width}}  {target.summary}" for name, target in TARGETS.items())
    parser.epilog = f"targets ({short}):\n{targets}"
    parser.add_argument("--to", required=True, type=_target, metavar="TARGET", help="see below")
    declare(parser, OPTIONS)
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="KEY=VALUE",
        help="an option of the target; repeat for several",
    )
    add_reporting(parser)


def run(args: Namespace, parser: ArgumentParser) -> int:
    """Export, write, and say what to do with it."""
    console = Console(quiet=args.quiet, verbose=args.verbose)
    _check_options(args, parser)
    args.output = args.output or STANDARD
    model = read_model(args.model)
    if hasattr(model, "kernel"):
        raise ValueError(
            f"{args.model}: a model with the kernel {model.kernel.name!r} is no sum over features "
            "and cannot be exported; train a linear one"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # they are in the artefact
        artefact = model.export(
            args.to,
            name=args.name,
            feature_map=args.feature_map,
            **dict(args.option),
        )
    for path in artefact.paths(args.output) if args.output != STANDARD else ():
        check_apart(path, args.model, args.feature_map)
    for text in artefact.warnings:
        console.warn(text)
    written = _write(artefact, args)
    for path in written:
        console.say("wrote", path)
    if not args.quiet:
        told = artefact.instructions_for(args.output) if written else artefact.instructions
        print(f"\n{told}", end="", file=sys.stderr)
    if args.json:
        _write_json(artefact, written)
    return OK


def _target(text: str) -> str:
    try:
        return target_name(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _option(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not found or not key:
        raise ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    return key.replace("-", "_"), {"true": True, "false": False}.get(value, value)


def _check_options(args: Namespace, parser: ArgumentParser) -> None:
    known, seen = options_of(args.to), set()
    for key, _ in args.option:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            parser.error(f"the target {args.to} has no option {key!r}; {has}")
        if key in seen:
            parser.error(f"--option {key} is given twice")
        seen.add(key)


def _write(artefact: Artefact, args: Namespace) -> list[str]:
    """Write files, or the only one to standard output; the paths that were written."""
    if args.output != STANDARD:
        return artefact.save(args.output)
    if args.json:
        return []
    if len(artefact.files) > 1:
        raise ValueError(
            f"the artefact has {len(artefact.files)} files ({', '.join(artefact.files)}), which "
            "standard output cannot take; name a file or a folder with -o"
        )
    if _is_text(artefact.content):
        write_standard(artefact.text)
        return []
    if not hasattr(sys.stdout, "buffer") or sys.stdout.isatty():
        raise ValueError(f"a model for {artefact.target} is no text; name a file with -o")
    StandardOutput().write(artefact.content)
    return []


def _write_json(artefact: Artefact, written: list[str]) -> None:
    if not written and not all(map(_is_text, artefact.files.values())):
        raise ValueError(f"a model for {artefact.target} is no text; name a file with -o")
    report: dict[str, Any] = {
        "target": artefact.target,
        "files": list(artefact.files),
        "written": written,
        "instructions": artefact.instructions,
        "warnings": list(artefact.warnings),
    }
    if not written:
        report["contents"] = {name: data.decode() for name, data in artefact.files.items()}
    write_standard(json_report("export", report))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
