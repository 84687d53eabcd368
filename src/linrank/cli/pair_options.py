"""Options that choose which pairs are compared, and what they go with."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.options import SELECTED_PAIRS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linrank.cli.console import Console

AUTO = "auto"


def add_sizes(group: argparse._ArgumentGroup) -> None:
    """Declare how many pairs are chosen; the ``--seed`` is that of other random numbers."""
    group.add_argument(
        "--n-closest",
        type=_size,
        metavar="N|auto",
        help="--pairs closest and pruned: pairs in order of closeness of their labels, the last "
        "cut by --seed (default: auto, all pairs of neighbouring labels)",
    )
    group.add_argument(
        "--n-random",
        type=_size,
        metavar="N|auto",
        help="--pairs pruned: pairs drawn from the others by --seed (default: auto, as many as "
        "the closest)",
    )


def check_sizes(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on sizes that ``--pairs`` does not take; fill in those not given."""
    if args.n_closest is not None and args.pairs not in SELECTED_PAIRS:
        parser.error("--n-closest needs --pairs closest or pruned")
    if args.n_random is not None and args.pairs != "pruned":
        parser.error("--n-random needs --pairs pruned")
    for name in ("n_closest", "n_random"):
        if getattr(args, name) is None:
            setattr(args, name, AUTO)
    if args.pairs in SELECTED_PAIRS and args.seed is None:
        args.seed = 0


def seed_of_pairs(args: argparse.Namespace) -> dict[str, int]:
    """The seed as an option of training, where pairs may be drawn by it."""
    return {"seed": args.seed} if args.pairs in SELECTED_PAIRS else {}


def say_pairs(training: Mapping[str, Any], console: Console) -> None:
    """How many pairs were chosen, on standard error; ``training`` is what the model knows."""
    if training.get("pairs") not in SELECTED_PAIRS or training.get("n_closest") is None:
        return
    told = f"{training['n_closest']:,} closest"
    if training["pairs"] == "pruned":
        told += f" and {training['n_random']:,} random"
    console.say("pairs", f"{told} of the labels, seed {training['seed']}")


def _size(text: str) -> int | str:
    """An integer ≥ 1, or ``auto``."""
    if text == AUTO:
        return AUTO
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be an integer ≥ 1 or auto, got {text!r}")
    return value
