"""Table III: pruned pairs, closest and random ones, on artificial data."""

from __future__ import annotations

from reproduce.lin.accuracies import agree, format_values, gaps, laid_out, means
from reproduce.lin.artificial import PROTOCOL, found, rows_of
from reproduce.lin.closest_pairs import CLOSEST, NOISES, PRUNED, SVR, TOTAL
from reproduce.page import Claim, Page

METHODS = (CLOSEST, PRUNED, TOTAL, SVR)
LOW, HIGH = NOISES[:3], NOISES[3:]
SAME = 0.5  # points


def reproduce(quick: bool) -> Page:
    measured = found(quick)
    rows = rows_of(measured.rows("Tables I to III"), NOISES, METHODS)
    values = means(rows, "noise")
    gain = gaps(values, PRUNED, CLOSEST, NOISES)
    to_all = gaps(values, PRUNED, TOTAL, NOISES)
    to_svr = gaps(values, SVR, PRUNED, HIGH)
    return Page(
        "Table III: Pruned RankSVM on artificial data",
        [
            agree(rows, "The accuracies"),
            Claim(
                "Random pairs besides the closest help where the noise is high.",
                all(gain[noise] > 0 for noise in HIGH),
                f"pruned less closest, points: {format_values({k: gain[k] for k in HIGH})}.",
            ),
            Claim(
                "They do no harm where it is low: pruned pairs do as well as all of them.",
                all(abs(to_all[noise]) < SAME for noise in LOW),
                f"pruned less all: {format_values(to_all)}.",
            ),
            Claim(
                "SVR is slightly better than pruned pairs where the noise is high.",
                all(gap > 0 for gap in to_svr.values()),
                f"SVR less pruned: {format_values(to_svr)}.",
            ),
        ],
        [laid_out("Test accuracy (%), 20 rounds", "noise", rows)],
        [*PROTOCOL, "random pairs are drawn without replacement from those not among the closest"],
    )
