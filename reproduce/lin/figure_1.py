"""Figure 1: dual variables of pairs from closest to farthest, for growing C."""

from __future__ import annotations

from reproduce.lin import support
from reproduce.page import Claim, Page, laid_out

LEFT = 0.5  # of the largest order difference there is: the left part of the figure


def reproduce(quick: bool) -> Page:
    found = support.found(quick)
    rows = found.rows("Figure 1", ", hinge")
    tables = [one for one in found.tables if one.title.startswith("Figure 1")]
    reach = [row[support.LARGEST] for row in rows]
    shares = [row[support.SHARE] for row in rows]
    n_steps = 112  # order differences of a half without ties among 113 values
    return Page(
        "Figure 1: support vectors by closeness, by C",
        [
            Claim(
                "Support vectors are found among the closest pairs only.",
                max(reach) < LEFT * n_steps,
                f"the largest order difference of a pair with α > 0: "
                f"{support.list_column(rows, support.LARGEST)}, of about {n_steps}.",
            ),
            Claim(
                "They move to the left and become fewer with larger C.",
                support.falls(reach) and support.falls(shares),
                f"pairs with α > 0, percent: {support.list_column(rows, support.SHARE)}.",
            ),
            Claim(
                "The 1-closest pairs alone are not enough.",
                all(row[support.OF_CLOSEST] < 90 for row in rows),
                f"their share of Σα, percent: {support.list_column(rows, support.OF_CLOSEST)}.",
            ),
        ],
        [support.sizes(rows), *(laid_out(one) for one in tables)],
        [*support.PROTOCOL, "the paper names C = 1; its larger values of C are not given"],
        {name: it for one in tables for name, it in one.pictures.items()},
    )
