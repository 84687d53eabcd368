"""Table II: closest, random and all pairs on artificial data with high noise."""

from __future__ import annotations

from reproduce.lin.accuracies import agree, format_values, gaps, laid_out, means
from reproduce.lin.artificial import PROTOCOL, found, rows_of
from reproduce.lin.closest_pairs import CLOSEST, RANDOM, SVR, TOTAL
from reproduce.page import Claim, Page

NOISES = (0.5, 1.0)
METHODS = (CLOSEST, RANDOM, TOTAL, SVR)


def reproduce(quick: bool) -> Page:
    measured = found(quick)
    rows = rows_of(measured.rows("Tables I to III"), NOISES, METHODS)
    values = means(rows, "noise")
    to_random = gaps(values, CLOSEST, RANDOM, NOISES)
    to_svr = gaps(values, CLOSEST, SVR, NOISES)
    of_random = gaps(values, RANDOM, TOTAL, NOISES)
    return Page(
        "Table II: Closest RankSVM on artificial data, high noise",
        [
            agree(rows, "The accuracies"),
            Claim(
                "Closest pairs do worse than random ones and than SVR.",
                all(gap < 0 for gap in [*to_random.values(), *to_svr.values()]),
                f"closest less random, points: {format_values(to_random)}; "
                f"less SVR: {format_values(to_svr)}.",
            ),
            Claim(
                "199 random pairs lose a little against all 19,900.",
                all(-2.5 < gap < 0 for gap in of_random.values()),
                f"random less all: {format_values(of_random)} (paper: -1.17 and -1.15).",
            ),
        ],
        [laid_out("Test accuracy (%), 20 rounds", "noise", rows)],
        PROTOCOL,
    )
