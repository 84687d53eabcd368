"""The domination loss: definition, derivatives, laws, dual; its coordinates, bounds that hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize_scalar

import reference
from hypothesis_profiles import examples
from linrank import _core
from linrank.choices import PENALTIES
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


# ---- coordinates: bounds that hold, steps that descend, safe sums -------------------------------


def made(layering, X, scale=None):
    """The state of a descent on these rows."""
    columns = _core.columns(as_rows(X).core, layering.queries.order, 1)
    return _core.coordinates(columns, layering.core, scale)


def by_position(layering, X):
    order = layering.queries.order
    return X if order is None else X[order]


@st.composite
def problems(draw, max_rows=20):
    """A layering, a matrix (dense or with many zeros), factors of its columns and weights."""
    _, layering = draw(layerings(max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (layering.queries.n_rows, draw(st.integers(1, 5)))
    X = rng.normal(size=shape) * (rng.random(shape) < draw(st.sampled_from([0.3, 1.0])))
    scale = rng.uniform(0.5, 2.0, shape[1]) if draw(st.booleans()) else None
    w = rng.normal(size=shape[1]) * draw(st.sampled_from([0.0, 1.0, 10.0]))
    return layering, X, scale, w


def loss_along(layering, X, scale, w, r):
    """``t -> (L, ∂L/∂w_r)`` by the definition."""
    Xd = by_position(layering, X) * (1.0 if scale is None else scale)

    def at(t):
        z = Xd @ w + t * Xd[:, r]
        found = definition(z, layering)
        return found["value"], found["gradient"] @ Xd[:, r]

    return at


@examples(40)
@given(problems(max_rows=12), st.floats(-5.0, 5.0))
def test_the_bounds_hold_everywhere(problem, t):
    layering, X, scale, w = problem
    state = made(layering, X, scale)
    state.restart(w)
    gradient, hessian, bound, spread = state.measure(np.arange(X.shape[1]), "local", 1)
    paper = state.measure(np.arange(X.shape[1]), "paper", 1)[2]
    assert (bound <= paper * (1 + 1e-12)).all()
    for r in range(X.shape[1]):
        at = loss_along(layering, X, scale, w, r)
        rise = at(t)[0] - at(0.0)[0] - gradient[r] * t
        x = spread[r] * abs(t)
        local = hessian[r] * (t * t / 2 if x < 1e-6 else (np.expm1(x) - x) / spread[r] ** 2)
        allowance = 1e-9 * max(1.0, abs(at(0.0)[0]), abs(gradient[r] * t))
        assert rise <= min(0.5 * bound[r] * t * t, local) + allowance


@given(
    st.floats(-50, 50),
    st.floats(1e-3, 10),
    st.floats(1.0, 100.0),
    st.floats(0.01, 5.0),
    st.floats(-3, 3) | st.just(0.0),
    st.sampled_from(PENALTIES),
    st.floats(0.01, 20.0),
)
def test_a_step_minimizes_its_bound(g, hessian, factor, spread, w, penalty, alpha):
    bound = factor * hessian

    def model(t):
        # Φ'' = min(bound, hessian e^{spread t}) integrated twice, from the formula.
        corner = np.log(bound / hessian) / spread
        s = min(abs(t), corner)
        rise = hessian * (np.expm1(spread * s) - spread * s) / spread**2
        slope = hessian * np.expm1(spread * s) / spread
        rest = abs(t) - s
        paid = {"l1": abs(w + t) - abs(w), "l2": (w + t) ** 2 - w**2, "none": 0.0}[penalty]
        return g * t + rise + slope * rest + 0.5 * bound * rest**2 + alpha * paid

    one = [np.array([value]) for value in (g, hessian, bound, spread, w)]
    (step,), (decrease,) = _core.coordinate_steps(*one, penalty, alpha)
    reach = abs(g) / hessian + abs(w) + 1.0
    best = minimize_scalar(
        model, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-10}
    )
    lowest = min(best.fun, model(-w))
    assert model(step) <= lowest + 1e-6 * max(1.0, abs(lowest))
    assert_allclose(decrease, max(0.0, -model(step)), atol=1e-7 * max(1.0, abs(lowest)))


def one_query(levels, **options):
    queries = Queries.of(np.asarray(levels, dtype=float))
    return Layering(queries, **options)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_the_sum_of_a_layer_survives_the_fall_of_its_largest_term(storage):
    # m = (40, 0, 0) in the lowest layer, then the first falls to -5: a sum kept by differences
    # would be off by a factor of 300.
    layering, X = one_query([0, 0, 0, 1]), np.array([[45.0], [0.0], [0.0], [1.0]])
    state, w, before = made(layering, storage(X)), np.array([40.0 / 45.0]), np.inf
    state.restart(w)
    while abs(w[0] - before) >= 1e-12:
        before = w[0]
        state.sweep(w, np.array([0]), "none", 0.0, "range")
    exact = X.T @ definition(X @ w, layering)["gradient"]
    assert_allclose(state.measure(np.array([0]), "range", 1)[0], exact, atol=1e-9)


def test_measuring_does_not_depend_on_threads():
    rng = np.random.default_rng(5)
    X = sparse.random_array((300, 900), density=0.05, rng=rng, format="csr")
    layering = Layering(Queries.of(rng.integers(0, 3, 300), qid=rng.integers(0, 20, 300)))
    found = [made(layering, X).measure(np.arange(900), "local", n) for n in (1, 3)]
    for one, three in zip(*found, strict=True):
        assert_array_equal(one, three)


ROWS, LEVELS = np.random.default_rng(6).normal(size=(10, 3)), np.arange(10) % 3
COLUMNS, WHOLE = _core.columns(as_rows(ROWS).core, None, 1), one_query(LEVELS)
PAIR = one_query([0, 1])
STATE = _core.coordinates(COLUMNS, WHOLE.core, None)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.coordinates(COLUMNS, PAIR.core, None), "layering has length 2, expected 10"),
        (lambda: _core.coordinates(COLUMNS, WHOLE.core, np.ones(2)), "factors has length 2, exp"),
        (lambda: STATE.measure(np.array([1, 1]), "local", 1), "features must increase"),
        (lambda: DominationLoss(WHOLE).at(np.zeros(10)).dual(1.1, 1), r"t must lie in \[0, 1\]"),
        *(
            (lambda given=given: STATE.sweep(*given), message)
            for given, message in [
                ((np.zeros(4), np.arange(3), "l1", 1.0, "local"), "w has length 4, expected 3"),
                ((np.zeros(3), np.array([3]), "l1", 1.0, "local"), "one that does not exist"),
                ((np.zeros(3), np.array([-1]), "l1", 1.0, "local"), "one that does not exist"),
                ((np.zeros(3), np.arange(3), "l1", np.nan, "local"), "alpha must be >= 0"),
                ((np.zeros(3), np.arange(3), "l3", 1.0, "local"), "there is no"),
                ((np.zeros(3), np.arange(3), "l1", 1.0, "steep"), "there is no"),
            ]
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
