"""Options of training on duals of low rank, and which others they exclude."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

from linrank.cli.arguments import fill_in, flag, given, megabytes, positive_float, positive_int
from linrank.options import CONSTRAINTS, LOW_RANK

FACTORIZED, REGULARIZED = LOW_RANK

# Options by the name of their value that only one of the methods has, and what they mean when not
# given; filled in late, so that one can tell.
_DEFAULTS: dict[str, dict[str, Any]] = {
    FACTORIZED: {"n_components": 5, "constraint": CONSTRAINTS[0]},
    REGULARIZED: {"gamma": 10.0, "lam": 0.1, "memory_limit": None},
}
# Those that kernels have too, where they mean something else.
_KERNELS = {
    "n_components": "--kernel with --approximation",
    "gamma": "--kernel",
    "memory_limit": "--kernel, or a store (a folder that linrank convert wrote) as DATA",
}
# Those that they share with other methods; nothing is random in the regularised one.
_SHARED: dict[str, dict[str, Any]] = {FACTORIZED: {"C": 1.0, "seed": 0}, REGULARIZED: {"C": 1.0}}
# Those that they cannot have: of the exact solvers, of the domination loss, of stochastic descent.
_REFUSED = (
    *("kernel", "degree", "coef0", "approximation"),
    *("solver", "loss", "pairs", "n_closest", "n_random", "pair_weighting", "counting"),
    *("positive", "bounds"),
    *("preferences", "no_labels", "across_queries"),
    *("penalty", "layers", "margin", "pooled", "feature_induction", "negative_sampling", "order"),
    *("alpha", "algorithm", "n_steps", "sampling", "average", "aggressiveness", "record"),
    *("stream", "passes", "memory", "steps_per_row", "checkpoint", "checkpoint_every"),
    *("dask", "resume", "patience"),
)


def add_lowrank(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group(f"duals of low rank (--method {FACTORIZED}, {REGULARIZED})")
    group.add_argument(
        "--n-components",
        type=positive_int,
        metavar="K",
        help=f"{FACTORIZED}: numbers of each row that make up its duals (default: 5); "
        "--approximation: its size",
    )
    group.add_argument(
        "--constraint",
        choices=CONSTRAINTS,
        help=f"{FACTORIZED}: what bounds them, each by itself or their norm (default: box)",
    )
    group.add_argument(
        "--gamma",
        type=_weight_or_width,
        metavar="G",
        help=f"{REGULARIZED}: weight of the nuclear norm, 0 for none (default: 10); --kernel: γ, "
        "or scale or auto, 1/(features·variance) or 1/features (default: scale)",
    )
    group.add_argument(
        "--lam",
        type=positive_float,
        metavar="L",
        help=f"{REGULARIZED}: what ties the duals to the matrix of low rank (default: 0.1)",
    )
    group.add_argument(
        "--memory-limit",
        type=megabytes,
        metavar="MB",
        help=f"{REGULARIZED}: refuse to take more for its duals, at least 32 bytes a pair, in 10⁶ "
        "bytes (default: what is free); --kernel: keep its matrix in memory up to that (half); "
        "DATA a store: read it piece by piece, and keep the process within that",
    )


def check_lowrank(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go with ``--method``; fill in those that were not given."""
    for method in LOW_RANK:
        for name in given(args, (*_DEFAULTS[method],)) if args.method != method else ():
            if name == "memory_limit" and os.path.isdir(args.data):
                continue  # a store is read within it
            also = f", or {_KERNELS[name]}" if name in _KERNELS else ""
            parser.error(f"{flag(name)} needs --method {method}{also}")
    if args.method not in LOW_RANK:
        return
    if args.method == FACTORIZED and args.memory_limit is not None:
        parser.error(
            f"--memory-limit and --method {FACTORIZED} exclude each other: it takes a store as a "
            "whole, and some 200 bytes a row beside"
        )
    for name in given(args, _REFUSED if "seed" in _SHARED[args.method] else (*_REFUSED, "seed")):
        parser.error(f"{flag(name)} and --method {args.method} exclude each other")
    if isinstance(args.gamma, str):
        parser.error(f"--gamma {args.gamma} is for --kernel; {REGULARIZED} takes a number ≥ 0")
    fill_in(args, _DEFAULTS[args.method] | _SHARED[args.method])


def refuse_lowrank(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail where there is no grid for them."""
    if args.method in LOW_RANK:
        face = {FACTORIZED: "FactorizedRankSVM", REGULARIZED: "RegularizedRankSVM"}[args.method]
        parser.error(
            f"--method {args.method} is for train; to search its parameters, use scikit-learn's "
            f"GridSearchCV over linrank.{face} with cv=linrank.QueryKFold() in Python"
        )


def weight(text: str) -> float:
    """A finite number ≥ 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value >= 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be a finite number ≥ 0, got {text!r}")
    return value


def _weight_or_width(text: str) -> float | str:
    """The γ of a penalty, or that of a kernel, which may be a word."""
    if text in ("scale", "auto"):
        return text
    try:
        return weight(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; of a kernel also scale or auto") from None
