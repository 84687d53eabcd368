"""What Figures 5 and 6 of Lee and Lin share: methods raced at the C that validation chooses."""

from __future__ import annotations

from typing import Any

import numpy as np

import report
from linrank.data.dataset import Dataset
from linrank.ranksvm.train import train
from reproduce.cells import Row, rows, seconds
from reproduce.lee_lin import methods
from reproduce.lee_lin.learners import EVEN
from reproduce.lee_lin.sets import pairwise_accuracy
from reproduce.official import Parts
from reproduce.page import Claim

GRID = tuple(2.0**k for k in range(-15, 11))
GOAL = "0.001"  # of (F - F*)/F*, the column by which methods are compared


def choose_C(
    parts: Parts, grid: tuple[float, ...], data: Dataset | None = None
) -> dict[str, float]:
    """By loss, the C with the best pairwise accuracy on the validation part.

    ``data``, if given, is a share of the training queries that stands for all. C multiplies a sum
    over pairs: of fewer pairs it has to be larger, and is made smaller again.
    """
    used = parts.train if data is None else data
    share = used.queries.n_pairs / parts.train.queries.n_pairs
    found = {}
    for loss in methods.LOSSES:
        w, judged = None, []
        for C in grid:
            w = train(used, C=C / share, loss=loss, w0=w, tol=1e-3, n_jobs=2).w
            judged.append(pairwise_accuracy(parts.vali, parts.vali.X @ w))
        found[loss] = grid[int(np.argmax(judged))]
    return found


def race(parts: list[Parts], Cs: list[dict[str, float]], limit: float) -> report.Table:
    """The table of the benchmark, with its pictures."""
    table = methods.empty(limit)
    panels: dict[str, dict[str, Any]] = {kind: {} for kind in ("gap", *methods.MEASURES)}
    for one, C in zip(parts, Cs, strict=True):
        label = one.stand_in or one.name
        curves = methods.compare(table, label, one.train, one.test, C, limit)
        for kind, lines in curves.items():
            panels[kind][label] = lines
    for kind, by_title in panels.items():
        name = kind.split("@")[0]
        table.pictures[name] = methods.picture(kind, by_title, len(parts))
    return table


def by_set(table: report.Table) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in rows(table):
        found.setdefault(str(row["set"]), {})[row["method"]] = row
    return found


def planes_are_slower(found: dict[str, dict[str, Row]], than: dict[str, str]) -> Claim:
    """TreeRankSVM against Newton methods (our name: the paper's), by the time to `GOAL`."""
    ours = {name: seconds(by["TreeRankSVM"][GOAL]) for name, by in found.items()}
    theirs = {name: max(seconds(by[other][GOAL]) for other in than) for name, by in found.items()}
    ratios = {name: ours[name] / theirs[name] for name in found}
    known = [ratio > 1 for ratio in ratios.values() if not np.isnan(ratio)]
    return Claim(
        f"TreeRankSVM converges more slowly than {' and '.join(than.values())}.",
        None if all(known) and len(known) < len(ratios) else all(known),
        f"its time to a relative distance of {GOAL} by that of the other (of two, the slower): "
        + ", ".join(f"{name} {_format_ratio(ratio)}" for name, ratio in ratios.items())
        + ".",
    )


def _format_ratio(ratio: float) -> str:
    """A ratio of two times of which either may be infinite."""
    if np.isnan(ratio):
        return "unknown (neither gets there)"
    if ratio == 0:
        return "0 (the other does not get there)"
    return f"{ratio:.2f}" if np.isfinite(ratio) else "infinite (it does not get there)"


def stable(parts: list[Parts], Cs: list[dict[str, float]]) -> Claim:
    """Tree-TRON at its default stop against the optimum."""
    changes = {}
    for one, C in zip(parts, Cs, strict=True):
        at = [
            pairwise_accuracy(one.test, one.test.X @ fit.w)
            for fit in (
                train(one.train, C=C["squared_hinge"], solver="tron", n_jobs=1),
                train(one.train, C=C["squared_hinge"], tol=1e-8, n_jobs=1),
            )
        ]
        changes[one.stand_in or one.name] = at[0] - at[1]
    return Claim(
        "Performance is stable once the default stopping condition of Tree-TRON holds.",
        all(abs(change) <= EVEN for change in changes.values()),
        "pairwise accuracy there less that of the optimum: "
        + ", ".join(f"{name} {change:+.2f} points" for name, change in changes.items())
        + ".",
    )


def similar_losses(found: dict[str, dict[str, Row]]) -> Claim:
    """By the last iterates, each loss at its own C."""
    apart = {
        name: 100 * (by["bundle"]["pairwise_accuracy"] - by["newton"]["pairwise_accuracy"])
        for name, by in found.items()
    }
    return Claim(
        "L1-loss and L2-loss RankSVM perform alike.",
        all(abs(points) <= EVEN for points in apart.values()),
        "pairwise accuracy of the hinge less that of its square: "
        + ", ".join(f"{name} {points:+.2f} points" for name, points in apart.items())
        + f"; alike: within {EVEN}.",
    )
