"""Write the tables of docs/scale.md: ``scale_page.py [results.json]``.

With results, those of `scale.py` and `cluster.py` in them replace what the page shows as measured.
All that the page predicts is computed anew from the constants that it shows, by `costs.py`; a test
holds the page to that.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from costs import (
    GIANT_VECTORS,
    Cluster,
    Constants,
    Data,
    Rounds,
    least_for,
    memory_of_worker,
    predict,
    predict_giant,
    predict_loading,
    predict_passes,
    predict_round,
    row_seconds,
)
from linrank.system import tables as layout

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scale.md"
NETWORK = 1.25e9  # bytes per second: 10 Gbit
PARTITION = 512e6  # bytes
SAMPLE = 256 << 20  # bytes of the sample, at most
THREADS = 2  # of a worker: machines like the one that was measured
MEMORY = 24e9  # bytes of it
MEANINGS = {
    "round": "a round of tasks on one worker, without work",
    "task": "each additional task of a round",
    "sent": "sending an argument to a worker",
    "reply": "sending a result to the client",
    "fetched": "from one worker to another",
    "product_row": "Hessian product, dense, with known state",
    "product_entry": "",
    "point_row": "value, gradient and state at a new w, dense",
    "point_entry": "",
    "sparse_product_row": "Hessian product, sparse, 10^6 features",
    "sparse_product_entry": "",
    "sparse_point_row": "value, gradient and state, sparse",
    "sparse_point_entry": "",
    "feature": "vectors of a chunk, for any number of rows",
    "hessian": "explicit Hessian, beyond the point",
    "crowding": "slowdown by two cores sharing memory",
    "disk": "sequential read past the cache",
    "loaded": "loading a cached chunk of a store, with checks",
    "sample": "start from a sample, on the client, two threads",
    "sweep_product": "one giant query without its features, two threads",
    "sweep_point": "",
}
DENSE = Data(0, 136, 136)
SPARSE = Data(0, 1_000_000, 100, True)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    shown = [[cell if isinstance(cell, str) else _number(cell) for cell in row] for row in rows]
    heads = [layout.Column(heading, "left") for heading in columns]
    return layout.Table(heads, shown).to_markdown()


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _count(value: float) -> str:
    """10^9 and the like."""
    power = round(math.log10(value))
    return f"10^{power}" if value == 10**power else f"{value:.0f}"


# ---- what the page shows ---------------------------------------------------------------------


def block(text: str, name: str) -> str:
    """What is between the marks of that name."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"the page has no block {name!r}")
    return found[1]


def with_block(text: str, name: str, content: str) -> str:
    block(text, name)
    mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return mark.sub(lambda found: f"{found[1]}\n{content.strip()}\n\n{found[2]}", text)


