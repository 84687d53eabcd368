"""tron by each published way of counting, and newton: Figure 4 of Lee and Lin (2014).

All on one thread, C = 1, tron on rows as published. The curves are those of one run each; the table
gives the seconds until (F - F*)/F* <= 1e-5, and of one Hessian product at the optimum without rows.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import problems
from curves import draw, thin
from linrank import _core
from linrank.losses.base import SquaredHinge
from linrank.pairs import Pairs
from linrank.published import COUNTINGS, Counted
from linrank.ranksvm.train import train
from race import GAP, as_published, follow
from report import Table, ratio, seconds

LIMITS = {"a": 10.0, "mq": 10.0, "c": 20.0}  # seconds that a way may take


def measure(quick: bool) -> list[Table]:
    table = Table(
        f"Ways of counting: seconds until (F - F*)/F* <= {GAP:g}, C = 1, one thread",
        ["set", "levels per query", "counting", "seconds", "Hv", "ms per product", "by newton's"],
        notes=["ms per product: of the loss at the optimum, without the rows; median of 5"],
    )
    panels: dict[str, dict[str, Any]] = {}
    for name, limit in LIMITS.items():
        try:
            data = problems.load(name, 0.02 if quick else 1.0)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        panels[name] = _compare(table, name, data, 2.0 if quick else limit)
    if panels:
        label = "(F - F*)/F*"
        table.pictures["counting"] = draw(panels, n_columns=3, label=label, is_gap=True)
    return [table]


def _compare(table: Table, name: str, data: Any, limit: float) -> dict[str, Any]:
    """Rows of the table, and the curve of every way."""
    optimum = train(data, tol=1e-10)
    best, published = optimum.value, as_published(data)
    pairs = Pairs(data.queries)
    z = _core.scores(data.rows.core, optimum.w, data.queries.order, 1)
    n_levels = f"{data.queries.n_levels.mean():.3g}"
    ways = [("newton", data, {}, SquaredHinge(pairs))]
    ways += [
        (way, published, {"solver": "tron", "counting": way}, Counted(pairs, way))
        for way in COUNTINGS
    ]
    lines: dict[str, Any] = {}
    ours = np.nan
    for way, rows, options, loss in ways:
        product = 1e3 * _product_seconds(loss, z, limit)
        ours = product if way == "newton" else ours
        states, ended = follow(rows, best * (1 + GAP), limit=limit, **options)
        last = states[-1]
        taken = f"{last['seconds'] if ended else limit:.3g}"
        if last["objective"] > best * (1 + GAP):
            taken = f">= {taken}"
            gap = _relative(last, best)
            table.notes.append(f"{name}: {way}, stopped, had (F - F*)/F* = {gap:.2g}")
        table.add(name, n_levels, way, taken, last["n_hvp"], product, ratio(product / ours))
        lines[way] = [(s["seconds"], _relative(s, best)) for s in thin(states)]
    return lines


def _product_seconds(loss: Any, z: Any, limit: float) -> float:
    v = np.random.default_rng(0).standard_normal(len(z))
    point = loss.at(z)
    first = seconds(lambda: loss.curvature(point, v), 1)
    again = seconds(lambda: loss.curvature(point, v), 5) if first[0] < limit / 10 else first
    return statistics.median(again)


def _relative(state: dict[str, Any], best: float) -> float:
    return max(state["objective"] / best - 1, 1e-12)
