"""Generated sets with the shapes of well-known collections, kept on disk once made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import linrank
from documents import Documents
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.synthetic import make_ranking

CACHE = Path(__file__).resolve().parent.parent / "build" / "benchmarks"


@dataclass(frozen=True)
class Shape:
    """Arguments of `linrank.make_ranking`; a fraction of the set has that share of its queries."""

    about: str
    n_queries: int
    rows_per_query: int | tuple[int, int]
    n_features: int
    n_levels: int | None
    density: float = 1.0

    def make(self, fraction: float) -> Dataset:
        n_queries, rows = self.n_queries, self.rows_per_query
        if n_queries == 1 and isinstance(rows, int):
            rows = max(10, round(fraction * rows))
        else:
            n_queries = max(2, round(fraction * n_queries))
        sizes = (n_queries, rows, self.n_features, self.n_levels)
        data = make_ranking(*sizes, density=self.density, random_state=2014)
        return query_normalised(data) if self.density == 1.0 else data


# Bounds of the query sizes are chosen for the mean size in the comment behind them. Dense sets are
# normalised by query, as LETOR and Yahoo sets are when published: conjugate gradients then need
# about as many steps as on real sets, on the raw values four times as many.
GENERATED: dict[str, Shape | Documents] = {
    "a": Shape("MQ2007 shape", 1_692, (7, 67), 46, 3),  # 25
    "b": Shape("MSLR-WEB30K shape", 18_920, (40, 290), 136, 5),  # 120
    "b20": Shape("MSLR-WEB30K shape, 20 %", 3_784, (40, 290), 136, 5),
    "b10": Shape("MSLR-WEB30K shape, 10 %", 1_892, (40, 290), 136, 5),
    "c": Shape("MQ2007-list shape, labels distinct", 1_030, (350, 1_300), 46, None),  # 720
    "y20": Shape("Yahoo shape, 20 %", 3_750, (8, 64), 520, 5),  # 25
    "d": Shape("sparse CTR shape, one query", 1, 1_000_000, 1_000_000, 2, 30e-6),
    "d200k": Shape("sparse CTR shape, one query", 1, 200_000, 200_000, 2, 150e-6),
    "f": Shape("one query, labels distinct", 1, 50_000, 46, None),
    "rcv1": Documents("RCV1 shape, one query", 804_414, 47_236, 70, 0.002),
}


def generated(name: str, fraction: float) -> Dataset:
    """Generated once: making ``b`` takes longer than all its fits."""
    folder = CACHE / (name if fraction == 1.0 else f"{name}-{fraction:g}")
    shape = GENERATED[name]
    stamp = repr((shape, fraction, linrank.__version__))
    if not (folder / "stamp").exists() or (folder / "stamp").read_text() != stamp:
        folder.mkdir(parents=True, exist_ok=True)
        _store(shape.make(fraction), folder)
        (folder / "stamp").write_text(stamp)
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    if shape.density < 1:
        rows: Any = CsrRows(
            arrays["values"], arrays["columns"], arrays["offsets"], shape.n_features
        )
    else:
        rows = DenseRows(arrays["values"])
    return Dataset(rows, arrays["labels"], arrays["qid"], source=f"<{name}>")


def _store(data: Dataset, folder: Path) -> None:
    arrays = {"values": data.rows.values, "labels": data.labels, "qid": data.qid}
    if isinstance(data.rows, CsrRows):
        arrays |= {"columns": data.rows.columns, "offsets": data.rows.offsets}
    for key, array in arrays.items():
        np.save(folder / f"{key}.npy", array)


def query_normalised(data: Dataset) -> Dataset:
    """Each feature mapped to [0, 1] inside each query; 0 where it is constant there."""
    order, offsets = data.queries.order, data.queries.offsets
    X = np.array(data.X) if isinstance(data.rows, DenseRows) else data.X.toarray()
    X = X if order is None else X[order]
    for begin, end in pairwise(offsets):
        rows = X[begin:end]
        rows -= rows.min(axis=0)
        width = rows.max(axis=0)
        rows *= np.divide(1, width, out=np.zeros_like(width), where=width > 0)
    data = data if order is None else data.select(order)
    return replace(data, rows=DenseRows(X))
