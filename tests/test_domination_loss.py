"""The domination loss: the definition, its derivatives, its laws and its dual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from linrank.data.queries import Queries
from linrank.data.rows import as_rows
from linrank.domination.layering import Layering
from linrank.domination.problem import DominationLoss
from strategies import scored_queries


def with_table(layering, rng):
    """A table of margins over five grades; the layers of a query are grades of it, in any order."""
    grades = rng.integers(0, 5, int(layering.queries.n_levels.sum())).astype(np.int32)
    return replace(layering, table=rng.normal(size=(5, 5)), grades=grades)


@st.composite
def layerings(draw, max_rows=25, ties=True):
    """Scores by position and layers, with every kind of margin and weight or without."""
    case = draw(scored_queries(max_rows, ties))
    queries = case.queries
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shift = u = c = None
    if draw(st.booleans()):
        shift = rng.normal(size=queries.n_rows)
    if draw(st.booleans()):
        u = rng.integers(0, 4, queries.n_rows) / 2
    if draw(st.booleans()):
        c = rng.uniform(0.1, 2.0, queries.n_queries)
    layering = Layering(queries, shift, u, c)
    return case.z, with_table(layering, rng) if draw(st.booleans()) else layering


def per_query(layering, values):
    return np.repeat(values, np.diff(layering.queries.offsets))


def grade_of_position(layering):
    queries = layering.queries
    first_cell = np.concatenate([[0], np.cumsum(queries.n_levels)])[:-1]
    return layering.grades[per_query(layering, first_cell) + queries.levels]


def definition(z, layering):
    margin = {}
    if layering.table is not None:
        grade = grade_of_position(layering)
        margin["margin"] = lambda i, j: layering.table[grade[i], grade[j]]
    return reference.domination_loss(
        z,
        layering.queries.offsets,
        layering.queries.levels,
        s=layering.shift,
        u=layering.row_weight,
        c=layering.query_weight,
        **margin,
    )


def layers(y, qid=None, **options):
    return Layering(Queries.of(np.asarray(y, dtype=np.float64), qid), **options)


# ---- the definition ---------------------------------------------------------------------------


@given(case=layerings())
def test_value_and_derivatives_are_the_definition(case):
    z, layering = case
    point, truth = DominationLoss(layering).at(z), definition(z, layering)
    assert_allclose(point.value, truth["value"], rtol=1e-12, atol=1e-13)
    assert_allclose(point.gradient, truth["gradient"], rtol=1e-11, atol=1e-13)
    assert_allclose(point.total_curvature, np.trace(truth["hessian"]), rtol=1e-11, atol=1e-12)
    assert_allclose(point.slope, truth["gradient"] @ z, rtol=1e-11, atol=1e-12)
    v = np.random.default_rng(0).normal(size=len(z))
    product = DominationLoss(layering).curvature(point, v)
    assert_allclose(product, truth["hessian"] @ v, rtol=1e-10, atol=1e-12)


def test_the_diagonal_of_many_layers_is_no_less_than_nothing_and_finite():
    rng = np.random.default_rng(0)
    layering, x = layers(rng.permutation(200)), rng.normal(size=(200, 3)) + 1e3
    loss = DominationLoss(layering)
    point = loss.at(rng.normal(size=200))
    exact = np.diag(loss.hessian_matrix(as_rows(x), point))
    estimate = loss.hessian_diagonal(as_rows(x), point)
    assert_allclose(estimate, exact, rtol=0.5)


def test_an_offset_of_the_rows_costs_the_explicit_hessian_no_digits():
    rng = np.random.default_rng(1)
    layering = layers(rng.integers(0, 4, 300), np.arange(300) // 20)
    loss, x = DominationLoss(layering), rng.integers(-8, 8, (300, 5)).astype(np.float32)
    point = loss.at(rng.normal(size=300))
    offset = np.float32(4096.0) * (1 + np.arange(300) // 20)[:, np.newaxis]
    for hessian in (loss.hessian_matrix, loss.hessian_diagonal):
        near = hessian(as_rows(x), point)
        assert_allclose(hessian(as_rows(x + offset), point), near, rtol=1e-4, atol=1e-4)


# ---- the dual ---------------------------------------------------------------------------------


@given(case=layerings(), t=st.floats(0.01, 0.99))
def test_the_entropy_dual_is_the_sum_over_rows(case, t):
    """Entropy and expected ``log u + Δ`` of the softmax of each row that gives t times as much."""
    z, layering = case
    n = len(z)
    u = np.ones(n) if layering.row_weight is None else layering.row_weight
    queries = layering.queries
    c = np.ones(queries.n_queries) if layering.query_weight is None else layering.query_weight
    s = np.zeros(n) if layering.shift is None else layering.shift
    grade = None if layering.table is None else grade_of_position(layering)
    total, query = 0.0, per_query(layering, np.arange(queries.n_queries))
    for i in range(n):
        is_below = (query == query[i]) & (queries.levels < queries.levels[i])
        below = np.flatnonzero(is_below & (u > 0))
        if len(below) == 0:
            continue
        delta = 0.0 if grade is None else layering.table[grade[i], grade[below]]
        terms = np.log(u[below]) + (z - s)[below] + delta
        log_z = np.logaddexp.reduce(terms)
        pi, rho = np.exp(terms - log_z), 1.0 / (1.0 + np.exp((z - s)[i] - log_z))
        p = np.append(1.0 - t * rho, t * rho * pi)
        gain = np.append(0.0, np.log(u[below]) + delta - s[below] + s[i])
        total += c[query[i]] * u[i] * float((p * (gain - np.log(p))).sum())
    bound = DominationLoss(layering).at(z).dual(t, 1)
    assert_allclose(bound, total, rtol=1e-10, atol=1e-11)


# ---- numbers ----------------------------------------------------------------------------------


def test_far_scores_and_margins_neither_overflow_nor_lose_digits():
    rng = np.random.default_rng(3)
    y, qid = rng.integers(0, 4, 60), np.arange(60) // 12
    grades = np.concatenate([np.arange(k) for k in Queries.of(y, qid).n_levels]).astype(np.int32)
    for spread in (1e2, 1e4):
        z = spread * rng.normal(size=60)
        for options in (
            {},
            {"shift": 1e3 * rng.normal(size=60), "row_weight": rng.integers(0, 3, 60) / 2},
            {"table": 1e3 * rng.normal(size=(4, 4)), "grades": grades},
        ):
            layering = layers(y, qid, **options)
            point, truth = DominationLoss(layering).at(z), definition(z, layering)
            assert_allclose(point.value, truth["value"], rtol=1e-13)
            assert_allclose(point.gradient, truth["gradient"], rtol=1e-9, atol=1e-12)
            product = point.multiply(z / spread, 1)
            assert_allclose(product, truth["hessian"] @ z / spread, rtol=1e-8, atol=1e-10)
            assert np.isfinite(point.dual(0.5, 1))


def test_a_tiny_loss_keeps_its_digits():
    z, below = np.array([0.0, 1.0, 45.0, 90.0]), 1.0 + np.e
    expected = below * np.exp(-45.0) + (below + np.exp(45.0)) * np.exp(-90.0)  # log(1 + x) = x
    for u in (1.0, 0.5):
        loss = DominationLoss(layers([0, 0, 1, 2], row_weight=np.full(4, u)))
        assert_allclose(loss.at(z).value, u * u * expected, rtol=1e-13)


def test_layers_without_weight_are_not_there():
    layering = layers(
        [0, 1, 2, 0, 1], [0, 0, 0, 1, 1], row_weight=np.array([0.0, 0.0, 1.0, 1.0, 0.0])
    )
    point = DominationLoss(layering).at(np.array([1e4, 3.0, -2.0, 0.0, 1.0]))
    assert point.value == 0.0
    assert not point.gradient.any()
    assert not point.multiply(np.arange(5.0), 1).any()
    assert point.dual(0.5, 1) == 0.0
    with pytest.raises(ValueError, match=r"t must lie in \[0, 1\]"):
        point.dual(1.1, 1)
