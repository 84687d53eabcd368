"""All rows in one query: time per Hessian product, number of products, newton against tron.

Sets: nycflights13 (real, 327k rows, 5.3·10^10 pairs), a sparse click-log shape of 10^6 rows and
10^6 features, and the largest set that scikit-survival's FastSurvivalSVM finishes in two minutes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import problems
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.published import Counted
from linrank.ranksvm.train import train
from race import (
    GAP,
    TimeLimit,
    as_published,
    bound,
    median,
    optimum,
    runs,
    time_limit,
    times,
)
from report import Table, main, ratio, seconds, spread
from rivals import scikit_survival

C_OF = {"nycflights": 1.0, "d200k": 1e-6, "d": 1e-6}
LIMIT = 100  # seconds that tron may take on one set
RIVAL_C, RIVAL_LIMIT = 1e-4, 120


def measure(quick: bool) -> list[Table]:
    products = Table(
        "One query: milliseconds per Hessian product",
        [
            *("set", "rows", "levels", "pairs", "newton, 1 thread", "newton, 2 threads", "tron"),
            *("tron / newton, 1 thread", "two threads"),
        ],
        notes=["at the minimiser; median (lowest–highest) of 7, tron of 3"],
    )
    race = Table(
        f"One query: seconds until (F - F*)/F* <= {GAP:g}",
        [
            *("set", "C", "newton, 1 thread", "Hv", "newton, 2 threads", "tron", "Hv"),
            *("tron / newton, 1 thread", "two threads"),
        ],
    )
    for name, C in C_OF.items():
        if quick and name == "d":
            continue
        try:
            data = problems.load(name, 0.1 if quick else 1.0)
        except problems.Absent as absent:
            products.notes.append(f"{name} skipped: {absent}")
            continue
        fit = train(data, C=C, tol=1e-7)
        published = as_published(data)
        _add_products(products, name, data, published, fit.w)
        _add_race(race, name, data, published, C, fit.value, 10 if quick else LIMIT)
    return [products, race, rival(quick)]


def _add_products(table: Table, name: str, data: Any, published: Any, w: Any) -> None:
    one = _product_times(data, SquaredHinge(Pairs(data.queries), 1), w, 7)
    two = _product_times(data, SquaredHinge(Pairs(data.queries), 2), w, 7)
    tree = Counted(Pairs(published.queries))
    tron = _product_times(published, tree, w, 3)
    fast, both, slow = (float(np.median(taken)) for taken in (one, two, tron))
    table.add(
        name, data.n_rows, data.queries.n_levels[0], data.queries.n_pairs,
        spread(one, 1e-3), spread(two, 1e-3), spread(tron, 1e-3),
        ratio(slow / fast), ratio(fast / both),
    )  # fmt: skip


def _product_times(data: Any, loss: Any, w: Any, repeat: int) -> list[float]:
    point = Sum(Ridge(), Risk(data.rows, loss, 1.0)).at(w)
    v = np.random.default_rng(0).standard_normal(data.n_features)
    point.hvp(v)  # sorts the scores, once for all products at this point
    return seconds(lambda: point.hvp(v), repeat)


def _add_race(
    table: Table, name: str, data: Any, published: Any, C: float, best: float, limit: float
) -> None:
    goal = best * (1 + GAP)
    one, two = (runs(data, "newton", goal, C=C, n_jobs=n, limit=limit) for n in (1, 2))
    tron = runs(published, "tron", goal, C=C, limit=limit)
    if not tron[0].is_there:
        gap = tron[0].objective / best - 1
        table.notes.append(f"{name}: tron, stopped after {limit} s, had (F - F*)/F* = {gap:.2g}")
    table.add(
        name, C, times(one), one[0].n_hvp, times(two), times(tron),
        bound(tron) + str(tron[0].n_hvp), bound(tron) + ratio(median(tron) / median(one)),
        ratio(median(one) / median(two)),
    )  # fmt: skip


def rival(quick: bool) -> Table:
    table = Table(
        f"scikit-survival FastSurvivalSVM, one query, all labels distinct, C = {RIVAL_C:g}",
        [
            *("rows × features", "FastSurvivalSVM, s", "its (F - F*)/F*"),
            *("newton until the same F", "ratio", "tron until the same F"),
        ],
        notes=["alpha = 2C; its defaults (AVL tree) but max_iter=100; one thread each"],
    )
    for n_rows in (2_000,) if quick else (25_000, 50_000):
        data = problems.load("f", n_rows / 50_000)
        start = time.perf_counter()
        try:
            with time_limit(RIVAL_LIMIT):
                w = scikit_survival.fit(data, RIVAL_C)
        except ImportError:
            table.notes.append("skipped: pip install scikit-survival")
            break
        except TimeLimit:
            table.notes.append(f"{n_rows} rows: not finished after {RIVAL_LIMIT} s")
            break
        _add_rival(table, data, w, time.perf_counter() - start)
    return table


def _add_rival(table: Table, data: Any, w: Any, taken: float) -> None:
    loss = SquaredHinge(Pairs(data.queries), 1)
    value = Sum(Ridge(), Risk(data.rows, loss, RIVAL_C)).at(w).value
    best = optimum(data, RIVAL_C)
    goal = max(value, best * (1 + 1e-8))
    ours = runs(data, "newton", goal, C=RIVAL_C)
    tron = runs(as_published(data), "tron", goal, C=RIVAL_C, limit=60)
    table.add(
        f"{data.n_rows} × {data.n_features}", taken, f"{value / best - 1:.1e}",
        times(ours), ratio(taken / median(ours)), times(tron),
    )  # fmt: skip


if __name__ == "__main__":
    main(measure, __doc__)
