"""The sample that stands for the whole: what its weights promise."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from linrank.data.queries import Queries
from linrank.pairs import Pairs
from linrank.ranksvm.train import sample_queries


def pairs_of(levels, weight):
    """(i, j, u_i·u_j) of all pairs of one query, i above j."""
    above, below = np.nonzero(levels[:, np.newaxis] > levels)
    return above, below, weight[above] * weight[below]


def queries_of(sizes, n_labels, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.geometric(0.5, sum(sizes)).clip(max=n_labels)  # high levels are rare
    return Queries.of(labels, np.repeat(np.arange(len(sizes)), sizes))


def test_rows_of_a_long_query_stand_for_their_level():
    """Every level is there, and any two levels keep the weight of their pairs."""
    queries = queries_of([5000, 4000], 6)
    sample, _, weight = sample_queries(queries, 400, seed=0)
    assert sample.n_rows < 500
    for q in range(sample.n_queries):
        rows = slice(sample.offsets[q], sample.offsets[q + 1])
        whole = queries.levels[queries.offsets[q] : queries.offsets[q + 1]]
        stands_for = np.bincount(sample.levels[rows], weights=weight[rows])
        assert_allclose(stands_for, np.bincount(whole))
    of_sample, of_all = Pairs(sample, weight), Pairs(queries)
    assert_allclose(of_sample.weight_by_query, of_all.weight_by_query)


def test_levels_of_a_sample_are_ranked_anew():
    """The kernels' trees grow with the number of levels: few rows must not bring those of all."""
    queries = Queries.of(np.random.default_rng(3).permutation(3000))
    sample, positions, _ = sample_queries(queries, 200, seed=0)
    assert sample.n_levels.tolist() == [sample.n_rows]
    assert (np.argsort(sample.levels) == np.argsort(queries.levels[positions])).all()


def test_sums_over_the_sampled_pairs_are_unbiased():
    """The mean over samples of ``Σ u_i u_j h_ij`` is the sum of all h, for any fixed h."""
    queries = queries_of([600], 4)
    h = np.random.default_rng(2).exponential(size=(600, 600))
    above, below, _ = pairs_of(queries.levels, np.ones(600))
    truth = h[above, below].sum()
    found = []
    for seed in range(200):
        _, positions, weight = sample_queries(queries, 128, seed)
        above, below, product = pairs_of(queries.levels[positions], weight)
        found.append(product @ h[positions[above], positions[below]])
    error = np.std(found) / np.sqrt(len(found))
    assert error < 0.01 * truth
    assert abs(np.mean(found) - truth) < 4 * error
