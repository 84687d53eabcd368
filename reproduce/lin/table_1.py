"""Table I: closest, random and all pairs on artificial data with low noise."""

from __future__ import annotations

from reproduce.lin.accuracies import agree, format_values, gaps, laid_out, means
from reproduce.lin.artificial import PROTOCOL, found, rows_of
from reproduce.lin.closest_pairs import CLOSEST, RANDOM, SVR, TOTAL
from reproduce.page import Claim, Page
from reproduce.page import laid_out as as_it_is

NOISES = (0.0, 0.05, 0.1)
METHODS = (CLOSEST, RANDOM, TOTAL, SVR)
SAME = 0.5  # points; the paper's differ by up to 0.18


def reproduce(quick: bool) -> Page:
    measured = found(quick)
    rows = rows_of(measured.rows("Tables I to III"), NOISES, METHODS)
    values = means(rows, "noise")
    to_all = gaps(values, CLOSEST, TOTAL, NOISES)
    to_random = gaps(values, CLOSEST, RANDOM, NOISES)
    return Page(
        "Table I: Closest RankSVM on artificial data, low noise",
        [
            agree(rows, "The accuracies"),
            Claim(
                "199 closest pairs do as well as all 19,900.",
                all(abs(gap) < SAME for gap in to_all.values()),
                f"closest less all, points: {format_values(to_all)}.",
            ),
            Claim(
                "Closest pairs do better than as many random ones.",
                all(gap > 0 for gap in to_random.values()),
                f"closest less random: {format_values(to_random)}.",
            ),
        ],
        [laid_out("Test accuracy (%), 20 rounds", "noise", rows), as_it_is(measured.tables[0])],
        PROTOCOL,
    )
