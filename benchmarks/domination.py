"""Coordinate descent for the domination loss: curvatures, and against L-BFGS-B of SciPy.

MQ2008, OHSUMED (fold 1, training parts), the MSLR sample, the last two normalised by query, and the
tf-idf of the women's clothing reviews. l1: alpha is a share of the smallest one that leaves no
weight; l2: alpha itself. One thread, CPU seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dominations
import problems
from dominations import Timed, swept, timed
from linrank.data.dataset import Dataset
from linrank.domination.train import make_problem
from report import Table, main, ratio
from rivals import lbfgsb

SHARES = (0.1, 0.01)  # of l1
ALPHAS = (1.0,)  # of l2
GAP = 1e-6
CURVATURES = ("local", "range", "paper")
LIMIT = 8.0  # seconds of a fit with a curvature
RIVAL_LIMIT = 30.0  # of one by L-BFGS-B
FEWER, FASTER = 3.0, 10.0


def measure(quick: bool) -> list[Table]:
    tables = [curvature_table(), rival_table(), newton_table()]
    limits = (1.0, 1.0) if quick else (LIMIT, RIVAL_LIMIT)
    for name in dominations.SETS:
        try:
            data = dominations.load(name)
        except problems.Absent as absent:
            tables[0].notes.append(f"{name} skipped: {absent}")
            continue
        if quick:
            data = dominations.thinned(data, 2_000)
        for penalty, alpha, label in cases(data):
            case = Case(name, data, penalty, alpha, label)
            best = compare_curvatures(tables[0], case, limits[0])
            compare_rivals(tables[1], case, best, limits)
            if penalty == "l2":
                compare_newton(tables[2], case, best)
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


def compare_curvatures(table: Table, case: Case, limit: float) -> Timed:
    """A row of the table; the fit by the solver as it is."""
    full = timed(case.data, 10 * limit, solver="coordinate", tol=GAP, **case.options)
    fits = {
        curvature: swept(case.data, limit, curvature, GAP, **case.options)
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
    return full


def _sweeps(fit: Timed) -> int:
    return int(fit.result.history["n_sweeps"][-1])


def _ratio(other: Timed, best: Timed, lowest: float, target: float | None) -> str:
    """Epochs to the tolerance; to a common F where one of them did not get so far.

    That is the higher of their last ones, given by how far it is above the lowest known.
    """
    if other.is_there and best.is_there:
        return ratio(other.epochs / best.epochs, target)
    value = max(other.result.value, best.result.value)
    times = other.epochs_to(value) / best.epochs_to(value)
    return f"to F* + {value / lowest - 1:.0e}: {ratio(times, target)}"


# ---- L-BFGS-B ---------------------------------------------------------------


def rival_table() -> Table:
    return Table(
        f"Against L-BFGS-B: seconds until (F - F*)/F* <= {GAP:g}",
        [
            *("set", "penalty", "alpha", "coordinate: s", "auto: s", "NumPy: s", "evaluations"),
            *("NumPy / auto", "kernel: s", "evaluations ", "kernel / auto"),
        ],
        notes=[
            "F*: the certified lower bound of a fit to 1e-9; auto: newton with l2, coordinate "
            "descent with l1; the matrix by columns, and the transpose of NumPy's, are made before",
            "NumPy: value and gradient from whole arrays, running sums over layers, X and its "
            "transpose both by rows; kernel: from linrank's kernel; l1 as w = u - v, u, v >= 0",
            f">: not there within {RIVAL_LIMIT:g} s, how far F was above F* in brackets",
        ],
    )


def compare_rivals(table: Table, case: Case, best: Timed, limits: tuple[float, float]) -> None:
    data, options = case.data, case.options
    penalty, alpha = case.cells[1], float(options["alpha"])
    exact = timed(data, 4 * limits[0], tol=1e-9, w0=best.result.w, **options).result
    bound = exact.value - exact.gap
    goal = bound * (1 + GAP)
    if exact.gap > 0.1 * GAP * exact.value:
        width = exact.gap / exact.value
        table.notes.append(f"{' '.join(case.cells)}: F* is known within {width:.1e} only")
    ours = [timed(data, limits[1], goal, tol=1e-12, solver="coordinate", **options)]
    ours.append(ours[0] if penalty == "l1" else timed(data, limits[1], goal, tol=1e-12, **options))
    cells: list[object] = []
    for oracle in (lbfgsb.by_numpy(data), lbfgsb.by_linrank(data)):
        taken, n, value = lbfgsb.fit(oracle, data.n_features, penalty, alpha, goal, limits[1])
        more = "" if value <= goal else "> "
        cells += [f"{more}{taken:.3g}" + (f" ({value / bound - 1:.1e})" if more else ""), n]
        target = FASTER if case.cells[0] == "clothing" else None
        cells.append((">= " if more else "") + ratio(taken / ours[1].seconds, target))
    shown = [("" if fit.is_there else "> ") + f"{fit.seconds:.3g}" for fit in ours]
    table.add(*case.cells, *shown, *cells)


# ---- newton -----------------------------------------------------------------


def newton_table() -> Table:
    return Table(
        "l2: newton against coordinate descent, each to a relative gap of 1e-9 in its own way",
        ["set", "penalty", "alpha", "newton: s", "coordinate: s", "coordinate / newton",
         "difference of F, relative", "of w, relative", "<= 1e-6"],
    )  # fmt: skip


def compare_newton(table: Table, case: Case, best: Timed) -> None:
    newton = timed(case.data, solver="newton", tol=1e-9, **case.options)
    descent = timed(case.data, 60.0, solver="coordinate", tol=1e-9, **case.options)
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