def cells(text: str) -> list[list[str]]:
    """The rows of a Markdown table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def constants_of(text: str) -> Constants:
    found = {row[0].strip("`"): float(row[1]) for row in cells(block(text, "constants"))}
    return Constants(**found)


def checks_of(text: str) -> list[list[str]]:
    return cells(block(text, "checks"))


def constants_table(rows: Sequence[Sequence[Any]]) -> str:
    known = {row[0]: row for row in rows}
    shown = [
        [f"`{name}`", str(known[name][1]), known[name][2], MEANINGS[name]]
        for name in Constants.names()
    ]
    return table(["constant", "value", "unit", "what"], shown)


# ---- what it predicts ------------------------------------------------------------------------


def checks(text: str) -> str:
    """Measured fits, predicted from the constants on the page."""
    c, shown = constants_of(text), []
    for row in checks_of(text):
        regime, numbers, measured = row[0], row[1:10], float(row[10])
        n_rows, n, k, n_workers, n_chunks, *counts = (
            int(cell.replace(",", "")) for cell in numbers
        )
        sample, points, hessians, products = counts
        data, rounds = Data(n_rows, n, k, n > k), Rounds(points, hessians, products, sample)
        if regime == "cluster":
            cluster = Cluster(n_workers, 1, n_chunks, is_shared=True)
            seconds = predict(data, cluster, rounds, c).seconds
        else:
            seconds = predict_passes(data, 2, 2 * 80 * n_rows / 0.75, rounds, c)[0].seconds
        numbers = [int(cell.replace(",", "")) for cell in numbers]
        shown.append([regime, *numbers, measured, seconds, f"{measured / seconds:.2f}"])
    columns = [
        *("regime", "rows", "features", "entries", "workers", "partitions", "sample", "points"),
        *("Hessians", "products", "measured, s", "predicted, s", "ratio"),
    ]
    return table(columns, shown)


def rounds_of(text: str, is_sparse: bool, n_rows: float = 0.0) -> Rounds:
    """The rounds of the largest such fit that was measured, and the sample of so many rows."""
    some = [row for row in checks_of(text) if row[0] == "cluster"]
    some = [row for row in some if (row[2] != row[3]) == is_sparse]
    largest = max(some, key=lambda row: int(row[1].replace(",", "")))
    points, hessians, products = (int(cell.replace(",", "")) for cell in largest[7:10])
    sample = 0 if is_sparse else int(min(n_rows / 20, SAMPLE / DENSE.row_bytes))
    return Rounds(points, hessians, products, sample)


def fits(text: str, like: Data, cases: Sequence[tuple[float, int]]) -> str:
    """Fits on workers like this machine, 10 Gbit between them."""
    c, shown = constants_of(text), []
    for n_rows, n_workers in cases:
        data = Data(n_rows, like.n_features, like.entries, like.is_sparse)
        n_chunks = max(n_workers, math.ceil(data.n_bytes / PARTITION))
        n_chunks = math.ceil(n_chunks / n_workers) * n_workers
        cluster = Cluster(n_workers, THREADS, n_chunks, NETWORK)
        rounds = rounds_of(text, like.is_sparse, n_rows)
        one = predict_round(data, cluster, "product", c)
        fit = predict(data, cluster, rounds, c)
        parts = " + ".join(f"{part:.2g}" for part in (one.work, one.latency, one.traffic))
        shown.append([
            _count(n_rows), n_workers, data.n_bytes / 1e9, n_chunks,
            memory_of_worker(data, cluster) / 1e9, predict_loading(data, cluster, c),
            f"{one.seconds:.2g} = {parts}", rounds.n, int(fit.n_messages), fit.n_bytes / 1e9,
            fit.seconds,
        ])  # fmt: skip
    columns = [
        *("rows", "workers", "GB", "partitions", "GB per worker", "loading, s"),
        *("product, s = work + latency + traffic", "rounds", "messages", "GB moved", "fit, s"),
    ]
    return table(columns, shown)


def dense(text: str) -> str:
    cases = ((1e7, 2), (1e8, 10), (1e9, 50), (1e9, 200), (1e10, 200))
    return fits(text, DENSE, cases)


def sparse(text: str) -> str:
    return fits(text, SPARSE, ((1e7, 4), (1e8, 10), (1e8, 50), (1e9, 50), (1e9, 200)))


def out_of_core(text: str) -> str:
    """One machine like this one, whose memory holds less and less of the rows."""
    c, shown = constants_of(text), []
    for like in (DENSE, SPARSE):
        for n_rows in (1e7, 1e8, 1e9):
            data = Data(n_rows, like.n_features, like.entries, like.is_sparse)
            rounds = rounds_of(text, like.is_sparse, n_rows)
            fit, n_read = predict_passes(data, THREADS, MEMORY, rounds, c)
            one, _ = predict_passes(data, THREADS, MEMORY, Rounds(0, 0, 1), c)
            none, _ = predict_passes(data, THREADS, MEMORY, Rounds(0, 0, 0), c)
            kind = "sparse" if like.is_sparse else "dense"
            shown.append([
                kind, _count(n_rows), data.n_bytes / 1e9, n_read / 1e9,
                one.seconds - none.seconds, rounds.n, fit.seconds, fit.seconds / 3600,
            ])  # fmt: skip
    columns = [
        *("storage", "rows", "GB", "GB read per pass"),
        *("product, s", "passes", "fit, s", "hours"),
    ]
    return table(columns, shown)


def regimes(text: str) -> str:
    """Where each way of training ends, for rows of either storage."""
    c, shown = constants_of(text), []
    for name, data in (("dense, 136", DENSE), ("sparse, 10^6, 100 per row", SPARSE)):
        state = 64  # bytes per row in addition to its features
        most = 0.75 * MEMORY / (data.row_bytes + state)
        reads = data.row_bytes * c.disk
        works = row_seconds(data, "product", c) * c.crowding / THREADS
        shown.append([
            name, f"{most:.2g}", f"{1e9 * works:.3g}", f"{1e9 * reads:.3g}",
            least_for(0.5, data, 2, c) / 1e6, least_for(0.8, data, 2, c) / 1e6,
            least_for(0.8, data, 50, c) / 1e6,
        ])  # fmt: skip
    columns = [
        *("rows", "fit into 24 GB", "product, ns per row", "disk, ns per row"),
        *("MB per worker: half", "four fifths", "four fifths of 50"),
    ]
    return table(columns, shown)


def giant(text: str) -> str:
    """One query of so many rows on 50 workers."""
    c, shown = constants_of(text), []
    for n_rows in (1e7, 1e8, 1e9):
        data = Data(n_rows, 136, 136)
        n_chunks = max(50, 50 * math.ceil(data.n_bytes / PARTITION / 50))
        cluster = Cluster(50, THREADS, n_chunks, NETWORK)
        product, point = (predict_giant(data, cluster, kind, c) for kind in ("product", "point"))
        whole = predict_round(data, cluster, "product", c)
        shown.append([
            _count(n_rows), 8 * GIANT_VECTORS * n_rows / 1e9, product.n_bytes / 1e9,
            product.seconds, product.work, point.seconds, whole.seconds,
        ])  # fmt: skip
    columns = [
        *("rows", "GB at the client", "GB moved per product", "product, s", "of it work, s"),
        *("point, s", "product of short queries, s"),
    ]
    return table(columns, shown)


PREDICTED: dict[str, Callable[[str], str]] = {
    "checks": checks,
    "dense": dense,
    "sparse": sparse,
    "out-of-core": out_of_core,
    "regimes": regimes,
    "giant": giant,
}
MEASURED = {"overhead": 0, "workers": 1, "repair": 2, "lost": 3}  # tables of cluster.py


def write_tables(text: str, results: dict[str, Any] | None = None) -> str:
    """The page with its tables computed anew, after measured ones are put in."""
    results = results or {}
    if "scale" in results:
        found = results["scale"]["measured"]["tables"]
        text = with_block(text, "constants", constants_table(found[0]["rows"]))
        rows = [[str(cell) for cell in row] for row in found[1]["rows"]]
        text = with_block(text, "checks", table(found[1]["columns"], rows))
        text = with_block(text, "machine", _machine(results["scale"]))
    if "cluster" in results:
        for name, k in MEASURED.items():
            found = results["cluster"]["measured"]["tables"][k]
            rows = [[c if isinstance(c, str) else _cell(c) for c in row] for row in found["rows"]]
            notes = "\n".join(f"- {note}" for note in found["notes"])
            shown = f"{found['title']}:\n\n{table(found['columns'], rows)}\n\n{notes}"
            text = with_block(text, name, shown)
    for name, computed in PREDICTED.items():
        text = with_block(text, name, computed(text))
    return text


def _cell(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else _number(value)


def _machine(result: dict[str, Any]) -> str:
    e = result["environment"]
    quick = "; A QUICK RUN: sizes reduced, times mean nothing" if result["quick"] else ""
    return (
        f"Measured {e['date'][:10]} on {e['machine']}, {e['cores']} cores, Python {e['python']}, "
        f"load average {e['load_average'][0]:.2f} before{quick}."
    )


def main(arguments: Sequence[str]) -> None:
    results = json.loads(Path(arguments[0]).read_text()) if arguments else None
    PAGE.write_text(write_tables(PAGE.read_text(), results))


if __name__ == "__main__":
    main(sys.argv[1:])
