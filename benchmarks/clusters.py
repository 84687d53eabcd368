"""Clusters of processes on this machine for the benchmarks, and blocks of rows made on them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from linrank.dask.partitions import Partitions, partitions_of
from linrank.data.dataset import Dataset
from linrank.data.rows import CsrRows
from linrank.parts.chunk import Chunk, MemoryChunks
from linrank.parts.recipes import RankRecipe

ROWS_OF_A_QUERY = 120
N_FEATURES = 136
LEVELS = (0.52, 0.84, 0.97, 0.99)  # shares of the rows below each label, as in MSLR-WEB30K


@contextmanager
def running(n_workers: int, n_threads: int = 1) -> Iterator[Client]:
    """A client of so many worker processes."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            memory_limit=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        client.run(_warm)
        yield client


def _warm() -> None:
    """Import on the worker what its first task would."""


def dense_block(number: int, n_rows: int, n_features: int = N_FEATURES) -> tuple[Any, Any, Any]:
    """Rows, labels and query ids of partition ``number``, in the shape of MSLR-WEB30K."""
    rng = np.random.default_rng([5, number])
    X = rng.random((n_rows, n_features), dtype=np.float32)
    truth = np.random.default_rng(0).standard_normal(n_features).astype(np.float32)
    noisy = X @ truth + 4.0 * rng.standard_normal(n_rows, dtype=np.float32)
    return X, _labels(noisy), _ids(number, n_rows)


def sparse_block(
    number: int, n_rows: int, n_features: int, entries: int
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The same with so many non-zeros a row, frequent columns first as the words of texts are."""
    rng = np.random.default_rng([6, number])
    place = (np.arange(entries) + rng.random((n_rows, entries), dtype=np.float32)) / entries
    columns = ((n_features - entries) * place**3).astype(np.int32) + np.arange(entries, dtype="i4")
    values = rng.random((n_rows, entries), dtype=np.float32)
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    truth = np.random.default_rng(0).standard_normal(n_features)
    noisy = (values * truth[columns]).sum(axis=1) + rng.standard_normal(n_rows)
    offsets = np.arange(n_rows + 1, dtype=np.int64) * entries
    rows = CsrRows(values.ravel(), columns.ravel(), offsets, n_features)
    return rows.to_user(), _labels(noisy), _ids(number, n_rows)


def _labels(noisy: Any) -> Any:
    return np.digitize(noisy, np.quantile(noisy[:20_000], LEVELS)).astype(np.float64)


def _ids(number: int, n_rows: int) -> Any:
    return number * 10**8 + np.arange(n_rows) // ROWS_OF_A_QUERY


def on_workers(client: Client, block: Any, n_blocks: int, *size: int) -> Partitions:
    """Partitions made on the workers by ``block(number, *size)``."""
    task = dask.delayed(block, pure=False)
    return partitions_of([task(number, *size) for number in range(n_blocks)], client=client)


def in_process(block: Any, n_blocks: int, *size: int, n_threads: int = 1) -> MemoryChunks:
    """The same chunks here."""
    return MemoryChunks([chunk_of(block(i, *size)) for i in range(n_blocks)], n_threads)


def chunk_of(made: Sequence[Any]) -> Chunk:
    X, y, qid = made
    return RankRecipe().chunk(Dataset.of(X, y, qid=qid))


class Timed:
    """A gathering whose rounds are timed: ``rounds`` are (kind, seconds)."""

    def __init__(self, gathering: Any) -> None:
        self.gathering = gathering
        self.rounds: list[tuple[str, float]] = []

    @property
    def n_chunks(self) -> int:
        return int(self.gathering.n_chunks)

    def total(self, task: Any, *args: Any) -> Any:
        with_hessian = any(a is True for a in args)
        kind = "hessian" if with_hessian else str(task.__name__)
        if kind == "curvature":
            kind = args[2].removeprefix("hessian_")
        return self._timed(kind, lambda: self.gathering.total(task, *args))

    def each(self, task: Any, *args: Any, **own: Any) -> Any:
        return self._timed(str(task.__name__), lambda: self.gathering.each(task, *args, **own))

    def _timed(self, kind: str, call: Any) -> Any:
        started = time.perf_counter()
        found = call()
        self.rounds.append((kind, time.perf_counter() - started))
        return found

    def count(self, kind: str) -> int:
        return sum(name == kind for name, _ in self.rounds)

    def seconds(self, kind: str) -> list[float]:
        return [spent for name, spent in self.rounds if name == kind]
