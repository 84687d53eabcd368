"""Options of the domination loss, and which others they exclude."""

from __future__ import annotations

import argparse
import math
from typing import Any

from linrank.cli.arguments import fill_in, flag, given, positive_float, positive_int
from linrank.options import DOMINATION_SOLVERS, LAYERS, METHODS, ORDERS, PENALTIES, SOLVERS

METHOD = METHODS[1]
_N_ALPHAS = 50

# Options by the name of their value that only this method has, and what they mean when not given;
# filled in late, so that one can tell.
_DEFAULTS: dict[str, Any] = {
    "penalty": PENALTIES[0],
    "layers": LAYERS[0],
    "margin": None,
    "pooled": False,
    "feature_induction": None,
    "negative_sampling": None,
    "order": ORDERS[0],
}
# The same of a grid of models.
_GRID_DEFAULTS: dict[str, Any] = {"n_alphas": _N_ALPHAS, "eps": None, "max_features": None}
# Those that it shares with stochastic descent, where they mean something else.
_SHARED = {"alpha": 1.0, "alphas": "auto", "seed": 0}
# Those that it cannot have.
_REFUSED = (
    *("loss", "pairs", "n_closest", "n_random", "pair_weighting", "counting"),
    *("query_normalization", "positive", "bounds"),
    *("preferences", "no_labels", "across_queries"),
    *("Cs", "algorithms"),
    *("algorithm", "n_steps", "sampling", "average", "aggressiveness", "record"),
    *("stream", "passes", "memory", "steps_per_row", "checkpoint", "checkpoint_every"),
)


def add_method(parser: argparse.ArgumentParser) -> None:
    """Declare which objective is minimised."""
    parser.add_argument(
        "--method",
        choices=METHODS,
        default=METHODS[0],
        help=f"objective to minimise (default: {METHODS[0]})",
    )


def add_domination(parser: argparse.ArgumentParser) -> None:
    """Declare the options of one model."""
    group = parser.add_argument_group(f"domination loss (--method {METHOD})")
    group.add_argument(
        "--penalty",
        choices=PENALTIES,
        help="α‖w‖₁, α‖w‖² or nothing, with α from --alpha (default: l1, α = 1)",
    )
    _add_loss(group)
    group.add_argument(
        "--feature-induction",
        type=positive_int,
        metavar="N",
        help="start without features and add the N that promise most, until none does",
    )
    _add_solving(group)


def add_domination_grid(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a grid of models."""
    group = parser.add_argument_group(f"domination loss (--method {METHOD})")
    group.add_argument(
        "--penalty",
        choices=tuple(name for name in PENALTIES if name != "none"),
        help="α‖w‖₁ or α‖w‖² (default: l1), for every α of --alphas; without --alphas:",
    )
    group.add_argument(
        "--n-alphas",
        type=positive_int,
        metavar="N",
        help=f"values of α, from the one that leaves no weight (default: {_N_ALPHAS})",
    )
    group.add_argument(
        "--eps",
        type=positive_float,
        metavar="E",
        help="down to E times that (default: 1e-3; l2: 1e-6)",
    )
    group.add_argument(
        "--max-features",
        type=positive_int,
        metavar="N",
        help="end the path with the first model of more than N weights",
    )
    _add_loss(group)
    _add_solving(group)


def _add_loss(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--layers",
        choices=LAYERS,
        help="every label a layer, or labels > 0 above the rest (default: labels)",
    )
    group.add_argument(
        "--margin",
        type=margin,
        metavar="M",
        help="a number between neighbouring layers, or linear[:K1[,K2]] or log[:K1[,K2]] for "
        "K1·label + K2 or K1·log(label) + K2 over the lowest layer (default: none)",
    )
    group.add_argument("--pooled", action="store_true", help="take all rows for one query")


def _add_solving(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--negative-sampling",
        type=share,
        metavar="F",
        help="keep a share F of the lowest layer of each query, drawn by --seed",
    )
    group.add_argument(
        "--order", choices=ORDERS, help=f"of the features in a sweep (default: {ORDERS[0]})"
    )


def check_method(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options that do not go with ``--method``; fill in those that were not given."""
    if args.method == METHOD:
        _check_domination(args, parser)
        return
    for name in given(args, (*_DEFAULTS, *_GRID_DEFAULTS)):
        parser.error(f"{flag(name)} needs --method {METHOD}")
    if args.solver in DOMINATION_SOLVERS and args.solver not in SOLVERS:
        parser.error(f"--solver {args.solver} needs --method {METHOD}")
    fill_in(args, {"solver": SOLVERS[0]})


def _check_domination(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    for name in given(args, _REFUSED):
        if name == "checkpoint" and args.dask is not None:
            continue  # of the weights of each iteration on a cluster
        parser.error(f"{flag(name)} and --method {METHOD} exclude each other")
    if getattr(args, "C", None) is not None:
        parser.error(f"-c and --method {METHOD} exclude each other; its penalty has --alpha")
    fill_in(args, {"solver": DOMINATION_SOLVERS[0]})
    if args.solver not in DOMINATION_SOLVERS:
        expected = ", ".join(DOMINATION_SOLVERS)
        parser.error(f"--method {METHOD} takes --solver {expected}, not {args.solver}")
    if args.penalty == "none" and getattr(args, "alpha", None) is not None:
        parser.error("--alpha weighs the penalty, and --penalty none has none")
    _check_grid(args, parser)
    fill_in(args, _DEFAULTS | _GRID_DEFAULTS | _SHARED)
    if args.solver == "newton" and args.penalty != "l2":
        parser.error(f"--solver newton needs --penalty l2, not {args.penalty}")
    if args.solver == "newton" and given(args, ("feature_induction",)):
        parser.error("--solver newton and --feature-induction exclude each other")


def _check_grid(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if getattr(args, "alphas", None) is not None:
        for name in given(args, ("n_alphas", "eps")):
            parser.error(f"{flag(name)} makes a grid, and --alphas gives one")
    eps = getattr(args, "eps", None)
    if eps is not None and eps >= 1.0:
        parser.error(f"--eps must be < 1, got {eps:g}")


def margin(text: str) -> float | tuple[str, float, float]:
    """A number, or ``log`` or ``linear`` with up to two constants: ``log:1,2.7``."""
    name, colon, rest = text.partition(":")
    try:
        constants = [float(part) for part in rest.split(",")] if colon else []
        if name in ("log", "linear") and len(constants) <= 2:
            k1, k2 = constants + [1.0, 0.0][len(constants) :]
            if math.isfinite(k1) and math.isfinite(k2):
                return name, k1, k2
        elif not colon and math.isfinite(float(text)):
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(
        f"must be a finite number, linear[:K1[,K2]] or log[:K1[,K2]], got {text!r}"
    )


def share(text: str) -> float:
    """A number > 0 and ≤ 1."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number > 0 and ≤ 1, got {text!r}")
    return value
