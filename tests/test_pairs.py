"""Pairs against their definition: a double loop over the rows of each query."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linrank.data.queries import Queries
from linrank.pairs import Pairs


def brute_force(pairs: Pairs) -> list[float]:
    queries = pairs.queries
    u = np.ones(queries.n_rows) if pairs.row_weight is None else pairs.row_weight
    totals = []
    for q in range(queries.n_queries):
        total = 0.0
        rows = range(queries.offsets[q], queries.offsets[q + 1])
        for i in rows:
            for j in rows:
                apart = queries.levels[i] - queries.levels[j]
                if apart == 1 or (apart > 1 and not pairs.adjacent):
                    g = 1.0 if pairs.gain is None else pairs.gain[i] - pairs.gain[j]
                    total += u[i] * u[j] * g
        totals.append(total)
    return totals


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_gain", [False, True])
@pytest.mark.parametrize("adjacent", [False, True])
def test_the_weight_of_a_query_is_the_sum_over_its_pairs(weighted, with_gain, adjacent):
    rng = np.random.default_rng(1)
    sizes = [1, 5, 40, 7]
    labels = rng.geometric(0.5, sum(sizes)).clip(max=5)
    queries = Queries.of(labels, np.repeat(np.arange(len(sizes)), sizes))
    pairs = Pairs(
        queries,
        rng.random(queries.n_rows) if weighted else None,
        None,
        2.0**labels if with_gain else None,
        adjacent,
    )
    assert_allclose(pairs.weight_by_query, brute_force(pairs), rtol=1e-12, atol=1e-12)
    c = rng.random(queries.n_queries)
    heavier = Pairs(queries, pairs.row_weight, c, pairs.gain, adjacent)
    assert_allclose(heavier.total_weight(), c @ brute_force(pairs), rtol=1e-12)
