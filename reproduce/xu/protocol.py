"""LETOR's protocol for several methods: choose on validation queries, test, compare in pairs.

Every fold trains each candidate of a method, keeps the one with the best MAP on the validation
queries and measures it on the test queries. A query is tested in one fold only, so the values of
two methods, pooled over the folds, are pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import problems
from linrank.data.dataset import Dataset
from linrank.metrics import evaluate
from reproduce.gains import mslr_folds
from reproduce.paired import interval, t_test

Array = NDArray[np.float64]
Parts = dict[str, Dataset]
Candidate = tuple[str, Array]  # its parameters in words, its weights

MEASURES = ("map", "ndcg@1", "ndcg@3", "ndcg@5")
CHOOSE = 0  # MAP
PARTS = ("train", "vali", "test")


def ohsumed_folds() -> list[Parts]:
    return [{part: problems.ohsumed(fold, part) for part in PARTS} for fold in range(1, 6)]


SETS: dict[str, Callable[[], list[Parts]]] = {
    "OHSUMED": ohsumed_folds,
    "MQ2008": problems.mq2008_folds,
    "MSLR sample": mslr_folds,
}


@dataclass(frozen=True)
class Outcome:
    """The candidate of one fold that is best on validation: its MAP there, its test values."""

    chosen: str
    n_candidates: int
    validation: float
    by_query: Array  # (n_queries, n_measures)


@dataclass(frozen=True)
class Row:
    """A method on all folds; several runs differ by the seed, each with separate choices."""

    method: str
    runs: list[list[Outcome]]

    @property
    def by_query(self) -> Array:
        """Test values of the queries of all folds, mean of the runs."""
        pooled = [np.concatenate([one.by_query for one in folds]) for folds in self.runs]
        return np.asarray(np.mean(pooled, axis=0))

    @property
    def by_fold(self) -> Array:
        """Test means, one row per fold, mean of the runs."""
        means = [[one.by_query.mean(axis=0) for one in folds] for folds in self.runs]
        return np.asarray(np.mean(means, axis=0))

    @property
    def by_run(self) -> Array:
        """Test means, one row per run, mean of the folds."""
        means = [[one.by_query.mean(axis=0) for one in folds] for folds in self.runs]
        return np.asarray(np.mean(means, axis=1))

    @property
    def validation(self) -> float:
        return float(np.mean([one.validation for folds in self.runs for one in folds]))

    @property
    def chosen(self) -> str:
        """What the folds of the first run chose."""
        return "; ".join(one.chosen for one in self.runs[0])


def choose(parts: Parts, candidates: Iterable[Candidate]) -> Outcome:
    """The first of the candidates with the best validation MAP, measured on the test part."""
    found = [
        (measure_queries(parts["vali"], w)[:, CHOOSE].mean(), name, w) for name, w in candidates
    ]
    best, name, w = max(found, key=lambda one: one[0])
    return Outcome(name, len(found), float(best), measure_queries(parts["test"], w))


def measure_queries(data: Dataset, w: Array) -> Array:
    """The measures of each query, by LETOR's rules."""
    found = evaluate(data.y, data.X @ w, qid=data.qid, metrics=MEASURES, convention="letor")
    return np.array([found.per_query[name] for name in MEASURES]).T


@dataclass(frozen=True)
class Comparison:
    """One measure of a method less that of the baseline, over the test queries."""

    method: str
    measure: str
    mean: float
    low: float
    high: float
    p: float


def compare_rows(row: Row, base: Row) -> list[Comparison]:
    """Paired t tests, two-sided, and bootstrap intervals, one for each measure.

    Two methods with the same value for every query have no difference to test: p = 1.
    """
    found = []
    for k, name in enumerate(MEASURES):
        difference = row.by_query[:, k] - base.by_query[:, k]
        low, high = interval(difference)
        p = t_test(difference)
        found.append(Comparison(row.method, name, float(difference.mean()), low, high, p))
    return found
