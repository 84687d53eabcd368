"""Table 5 of Lee and Lin (2014): L2-loss RankSVM against linear SVR, C chosen for each measure."""

from __future__ import annotations

import numpy as np

from linrank.ranksvm.train import train
from linrank.system.tables import Table
from reproduce.lee_lin.learners import GRID, LINEAR, MEASURES, QUICK_GRID, Outcome, linear, measure
from reproduce.lee_lin.sets import web_search
from reproduce.official import Parts, sizes
from reproduce.page import Claim, Page, against, table

# Pairwise accuracy in %, then NDCG; RankSVM, L1-loss SVR, L2-loss SVR. "YAHOO LTRC" as printed.
PAPER = {
    "pairwise accuracy": {
        "MQ2007": (70.36, 64.06, 68.56),
        "MQ2008": (82.70, 77.72, 82.17),
        "MSLR 30k": (61.52, 60.11, 60.49),
        "YAHOO LTRC set 1": (68.45, 67.82, 67.83),
        "YAHOO LTRC set 2": (69.74, 68.37, 69.39),
    },
    "NDCG": {
        "MQ2007": (0.5211, 0.4756, 0.5157),
        "MQ2008": (0.4571, 0.4153, 0.4450),
        "MSLR 30k": (0.4945, 0.4742, 0.4946),
        "YAHOO LTRC set 1": (0.7616, 0.7579, 0.7642),
        "YAHOO LTRC set 2": (0.7519, 0.7470, 0.7578),
    },
}
# Seconds of training, in the same order; * in the paper: LIBLINEAR's most iterations were reached.
SECONDS = {
    "pairwise accuracy": {
        "MQ2007": ("1.3", "23.9*", "0.7"),
        "MQ2008": ("0.5", "3.4*", "0.3"),
        "MSLR 30k": ("1,601.6", "65.4", "202.4"),
        "YAHOO LTRC set 1": ("117.1", "2.4", "149.5"),
        "YAHOO LTRC set 2": ("11.2", "3.3", "14.5"),
    },
    "NDCG": {
        "MQ2007": ("0.5", "23.9*", "0.5"),
        "MQ2008": ("0.5", "3.4*", "0.2"),
        "MSLR 30k": ("1,601.6", "461.6", "202.4"),
        "YAHOO LTRC set 1": ("334.8", "10.8", "172.7"),
        "YAHOO LTRC set 2": ("11.2", "47.6", "20.8"),
    },
}
DIGITS = {"pairwise accuracy": 2, "NDCG": 4}
# The C that the paper chose on MQ2008 (its Tables 3 and 4), as powers of 2.
CHOSEN = {"pairwise accuracy": (7, 8, -1), "NDCG": (7, 8, -4)}
NEAR = 0.2  # points of accuracy within which the published figure counts as reached

Found = dict[str, dict[str, dict[str, Outcome]]]  # by set, method, measure


def reproduce(quick: bool) -> Page:
    sets = web_search(("MQ2008",)) if quick else web_search()
    grid = QUICK_GRID if quick else GRID
    found = {one.name: {method: linear(method, one, grid) for method in LINEAR} for one in sets}
    return Page(
        title="Table 5: linear RankSVM against linear support vector regression",
        claims=claims(found),
        tables=[*(_table(which, sets, found) for which in MEASURES), _at_the_papers_C(sets)],
        differences=differences(sets),
    )


def _at_the_papers_C(sets: list[Parts]) -> Table:
    """MQ2008 at the paper's C, also by the paper's solver with its default stopping rule."""
    parts = next(one for one in sets if one.name == "MQ2008")
    rows = []
    for which in MEASURES:
        for k, method in enumerate(LINEAR):
            C = 2.0 ** CHOSEN[which][k]
            fits = {method: LINEAR[method](parts.train, C)}
            if method == "L2-loss RankSVM":
                fits[f"{method}, TRON"] = (train(parts.train, C=C, solver="tron").w, "")
            for name, (w, remark) in fits.items():
                value = measure(parts, which, parts.test, parts.test.X @ w)
                here, paper, gap = against(value, PAPER[which]["MQ2008"][k], DIGITS[which])
                rows.append([which, name, f"2^{CHOSEN[which][k]}", here + remark, paper, gap])
    return table(
        "MQ2008 at the C that the paper chose",
        ["measure", "method", "C", "here", "paper", "difference"],
        rows,
    )


