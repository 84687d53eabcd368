"""Cells of the tables of accuracies: what agrees with the paper, and which method is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linrank.system.tables import Table
from reproduce.lin.agreement import NOTE
from reproduce.page import Claim, table

Row = Mapping[str, Any]

ALLOWED = 0.1  # of the numbers may lie outside: 5% would by chance, were all else equal
AGREEMENT = "within the error bars"


def agree(rows: Sequence[Row], what: str, why: str = "") -> Claim:
    """The numbers themselves."""
    words = [row[AGREEMENT] for row in rows if row[AGREEMENT] != "not in the paper"]
    outside = [row for row in rows if row[AGREEMENT].startswith("OUTSIDE")]
    by = max((abs(float(row["difference"])) for row in outside), default=0.0)
    return Claim(
        f"{what} as printed.",
        len(outside) <= ALLOWED * len(words),
        f"{words.count('within')} of {len(words)} within the error bars, {words.count('2σ')} more "
        f"within two standard errors, {len(outside)} outside"
        + (f", by up to {by:.2f}{why}." if outside else "."),
    )


def laid_out(title: str, first: str, rows: Sequence[Row], notes: Sequence[str] = ()) -> Table:
    """Ours, the paper's and the difference by set (or noise) and method."""
    return table(
        title,
        [first, "method", "ours", "paper", "difference", AGREEMENT],
        [
            [
                *(f"{row[first]:g}" if isinstance(row[first], float) else row[first],),
                *(row["method"], row["ours"], row["paper"], row["difference"] or "-"),
                row[AGREEMENT],
            ]
            for row in rows
        ],
        [NOTE, *notes],
    )


def means(rows: Sequence[Row], first: str, column: str = "ours") -> dict[tuple[Any, str], float]:
    """Accuracies by set (or noise) and method; those that are not there are left out."""
    return {
        (row[first], row["method"]): float(row[column].split(" ± ")[0])
        for row in rows
        if row[column] != "-"
    }


def gaps(
    values: Mapping[tuple[Any, str], float], one: str, other: str, places: Sequence[Any]
) -> dict[Any, float]:
    """By how many points one method is better than another, where both are there."""
    return {
        place: values[place, one] - values[place, other]
        for place in places
        if (place, one) in values and (place, other) in values
    }


def format_values(values: Mapping[Any, float]) -> str:
    """``"mg +0.16; mpg -0.02"``, ``"noise 0.5: +1.95"``."""
    return ", ".join(
        f"noise {place:g}: {value:+.2f}" if isinstance(place, float) else f"{place} {value:+.2f}"
        for place, value in values.items()
    )
