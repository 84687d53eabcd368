"""Sets, runs and clocks of the programs about RankSVM with a dual of low rank."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows, DenseRows
from linrank.data.synthetic import make_ranking
from linrank.lowrank.factorized import train_factorized
from linrank.published import factorize_by_pairs
from shapes import query_normalised

Array = NDArray[Any]

K = 5


@dataclass
class Clock:
    """A callback that notes f and the CPU and wall seconds after every epoch, until a limit."""

    limit: float = np.inf
    n_iter: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = (time.process_time(), time.perf_counter())

    def __call__(self, state: dict[str, Any]) -> bool:
        self.n_iter.append(int(state["n_iter"]))
        self.objective.append(float(state["objective"]))
        self.seconds.append(time.process_time() - self.start[0])
        self.wall.append(time.perf_counter() - self.start[1])
        return self.seconds[-1] > self.limit

    @property
    def epochs(self) -> Array:
        """CPU seconds between two calls: what is made before the first is left out."""
        return np.diff(self.seconds)

    @property
    def wall_epochs(self) -> Array:
        return np.diff(self.wall)

    def run(self) -> Run:
        return Run(np.array(self.n_iter), np.array(self.objective), np.array(self.seconds))


@dataclass(frozen=True)
class Run:
    """f after so many epochs and seconds."""

    n_iter: Array
    objective: Array
    seconds: Array

    def at(self, seconds: float) -> float:
        """The lowest f until then; infinite before there is any."""
        done = self.objective[self.seconds <= seconds]
        return float(done.min()) if len(done) else np.inf

    def epochs_at(self, seconds: float) -> int:
        done = self.n_iter[self.seconds <= seconds]
        return int(done[-1]) if len(done) else 0

    def until(self, value: float) -> float:
        """Seconds until ``f <= value``; infinite if never."""
        there = np.flatnonzero(self.objective <= value)
        return float(self.seconds[there[0]]) if len(there) else np.inf

    def paced(self, seconds: float) -> Run:
        """The same iterates at so many seconds an epoch."""
        return Run(self.n_iter, self.objective, seconds * self.n_iter)


def ours(data: Dataset, limit: float = np.inf, n_epochs: int = 10**6, **options: Any) -> Clock:
    """Epochs of linrank's trainer on one thread, until no step brings anything, or a limit."""
    options = {"n_components": K, "C": 1.0, **options}
    clock = Clock(limit)
    train_factorized(data, tol=1e-12, max_iter=n_epochs, n_jobs=1, callback=clock, **options)
    return clock


def theirs(
    data: Dataset,
    work: str,
    rate: float,
    start: float = 1.0,
    limit: float = np.inf,
    n_epochs: int = 10**6,
) -> Clock:
    """Epochs of the published algorithm, C = 1; V starts uniform in ``[0, start·√(C/K)]``."""
    V0 = start * np.sqrt(1 / K) * np.random.default_rng(2019).random((data.n_rows, K))
    clock = Clock(limit)
    factorize_by_pairs(
        data, learning_rate=rate, work=work, max_iter=n_epochs, V0=V0, callback=clock
    )
    return clock


def long_queries(n_rows: int, length: int) -> Dataset:
    """Dense features as in search data, normalised by query; 3 levels."""
    n_queries = max(2, n_rows // length)
    return query_normalised(make_ranking(n_queries, length, 46, 3, random_state=2019))


def plain_rows(kind: str, n_rows: int) -> tuple[DenseRows | CsrRows, Array]:
    """Normal values, dense or ten a row among a thousand features; and what labels follow.

    Rows for measuring time: quickly made, millions of them.
    """
    rng = np.random.default_rng(2019)
    n_features, per_row = (46, 46) if kind == "dense" else (1_000, 10)
    values = rng.standard_normal((n_rows, per_row), dtype=np.float32)
    truth = rng.standard_normal(n_features, dtype=np.float32)
    utility = np.float32(np.sqrt(per_row)) * rng.standard_normal(n_rows, dtype=np.float32)
    if kind == "dense":
        return DenseRows(values), utility + values @ truth
    share = n_features // per_row  # non-zero j lies in the j-th share of the features
    columns = rng.integers(share, size=(n_rows, per_row), dtype=np.int32)
    columns += share * np.arange(per_row, dtype=np.int32)
    for j in range(per_row):
        utility += values[:, j] * truth[columns[:, j]]
    offsets = np.arange(n_rows + 1, dtype=np.int64) * per_row
    return CsrRows(values.reshape(-1), columns.reshape(-1), offsets, n_features), utility


def labelled(rows: DenseRows | CsrRows, utility: Array, length: int, n_levels: int) -> Dataset:
    """Queries of that length; each grade is 0.4 times as frequent as the one below."""
    share = np.cumsum(0.4 ** np.arange(n_levels))
    cuts = np.quantile(utility[:100_000], share[:-1] / share[-1])
    labels = np.searchsorted(cuts, utility).astype(np.float64)
    n_rows = len(labels) // length * length
    return Dataset(rows.take(slice(n_rows)), labels[:n_rows], np.arange(n_rows) // length)
