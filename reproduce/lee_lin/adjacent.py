"""Pairs of neighboring levels against all pairs: accuracy lost, time saved.

The question of Table 10 of Lee & Lin (2014), on a set with distinct labels and on one large query.
Each side chooses its own C on validation rows; one thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import problems
from linrank.data.dataset import Dataset
from linrank.metrics import evaluate
from linrank.pairs import choose_pairs
from linrank.ranksvm.train import train
from linrank.solvers.result import Result
from report import Table, ratio, seconds

SEED = 2014
# C times the number of pairs, so that both sides see the same range of regularization.
TOTALS = [4.0**k for k in range(-2, 13)]
PUBLISHED = (
    "Lee & Lin, Table 10: MQ2007-list 79.10% in 19.9 s (C = 2^-9) against 80.71% in 38.7 s "
    "(C = 2^-12) with all pairs; MQ2008-list 81.81% in 10.5 s against 82.11% in 16.6 s"
)


def measure(quick: bool) -> list[Table]:
    table = empty()
    for name in ("c", "nycflights"):
        try:
            data = problems.load(name, 0.02 if quick else 1.0)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        if quick and data.queries.n_queries == 1:
            data = data.select(np.arange(0, data.n_rows, 50))
        compare(table, name, split(data), TOTALS[::3] if quick else TOTALS)
    return [table]


def empty() -> Table:
    """A table to compare them in."""
    return Table(
        "Neighboring levels against all pairs: C chosen on validation data, one thread",
        [
            *("set", "pairs", "rows, train", "number of pairs", "C", "C × pairs"),
            *("vali, %", "test, %", "points lost", "train, s", "iterations, Hv", "time saved"),
            "time saved, equal C × pairs",
        ],
        notes=[
            "accuracy: pooled pairwise accuracy over all pairs of the held-out rows; c holds out "
            "queries, nycflights rows (60% train, 20% validation, 20% test, fixed seed)",
            f"C × pairs from 4^-2 .. 4^12, {len(TOTALS)} values, each warm-started from the last",
            "seconds: processor time of one cold fit at the chosen C, least of three",
            PUBLISHED,
        ],
    )


def split(data: Dataset) -> dict[str, Dataset]:
    """Three parts of 60, 20 and 20% of the queries, or of the rows where there is one query."""
    queries, rng = data.queries, np.random.default_rng(SEED)
    if queries.n_queries == 1:
        unit = np.arange(data.n_rows)
    else:
        unit = np.empty(data.n_rows, dtype=np.int64)
        by_position = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
        unit[slice(None) if queries.order is None else queries.order] = by_position
    n_units = int(unit.max()) + 1
    place = rng.permutation(n_units)[unit] / n_units
    return {
        "train": data.select(np.flatnonzero(place < 0.6)),
        "vali": data.select(np.flatnonzero((place >= 0.6) & (place < 0.8))),
        "test": data.select(np.flatnonzero(place >= 0.8)),
    }


def accuracy(data: Dataset, w: Any) -> float:
    """Pooled pairwise accuracy in percent."""
    metric = "pairwise_accuracy"
    return 100 * evaluate(data.y, data.X @ w, qid=data.qid, metrics=[metric])[metric]


@dataclass(frozen=True)
class Side:
    """What one choice of pairs comes to at the C that is best on the validation rows."""

    n_pairs: int
    total: float
    vali: float
    test: float
    seconds: float
    fit: Result
    same: float  # seconds at the C × pairs that all pairs have chosen


def _choose(
    parts: dict[str, Dataset], pairs: str, totals: list[float], same: float | None = None
) -> Side:
    n_pairs = choose_pairs(parts["train"], pairs=pairs).n_pairs
    w, fits = None, []
    for total in totals:
        w = train(parts["train"], C=total / n_pairs, pairs=pairs, w0=w, n_jobs=1).w
        fits.append((accuracy(parts["vali"], w), total))
    vali, total = max(fits)

    def cold(total: float = total) -> Result:
        return train(parts["train"], C=total / n_pairs, pairs=pairs, n_jobs=1)

    fit, taken = cold(), min(seconds(cold, 3, time.process_time))
    at_same = taken
    if same is not None and same != total:
        at_same = min(seconds(lambda: cold(same), 3, time.process_time))
    return Side(n_pairs, total, vali, accuracy(parts["test"], fit.w), taken, fit, at_same)


def compare(table: Table, name: str, parts: dict[str, Dataset], totals: list[float]) -> None:
    """Two rows of the table."""
    whole = _choose(parts, "all", totals)
    for pairs, side in (
        ("all", whole),
        ("adjacent", _choose(parts, "adjacent", totals, whole.total)),
    ):
        if side.total in (totals[0], totals[-1]):
            table.notes.append(f"{name}, {pairs}: the chosen C is at an end of the grid")
        table.add(
            name, pairs, parts["train"].n_rows, side.n_pairs, f"{side.total / side.n_pairs:.2g}",
            f"4^{np.log2(side.total) / 2:.0f}", f"{side.vali:.2f}", f"{side.test:.2f}",
            "" if side is whole else f"{whole.test - side.test:.2f}", side.seconds,
            f"{side.fit.n_iter}, {side.fit.n_hvp}",
            "" if side is whole else ratio(whole.seconds / side.seconds),
            "" if side is whole else ratio(whole.seconds / side.same),
        )  # fmt: skip
