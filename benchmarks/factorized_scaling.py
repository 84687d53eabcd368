"""What an epoch of Factorized RankSVM costs per row, from 10^4 to 2·10^6 rows.

The rows of a smaller set are the first ones of the largest: 46 dense features, or ten non-zeros
among a thousand, float32, 5 levels; queries of 50, 150 and 1,000 rows. One thread, CPU seconds.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import curves
from factorized import K, label_rows, ours, plain_rows
from linrank.data.dataset import Dataset
from report import Table, main, ratio, spread

SIZES = (10_000, 100_000, 1_000_000, 2_000_000)
LENGTHS = (50, 150, 1_000)
COMPONENTS = (1, 5, 20)
N_LEVELS = 5
N_EPOCHS = 5
C = 0.01
FLAT = 2.0  # largest factor that is still called flat


def measure(quick: bool) -> list[Table]:
    sizes = (1_000, 10_000) if quick else SIZES
    tables = [by_rows(kind, sizes) for kind in ("dense", "sparse")]
    return [*tables, by_components(sizes[-2])]


COST = ["epoch, CPU s", "epoch, wall s", "ns per row"]


def costs(data: Dataset, n_components: int = K) -> tuple[list[float], float]:
    """CPU seconds of epochs, and the middle of their wall seconds."""
    n_epochs = N_EPOCHS if data.n_rows > 50_000 else 20
    clock = ours(data, n_epochs=n_epochs, C=C, n_components=n_components)
    return list(clock.epochs), float(np.median(clock.wall_epochs))


def by_rows(kind: str, sizes: tuple[int, ...]) -> Table:
    table = Table(
        f"Factorized RankSVM, {kind}: seconds per epoch, K = {K}",
        ["rows of a query", "rows", "pairs", *COST, "by the smallest", "ns per pair"],
        notes=[
            f"the median (lowest–highest) of {N_EPOCHS} epochs or 20, one thread, C = {C:g}; what "
            "is made once before the first epoch is left out"
        ],
    )
    rows, utility = plain_rows(kind, sizes[-1])
    lines: dict[str, list[tuple[float, float]]] = {}
    for length in LENGTHS:
        for n in sizes:
            data = label_rows(rows.take(slice(n)), utility[:n], length, N_LEVELS)
            times, wall = costs(data)
            n_pairs, each = data.queries.n_pairs, float(np.median(times)) / data.n_rows
            line = lines.setdefault(f"{length} rows per query", [])
            line.append((data.n_rows, 1e9 * each))
            table.add(
                *(length, data.n_rows, f"{n_pairs:.2e}", f"{each * data.n_rows:.3g}"),
                *(f"{wall:.3g}", spread([t / data.n_rows for t in times], 1e-9)),
                *(ratio(1e9 * each / line[0][1]), f"{1e9 * each * data.n_rows / n_pairs:.3g}"),
            )
    _judge(table, lines)
    table.pictures[f"factorized-scaling-{kind}"] = picture(lines)
    return table


def _judge(table: Table, lines: dict[str, list[tuple[float, float]]]) -> None:
    """Says where the cost of a row grows by more than a factor, with rows and with pairs."""
    for title, line in lines.items():
        cost = [ns for _, ns in line]
        factor = max(cost) / min(cost)
        flat = "linear" if factor <= FLAT else "NOT linear"
        table.notes.append(
            f"{title}: {min(cost):.3g} to {max(cost):.3g} ns per row, {factor:.2g}x, {flat}"
        )
    shortest, *_, longest = (line[-1][1] for line in lines.values())
    times, factor = LENGTHS[-1] / LENGTHS[0], longest / shortest
    free = "independent of pairs" if factor <= FLAT else "NOT independent of pairs"
    table.notes.append(
        f"at the most rows, {times:g} times as long queries, and as many pairs, cost {factor:.2g}x "
        f"as much per row: {free}"
    )


def by_components(n_rows: int) -> Table:
    table = Table(
        f"Factorized RankSVM, dense, {n_rows:,} rows in queries of 150: seconds per epoch by K",
        ["K", *COST, "by K = 1"],
    )
    rows, utility = plain_rows("dense", n_rows)
    data = label_rows(rows, utility, 150, N_LEVELS)
    first = None
    for n_components in COMPONENTS:
        times, wall = costs(data, n_components)
        middle = float(np.median(times))
        first = middle if first is None else first
        table.add(
            n_components,
            f"{middle:.3g}",
            f"{wall:.3g}",
            spread([t / data.n_rows for t in times], 1e-9),
            ratio(middle / first),
        )
    return table


def picture(lines: dict[str, list[tuple[float, float]]]) -> Figure:
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    ax = figure.subplots()
    for color, (title, line) in zip(curves.COLORS, lines.items(), strict=False):
        sizes, ns = zip(*line, strict=True)
        ax.plot(sizes, ns, color=color, marker=".", lw=1, label=title)
    ax.set(xscale="log", xlabel="rows", ylabel="ns per row and epoch", ylim=(0, None))
    ax.legend(fontsize=7)
    return figure


if __name__ == "__main__":
    main(measure, __doc__)
