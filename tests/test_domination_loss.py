"""The domination loss: the definition, its derivatives, its laws and its dual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from linrank import reference
from linrank.data.rows import as_rows
from linrank.layering import Layering
from linrank.losses.domination import DominationLoss
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


def margin_of(layering):
    if layering.table is None:
        return lambda i, j: 0.0
    queries = layering.queries
    lengths = np.diff(queries.offsets)
    first_cell = np.concatenate([[0], np.cumsum(queries.n_levels)])[:-1]
    cell = np.repeat(first_cell, lengths) + queries.levels
    grade = layering.grades[cell]
    return lambda i, j: layering.table[grade[i], grade[j]]


def definition(z, layering):
    return reference.domination_loss(
        z,
        layering.queries.offsets,
        layering.queries.levels,
        s=layering.shift,
        u=layering.row_weight,
        c=layering.query_weight,
        margin=margin_of(layering),
    )


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


@given(case=layerings(), t=st.floats(0.0, 1.0), seed=st.integers(0, 1000))
def test_the_entropy_dual_bounds_the_loss_and_touches_it_at_one(case, t, seed):
    z, layering = case
    loss = DominationLoss(layering)
    point = loss.at(z)
    bound = loss.entropy_dual(point, t)
    tolerance = 1e-12 * (1.0 + point.value + abs(point.slope))
    assert bound >= t * (point.value - point.slope) - tolerance  # concave, and 0 at t = 0
    assert abs(loss.entropy_dual(point, 1.0) - (point.value - point.slope)) <= tolerance
    assert (
        abs(loss.entropy_dual(point, 1.0 - 1e-15) - loss.entropy_dual(point, 1.0))
        <= 1e3 * tolerance
    )
    rng = np.random.default_rng(seed)
    for scale in (0.1, 1.0, 10.0):
        other = z + scale * rng.normal(size=len(z))
        plane = bound + t * (point.gradient @ other)
        assert loss.at(other).value >= plane - 1e2 * tolerance


@given(case=layerings(), dtype=st.sampled_from([np.float32, np.float64]), n=st.integers(1, 20))
def test_explicit_hessians_are_the_definition(case, dtype, n):
    z, layering = case
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(len(z), n)) * (rng.random((len(z), n)) < 0.6)).astype(dtype)
    loss, order = DominationLoss(layering), layering.queries.order
    point = loss.at(z)
    by_position = x if order is None else x[order]
    truth = by_position.T.astype(np.float64) @ definition(z, layering)["hessian"] @ by_position
    scale = 1e-5 if dtype == np.float32 else 1e-12
    for rows in (as_rows(x), as_rows(sparse.csr_array(x))):
        tolerance = scale * max(1.0, np.abs(truth).max())
        matrix = loss.hessian_matrix(rows, point)
        assert_allclose(matrix, truth, rtol=0.0, atol=tolerance)
        assert (matrix == matrix.T).all()
        diagonal = loss.hessian_diagonal(rows, point)
        assert_allclose(diagonal, np.diag(truth), rtol=0.0, atol=1e-11 * max(1.0, point.value))
