"""Figure 4 of Lee and Lin (2014): order-statistic trees and direct counting, by training time."""

from __future__ import annotations

import report
from reproduce.cells import number, rows
from reproduce.lee_lin import counting
from reproduce.page import Claim, Measurement, Page, laid_out

TREES = ("selection-tree", "red-black", "avl", "aa")  # keyed by label, as in the paper
DIRECT = "direct"


def reproduce(quick: bool) -> Page:
    found = Measurement(counting.measure(quick))
    return Page(
        title="Figure 4: direct counting and order-statistic trees",
        claims=_claims(found.tables[0]),
        tables=[laid_out(found.tables[0])],
        differences=[
            "The paper prints the figure without numbers to compare with ours.",
            "Sets of the paper are not named in the text; here MQ2008 fold 1 (mq), and generated "
            "ones of the shapes of MQ2007 (a) and MQ2007-list (c), for neither can be had. C = 1 "
            "as in the paper.",
            "Beside the ways of the paper, five others, and linrank's newton, which is no part of "
            "the paper: it needs fewer products, each with vector instructions.",
            "Trees are our own, in C++ as the paper's; y-rbtree is red-black, y-avltree avl, "
            "y-aatree aa, and wᵀx-rbtree red-black-score.",
        ],
        pictures=found.pictures,
    )


def _claims(table: report.Table) -> list[Claim]:
    product: dict[str, dict[str, float]] = {}
    for row in rows(table):
        product.setdefault(row["set"], {})[row["counting"]] = number(row["ms per product"])
    few = [by for name, by in product.items() if name != "c"]
    ratios = [by[DIRECT] / min(by[tree] for tree in TREES) for by in few]
    claims = [
        Claim(
            "With few levels direct counting is no slower than trees.",
            all(ratio <= 1.2 for ratio in ratios),
            f"a product takes {', '.join(f'{ratio:.2f}' for ratio in ratios)} times the fastest "
            "tree's.",
        )
    ]
    long = product.get("c")
    if long is None:
        return claims
    slower = long[DIRECT] / max(long[tree] for tree in TREES)
    others = [long[tree] for tree in TREES[1:]]
    return [
        Claim(
            "Direct counting is slow when the number of levels is large.",
            slower > 1.5,
            f"with 721 levels per query a product takes {slower:.1f} times the slowest tree's and "
            f"{long[DIRECT] / long['selection-tree']:.1f} times the selection tree's.",
        ),
        Claim(
            "Order-statistic trees, however implemented, take about the same time.",
            max(*others, long["selection-tree"]) / min(*others, long["selection-tree"]) <= 1.5,
            f"red-black, AVL and AA trees do, {min(others):.0f} to {max(others):.0f} ms per "
            f"product with 721 levels; the selection tree takes {long['selection-tree']:.0f} ms.",
        ),
        *claims,
    ]
