"""Rectangles of dual variables: where they lie, and the passes of the core over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hypothesis_profiles import examples
from linrank.data.dataset import Dataset
from linrank.lowrank.rectangles import Rectangles, check_memory
from linrank.pairs import Pairs, choose_pairs
from small_data import small
from strategies import scored_queries

C = 0.7


def weighted_pairs(case, rng):
    """The pairs of a case with weights, some queries weighing nothing."""
    queries = case.queries
    c = rng.integers(0, 3, queries.n_queries) / 2
    return Pairs(queries, rng.integers(1, 4, queries.n_rows) / 2, c)


def listed(case, pairs):
    """``{(i, j): Cω}`` by row, of the pairs in queries that weigh something."""
    queries = pairs.queries
    row = np.arange(queries.n_rows) if queries.order is None else queries.order
    u = np.empty(queries.n_rows)
    u[row] = pairs.row_weight
    query = np.empty(queries.n_rows, dtype=int)
    query[row] = np.repeat(np.arange(queries.n_queries), np.diff(queries.offsets))
    c = pairs.query_weight
    return {(i, j): C * c[query[i]] * u[i] * u[j] for i, j in case.pairs() if c[query[i]] > 0}


def per_row(rectangles, values, first, k):
    """What the core knows of the rows, or columns, of block k."""
    return np.asarray(values)[first[k] : first[k + 1]]


class Case:
    """Rectangles, random buffers, and the same numbers as dictionaries by pair."""

    def __init__(self, case, seed):
        rng = np.random.default_rng(seed)
        self.pairs = weighted_pairs(case, rng)
        self.upper = listed(case, self.pairs)
        self.at = Rectangles(self.pairs, C)
        self.rng = rng
        self.z = case.z
        self.score = dict(enumerate(case.scores))
        self.rho = rng.uniform(0.2, 3.0, self.at.n_blocks)

    def buffer(self):
        return self.rng.normal(size=self.at.n_entries)

    def entries(self, values):
        """``(k, i, j, value, is_pair)`` of all entries, i and j by row."""
        for k in range(self.at.n_blocks):
            n_pairs = per_row(self.at, self.at.core.n_pairs, self.at.core.first_row, k)
            for r, i in enumerate(self.at.rows(k)):
                for c, j in enumerate(self.at.columns(k)):
                    yield k, i, j, self.at.block_of(values, k)[r, c], c < n_pairs[r]


@given(scored_queries(max_rows=16), st.integers(0, 10**6))
@examples(60)
def test_every_pair_has_its_entry(case, seed):
    """The staircase holds every pair once, with its bound; other entries are no pairs."""
    this = Case(case, seed)
    found = {(i, j) for _, i, j, _, is_pair in this.entries(this.buffer()) if is_pair}
    assert found == set(this.upper)
    core = this.at.core
    for k in range(this.at.n_blocks):
        upper = per_row(this.at, core.row_bound, core.first_row, k)
        lower = per_row(this.at, core.column_bound, core.first_column, k)
        own = [
            (upper[r] * lower[c], this.upper[i, j])
            for r, i in enumerate(this.at.rows(k))
            for c, j in enumerate(this.at.columns(k))
            if (i, j) in this.upper
        ]
        found, expected = zip(*own, strict=True)
        assert_allclose(found, expected, rtol=1e-14)
        assert_allclose(this.at.mean_bounds()[k], np.mean(expected), rtol=1e-12)


@given(scored_queries(max_rows=14), st.integers(0, 10**6))
@examples(60)
def test_sums_of_the_certificate(case, seed):
    this = Case(case, seed)
    assume(this.at.n_blocks > 0)
    alpha, a, y = this.buffer(), this.buffer(), this.buffer()
    found = np.array([np.asarray(s) for s in this.at.core.sums(this.z, alpha, a, y, this.rho, 1)])
    expected = np.zeros_like(found)
    rest = zip(this.entries(a), this.entries(y), strict=True)
    for (k, i, j, x, is_pair), ((_, _, _, b, _), (_, _, _, c, _)) in zip(
        this.entries(alpha), rest, strict=True
    ):
        Z = this.rho[k] * (b - c)
        expected[1:4, k] += (x - b) ** 2, Z * (x - b), Z * Z
        if is_pair:
            g, upper = this.score[i] - this.score[j] - 1.0 + Z, this.upper[i, j]
            moved = x - min(max(x - g, 0.0), upper)
            expected[[0, 4, 5], k] += x, upper * max(0.0, -g), moved**2
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_same_bits_on_any_number_of_threads():
    data = small(1)
    at = Rectangles(choose_pairs(data), 1.0)
    rng = np.random.default_rng(0)
    z, v = rng.normal(size=(2, data.n_rows))
    alpha, a, y = (rng.normal(size=at.n_entries) for _ in range(3))
    rho = rng.uniform(0.5, 2.0, at.n_blocks)
    for one, many in zip(
        *(
            [
                *at.core.loss(z, y, rho, n),
                at.core.curvature(z, y, rho, v, n),
                at.core.coefficients(alpha, n),
                at.core.relax(alpha, a, y.copy(), 1.5, n),
                *at.core.sums(z, alpha, a, y, rho, n),
            ]
            for n in (1, 3)
        ),
        strict=True,
    ):
        assert_array_equal(np.asarray(one), np.asarray(many))


def test_the_core_checks_what_it_is_given():
    data = small()
    at = Rectangles(choose_pairs(data), 1.0)
    z, y, rho = np.zeros(data.n_rows), np.zeros(at.n_entries), np.ones(at.n_blocks)
    with pytest.raises(ValueError, match="y has length"):
        at.core.loss(z, y[:-1], rho, 1)
    with pytest.raises(ValueError, match="z has length"):
        at.core.curvature(z[:-1], y, rho, z, 1)
    with pytest.raises(ValueError, match="rho must be finite and > 0"):
        at.core.point(z, y, 0.0 * rho, y.copy(), 1)
    with pytest.raises(ValueError, match="there is no such rectangle"):
        at.core.settle(at.n_blocks, None, 1.0, 1.0, 1.0, 1.0, y, y)
    with pytest.raises(ValueError, match="C must be finite and > 0"):
        _ = replace(at, C=-1.0).core


def test_memory_is_refused_before_it_is_taken():
    """Two hundred million rows in two levels would make 10¹⁶ pairs; only counts are looked at."""
    data = small()
    pairs = choose_pairs(data)
    n_bytes = 32 * Rectangles(pairs, 1.0).n_entries
    check_memory(pairs, n_bytes)
    check_memory(pairs, None)
    with pytest.raises(MemoryError, match=rf"{pairs.n_pairs:,} pairs .* FactorizedRankSVM"):
        check_memory(pairs, n_bytes - 1)
    rows = np.arange(600_000) % 2
    long = choose_pairs(Dataset.of(np.zeros((600_000, 1), dtype=np.float32), rows))
    with pytest.raises(MemoryError, match=r"2\.9 TB but .* available"):
        check_memory(long, None)
