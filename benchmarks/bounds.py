"""What bounds cost: non-negative weights against free ones, and against L-BFGS-B.

L-BFGS-B (scipy) gets value and gradient from linrank's kernels, so that methods are compared and
not sums over pairs. A time is that of the processor until (F - F*)/F* <= 1e-5, on one thread.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize

import problems
from linrank.data.bounds import Box
from linrank.losses.base import SquaredHinge
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import train
from race import GAP
from report import Table, main, ratio

SETS = ("mq", "msn", "bio", "a", "c", "y20")
LIMIT = 20_000  # evaluations that L-BFGS-B may take


def measure(quick: bool) -> list[Table]:
    table = Table(
        f"bounds: seconds until (F - F*)/F* <= {GAP:g}, C = 1, one thread",
        [
            *("set", "rows × features", "at 0", "free: s", "steps", "Hv", "positive: s", "steps"),
            *("Hv", "positive / free", "L-BFGS-B: s", "F and ∇F", "L-BFGS-B / positive"),
        ],
        notes=[
            "positive: coefficients >= 0; at 0: how many of them the optimum has at the bound",
            "Hv: Hessian products; a value with its gradient costs about one",
        ],
    )
    for name in SETS:
        try:
            data = problems.load(name, 0.02 if quick else 1.0)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        table.add(*_compare(name, data))
    return [table]


def _compare(name: str, data: Any) -> list[Any]:
    n = data.n_features
    box = (np.zeros(n), np.full(n, np.inf))
    free, _ = _newton(data, None)
    positive, best = _newton(data, box)
    took, n_evaluations, is_there = _lbfgsb(data, box, best.value * (1 + GAP))
    bound = "" if is_there else ">= "
    return [
        name,
        f"{data.n_rows} × {n}",
        int((best.w == 0).sum()),
        *free,
        *positive,
        ratio(positive[0] / free[0]),
        f"{bound}{took:.3g}",
        n_evaluations,
        bound + ratio(took / positive[0]),
    ]


def _newton(data: Any, box: Any) -> tuple[tuple[float, int, int], Any]:
    """Seconds, steps and products to the goal; the median of three by time, and the optimum."""
    best = train(data, bounds=box, tol=1e-10, max_iter=1000, n_jobs=1)
    goal = best.value * (1 + GAP)
    runs = []
    for _ in range(3):
        start = time.process_time()
        result = train(
            data,
            bounds=box,
            tol=1e-14,
            n_jobs=1,
            callback=lambda state: state["objective"] <= goal,
        )
        runs.append((time.process_time() - start, result.n_iter, result.n_hvp))
    return sorted(runs)[1], best


def _lbfgsb(data: Any, box: Any, goal: float) -> tuple[float, int, bool]:
    """Seconds and evaluations to the goal, and whether it was reached."""
    objective = Sum(Ridge(Box(*box)), Risk(data.rows, SquaredHinge(Pairs(data.queries), 1), 1.0))
    seen = {"n": 0, "is_there": False}

    def value_and_gradient(w: Any) -> tuple[float, Any]:
        point = objective.at(w)
        seen["n"] += 1
        return point.value, point.gradient

    def watch(intermediate_result: Any) -> None:
        if intermediate_result.fun <= goal:
            seen["is_there"] = True
            raise StopIteration

    start = time.process_time()
    minimize(
        value_and_gradient,
        box[0].copy(),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(*box, strict=True)),
        callback=watch,
        options={"maxiter": LIMIT, "maxfun": LIMIT, "ftol": 0.0, "gtol": 0.0},
    )
    return time.process_time() - start, int(seen["n"]), bool(seen["is_there"])


if __name__ == "__main__":
    main(measure, __doc__)
