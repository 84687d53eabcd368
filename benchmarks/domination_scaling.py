"""What a sweep of coordinate descent costs per non-zero, from 10^4 to 10^7 rows.

The rows of a smaller set are the first ones of the largest. Sparse rows have ten non-zeros among a
thousand features, dense ones ten features; a query has 10 rows, 1000, or all of them, in three
layers or many. One thread, CPU seconds of sweeps in which every weight moves (l2).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import curves
from linrank import _core
from linrank.data.queries import Queries
from linrank.data.rows import CsrRows, DenseRows
from linrank.domination.layering import Layering
from report import Table, main, ratio, seconds, spread

Array = NDArray[Any]

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
N_FEATURES = {"sparse": 1_000, "dense": 10}
PER_ROW = 10  # non-zeros, of both
LENGTHS = (10, 1_000, None)  # rows of a query; None: all
LAYERS = {"few": 3, "many": 100}  # many in a query of 10: all distinct
N_SWEEPS = 3
MOST = 5_000_000  # non-zeros of a sweep; of more, a sweep takes every tenth column
ALPHA = 1.0
FLAT = 2.0  # largest factor that is still called flat


@dataclass(frozen=True)
class Rows:
    """Made rows: where the non-zeros are (None in dense ones), their values, what labels follow."""

    columns: Array | None
    values: Array
    utility: Array

    def first(self, n: int) -> CsrRows | DenseRows:
        if self.columns is None:
            return DenseRows(self.values[:n])
        offsets = np.arange(n + 1, dtype=np.int64) * PER_ROW
        values, columns = self.values[:n].reshape(-1), self.columns[:n].reshape(-1)
        return CsrRows(values, columns, offsets, N_FEATURES["sparse"])

    def queries(self, n: int, length: int | None, layers: str) -> Queries:
        """Layers of equal size over all rows; within a query of 10, many means distinct."""
        utility = self.utility[:n]
        sizes = None if length is None else np.full(n // length, length)
        if length == 10 and layers == "many":
            return Queries.of(utility, group=sizes)
        n_layers = LAYERS[layers]
        cuts = np.quantile(utility[:100_000], np.arange(1, n_layers) / n_layers)
        return Queries.of(np.searchsorted(cuts, utility).astype(np.float64), group=sizes)


def make_rows(kind: str, n_rows: int) -> Rows:
    """Normal values; non-zero j of a sparse row in the j-th tenth of the features."""
    rng = np.random.default_rng(2010)
    values = rng.standard_normal((n_rows, PER_ROW), dtype=np.float32)
    truth = rng.standard_normal(N_FEATURES[kind]).astype(np.float32)
    noise = np.float32(np.sqrt(PER_ROW)) * rng.standard_normal(n_rows, dtype=np.float32)
    if kind == "dense":
        return Rows(None, values, (values @ truth + noise).astype(np.float64))
    tenth = N_FEATURES[kind] // PER_ROW
    columns = rng.integers(tenth, size=(n_rows, PER_ROW), dtype=np.int32)
    columns += tenth * np.arange(PER_ROW, dtype=np.int32)
    for j in range(PER_ROW):  # a column at a time: the products of all rows would be a second copy
        noise += values[:, j] * truth[columns[:, j]]
    return Rows(columns, values, noise.astype(np.float64))


def measure(quick: bool) -> list[Table]:
    sizes = (1_000, 10_000) if quick else SIZES
    tables = []
    for kind in N_FEATURES:
        table = Table(
            f"Coordinate descent, {kind}: ns per non-zero and sweep, {PER_ROW} non-zeros per row",
            [
                "rows of a query",
                "layers",
                "rows",
                "pairs",
                "sweep, s",
                "ns",
                "by the smallest",
                "reads",
            ],
            notes=[
                f"the median (lowest–highest) of {N_SWEEPS} sweeps, all {N_FEATURES[kind]} weights "
                f"moving; the first sweep, which also takes the ranges of the columns, is left out",
                "reads: ns to read the 64 bytes of a row for every non-zero of a column, in order, "
                "by NumPy: what of the growth is the memory's",
                f"beyond {MOST:.0e} non-zeros a sweep takes every tenth column, and its seconds "
                "are ten times as many",
            ],
        )
        rows = make_rows(kind, sizes[-1])
        columns = {n: _columns(table, rows, n) for n in sizes}
        reads = {n: floor(rows, n) for n in sizes}
        for length in LENGTHS:
            for layers in LAYERS:
                _add(table, rows, columns, length, layers, reads)
        table.pictures[f"domination-scaling-{kind}"] = picture(table)
        _judge(table)
        tables.append(table)
        del rows
    return tables


def _columns(table: Table, rows: Rows, n: int) -> _core.Columns:
    """The matrix by columns, which every descent on these rows shares."""
    start = time.process_time()
    columns = _core.columns(rows.first(n).core, None, 1)
    taken = time.process_time() - start
    each = 1e9 * taken / (n * PER_ROW)
    table.notes.append(f"{n:,} rows by columns, once: {taken:.2g} s, {each:.2g} ns per non-zero")
    return columns


def floor(rows: Rows, n: int) -> float:
    """Seconds per non-zero to copy a line of memory for each, column after column."""
    lines, first = np.zeros((n, 8)), rows.columns
    entries = np.arange(n) if first is None else np.argsort(first[:n, 0], kind="stable")
    entries = entries[: MOST // PER_ROW]
    copied = np.empty((len(entries), 8))
    times = seconds(
        lambda: np.take(lines, entries, axis=0, out=copied, mode="clip"), 3, time.process_time
    )
    return min(times) / len(entries)


def _add(
    table: Table,
    rows: Rows,
    columns: dict[int, Any],
    length: int | None,
    layers: str,
    reads: dict[int, float],
) -> None:
    smallest = None
    for n, matrix in columns.items():
        queries = rows.queries(n, length, layers)
        n_features = len(rows.values[0]) if rows.columns is None else N_FEATURES["sparse"]
        stride = 10 if n * PER_ROW > MOST and n_features > 100 else 1
        swept = np.arange(0, n_features, stride)
        sweeps = list(time_sweeps(matrix, queries, np.zeros(n_features), swept))[1:]
        times = [stride * taken / (n * PER_ROW) for taken in sweeps]
        middle = float(np.median(times))
        smallest = middle if smallest is None else smallest
        table.add(
            "all" if length is None else length,
            f"{layers}: {int(queries.n_levels.max())}",
            n,
            f"{queries.n_pairs:.1e}",
            f"{middle * n * PER_ROW:.3g}",
            spread(times, 1e-9),
            ratio(middle / smallest),
            f"{1e9 * reads[n]:.2g}",
        )


def time_sweeps(
    columns: _core.Columns, queries: Queries, w: Array, swept: Array
) -> Iterator[float]:
    """CPU seconds of each sweep."""
    state = _core.coordinates(columns, Layering(queries).core, None)
    for _ in range(1 + N_SWEEPS):
        start = time.process_time()
        _, n_moved = state.sweep(w, swept, "l2", ALPHA, "local")
        yield time.process_time() - start
        if n_moved < 0.9 * len(swept):
            raise RuntimeError(f"only {n_moved} of {len(swept)} weights moved: nothing to measure")


def _lines(table: Table) -> dict[str, list[tuple[float, float]]]:
    """(rows, ns) of each kind of queries."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in table.rows:
        title = f"{row[0]} rows per query, {row[1]} layers"
        found.setdefault(title, []).append((row[2], float(row[5].split()[0])))
    return found


def _judge(table: Table) -> None:
    """Says where the cost of a non-zero grows with the rows by more than a factor."""
    for title, line in _lines(table).items():
        cost = [ns for _, ns in line]
        factor, last = max(cost) / min(cost), cost[-1] / cost[-2]
        flat = "flat" if factor <= FLAT else "NOT flat"
        table.notes.append(
            f"{title}: {min(cost):.3g} to {max(cost):.3g} ns, {factor:.2g}x, {flat}; the last "
            f"tenfold of rows: {last:.2g}x"
        )


def picture(table: Table) -> Figure:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for i, (title, line) in enumerate(_lines(table).items()):
        sizes, ns = zip(*line, strict=True)
        style, color = curves.STYLES[i % 2], curves.COLORS[i // 2]
        ax.plot(sizes, ns, style, color=color, marker=".", lw=1, label=title)
    ax.set(xscale="log", xlabel="rows", ylabel="ns per non-zero and sweep", ylim=(0, None))
    ax.legend(fontsize=7)
    return figure


if __name__ == "__main__":
    main(measure, __doc__)