def _table(which: str, sets: list[Parts], found: Found) -> Table:
    rows = []
    for one in sets:
        for k, method in enumerate(LINEAR):
            got = found[one.name][method][which]
            value, paper, difference = against(got.value, PAPER[which][one.name][k], DIGITS[which])
            rows.append(
                [
                    *(one.label, method, value + got.remark, paper),
                    "" if one.stand_in else difference,
                    *(f"2^{np.log2(got.C):.0f}", f"{got.seconds:.3f}", SECONDS[which][one.name][k]),
                ]
            )
    unit = "pairwise accuracy, %" if which == "pairwise accuracy" else "NDCG"
    return table(
        f"Test part: {unit}",
        [*("set", "method", "here", "paper", "difference", "C"), "train, s", "paper, s"],
        rows,
        [
            "*: LIBLINEAR's most iterations (1,000) were reached; differences only where the data "
            "are the paper's",
            "C: best on the validation part among 2^-15 .. 2^10; the paper's for MQ2008: "
            + ", ".join(f"2^{c} ({m})" for m, c in zip(LINEAR, CHOSEN[which], strict=True)),
            "s: processor time of one fit on one thread",
        ],
    )


def claims(found: Found) -> list[Claim]:
    """What the paper says of the table; its own set decides, stand-ins are counted."""
    accuracy = {
        name: [methods[method]["pairwise accuracy"].value for method in LINEAR]
        for name, methods in found.items()
    }
    ndcg = {
        name: [methods[method]["NDCG"].value for method in LINEAR]
        for name, methods in found.items()
    }
    rank, l1, l2 = accuracy["MQ2008"]
    wins = sum(a[0] > a[2] for a in accuracy.values())
    worse = sum(a[1] < a[2] for a in accuracy.values())
    close = max(abs(n[0] - n[2]) for n in ndcg.values())
    return [
        Claim(
            "L2-loss RankSVM has 82.70% pairwise accuracy on MQ2008.",
            abs(rank - 82.70) <= NEAR,
            f"{rank:.2f}%.",
        ),
        Claim(
            "RankSVM gives better pairwise accuracy than L2-loss SVR (MQ2008: by 0.53 points; on "
            "all seven sets).",
            rank > l2 and wins > len(found) / 2,
            f"by {rank - l2:.2f} points on MQ2008 (SVR {l2:.2f}%); better on {wins} of "
            f"{len(found)} sets.",
        ),
        Claim(
            "L1-loss SVR is worse than L2-loss SVR.",
            l1 < l2 and worse > len(found) / 2,
            f"{l1:.2f} against {l2:.2f}% on MQ2008; worse on {worse} of {len(found)} sets.",
        ),
        Claim(
            "The NDCG of RankSVM and L2-loss SVR are close (at most 0.0121 apart in the paper).",
            abs(ndcg["MQ2008"][0] - ndcg["MQ2008"][2]) <= 0.02 and close <= 0.03,
            f"{abs(ndcg['MQ2008'][0] - ndcg['MQ2008'][2]):.4f} apart on MQ2008, at most "
            f"{close:.4f} on any set.",
        ),
    ]


def differences(sets: list[Parts]) -> list[str]:
    return [
        *sizes(sets),
        "Sets that come without a validation part give every fourth training query to it.",
        "MQ2007-list and MQ2008-list, the last two rows of the paper's table, are left out: what "
        "stands in for them (generated lists) is linear by construction. YAHOO LTRC set 1 is "
        "measured where its files are.",
        "RankSVM by linrank's newton to a certified gap, where the paper stops TRON at 1e-3 of the "
        "first gradient. SVR is LIBLINEAR's own, through scikit-learn, without a bias, ε = 0.",
        "Features of MSLR and YAHOO scaled to [0, 1] on the training part, as in the paper; "
        "OHSUMED by query, as LETOR 4.0 is published. The paper's times are of a 2.5 GHz Xeon "
        "E5504.",
    ]
