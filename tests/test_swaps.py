"""Pairs weighted by a measure: weights equal what a swap changes, sweeps equal lists."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linrank
from linrank.data import rows as design
from linrank.data.preferences import Preferences
from linrank.data.queries import Queries
from linrank.losses.base import PreferenceHinge, PreferenceHuber, PreferenceSquaredHinge
from linrank.losses.swaps import (
    LONGEST,
    SwapHinge,
    SwapHuber,
    Swaps,
    SwapSquaredHinge,
    swap_measure,
)

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


def weights_of(swaps: Swaps) -> dict[tuple[int, int], float]:
    """Winner, loser and weight of all pairs, by row, from the fields."""
    found, queries = {}, swaps.queries
    order = queries.order
    for q in range(queries.n_queries):
        begin, end = queries.offsets[q : q + 2]
        for t in range(begin, begin + swaps.depth[q]):
            for j in range(t + 1, end):
                u = 1.0 if swaps.row_weight is None else swaps.row_weight[t] * swaps.row_weight[j]
                difference = swaps.gain[t] - swaps.gain[j]
                weight = abs(difference) * swaps.factor[t] * u * (swaps.first[t] - swaps.second[j])
                if weight > 1e-15:
                    winner, loser = (t, j) if difference > 0 else (j, t)
                    found[int(order[winner]), int(order[loser])] = weight
    return found


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


@pytest.mark.parametrize("name", ["ndcg@3", "map", "err@4"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["squared", "hinge", "huber"])
def test_sweeps_equal_lists(name: str, weighted: bool, loss: str) -> None:
    queries, labels, scores, _ = make(7, n_queries=20, longest=40)
    rng = np.random.default_rng(3)
    n, weights = len(labels), {}
    if weighted:
        weights = {"row_weight": rng.random(n), "query_weight": rng.random(queries.n_queries)}
    swaps = Swaps.of(queries, labels, scores, swap_measure(name), **weights)
    if loss == "huber":
        swept, twin = SwapHuber(swaps, epsilon=0.4), PreferenceHuber(listed(swaps), n, epsilon=0.4)
    else:
        kinds = {"squared": (SwapSquaredHinge, PreferenceSquaredHinge)}
        kinds["hinge"] = (SwapHinge, PreferenceHinge)
        swept, twin = kinds[loss][0](swaps), kinds[loss][1](listed(swaps), n)
    z, v, X = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, 5)) + 10.0
    ours, theirs = swept.at(z[swept.order]), twin.at(z if twin.order is None else z[twin.order])
    names = ("value", "sum_of_slacks", "inner_slacks", "n_violations", "total_curvature")
    for one in names:
        assert_allclose(getattr(ours, one), getattr(theirs, one), rtol=1e-11, err_msg=one)

    def by_row(loss: object, values: np.ndarray) -> np.ndarray:
        out = np.zeros(n)
        out[np.arange(n) if loss.order is None else loss.order] = values
        return out

    assert_allclose(by_row(swept, ours.gradient), by_row(twin, theirs.gradient), atol=1e-12)
    if loss == "hinge":
        return
    ours_v = swept.curvature(ours, v[swept.order])
    theirs_v = twin.curvature(theirs, v if twin.order is None else v[twin.order])
    assert_allclose(by_row(swept, ours_v), by_row(twin, theirs_v), atol=1e-12)
    for matrix, rtol in ((X, 1e-9), (X.astype(np.float32), 1e-4)):
        rows = design.DenseRows(matrix)
        expected = twin.hessian_matrix(rows, theirs)
        scale = np.abs(expected).max()
        found = swept.hessian_matrix(rows, ours)
        assert_allclose(found, expected, atol=rtol * scale)
        assert_allclose(found, found.T)


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
