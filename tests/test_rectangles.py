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


@given(scored_queries(max_rows=14), st.integers(0, 10**6))
@examples(60)
def test_sums_of_the_certificate(case, seed):
    """Over all entries, and over the pairs ``{(i, j): Cω}`` of queries that weigh something."""
    rng, queries = np.random.default_rng(seed), case.queries
    u = rng.integers(1, 4, queries.n_rows) / 2
    c = rng.integers(0, 3, queries.n_queries) / 2
    by_row = queries.scatter(np.repeat(c, np.diff(queries.offsets)))
    at = Rectangles(Pairs(queries, queries.gather(u), c), C)
    assume(at.n_blocks > 0)
    upper = {(i, j): C * by_row[i] * u[i] * u[j] for i, j in case.pairs() if by_row[i] > 0}
    alpha, a, y = (rng.normal(size=at.n_entries) for _ in range(3))
    rho = rng.uniform(0.2, 3.0, at.n_blocks)
    found = np.array([np.asarray(s) for s in at.core.sums(case.z, alpha, a, y, rho, 1)])
    expected, n_pairs = np.zeros_like(found), 0
    for k in range(at.n_blocks):
        blocks = (at.block_of(values, k) for values in (alpha, a, y))
        places = [(i, j) for i in at.rows(k) for j in at.columns(k)]
        for place, x, b, d in zip(places, *(block.flat for block in blocks), strict=True):
            Z = rho[k] * (b - d)
            expected[1:4, k] += (x - b) ** 2, Z * (x - b), Z * Z
            if place in upper:
                i, j = place
                g = case.scores[i] - case.scores[j] - 1.0 + Z
                moved = x - min(max(x - g, 0.0), upper[place])
                expected[[0, 4, 5], k] += x, upper[place] * max(0.0, -g), moved**2
        bounds = [upper[place] for place in places if place in upper]
        n_pairs += len(bounds)
        assert_allclose(at.mean_bounds()[k], np.mean(bounds), rtol=1e-12)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert n_pairs == len(upper)


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
    core, z, y, rho = at.core, np.zeros(data.n_rows), np.zeros(at.n_entries), np.ones(at.n_blocks)
    for call, message in (
        (lambda: core.loss(z, y[:-1], rho, 1), "y has length"),
        (lambda: core.curvature(z[:-1], y, rho, z, 1), "z has length"),
        (lambda: core.point(z, y, 0.0 * rho, y.copy(), 1), "rho must be finite and > 0"),
        (lambda: core.settle(at.n_blocks, None, 1.0, 1.0, 1.0, 1.0, y, y), "no such rectangle"),
        (lambda: replace(at, C=-1.0).core, "C must be finite and > 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


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
