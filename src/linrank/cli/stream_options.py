"""Options of training on a stream, and which others they exclude."""

from __future__ import annotations

import argparse
import os
from typing import Any

from linrank.cli.arguments import fill_in, natural, positive_float, positive_int
from linrank.cli.stream_memory import LEAST_MEMORY
from linrank.cli.streams import STANDARD
from linrank.options import STOCHASTIC, STREAM_SAMPLINGS

# Options by the name of their value that need --stream, and what they mean when not given.
_DEFAULTS: dict[str, Any] = {
    "passes": 1,
    "memory": 200,
    "steps_per_row": 4.0,
    "checkpoint": None,
    "checkpoint_every": 60,
}
# Options of descent in memory that a stream cannot have, with the reason.
_REFUSED = {
    "C": "-c: λ = 1/(C·pairs), and nobody knows the pairs of a stream; give --alpha",
    "n_steps": "--n-steps: a stream ends with its data; give --steps-per-row",
    "record": "--record: the objective is over all pairs, which a stream does not have",
    "tol": "-e: see --record",
    "missing": "--missing: it is learnt from all rows; a stream is text, which has none missing",
}


def add_streaming(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group(f"streams (--solver {STOCHASTIC} --stream)")
    group.add_argument(
        "--stream", action="store_true", help="read DATA batch by batch and never hold all of it"
    )
    group.add_argument(
        "--passes",
        type=positive_int,
        metavar="N",
        help="read the file N times (default: 1); of a store with --memory-limit, its chunks "
        "(default: once for each quarter of a step a row)",
    )
    group.add_argument(
        "--memory",
        type=positive_int,
        metavar="MB",
        help="memory of the whole process, in 10⁶ bytes (default: 200)",
    )
    group.add_argument(
        "--steps-per-row", type=positive_float, metavar="R", help="pairs drawn a row (default: 4)"
    )
    group.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="save the state there; if FILE exists, go on from it with the same result (with "
        "--dask: the weights of each iteration, see --resume)",
    )
    group.add_argument(
        "--checkpoint-every",
        type=natural,
        metavar="SECONDS",
        help="how often (default: 60; 0: behind every batch)",
    )


def check_text(path: str) -> None:
    """Fail on a table, which is no stream of lines; a pipe cannot be looked at beforehand."""
    if not os.path.isfile(path):
        return
    from linrank.io.tables.formats import format_of, open_source

    _, name, head = open_source(path)
    found = format_of(name, head, None)
    if found != "svmlight":
        raise ValueError(f"{path}: is {found}, and --stream reads SVMlight text; leave it out")


def check_streaming(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go together; before the defaults of descent are filled in."""
    given = [name for name in _DEFAULTS if getattr(args, name) is not None]
    if not args.stream:
        for name in given:
            if name == "checkpoint" and args.dask is not None:
                continue  # of the weights of each iteration on a cluster
            if name != "passes":
                also = ", or --dask and a store" if name == "checkpoint" else ""
                parser.error(f"--{name.replace('_', '-')} needs --stream{also}")
            elif args.solver != STOCHASTIC or args.memory_limit is None:
                parser.error("--passes needs --stream, or --memory-limit and a store")
        return
    if args.memory_limit is not None:
        parser.error("--memory-limit is for a store, --memory MB for --stream")
    if os.path.isdir(args.data):
        parser.error(
            f"--stream reads text, and {args.data} is a folder; give --memory-limit SIZE in its "
            "place to go through a store within that"
        )
    if args.solver != STOCHASTIC:
        parser.error(f"--stream needs --solver {STOCHASTIC}, not --solver {args.solver}")
    for name, why in _REFUSED.items():
        if getattr(args, name) is not None:
            parser.error(f"--stream excludes {why}")
    if args.scale != "none":
        parser.error(
            f"--stream excludes --scale {args.scale}: the scale is known at the end of the data; "
            "scale the features where they are made"
        )
    if args.dtype not in (None, "float32"):
        parser.error(f"--stream keeps rows as float32, not as {args.dtype}")
    if args.algorithm == "hybrid":
        parser.error(
            "--stream excludes --algorithm hybrid: when to switch depends on all steps; give "
            "pegasos or pa"
        )
    if args.sampling not in (None, *STREAM_SAMPLINGS):
        parser.error(
            f"--stream excludes --sampling {args.sampling}, which needs all data in memory; give "
            f"one of {', '.join(STREAM_SAMPLINGS)}"
        )
    fill_in(args, _DEFAULTS)
    if args.checkpoint_every != _DEFAULTS["checkpoint_every"] and args.checkpoint is None:
        parser.error("--checkpoint-every needs --checkpoint FILE")
    if args.passes > 1 and args.data == STANDARD:
        parser.error("--passes needs a file; standard input is gone once it is read")
    if args.checkpoint == STANDARD:
        parser.error("--checkpoint needs a file, not a standard stream (-)")
    if args.memory < LEAST_MEMORY:
        parser.error(f"--memory must be at least {LEAST_MEMORY} (MB), got {args.memory}")
