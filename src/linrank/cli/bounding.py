"""Bounds of the coefficients on the command line: ``--positive`` and ``--bounds``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.cli.streams import read_text

if TYPE_CHECKING:
    from linrank.data.dataset import Dataset


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("bounds of the coefficients (newton only)")
    group.add_argument("--positive", action="store_true", help="keep all coefficients >= 0")
    group.add_argument(
        "--bounds",
        metavar="F:LOW:HIGH,...",
        help="keep LOW <= coefficient <= HIGH for features numbered as in DATA; an empty LOW or "
        "HIGH is open, * stands for all other features; @FILE reads the entries from a file, "
        "separated by commas or lines",
    )


def check_bounds(args: argparse.Namespace) -> None:
    """Fail on bounds that cannot be read, or kept, before the data are read."""
    if (args.positive or args.bounds is not None) and args.solver != "newton":
        raise ValueError(f"--solver {args.solver} cannot keep bounds; use --solver newton")
    _entries(args.bounds)


def coef_bounds_of(args: argparse.Namespace, data: Dataset) -> dict[int, Any] | None:
    """The bounds of ``--bounds`` by column, or None."""
    entries = _entries(args.bounds)
    if entries is None:
        return None
    default = entries.pop("*", (None, None))
    bounds = dict.fromkeys(range(data.n_features), default)
    for feature, pair in entries.items():
        bounds[_column(feature, data)] = pair
    return bounds


def _entries(text: str | None) -> dict[str, Any] | None:
    """The entries of ``--bounds`` by feature."""
    if text is None:
        return None
    from linrank.data.bounds import parse_bounds

    if text.startswith("@"):
        text = read_text(text[1:])
    return dict(parse_bounds(text))


def _column(feature: str, data: Dataset) -> int:
    """The column of a feature by its number in the file, or its name."""
    if data.feature_names is not None and feature in data.feature_names:
        return data.feature_names.index(feature)
    base = data.index_base or 0
    if not feature.isdecimal():
        raise ValueError(f"--bounds: {feature!r} is no feature number; use numbers as in the data")
    column = int(feature) - base
    if not 0 <= column < data.n_features:
        raise ValueError(
            f"--bounds: feature {feature} is not in the data, whose features are {base} to "
            f"{base + data.n_features - 1}"
        )
    return column
