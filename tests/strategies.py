"""Random ranking problems, shared by all property tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from linrank.data.dataset import Dataset
from linrank.data.queries import Queries


@dataclass(frozen=True)
class ScoredQueries:
    """Labels, query ids and scores by row, in input order (queries interleaved)."""

    labels: np.ndarray
    qid: np.ndarray
    scores: np.ndarray

    @property
    def queries(self) -> Queries:
        return Queries.of(self.labels, self.qid)

    @property
    def z(self) -> np.ndarray:
        """The scores by position."""
        return self.queries.gather(self.scores)

    def pairs(self) -> list[tuple[int, int]]:
        """All (i, j) with one query and ``labels[i] > labels[j]``: the definition."""
        rows = range(len(self.labels))
        return [
            (i, j)
            for i in rows
            for j in rows
            if self.qid[i] == self.qid[j] and self.labels[i] > self.labels[j]
        ]


@st.composite
def query_ids(draw: Any, n_rows: int) -> np.ndarray:
    """Ids that group the rows at random: together or interleaved, single-row queries included."""
    n_ids = draw(st.integers(1, max(1, min(n_rows, 8))))
    codes = draw(st.lists(st.integers(0, n_ids - 1), min_size=n_rows, max_size=n_rows))
    return np.array(sorted(codes) if draw(st.booleans()) else codes, dtype=np.int64)


@st.composite
def label_vectors(draw: Any, n_rows: int) -> np.ndarray:
    """Few grades, many grades, all distinct, one level, negative and fractional values."""
    values = draw(
        st.sampled_from(
            [
                st.sampled_from([0.0, 1.0]),
                st.integers(0, 4).map(float),
                st.integers(-30, 30).map(lambda k: k / 4),
                st.just(2.0),
            ]
        )
    )
    if draw(st.integers(0, 4)) == 0:
        return np.array(draw(st.permutations(range(n_rows))), dtype=np.float64)
    return np.array(draw(st.lists(values, min_size=n_rows, max_size=n_rows)), dtype=np.float64)


@st.composite
def scored_queries(
    draw: Any, max_rows: int = 30, ties: bool = True, min_rows: int = 1
) -> ScoredQueries:
    """Queries with scores; with ``ties``, scores lie on a grid of quarters, so that equal scores
    and margins of exactly 1 are common; without, all scores differ."""
    n_rows = draw(st.integers(min_rows, max_rows))
    if ties:
        grid = st.integers(-12, 12).map(lambda k: k / 4)
        scores = np.array(draw(st.lists(grid, min_size=n_rows, max_size=n_rows)))
    else:
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        scores = rng.permutation(np.arange(n_rows) + rng.uniform(0.1, 0.9, n_rows)) * 0.37
    return ScoredQueries(draw(label_vectors(n_rows)), draw(query_ids(n_rows)), scores)


@st.composite
def datasets(
    draw: Any,
    max_rows: int = 20,
    max_features: int = 6,
    storages: tuple[str, ...] = ("dense", "csr"),
    dtypes: tuple[str, ...] = ("float32", "float64"),
    weights: bool = False,
) -> Dataset:
    """Small datasets in any storage and type; values are multiples of 1/8, exact in float32."""
    case = draw(scored_queries(max_rows))
    n_rows, n_features = len(case.labels), draw(st.integers(1, max_features))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-16, 17, (n_rows, n_features)) / 8
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.3, 0.9]))] = 0
    X = X.astype(draw(st.sampled_from(dtypes)))
    if draw(st.sampled_from(storages)) == "csr":
        X = sparse.csr_array(X)
        if draw(st.booleans()):
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    weight = rng.integers(1, 5, n_rows) / 2 if weights and draw(st.booleans()) else None
    return Dataset.of(X, case.labels, qid=case.qid, sample_weight=weight)
