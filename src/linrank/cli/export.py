"""linrank export MODEL --to TARGET [-o PATH] [options]

Write a linear model as a search engine, a database or another program takes it. Scaling is folded
into the weights, which apply to raw values; the order of any rows is that of the model. Where an
engine cannot express that, a warning says so. Where to put the result, and the request that uses
it, goes to standard error, and beside the result when that is a file.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentTypeError, Namespace
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, Result, write_standard
from linrank.cli.files import check_apart, read_model
from linrank.cli.main import UsageError
from linrank.cli.options import STANDARD, Parser, add_reporting, declare
from linrank.errors import ExportWarning
from linrank.export.targets import ALIASES, TARGETS, options_of, target_name
from linrank.io.blocks import StandardOutput

if TYPE_CHECKING:
    from linrank.export.artefact import Artefact

OPTIONS = """
  --to TARGET:target=  see below
  MODEL               a model of linrank; - for stdin
  -o, --output PATH:str=-  file to write, others of the result beside it; or a folder for all: one
                      that is there, PATH/, or for several files a name without extension (default:
                      -, stdout)
  --name NAME:str=linrank  what the model is called there (default: linrank)
  --feature-map FILE  names of features in the engine: a JSON object, or lines of two columns, the
                      name or number in the model first
  --option* KEY=VALUE:option  an option of the target; repeat for several
"""


def configure(parser: Parser) -> None:
    """Declare the options."""
    width = max(map(len, TARGETS))
    short = ", ".join(f"{alias} is {name}" for alias, name in ALIASES.items())
    targets = "\n".join(f"  {name:<{width}}  {target.summary}" for name, target in TARGETS.items())
    parser.epilog = f"targets ({short}):\n{targets}"
    declare(parser, OPTIONS, target=_target, option=_option)
    add_reporting(parser)


def run(args: Namespace, console: Console) -> Result:
    """Export, write, and say what to do with it."""
    given = _options_of_target(args)
    model = read_model(args.model)
    if hasattr(model, "kernel"):
        raise ValueError(
            f"{args.model}: a model with the kernel {model.kernel.name!r} is no sum over features "
            "and cannot be exported; train a linear one"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # they are in the artifact
        artifact = model.export(args.to, name=args.name, feature_map=args.feature_map, **given)
    for text in artifact.warnings:
        console.warn(text)
    report: dict[str, Any] = {
        "target": artifact.target,
        "files": list(artifact.files),
        "written": [],
        "instructions": artifact.instructions,
        "warnings": list(artifact.warnings),
    }
    how = artifact.instructions
    if args.output == STANDARD:
        report["contents"] = _write_standard(artifact, args.json)
    else:
        for path in artifact.paths(args.output):
            check_apart(path, [args.model, args.feature_map])
        report["written"], how = artifact.save(args.output), artifact.instructions_for(args.output)
    for path in report["written"]:
        console.say("wrote", path)
    if not args.quiet:
        print(f"\n{how}", end="", file=sys.stderr)
    return Result(report)


def _target(text: str) -> str:
    try:
        return target_name(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _option(text: str) -> list[tuple[str, Any]]:
    key, found, value = text.partition("=")
    if not found or not key:
        raise ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    return [(key.replace("-", "_"), {"true": True, "false": False}.get(value, value))]


def _options_of_target(args: Namespace) -> dict[str, Any]:
    """What ``--option`` gave, if the target has it."""
    known, given = options_of(args.to), {}
    for key, value in args.option or ():
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"the target {args.to} has no option {key!r}; {has}")
        if key in given:
            raise UsageError(f"--option {key} is given twice")
        given[key] = value
    return given


def _write_standard(artifact: Artefact, as_json: bool) -> dict[str, str]:
    """Write the only file to standard output; of a report it is a part. The texts of all."""
    texts: dict[str, str] = {}
    with suppress(UnicodeDecodeError):
        texts = {name: content.decode() for name, content in artifact.files.items()}
    if not texts and (as_json or not hasattr(sys.stdout, "buffer") or sys.stdout.isatty()):
        raise ValueError(f"a model for {artifact.target} is no text; name a file with -o")
    if len(artifact.files) > 1 and not as_json:
        raise ValueError(
            f"the artifact has {len(artifact.files)} files ({', '.join(artifact.files)}), which "
            "standard output cannot take; name a file or a folder with -o"
        )
    if not texts:
        StandardOutput().write(artifact.content)
    elif not as_json:
        write_standard(artifact.text)
    return texts
