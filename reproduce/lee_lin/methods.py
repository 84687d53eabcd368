"""newton, tron, PRSVM+, the bundle and TreeRankSVM: Figures 5 to 7 of Lee and Lin (2014).

One thread each, C = 1e-4, 1, 100. The last two minimize the hinge, and their gap is to its
optimum. Test measures are those of every outer iterate, of the bundle its best so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import problems
from curves import draw, thin
from linrank.metrics import evaluate
from linrank.ranksvm.train import train
from race import as_published, follow
from report import Table

SETS = ("mq", "ohsumed", "msn", "bio", "c")
CS = (1e-4, 1.0, 100.0)
LOSSES = ("squared_hinge", "hinge")
METHODS: dict[str, dict[str, Any]] = {
    "newton": {"solver": "newton"},
    "tron": {"solver": "tron"},
    "prsvm+": {"solver": "prsvm+"},
    "bundle": {"loss": "hinge", "solver": "bundle"},
    "TreeRankSVM": {"loss": "hinge", "solver": "bundle", "counting": "red-black"},
}
GAPS = (1e-2, 1e-3, 1e-5)
MEASURES = ("pairwise_accuracy", "ndcg@10")
LIMIT = 5.0  # seconds of one fit


def measure(quick: bool) -> list[Table]:
    limit = 1.0 if quick else LIMIT
    table = empty(limit)
    table.notes.append(
        "bio and c: every fifth query is test data; ndcg@10 of c has gains y, not 2^y - 1"
    )
    panels: dict[str, dict[str, Any]] = {name: {} for name in ("gap", *MEASURES)}
    for name in SETS:
        try:
            data, test = problems.train_and_test(name, 0.02 if quick else 1.0)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        for C in (1.0,) if quick else CS:
            curves = compare(table, name, data, test, dict.fromkeys(LOSSES, C), limit)
            for kind, lines in curves.items():
                panels[kind][f"{name}, C = {C:g}"] = lines
    for kind, by_title in panels.items():
        n_columns = 1 if quick else len(CS)
        table.pictures[f"methods-{kind.split('@')[0]}"] = picture(kind, by_title, n_columns)
    return [table]


def empty(limit: float) -> Table:
    """A table to compare methods in."""
    return Table(
        f"Methods: seconds until (F - F*)/F* <= {', '.join(f'{g:g}' for g in GAPS)}, one thread",
        ["set", "C", "method", *(f"{g:g}" for g in GAPS), "last gap", *MEASURES],
        notes=[
            f"-: not within {limit:g} s; measures: of the test data at the last iterate",
            "bundle and TreeRankSVM (the same by a red-black tree, rows as published): the hinge, "
            "and the gap to its optimum",
        ],
    )


def picture(kind: str, panels: dict[str, Any], n_columns: int) -> Any:
    """Gaps or a measure against time."""
    label = "(F - F*)/F*" if kind == "gap" else kind
    return draw(panels, n_columns=n_columns, label=label, is_gap=kind == "gap")


def compare(
    table: Table, name: str, data: Any, test: Any, Cs: Mapping[str, float], limit: float
) -> dict[str, dict[str, Any]]:
    """Rows of the table; of each kind, the curves by method; ``Cs`` has the C of each loss."""
    curves: dict[str, dict[str, Any]] = {kind: {} for kind in ("gap", *MEASURES)}
    published = as_published(data)
    best = {"squared_hinge": train(data, C=Cs["squared_hinge"], tol=1e-10).value}
    for method, options in METHODS.items():
        loss = options.get("loss", "squared_hinge")
        C = Cs[loss]
        if loss not in best:
            best[loss], width = _optimum(data, C, loss, limit)
            if width > GAPS[-1] / 10:
                table.notes.append(f"{name}, C = {C:g}: hinge: F* is known within {width:.1g}")
        rows = data if method in ("newton", "bundle") else published
        states, _ = follow(rows, best[loss] * (1 + GAPS[-1] / 10), limit=limit, C=C, **options)
        gaps = [max(state["objective"] / best[loss] - 1, 1e-9) for state in states]
        reached = [_first(states, gaps, goal) for goal in GAPS]
        measured = [(s["seconds"], _measure(test, s["w"])) for s in thin(states)]
        table.add(name, C, method, *reached, f"{gaps[-1]:.1e}", *measured[-1][1])
        curves["gap"][method] = thin(
            [(s["seconds"], gap) for s, gap in zip(states, gaps, strict=True)]
        )
        for i, kind in enumerate(MEASURES):
            curves[kind][method] = [(second, values[i]) for second, values in measured]
    return curves


def _optimum(data: Any, C: float, loss: str, limit: float) -> tuple[float, float]:
    """The best lower bound proved in four times the limit, and its relative distance to F."""
    states, _ = follow(data, 0.0, limit=4 * limit, n_jobs=2, C=C, loss=loss, tol=1e-7)
    bound = max(state["objective"] - state["gap"] for state in states)
    return float(bound), float(min(state["objective"] for state in states) / bound - 1)


def _first(states: list[Any], gaps: list[float], goal: float) -> str:
    there = (f"{s['seconds']:.3g}" for s, gap in zip(states, gaps, strict=True) if gap <= goal)
    return next(there, "-")


def _measure(test: Any, w: Any) -> tuple[float, ...]:
    """Gains 2^y where labels are grades; y where they are ranks of a long list."""
    names = MEASURES if test.labels.max() <= 30 else ("pairwise_accuracy", "ndcg(gain=linear)@10")
    result = evaluate(test.labels, test.X @ w, qid=test.qid, metrics=names)
    return tuple(float(value) for value in result.values())
