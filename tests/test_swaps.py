"""Pairs weighted by a measure: weights equal what a swap changes, sweeps equal lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linrank
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.losses.base import PreferenceSquaredHinge
from linrank.losses.swaps import LONGEST, Swaps, SwapSquaredHinge, swap_measure

MEASURES = (
    "ndcg",
    "ndcg@3",
    "ndcg(gain=linear, discount=letor)@5",
    "map",
    "map@4",
    "map(rel=2)@3",
    "mrr",
    "mrr@3",
    "mrr(rel=3)",
    "err",
    "err@4",
    "err(y_max=6)@2",
    "p@3",
    "p(rel=2)@5",
    "recall@4",
    "rbp@6",
    "rbp(p=0.5)",
)


def make(seed: int, n_queries: int = 12, longest: int = 14) -> tuple:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, n_queries)
    qid = rng.permutation(np.repeat(np.arange(n_queries), lengths))
    labels = rng.integers(0, 5, len(qid)).astype(float)
    scores = rng.integers(0, 6, len(qid)) / 2.0  # with ties
    return Queries.of(labels, qid), labels, scores, qid


def ranked_pairs(swaps: Swaps) -> Iterator[tuple[int, int, float]]:
    """Winner, loser and weight of all pairs, by position, from the fields."""
    for q in range(swaps.queries.n_queries):
        begin, end = swaps.queries.offsets[q : q + 2]
        for t in range(begin, begin + swaps.depth[q]):
            for j in range(t + 1, end):
                u = 1.0 if swaps.row_weight is None else swaps.row_weight[t] * swaps.row_weight[j]
                difference = swaps.gain[t] - swaps.gain[j]
                weight = abs(difference) * swaps.factor[t] * u * (swaps.first[t] - swaps.second[j])
                if weight > 1e-15:
                    yield (t, j, weight) if difference > 0 else (j, t, weight)


def weights_of(swaps: Swaps) -> dict[tuple[int, int], float]:
    """The same by row."""
    order = swaps.queries.order.tolist()
    return {(order[i], order[j]): weight for i, j, weight in ranked_pairs(swaps)}


def listed(swaps: Swaps) -> Preferences:
    found = weights_of(swaps)
    pairs = np.array(list(found)).reshape(-1, 2)
    return Preferences(pairs[:, 0].copy(), pairs[:, 1].copy(), np.array(list(found.values())))


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_what_a_swap_changes(name: str, seed: int) -> None:
    queries, labels, scores, qid = make(seed)
    swaps = Swaps.of(queries, labels, scores, swap_measure(name))
    found = weights_of(swaps)

    def value(ranks: np.ndarray, rows: np.ndarray) -> float:
        options = {"qid": np.zeros(len(rows)), "metrics": name}
        # The highest grade of ERR is that of all queries: a row of it in a query of its own.
        y = np.append(labels[rows], labels.max())
        scores, group = np.append(-ranks, 0.0), np.append(np.zeros(len(rows)), 1.0)
        options["qid"] = group
        return float(next(iter(linrank.evaluate(y, scores, **options).per_query.values()))[0])

    changes = {}
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        ranks = np.argsort(np.argsort(-scores[rows], kind="stable")).astype(float)
        before = value(ranks, rows)
        for a in range(len(rows)):
            for b in range(len(rows)):
                if labels[rows[a]] > labels[rows[b]]:
                    swapped = ranks.copy()
                    swapped[[a, b]] = swapped[[b, a]]
                    change = abs(value(swapped, rows) - before)
                    if change > 1e-12:
                        changes[int(rows[a]), int(rows[b])] = change
    assert found.keys() == changes.keys()
    if changes:
        scale = sum(found.values()) / sum(changes.values())
        differences = [found[pair] - scale * changes[pair] for pair in changes]
        assert_allclose(differences, 0.0, atol=1e-12)
        # The scale: all weights sum to the number of queries that have any.
        n = len({qid[winner] for winner, _ in changes})
        assert_allclose(sum(found.values()), n, rtol=1e-12)
        assert_allclose(swaps.total_weight(), n, rtol=1e-12)
        assert swaps.n_pairs == len(changes)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="ndcg, map"):
        swap_measure("auc")
    with pytest.raises(ValueError, match="labels >= 0"):
        Swaps.of(Queries.of([-1.0, 1.0]), np.array([-1.0, 1.0]), np.zeros(2), swap_measure("ndcg"))
    n = LONGEST + 1
    labels = np.arange(n) % 2 * 1.0
    with pytest.raises(ValueError, match="name a cut-off, as in 'map@100'"):
        Swaps.of(Queries.of(labels), labels, np.zeros(n), swap_measure("map"))


def test_long_queries_and_threads() -> None:
    """Pieces of a long query, and any number of threads, give the same numbers."""
    rng = np.random.default_rng(5)
    n = 5000
    labels = rng.integers(0, 4, n).astype(float)
    queries = Queries.of(labels, np.minimum(np.arange(n) // 4500, 1))
    swaps = Swaps.of(queries, labels, rng.random(n), swap_measure("ndcg@30"))
    z, v = rng.normal(size=n), rng.normal(size=n)
    points = [SwapSquaredHinge(swaps, threads).at(z) for threads in (1, 3)]
    twin = PreferenceSquaredHinge(listed(swaps), n)
    expected = np.zeros(n)
    rows = np.arange(n) if twin.order is None else twin.order
    by_row = np.zeros(n)
    by_row[swaps.queries.order] = z
    expected[rows] = twin.at(by_row[rows]).gradient
    assert_allclose(points[0].gradient, expected[swaps.queries.order], atol=1e-12)
    assert points[0].value == points[1].value
    assert np.array_equal(points[0].gradient, points[1].gradient)
    assert np.array_equal(points[0].multiply(v, 1), points[1].multiply(v, 3))
