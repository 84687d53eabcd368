"""The public ``RankSVM().fit`` on 1, 2, 4, ... threads, and the share of the scan of its rows."""

from __future__ import annotations

import statistics
import time
from typing import Any
from unittest import mock

import problems
from linrank import RankSVM, _core
from linrank.system.resources import all_threads
from report import Table, main, seconds, spread

SETS = {"b20": 1.0, "y20": 1.0, "c": 1.0, "nycflights": 1.0, "d200k": 1e-6}  # with their C
SCAN = 0.1  # largest share of a fit that the scan of its rows may take


def measure(quick: bool) -> list[Table]:
    table = Table(
        "RankSVM(C).fit(X, y, qid=qid), features as they are, wall seconds",
        [
            *("set", "rows × features", "threads", "fit, seconds", "ratio to one thread"),
            *("same bits", "scan, seconds", "share of the fit"),
        ],
        notes=[
            "median (lowest–highest) of five, the numbers of threads in turn",
            "the scan finds values that are not finite, the statistics of all columns and the "
            "fingerprint of the data",
        ],
    )
    counts = [2**k for k in range(all_threads().bit_length())]
    for name, C in SETS.items():
        try:
            data = problems.load(name, 0.02 if quick else 1.0)
        except problems.Absent as absent:
            table.notes.append(f"{name} skipped: {absent}")
            continue
        _add(table, name, data, C, counts, quick)
    return [table]


def _add(table: Table, name: str, data: Any, C: float, counts: list[int], quick: bool) -> None:
    fits: dict[int, list[tuple[float, float, Any]]] = {n_jobs: [] for n_jobs in counts}
    for _ in range(5):  # in turn, so that a slow minute hits all
        for n_jobs in counts:
            fits[n_jobs].append(fit(data, C, n_jobs))
    alone = statistics.median(taken for taken, _, _ in fits[1])
    coef = fits[1][0][2]
    for n_jobs, done in fits.items():
        wall, scans, found = zip(*done, strict=True)
        share = statistics.median(scan / taken for taken, scan, _ in done)
        verdict = f" (<= {100 * SCAN:g}%: {'met' if share <= SCAN else 'MISSED'})"
        table.add(
            *(name, f"{data.n_rows} × {data.n_features}", n_jobs, spread(wall)),
            f"{alone / statistics.median(wall):.2f}",
            all((one == coef).all() for one in found),
            spread(scans),
            f"{100 * share:.2g}%" + ("" if quick or name not in ("b20", "y20") else verdict),
        )


def fit(data: Any, C: float, n_jobs: int) -> tuple[float, float, Any]:
    """Seconds of a fit as users call it and of the scans of its rows, and the coefficients."""
    scan, taken = _core.scan_columns, []

    def timed(*given: Any) -> Any:
        start = time.perf_counter()
        found = scan(*given)
        taken.append(time.perf_counter() - start)
        return found

    ranker = RankSVM(C, scale="none", n_jobs=n_jobs)
    with mock.patch.object(_core, "scan_columns", timed):
        [whole] = seconds(lambda: ranker.fit(data.X, data.y, qid=data.qid), 1)
    return whole, sum(taken), ranker.coef_


if __name__ == "__main__":
    main(measure, __doc__)
