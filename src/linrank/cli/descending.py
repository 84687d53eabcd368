"""Options of stochastic descent, and which of them go with which solver."""

from __future__ import annotations

import argparse

from linrank.cli.arguments import natural, positive_float, positive_int
from linrank.options import ALGORITHMS, AVERAGES, SAMPLINGS, STOCHASTIC

__all__ = ["add_descent", "check_descent"]

# Options by the name of their value: those that only the exact solvers have, and only sgd.
_EXACT = {
    "loss": "--loss",
    "pairs": "--pairs",
    "pair_weighting": "--pair-weighting",
    "counting": "--counting",
    "max_iter": "--max-iter",
    "query_normalization": "--query-normalization",
    "positive": "--positive",
    "bounds": "--bounds",
    "preferences": "--preferences",
    "no_labels": "--no-labels",
    "across_queries": "--across-queries",
}
_DESCENT = {
    "algorithm": "--algorithm",
    "alpha": "--alpha",
    "n_steps": "--n-steps",
    "sampling": "--sampling",
    "average": "--average",
    "aggressiveness": "--aggressiveness",
    "record": "--record",
    "seed": "--seed",
}
# What they mean when they are not given; filled in late, so that one can tell.
_DEFAULTS = {
    "algorithm": ALGORITHMS[0],
    "sampling": SAMPLINGS[0],
    "n_steps": 100_000,
    "aggressiveness": 1.0,
    "seed": 0,
}
_AGGRESSIVE = ("pa", "hybrid")  # algorithms that take --aggressiveness


def add_descent(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group(f"stochastic descent (--solver {STOCHASTIC})")
    group.add_argument(
        "--algorithm",
        choices=ALGORITHMS,
        help=f"how a pair changes the weights (default: {ALGORITHMS[0]})",
    )
    group.add_argument(
        "--alpha",
        type=positive_float,
        metavar="L",
        help="λ of λ/2 ‖w‖² + mean loss of a pair (default: 1e-4); or give -c C, λ = 1/(C·pairs)",
    )
    group.add_argument(
        "--n-steps", type=_steps, metavar="N", help="pairs to draw, as in 1e6 (default: 100,000)"
    )
    group.add_argument(
        "--sampling",
        choices=SAMPLINGS,
        help=f"how pairs are drawn (default: {SAMPLINGS[0]}, all with the same probability)",
    )
    group.add_argument(
        "--average",
        nargs="?",
        const=AVERAGES[0],
        choices=AVERAGES,
        help=f"keep an average of the weights over the steps (bare: {AVERAGES[0]})",
    )
    group.add_argument(
        "--aggressiveness",
        type=positive_float,
        metavar="A",
        help="largest step of --algorithm pa (default: 1)",
    )
    group.add_argument(
        "--record",
        choices=("exact", "sampled"),
        help="compute the objective at 1, 2, 5, 10, ... steps: over all pairs, or over a sample",
    )
    group.add_argument("--seed", type=natural, metavar="N", help="of the random pairs (default: 0)")


def check_descent(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go together; for sgd, fill in those that were not given."""
    if args.solver != STOCHASTIC:
        for option in _given(args, _DESCENT):
            parser.error(f"{option} needs --solver {STOCHASTIC}, not --solver {args.solver}")
        return
    for option in _given(args, _EXACT):
        parser.error(f"{option} and --solver {STOCHASTIC} exclude each other")
    if args.alpha is not None and args.C is not None:
        parser.error("--alpha and -c exclude each other: λ = 1/(C·pairs)")
    algorithm = args.algorithm or _DEFAULTS["algorithm"]
    if args.aggressiveness is not None and algorithm not in _AGGRESSIVE:
        parser.error(
            f"--aggressiveness is an option of --algorithm {' and '.join(_AGGRESSIVE)}, "
            f"not of {algorithm}"
        )
    for name, default in _DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, default)


def _given(args: argparse.Namespace, options: dict[str, str]) -> list[str]:
    """The options that were on the command line."""
    values = {option: getattr(args, name) for name, option in options.items()}
    return [option for option, value in values.items() if value is not None and value is not False]


def _steps(text: str) -> int:
    """An integer ≥ 1, which may be written as ``1e6``."""
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    return positive_int(str(int(value)) if value.is_integer() and value < 1e18 else text)
