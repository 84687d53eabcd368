"""Options that several commands share, and the types that check their values."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping

from linrank.cli.bounding import add_bounds, check_bounds
from linrank.cli.pair_options import add_sizes, check_sizes
from linrank.cli.reading import add_columns, add_judgements
from linrank.options import (
    COUNTED,
    COUNTINGS,
    DOMINATION_SOLVERS,
    LOSSES,
    MISSING,
    PAIR_WEIGHTINGS,
    PAIRS,
    SCALES,
    SOLVERS,
    STOCHASTIC,
)
from linrank.system.memory import parse_bytes

_MOST_VALUES = 1000  # of a grid: more is a slip of the pen

# What options mean when they are not given. They are filled in late, so that one that was given
# can be told from one that was not.
_DEFAULTS = {
    "C": 1.0,
    "loss": LOSSES[0],
    "pairs": PAIRS[0],
    "pair_weighting": PAIR_WEIGHTINGS[0],
}


def positive_float(text: str) -> float:
    """A finite number > 0."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}") from None
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be finite and > 0, got {text}")
    return value


def finite(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def positive_int(text: str) -> int:
    """An integer ≥ 1."""
    value = _integer(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be ≥ 1, got {text}")
    return value


def megabytes(text: str) -> int:
    """Bytes, given in 10⁶ of them, or with a unit: ``2GB``, ``512MiB``."""
    if text.isdecimal():
        return 1_000_000 * positive_int(text)
    try:
        return parse_bytes(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number of 10⁶ bytes, or a size such as 2GB or 512MiB, got {text!r}"
        ) from None


def natural(text: str) -> int:
    """An integer ≥ 0."""
    value = _integer(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be ≥ 0, got {text}")
    return value


def n_jobs(text: str) -> int:
    """A number of threads: ≥ 1, or -1 for all cores of the process."""
    value = _integer(text)
    if value < 1 and value != -1:
        raise argparse.ArgumentTypeError(f"must be ≥ 1, or -1 for all cores, got {text}")
    return value


def grid(text: str) -> list[float]:
    """``LOW:HIGH[:FACTOR]`` or ``C,C,...``; a number may be written as a power, ``2^-3``."""
    parts = text.split(":")
    if len(parts) == 1:
        return [_power(part) for part in text.split(",")]
    if len(parts) > 3:
        raise argparse.ArgumentTypeError(f"must be LOW:HIGH[:FACTOR] or a list, got {text!r}")
    low, high, factor = (*map(_power, parts), *([2.0] if len(parts) == 2 else []))
    if low > high or factor <= 1:
        raise argparse.ArgumentTypeError(f"needs LOW ≤ HIGH and FACTOR > 1, got {text!r}")
    n_steps = math.floor((math.log(high) - math.log(low)) / math.log(factor) + 1e-9)
    if n_steps >= _MOST_VALUES:
        raise argparse.ArgumentTypeError(
            f"{text!r} has {n_steps + 1:,} values, at most {_MOST_VALUES:,} are tried; "
            "use a larger FACTOR"
        )
    return [low * factor**k for k in range(n_steps + 1)]


def _power(text: str) -> float:
    base, power, exponent = text.partition("^")
    try:
        value = float(base) ** float(exponent) if power else float(text)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}") from None
    if base.strip().startswith("-") or not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be finite and > 0, got {text}")
    return value


def add_training(
    parser: argparse.ArgumentParser,
    *,
    tol: str,
    max_iter: str,
    takes_C: bool,
    solvers: tuple[str, ...] = SOLVERS,
) -> None:
    """The options of training; what ``--tol`` and ``--max-iter`` mean is the command's."""
    solving = parser.add_argument_group("training")
    if takes_C:
        about = f"weight of the pair losses (default: {_DEFAULTS['C']:g}; sgd: see --alpha)"
        solving.add_argument("-c", "--C", type=positive_float, metavar="C", help=about)
    solving.add_argument("-e", "--tol", type=positive_float, metavar="TOL", help=tol)
    _add_choice(solving, "--loss", LOSSES, "loss of a pair")
    _add_choice(
        solving,
        "--pairs",
        PAIRS,
        "compare all labels of a query, neighbouring ones, the --n-closest pairs, or these and "
        "--n-random others",
    )
    add_sizes(solving)
    _add_choice(
        solving,
        "--pair-weighting",
        PAIR_WEIGHTINGS,
        "weigh each pair by 1, by the difference of its labels, or by that of 2^label",
    )
    _add_choice(solving, "--solver", solvers, _about_solvers(solvers))
    parser.set_defaults(solver=solvers[0])
    solving.add_argument(
        "--counting",
        choices=COUNTINGS,
        metavar="WAY",
        help=f"how tron and bundle count violated pairs: {', '.join(COUNTINGS)} "
        f"(default: {COUNTINGS[0]}; bundle: newton's own)",
    )
    solving.add_argument("--max-iter", type=positive_int, metavar="N", help=max_iter)
    solving.add_argument(
        "--scale",
        choices=SCALES,
        default=SCALES[0],
        help="scale features by their deviation, their range, or their range in each query; "
        "part of the model, which scores raw rows",
    )
    solving.add_argument(
        "--query-normalization",
        choices=("pairs",),
        help="divide the loss of each query by its number of pairs",
    )
    add_bounds(parser)


def _about_solvers(solvers: tuple[str, ...]) -> str:
    stochastic = ", or stochastic descent (sgd)" if STOCHASTIC in solvers else ""
    domination = DOMINATION_SOLVERS if set(DOMINATION_SOLVERS) <= set(solvers) else ()
    apart = f"; --method domination takes {', '.join(domination)}" if domination else ""
    return f"Newton's method, cutting planes, a published one{stochastic}{apart}"


def check_training(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Fail on options of `add_training` that do not go together; fill in those not given."""
    fill_in(args, _DEFAULTS)
    check_sizes(args, parser)
    check_bounds(args)
    if args.counting is not None and args.solver not in COUNTED:
        parser.error(f"--counting is an option of --solver {' and '.join(COUNTED)}")


def given(args: argparse.Namespace, names: tuple[str, ...]) -> list[str]:
    """The options, by the names of their values, that were on the command line.

    A command may lack some.
    """
    values = {name: getattr(args, name, None) for name in names}
    # By identity: a number that is 0 was given, and equals False.
    return [name for name, value in values.items() if value is not None and value is not False]


def flag(name: str) -> str:
    """An option as it is typed."""
    return f"--{name.replace('_', '-')}"


def fill_in(args: argparse.Namespace, defaults: Mapping[str, object]) -> None:
    """Give options that were not on the command line their values; a command may lack some."""
    for name, default in defaults.items():
        if getattr(args, name, default) is None:
            setattr(args, name, default)


def _add_choice(
    group: argparse._ArgumentGroup, name: str, values: tuple[str, ...], about: str
) -> None:
    """An option of a few values, the first of which is the default; - and _ are one."""
    group.add_argument(
        name,
        choices=values,
        type=lambda text: text.replace("-", "_") if text.replace("-", "_") in values else text,
        help=f"{about} (default: {values[0]})",
    )


def add_reading(parser: argparse.ArgumentParser, *, judgements: bool = True) -> None:
    """How data files are read, and with how many threads everything runs.

    Without ``judgements``, labels are those of the files: the command has a --qrels of its own.
    """
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        help="type of the feature values in memory (default: float32, or that of the store); sums "
        "are always float64",
    )
    group.add_argument(
        "--index-base",
        choices=("auto", "0", "1"),
        default="auto",
        help="number of the first feature in the file; auto: 0 if a feature 0 occurs, else 1",
    )
    group.add_argument(
        "--missing",
        choices=MISSING,
        help="what a missing value (NaN, null) of a table means in training: an error (default), "
        "0, the mean of the feature, or 0 and a learnt weight; the model remembers it, and scores "
        "by it without being told",
    )
    group.add_argument(
        "-j", "--jobs", type=n_jobs, metavar="N", help="threads (default: all cores available)"
    )
    add_columns(parser)
    if judgements:
        add_judgements(parser)


def add_volume(parser: argparse.ArgumentParser) -> None:
    """How much is said on standard error."""
    volume = parser.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="only errors and warnings")
    volume.add_argument(
        "-v", "--verbose", action="store_true", help="every step; a traceback with an error"
    )


def add_reporting(parser: argparse.ArgumentParser) -> None:
    """How much is said on standard error, and whether a program reads standard output."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    add_volume(parser)


def add_metrics(parser: argparse.ArgumentParser, *flags: str, default: str) -> None:
    """A metric, given as often as wanted, and the convention it is computed by."""
    group = parser.add_argument_group("metrics")
    group.add_argument(
        *flags,
        action="append",
        metavar="METRIC",
        dest="metrics",
        help=f"e.g. ndcg@10, map, p@5, mrr, err@10; repeat for several (default: {default})",
    )
    group.add_argument(
        "--convention",
        default="linrank",
        metavar="NAME",
        help="whose rules for gains, ties and empty queries: linrank (default; TREC files: "
        "trec_eval), letor, mslr, trec_eval, sklearn, lightgbm, xgboost",
    )


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer, got {text!r}") from None
