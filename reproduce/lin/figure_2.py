"""Figure 2: dual variables of pairs from closest to farthest, for growing noise."""

from __future__ import annotations

from reproduce.lin import support
from reproduce.page import Claim, Page, laid_out

EVEN = 20.0  # percent of the pairs at most have an order difference of 10 or less


def reproduce(quick: bool) -> Page:
    found = support.found(quick)
    rows = found.rows("Figure 2", ", hinge")
    tables = [one for one in found.tables if one.title.startswith("Figure 2")]
    shares = [-row[support.SHARE] for row in rows]
    closest = [row[support.OF_CLOSEST] for row in rows]
    return Page(
        "Figure 2: support vectors by closeness, by noise",
        [
            Claim(
                "More noise makes more support vectors.",
                support.falls(shares),
                f"pairs with α > 0, percent: {support.list_column(rows, support.SHARE)}.",
            ),
            Claim(
                "The 1-closest pairs become less important.",
                support.falls(closest),
                f"their share of Σα, percent: {support.list_column(rows, support.OF_CLOSEST)}.",
            ),
            Claim(
                "Close pairs still matter more than far ones.",
                all(row[support.OF_NEAR] > 2 * EVEN for row in rows),
                f"share of Σα of differences up to 10, percent: "
                f"{support.list_column(rows, support.OF_NEAR)}; of the pairs it is under {EVEN:g}.",
            ),
        ],
        [support.sizes(rows), *(laid_out(one) for one in tables)],
        [
            *support.PROTOCOL,
            "noise: a normal variable of that share of the target's deviation is added; the paper "
            "does not say what its 0.1 and 1 are of; C = 1000, as the paper's",
        ],
        {name: it for one in tables for name, it in one.pictures.items()},
    )
