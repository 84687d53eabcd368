"""Options of training with a kernel, and which others they exclude."""

from __future__ import annotations

import argparse
from typing import Any

from linrank.cli.arguments import fill_in, finite, flag, given, positive_int
from linrank.cli.pair_options import check_sizes
from linrank.options import (
    APPROXIMATIONS,
    KERNEL_PARAMETERS,
    KERNELS,
    LOSSES,
    METHODS,
    PAIR_WEIGHTINGS,
    PAIRS,
)

# Those that a file can give; a kernel that is precomputed, or a function, is for Python.
NAMES = tuple(name for name in KERNELS if name != "precomputed")
# Options by the name of their value that need a kernel, and what they mean when not given; filled
# in late, so that one can tell.
_DEFAULTS: dict[str, Any] = {"degree": 3, "coef0": 0.0, "approximation": None}
# Those that it shares with other ways of training.
_SHARED: dict[str, Any] = {
    "C": 1.0,
    "loss": LOSSES[0],
    "pairs": PAIRS[0],
    "pair_weighting": PAIR_WEIGHTINGS[0],
    "gamma": "scale",
    "seed": 0,
}
# Those that it cannot have: of linear models, of other methods, of stochastic descent.
_REFUSED = (
    *("missing", "solver", "counting", "positive", "bounds", "constraint", "lam"),
    *("penalty", "layers", "margin", "pooled", "feature_induction", "negative_sampling", "order"),
    *("alpha", "algorithm", "n_steps", "sampling", "average", "aggressiveness", "record"),
    *("stream", "passes", "memory", "steps_per_row", "checkpoint", "checkpoint_every"),
    *("dask", "resume", "patience"),
)
# Options that are parameters of a kernel, and their names; of γ a command takes one or a grid.
_OF_KERNELS = {"gamma": "gamma", "gammas": "gamma", "degree": "degree", "coef0": "coef0"}


def add_kernel(parser: argparse.ArgumentParser) -> None:
    """Declare the options; --gamma, --n-components and --memory-limit are declared elsewhere."""
    group = parser.add_argument_group("kernels (--kernel NAME)")
    group.add_argument(
        "--kernel",
        choices=NAMES,
        help="score rows by Σ β_i k(x_i, x): exp(-γ‖a - b‖²), (γ a·b + c)^d, tanh(γ a·b + c) or "
        "a·b (default: none, a linear model); γ by --gamma",
    )
    add_parameters(group)
    group.add_argument(
        "--approximation",
        choices=tuple(name for name in APPROXIMATIONS if name is not None),
        help="a sum over --n-components rows, or of as many random cosines (rbf), in place of one "
        "over all rows (default: none, exact)",
    )


def add_parameters(group: argparse._ArgumentGroup) -> None:
    """Declare those of a kernel beside γ, of which a command takes one or a grid."""
    group.add_argument("--degree", type=positive_int, metavar="D", help="d of poly (default: 3)")
    group.add_argument(
        "--coef0", type=finite, metavar="C", help="c of poly and sigmoid (default: 0)"
    )


def check_kernel(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go with ``--kernel``; fill in those that were not given."""
    if args.kernel is None:
        for name in given(args, tuple(_DEFAULTS)):
            parser.error(f"{flag(name)} needs --kernel")
        return
    if args.method != METHODS[0]:
        parser.error(f"--kernel and --method {args.method} exclude each other")
    for name in given(args, _REFUSED):
        parser.error(f"{flag(name)} and --kernel exclude each other")
    _check_parameters(args, parser)
    fill_in(args, _DEFAULTS | _SHARED)
    check_sizes(args, parser)


def _check_parameters(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Those of the kernel, and of its approximation."""
    check_owned(args, parser)
    if args.gamma is not None and not isinstance(args.gamma, str) and args.gamma <= 0.0:
        parser.error(f"--gamma of a kernel must be > 0, got {args.gamma:g}")
    if args.n_components is not None and args.approximation is None:
        parser.error("--n-components is the size of an --approximation, and there is none")
    if args.approximation == "fourier" and args.kernel != "rbf":
        parser.error(f"--approximation fourier needs --kernel rbf, not {args.kernel}")


def check_owned(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on parameters that the kernel has not."""
    for name in given(args, tuple(_OF_KERNELS)):
        having = [one for one in NAMES if _OF_KERNELS[name] in KERNEL_PARAMETERS[one]]
        if args.kernel not in having:
            others = " and ".join(having)
            parser.error(f"{flag(name)} is a parameter of --kernel {others}, not of {args.kernel}")
