"""Options of stochastic descent, and which of them go with which solver."""

from __future__ import annotations

import argparse

from linrank.cli.arguments import fill_in, grid, natural, positive_float, positive_int
from linrank.options import (
    ALGORITHMS,
    AVERAGES,
    RECORDS,
    SAMPLINGS,
    SELECTED_PAIRS,
    STOCHASTIC,
)

# Options by the name of their value: those that only the exact solvers have, and only sgd.
_EXACT = {
    "loss": "--loss",
    "pairs": "--pairs",
    "n_closest": "--n-closest",
    "n_random": "--n-random",
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
# Those that other methods have too.
_SHARED = {
    "--alpha": "--method domination",
    "--alphas": "--method domination",
    "--seed": "a --method other than ranksvm, or --pairs closest or pruned",
}
# What they mean when they are not given; filled in late, so that one can tell.
_DEFAULTS = {
    "algorithm": ALGORITHMS[0],
    "sampling": SAMPLINGS[0],
    "n_steps": 100_000,
    "aggressiveness": 1.0,
    "seed": 0,
}
# The same for a grid of models.
_EXACT_GRID = {
    **_EXACT,
    "Cs": "--Cs",
    "plot": "--plot",
    "tol": "--tol",
}
_DESCENT_GRID = {
    "alphas": "--alphas",
    "algorithms": "--algorithms",
    **{name: _DESCENT[name] for name in ("n_steps", "sampling", "average", "aggressiveness")},
    "seed": "--seed",
}
_GRID_DEFAULTS = {
    "alphas": "auto",
    "algorithms": (ALGORITHMS[0],),
    **{name: _DEFAULTS[name] for name in ("n_steps", "sampling", "aggressiveness", "seed")},
}


def add_descent(parser: argparse.ArgumentParser) -> None:
    """Declare the options of one model."""
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
        help="λ of λ/2 ‖w‖² + mean loss of a pair (default: 1e-4); or give -c C, λ = 1/(C·pairs); "
        "or the α of --penalty",
    )
    _add_steps(group)
    group.add_argument(
        "--record",
        choices=RECORDS,
        help="compute the objective on the way, four times in each power of ten steps: over all "
        "pairs, or over a sample",
    )


def add_descent_grid(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a grid of models."""
    group = parser.add_argument_group(f"stochastic descent (--solver {STOCHASTIC})")
    group.add_argument(
        "--alphas",
        type=grid,
        metavar="GRID",
        help="λ, as --Cs (default: 1e-7:1:10); or the α of --penalty",
    )
    group.add_argument(
        "--algorithms",
        type=_algorithms,
        metavar="NAME,...",
        help=f"of {', '.join(ALGORITHMS)} (default: {ALGORITHMS[0]})",
    )
    _add_steps(group)


def _add_steps(group: argparse._ArgumentGroup) -> None:
    """How pairs are drawn, how many, and what becomes of the iterates."""
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
    group.add_argument("--seed", type=natural, metavar="N", help="of random numbers (default: 0)")


def check_descent(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go together; for sgd, fill in those that were not given."""
    _keep_apart(args, parser, _EXACT, _DESCENT)
    if args.solver != STOCHASTIC:
        return
    if args.alpha is not None and args.C is not None:
        parser.error("--alpha and -c exclude each other: λ = 1/(C·pairs)")
    algorithm = args.algorithm or _DEFAULTS["algorithm"]
    if args.aggressiveness is not None and algorithm != "pa":
        parser.error(f"--aggressiveness is an option of --algorithm pa, not of {algorithm}")
    fill_in(args, _DEFAULTS)


def check_descent_grid(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """The same for the options of a grid."""
    _keep_apart(args, parser, _EXACT_GRID, _DESCENT_GRID)
    if args.solver != STOCHASTIC:
        return
    fill_in(args, _GRID_DEFAULTS)


def _keep_apart(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    exact: dict[str, str],
    descent: dict[str, str],
) -> None:
    """Fail on an option of the other family of solvers."""
    if args.solver != STOCHASTIC:
        is_drawn = args.pairs in SELECTED_PAIRS  # they are drawn by the seed too
        for option in _given(args, descent):
            if option == "--seed" and is_drawn:
                continue
            other = f", or {_SHARED[option]}" if option in _SHARED else ""
            parser.error(f"{option} needs --solver {STOCHASTIC}, not --solver {args.solver}{other}")
        return
    for option in _given(args, exact):
        parser.error(f"{option} and --solver {STOCHASTIC} exclude each other")


def _given(args: argparse.Namespace, options: dict[str, str]) -> list[str]:
    """The options that were on the command line."""
    values = {option: getattr(args, name, None) for name, option in options.items()}
    return [option for option, value in values.items() if value is not None and value is not False]


def _algorithms(text: str) -> tuple[str, ...]:
    """Names of algorithms, separated by commas."""
    names = tuple(text.split(","))
    for name in names:
        if name not in ALGORITHMS:
            expected = ", ".join(ALGORITHMS)
            raise argparse.ArgumentTypeError(f"must be some of {expected}, got {name!r}")
    return names


def _steps(text: str) -> int:
    """An integer ≥ 1, which may be written as ``1e6``."""
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    return positive_int(str(int(value)) if value.is_integer() and value < 1e18 else text)
