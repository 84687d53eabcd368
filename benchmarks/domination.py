"""Coordinate descent for the domination loss: curvatures, and against Newton's method.

MQ2008, OHSUMED (fold 1, training parts), the MSLR sample, the last two normalized by query, and the
tf-idf of the women's clothing reviews. l1: alpha is a share of the smallest one that leaves no
weight; l2: alpha itself. One thread, CPU seconds.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import problems
from linrank.data.dataset import Dataset
from linrank.domination.coordinate import Descent, Log, descend
from linrank.domination.train import make_problem, train
from linrank.metrics import convention, evaluate
from linrank.solvers.result import Result
from report import Table, main, ratio

Array = NDArray[Any]

SHARES = (0.1, 0.01)  # of l1
ALPHAS = (1.0,)  # of l2
GAP = 1e-6
CURVATURES = ("local", "range", "paper")
LIMIT = 8.0  # seconds of a fit with a curvature
FEWER = 3.0


SETS = ("mq", "ohsumed", "msn", "clothing")  # the dense ones normalized by query
MEASURES = ("map", "p@10", "domination_error(ties=error)", "all_pairs_error")
# A sparse model ties rows: AP and P@10 are then those of a random order, on average.
TIES = convention("linrank", ties="average", empty="skip")


def load(name: str) -> Dataset:
    if name == "clothing":
        return problems._read("text_graded/womens_clothing_tfidf.txt.xz")
    return problems.load(name)


def thin_rows(data: Dataset, n_rows: int) -> Dataset:
    """Rows spread over the whole set, for a quick run."""
    step = max(1, data.n_rows // n_rows)
    return data.select(np.arange(data.n_rows) % step == 0)


@dataclass(frozen=True)
class TimedFit:
    """A fit and the CPU seconds it took."""

    result: Result
    seconds: float
    is_there: bool

    @property
    def n_nonzero(self) -> int:
        return int(np.count_nonzero(self.result.w))

    @property
    def all_epochs(self) -> Array:
        """Columns moved up to each certificate, by the number of features.

        A sweep of l1 goes over a working set only.
        """
        history = self.result.history
        moved = np.diff(history["n_sweeps"]) * np.array(history["n_working"][:-1])
        return np.concatenate([[0.0], np.cumsum(moved)]) / len(self.result.w)

    @property
    def epochs(self) -> float:
        return float(self.all_epochs[-1])

    def epochs_to(self, value: float) -> float:
        """Epochs until ``F <= value``; those of the first certificate after the start at least."""
        there = np.flatnonzero(np.array(self.result.history["objective"]) <= value)
        return float(self.all_epochs[max(1, there[0]) if len(there) else -1])


def time_fit(
    data: Dataset, limit: float = np.inf, goal: float = -np.inf, **options: Any
) -> TimedFit:
    """Fit on one thread until the tolerance, ``F <= goal`` or the limit of CPU seconds."""
    watch = Watch(limit, goal)
    result = train(data, n_jobs=1, max_iter=10**6, callback=watch, **options)
    return watch.stop(result)


def time_sweeps(
    data: Dataset, limit: float, curvature: str, tol: float, **options: Any
) -> TimedFit:
    """The same by sweeps alone, without the Newton steps that `train` makes between them."""
    watch = Watch(limit)
    descent = Descent(make_problem(data, n_jobs=1, **options), curvature=curvature)
    result = descend(descent, tol=tol, max_iter=10**6, log=Log(watch))
    return watch.stop(result)


class Watch:
    """A callback that ends a fit at a goal or after so many CPU seconds."""

    def __init__(self, limit: float, goal: float = -np.inf) -> None:
        self.start, self.limit, self.goal = time.process_time(), limit, goal
        self.reached = False

    def __call__(self, state: dict[str, Any]) -> bool:
        self.reached = state["objective"] <= self.goal
        return self.reached or time.process_time() - self.start > self.limit

    def stop(self, result: Result) -> TimedFit:
        return TimedFit(result, time.process_time() - self.start, self.reached or result.converged)


def part_of(data: Dataset, shares: tuple[float, ...] = (0.5, 0.25, 0.25)) -> Array:
    """Part 0, 1, ... of every row, by a hash of its number: the same on every machine."""
    digests = (hashlib.sha256(str(i).encode()).digest()[:8] for i in range(data.n_rows))
    place = np.array([int.from_bytes(d, "big") / 2.0**64 for d in digests])
    return np.searchsorted(np.cumsum(shares)[:-1], place, side="right")


def evaluate_weights(data: Dataset, w: Array) -> Array:
    """The measures of a model, in the order of MEASURES."""
    found = evaluate(
        data.labels, data.X @ w, qid=data.qid, metrics=MEASURES, convention=TIES, n_jobs=1
    )
    return np.array([float(found[name]) for name in MEASURES])


def measure(quick: bool) -> list[Table]:
    tables = [curvature_table(), newton_table()]
    for name in SETS:
        try:
            data = load(name)
        except problems.Absent as absent:
            tables[0].notes.append(f"{name} skipped: {absent}")
            continue
        if quick:
            data = thin_rows(data, 2_000)
        for penalty, alpha, label in cases(data):
            case = Case(name, data, penalty, alpha, label)
            compare_curvatures(tables[0], case, 1.0 if quick else LIMIT)
            if penalty == "l2":
                compare_newton(tables[1], case)
    return tables


class Case:
    """A problem: data, penalty and alpha."""

    def __init__(self, name: str, data: Dataset, penalty: str, alpha: float, label: str) -> None:
        self.cells = (name, penalty, label)
        self.data = data
        self.options = {"penalty": penalty, "alpha": alpha}


def cases(data: Dataset) -> Iterator[tuple[str, float, str]]:
    largest = make_problem(data, penalty="l1", alpha=1.0).largest_alpha()
    for share in SHARES:
        yield "l1", share * largest, f"{share:g} of {largest:.3g}"
    for alpha in ALPHAS:
        yield "l2", alpha, f"{alpha:g}"


# ---- curvatures -------------------------------------------------------------


def curvature_table() -> Table:
    return Table(
        f"Curvatures: sweeps, epochs and seconds until the certified gap is <= {GAP:g}·F",
        [
            *("set", "penalty", "alpha", "non-zero", "linrank: sweeps", "s"),
            *(f"{name}: {what}" for name in CURVATURES for what in ("sweeps", "epochs", "s")),
            *("epochs, range / local", "epochs, paper / local"),
        ],
        notes=[
            "linrank: solver='coordinate' as it is, with Newton steps between sweeps; the others: "
            "sweeps alone",
            "local: the second derivative here and its largest growth along the step; range: a "
            "quarter of the squared range; paper: the number of dominating rows times "
            "the largest square",
            "epochs: columns moved, by the number of features (l1 sweeps over a working set); >: "
            f"not reached within {LIMIT:g} s; the ratio is then of the epochs until a common F, "
            "the higher of their last",
        ],
    )


def compare_curvatures(table: Table, case: Case, limit: float) -> None:
    """A row of the table."""
    full = time_fit(case.data, 10 * limit, solver="coordinate", tol=GAP, **case.options)
    fits = {
        curvature: time_sweeps(case.data, limit, curvature, GAP, **case.options)
        for curvature in CURVATURES
    }
    cells: list[str] = []
    for fit in fits.values():
        more = "" if fit.is_there else "> "
        cells += [f"{more}{_sweeps(fit)}", f"{more}{fit.epochs:.3g}", f"{more}{fit.seconds:.3g}"]
        if not fit.is_there:
            cells[-1] += f" (gap {fit.result.gap / fit.result.value:.1e})"
    lowest = full.result.value
    ratios = [_ratio(fits["range"], fits["local"], lowest, None)]
    ratios.append(_ratio(fits["paper"], fits["local"], lowest, FEWER))
    shown = [f"{_sweeps(full)}", ("" if full.is_there else "> ") + f"{full.seconds:.3g}"]
    table.add(*case.cells, full.n_nonzero, *shown, *cells, *ratios)


def _sweeps(fit: TimedFit) -> int:
    return int(fit.result.history["n_sweeps"][-1])


def _ratio(other: TimedFit, best: TimedFit, lowest: float, target: float | None) -> str:
    """Epochs to the tolerance; to a common F where one of them did not get so far.

    That is the higher of their last ones, given by how far it is above the lowest known.
    """
    if other.is_there and best.is_there:
        return ratio(other.epochs / best.epochs, target)
    value = max(other.result.value, best.result.value)
    times = other.epochs_to(value) / best.epochs_to(value)
    return f"to F* + {value / lowest - 1:.0e}: {ratio(times, target)}"


# ---- newton -----------------------------------------------------------------


def newton_table() -> Table:
    return Table(
        "l2: newton against coordinate descent, each to a relative gap of 1e-9 in its own way",
        ["set", "penalty", "alpha", "newton: s", "coordinate: s", "coordinate / newton",
         "difference of F, relative", "of w, relative", "<= 1e-6"],
    )  # fmt: skip


def compare_newton(table: Table, case: Case) -> None:
    newton = time_fit(case.data, solver="newton", tol=1e-9, **case.options)
    descent = time_fit(case.data, 60.0, solver="coordinate", tol=1e-9, **case.options)
    one, two = newton.result, descent.result
    difference = abs(one.value / two.value - 1)
    apart = float(np.linalg.norm(one.w - two.w) / np.linalg.norm(one.w))
    table.add(
        *case.cells,
        f"{newton.seconds:.3g}",
        f"{descent.seconds:.3g}",
        ratio(descent.seconds / newton.seconds),
        f"{difference:.1e}",
        f"{apart:.1e}",
        bool(difference <= GAP),
    )


if __name__ == "__main__":
    main(measure, __doc__)
