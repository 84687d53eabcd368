"""Options of a grid of kernel models, and which others they exclude."""

from __future__ import annotations

import argparse
from typing import Any

from linrank.cli.arguments import fill_in, flag, given, grid, megabytes
from linrank.cli.kernel_options import NAMES, add_parameters, check_owned
from linrank.options import METHODS

# Options by the name of their value that only kernels have, and what they mean when not given;
# filled in late, so that one can tell.
_DEFAULTS: dict[str, Any] = {
    "gammas": "auto",
    "degree": 3,
    "coef0": 0.0,
    "memory_limit": None,
}
# Those that they share with other methods.
_SHARED = {"Cs": "auto", "seed": 0}
# Those that they cannot have: of linear solvers, of stochastic descent, of the domination loss.
_REFUSED = (
    *("solver", "counting", "positive", "bounds"),
    *("alphas", "algorithms", "n_steps", "sampling", "average", "aggressiveness"),
    *("penalty", "n_alphas", "eps", "max_features", "layers", "margin", "pooled"),
    *("negative_sampling", "order"),
)


def add_kernel_grid(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("kernels (--kernel)")
    group.add_argument(
        "--kernel",
        choices=NAMES,
        help="search a kernel's C and γ in place of a linear model's C: exp(-γ‖a-b‖²), "
        "(γ a·b + c)^d, tanh(γ a·b + c), or a·b",
    )
    group.add_argument(
        "--gammas",
        type=grid,
        metavar="GRID",
        help="γ, as --Cs (default: 1/64 to 64 times 1/(features·variance), each four times the "
        "one before; and --Cs 2^-15:2^9:4)",
    )
    add_parameters(group)
    group.add_argument(
        "--memory-limit",
        type=megabytes,
        metavar="MB",
        help="for kernel matrices, those of folds side by side included, in 10⁶ bytes; what does "
        "not fit is computed again (default: half of what is free)",
    )


def check_kernel_grid(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go with ``--kernel``; fill in those that were not given."""
    if args.kernel is None:
        for name in given(args, tuple(_DEFAULTS)):
            also = "; to search on a store within a limit, use linrank.RankSVMCV in Python"
            parser.error(f"{flag(name)} needs --kernel{also if name == 'memory_limit' else ''}")
        return
    if args.method != METHODS[0]:
        parser.error(f"--kernel and --method {args.method} exclude each other")
    for name in given(args, _REFUSED):
        parser.error(f"{flag(name)} and --kernel exclude each other")
    check_owned(args, parser)
    fill_in(args, _DEFAULTS | _SHARED)
