"""Table 7 of Lee and Lin (2014): random forests and GBDT with 1,000 trees."""

from __future__ import annotations

from reproduce.lee_lin import table_6
from reproduce.lee_lin.learners import EVEN, GRID, MEASURES, QUICK_GRID, TREES, linear, trees
from reproduce.lee_lin.sets import web_search
from reproduce.lee_lin.table_6 import BESIDE, N_TREES, Found, seeds_of
from reproduce.page import Claim, Page

SETS = ("MQ2007", "MQ2008", "YAHOO LTRC set 2")
MANY = 1000
# Random forests, GBDT.
PAPER = {
    "pairwise accuracy": {
        "MQ2007": (69.07, 67.58),
        "MQ2008": (82.60, 79.78),
        "YAHOO LTRC set 2": (71.91, 71.70),
    },
    "NDCG": {
        "MQ2007": (0.5221, 0.4892),
        "MQ2008": (0.4675, 0.4491),
        "YAHOO LTRC set 2": (0.7801, 0.7720),
    },
}
SECONDS = {
    "MQ2007": ("345.3", "13.7"),
    "MQ2008": ("52.0", "3.6"),
    "YAHOO LTRC set 2": ("1,406.9", "108.7"),
}
SEEDS = (0,)
FEW_SEEDS = tuple(range(3))  # of the small forests that are compared with


def reproduce(quick: bool) -> Page:
    sets = web_search(("MQ2008",) if quick else SETS)
    grid, seeds, many = (QUICK_GRID, SEEDS[:1], 200) if quick else (GRID, SEEDS, MANY)
    found: Found = {}
    few: Found = {}
    for one in sets:
        found[one.name] = {method: linear(method, one, grid) for method in BESIDE}
        few[one.name] = {}
        for method, n_trees in N_TREES.items():
            found[one.name][method] = trees(method, many, one, seeds_of(method, seeds))
            few[one.name][method] = trees(method, n_trees, one, seeds_of(method, FEW_SEEDS))
    layout = table_6.laid_out
    return Page(
        title="Table 7: random forests and GBDT with 1,000 trees",
        claims=_claims(found, few),
        tables=[layout(which, sets, found, PAPER, SECONDS, len(seeds)) for which in MEASURES],
        differences=table_6.differences(sets),
    )


def _claims(found: Found, few: Found) -> list[Claim]:
    gained = {
        method: {
            name: by[method]["pairwise accuracy"].value
            - few[name][method]["pairwise accuracy"].value
            for name, by in found.items()
        }
        for method in TREES
    }
    words = {
        method: ", ".join(f"{gain:+.2f} points on {name}" for name, gain in by_set.items())
        for method, by_set in gained.items()
    }
    mq = {method: by["pairwise accuracy"].value for method, by in found["MQ2008"].items()}
    return [
        Claim(
            "GBDT with more trees is not always better than with few: it overfits (MQ2008: 79.78 "
            "against 82.83%).",
            gained["GBDT"]["MQ2008"] < 0,
            f"1,000 trees against 100: {words['GBDT']} (names of the paper's sets).",
        ),
        Claim(
            "Random forests are more robust: more trees are better.",
            all(gain > 0 for gain in gained["Random forests"].values()),
            f"1,000 trees against 40: {words['Random forests']}.",
        ),
        Claim(
            "On MQ2008 random forests with 1,000 trees and linear RankSVM are about even (82.60 "
            "against 82.70%).",
            abs(mq["Random forests"] - mq["L2-loss RankSVM"]) <= EVEN,
            f"{mq['Random forests']:.2f} against {mq['L2-loss RankSVM']:.2f}%; even: within "
            f"{EVEN} points, as in Table 6.",
        ),
    ]
