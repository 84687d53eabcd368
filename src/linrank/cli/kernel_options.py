"""Options of training with a kernel, and which others they exclude."""

from __future__ import annotations

import argparse
import math
from typing import Any

from linrank.cli.arguments import fill_in, positive_int
from linrank.cli.pair_options import check_sizes
from linrank.options import APPROXIMATIONS, KERNELS, LOSSES, METHODS, PAIR_WEIGHTINGS, PAIRS

__all__ = ["add_kernel", "check_kernel"]

# Those that a file can give; a kernel that is precomputed, or a function, is for Python.
_NAMES = tuple(name for name in KERNELS if name != "precomputed")
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
    *("solver", "counting", "positive", "bounds", "constraint", "lam"),
    *("penalty", "layers", "margin", "pooled", "feature_induction", "negative_sampling", "order"),
    *("alpha", "algorithm", "n_steps", "sampling", "average", "aggressiveness", "record"),
    *("stream", "passes", "memory", "steps_per_row", "checkpoint", "checkpoint_every"),
)
# Parameters of a kernel, and the kernels that have them.
_OF_KERNELS = {"gamma": ("rbf", "poly", "sigmoid"), "degree": ("poly",), "coef0": _NAMES[1:3]}


def add_kernel(parser: argparse.ArgumentParser) -> None:
    """Declare the options; --gamma, --n-components and --memory-limit are declared elsewhere."""
    group = parser.add_argument_group("kernels (--kernel NAME)")
    group.add_argument(
        "--kernel",
        choices=_NAMES,
        help="score rows by Σ β_i k(x_i, x): exp(-γ‖a - b‖²), (γ a·b + c)^d, tanh(γ a·b + c) or "
        "a·b (default: none, a linear model); γ by --gamma",
    )
    group.add_argument("--degree", type=positive_int, metavar="D", help="d of poly (default: 3)")
    group.add_argument(
        "--coef0", type=_finite, metavar="C", help="c of poly and sigmoid (default: 0)"
    )
    group.add_argument(
        "--approximation",
        choices=tuple(name for name in APPROXIMATIONS if name is not None),
        help="a sum over --n-components rows, or of as many random cosines (rbf), in place of one "
        "over all rows (default: none, exact)",
    )


def check_kernel(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go with ``--kernel``; fill in those that were not given."""
    if args.kernel is None:
        for name in _given(args, tuple(_DEFAULTS)):
            parser.error(f"{_flag(name)} needs --kernel")
        return
    if args.method != METHODS[0]:
        parser.error(f"--kernel and --method {args.method} exclude each other")
    for name in _given(args, _REFUSED):
        parser.error(f"{_flag(name)} and --kernel exclude each other")
    _check_parameters(args, parser)
    fill_in(args, _DEFAULTS | _SHARED)
    check_sizes(args, parser)
    if args.memory_limit is not None:
        args.memory_limit *= 1_000_000


def _check_parameters(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Those of the kernel, and of its approximation."""
    for name in _given(args, tuple(_OF_KERNELS)):
        if args.kernel not in _OF_KERNELS[name]:
            having = " and ".join(_OF_KERNELS[name])
            parser.error(f"{_flag(name)} is a parameter of --kernel {having}, not of {args.kernel}")
    if args.gamma is not None and not isinstance(args.gamma, str) and args.gamma <= 0.0:
        parser.error(f"--gamma of a kernel must be > 0, got {args.gamma:g}")
    if args.n_components is not None and args.approximation is None:
        parser.error("--n-components is the size of an --approximation, and there is none")
    if args.approximation == "fourier" and args.kernel != "rbf":
        parser.error(f"--approximation fourier needs --kernel rbf, not {args.kernel}")


def _finite(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def _given(args: argparse.Namespace, names: tuple[str, ...]) -> list[str]:
    """The options that were on the command line; a command may lack some."""
    values = {name: getattr(args, name, None) for name in names}
    # By identity: a c of 0 was given, and equals False.
    return [name for name, value in values.items() if value is not None and value is not False]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
