"""Bounds on the weights: as users give them, the optimum by a generic solver, a certified gap."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from explicit_pairs import ExplicitPairs
from hypothesis_profiles import examples
from linrank.data.bounds import Box, parse_bounds, weight_bounds
from linrank.data.dataset import Dataset
from linrank.data.synthetic import make_ranking
from linrank.errors import NoPairsError
from linrank.losses.base import SquaredHinge
from linrank.models.linear import load_model
from linrank.objective import Ridge, Risk, Sum
from linrank.pairs import Pairs
from linrank.ranksvm.train import train
from linrank.solvers.bounded import metric_of
from linrank.solvers.conjugate import Diagonal, Explicit, Plain
from linrank.solvers.newton import newton
from linrank.solvers.result import duality_gap
from papers import RankSVM
from small_data import small as small_ranking
from strategies import datasets

INF = np.inf
NAMES = ("bm25", "age", "length")


def data(names=None, index_base=None) -> Dataset:
    X = np.arange(12.0).reshape(4, 3) % 5
    made = Dataset.of(X, [0, 1, 0, 2], feature_names=names)
    return made if index_base is None else Dataset(made.rows, made.labels, index_base=index_base)


@pytest.mark.parametrize(
    ("positive", "given", "lower", "upper"),
    [
        (True, None, [0, 0, 0], [INF, INF, INF]),
        (False, (0, 1), [0, 0, 0], [1, 1, 1]),
        (False, (None, 1), [-INF, -INF, -INF], [1, 1, 1]),
        (False, ([-1, 0, 1], None), [-1, 0, 1], [INF, INF, INF]),
        (False, [(0, None), (None, 2), (1, 1)], [0, -INF, 1], [INF, 2, 1]),
        (False, np.array([[0, 1], [2, 3], [4, 5]]), [0, 2, 4], [1, 3, 5]),
        (False, {"age": (None, 0)}, [-INF, -INF, -INF], [INF, 0, INF]),
        (False, {2: (0, 4), "bm25": (-INF, 3)}, [-INF, -INF, 0], [3, INF, 4]),
        (True, {"age": (-2, 5), np.int64(0): (1, None)}, [1, 0, 0], [INF, 5, INF]),
    ],
)
def test_the_forms_of_bounds(positive, given, lower, upper):
    got = weight_bounds(positive, given, data(NAMES))
    assert_array_equal(got[0], lower)
    assert_array_equal(got[1], upper)
    assert got[0].dtype == got[1].dtype == np.float64


BAD = [
    (False, (2, 1), "no coefficient of feature 'bm25' is between its lower bound 2 and .* 1"),
    (False, {"age": (1, 0)}, "feature 'age'"),
    (True, {"length": (None, -1)}, "positive=True, but the upper bound of feature 'length' is"),
    (False, {"age": (float("nan"), 0)}, "bounds of feature 'age' are nan and 0; use None"),
    (False, {"age": (INF, None)}, "no coefficient of feature 'age'"),
    (False, {"bm52": (0, 1)}, "'bm52', which is no feature; did you mean 'bm25'?"),
    (False, {"zzz": (0, 1)}, "'zzz', which is no feature$"),
    (False, {3: (0, 1)}, "column 3; those of X are 0 to 2"),
    (False, {"age": 3}, r"coef_bounds\['age'\] must be a pair \(low, high\), got 3"),
    (False, {"age": (0, 1), 1: (0, 1)}, "feature 'age' twice"),
    (False, {"age": ("low", 1)}, "must be numbers or None, got 'low'"),
    (False, [(0, 1), (0, 1)], r"each of 3 features, got shape \(2, 2\)"),
    (False, [0, 1], r"got shape \(2,\); bounds for all features are a tuple"),
    (False, ([0, 1], None), r"lower bounds have shape \(2,\); .* each of 3 features"),
    ("yes", None, "positive must be True or False, got 'yes'"),
]
# Without names, as the user counts the features.
UNNAMED = [
    ({"age": (0, 1)}, None, r"'age', but the features have no names; use column"),
    ({2: (1, 0)}, None, "of column 2 is"),
    ({2: (1, 0)}, 1, "of feature 3 is"),
]
REFUSED = [
    *((partial(weight_bounds, *given, data(NAMES)), message) for *given, message in BAD),
    *((partial(weight_bounds, False, own, data(None, base)), told) for own, base, told in UNNAMED),
    *(
        (partial(parse_bounds, text), "is not FEATURE:LOW:HIGH, such as")
        for text in ("1", "1:2", "1:x:2", "1:0:1 2")
    ),
    (partial(parse_bounds, "1:0:,1::2"), "'1' has bounds twice"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_bounds_are_told(call, message):
    assert weight_bounds(False, None, data()) is None
    with pytest.raises(ValueError, match=message):
        call()


@given(st.integers(0, 2**32 - 1))
def test_scaled_weights_within_their_bounds_are_coefficients_within_theirs(seed):
    """To the last bit, unless lower equals upper."""
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=3) * 10.0 ** rng.integers(-5, 5)
    upper = lower + rng.random(3) + 1e-9
    d = rng.random(3) * 10.0 ** rng.integers(-8, 8, 3) + 1e-12
    low, high = weight_bounds(False, (lower, upper), data(), d)
    assert (lower <= d * low).all()
    assert (d * high <= upper).all()
    assert_allclose(d * low, lower, rtol=1e-15)


def test_a_feature_that_scaling_removes_must_be_allowed_to_be_0():
    d = np.array([1.0, 0.0, 2.0])
    low, high = weight_bounds(True, None, data(), d)
    assert_array_equal(low, [0, -INF, 0])
    assert_array_equal(high, [INF, INF, INF])
    with pytest.raises(ValueError, match=r"feature 'age' is constant, .* 0, which is not between"):
        weight_bounds(False, {"age": (1, 2)}, data(NAMES), d)


# ---- the estimator ------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "query"])
def test_bounds_hold_for_the_coefficients_of_the_raw_features(scale):
    made = make_ranking(30, (4, 10), 6, random_state=1)
    low, high = np.full(6, -0.01), np.array([0.02, 0.03, INF, 0.0, 1.0, 0.5])
    ranker, free = (
        RankSVM(scale=scale, **given).fit(made) for given in ({"coef_bounds": (low, high)}, {})
    )
    assert ((low <= ranker.coef_) & (ranker.coef_ <= high)).all()
    assert ranker.objective_ > free.objective_
    assert ranker.converged_
    assert ranker.kkt_residual_ == ranker.history_["kkt_residual"][-1]
    assert ranker.model_.training["bounded"] is True
    with pytest.raises(ValueError, match=r"solver='tron' cannot keep bounds; use solver='newton'"):
        RankSVM(solver="tron", positive=True, scale=scale).fit(made)


# ---- the command line ---------------------------------------------------------------------------


def test_text_becomes_bounds():
    text = "1:0:, bm25:-1:2.5 # a comment, not an entry\n a:b::3 \n\n*:-1e3:"
    assert parse_bounds(text) == {
        "1": (0.0, INF),
        "bm25": (-1.0, 2.5),
        "a:b": (-INF, 3.0),
        "*": (-1000.0, INF),
    }


def test_the_command_keeps_bounds(files, tmp_path, cli):
    model, listed = str(tmp_path / "m.json"), tmp_path / "bounds.txt"
    listed.write_text("2::0  # must not help\n*:-0.01:0.01\n")
    line = f"train {files['train']} {model} --json -q --scale standard"
    report = cli(f"{line} --bounds @{listed}").json["training"]
    coef = load_model(model).coef
    assert coef[1] <= 0
    assert (np.abs(np.delete(coef, 1)) <= 0.01).all()
    assert report["kkt_residual"] < report["gradient_norm"]
    cli(f"{line} --positive --bounds 1::0.5")
    coef = load_model(model).coef
    assert (coef >= 0).all()
    assert coef[0] <= 0.5


def pair_function(data: Dataset, C: float):
    """F and its gradient over the list of pairs."""
    listed = ExplicitPairs.of(data)

    def value_and_gradient(w):
        slope = listed.weight * np.maximum(0, listed.slacks(w))
        return listed.objective(w, C, "squared_hinge"), w - 2 * C * listed.difference.T @ slope

    return value_and_gradient


def generic_optimum(data: Dataset, C: float, lower, upper) -> float:
    start, box = np.clip(np.zeros(data.n_features), lower, upper), zip(lower, upper, strict=True)
    options = {"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-10}
    how = {"method": "L-BFGS-B", "bounds": list(box), "options": options}
    return minimize(pair_function(data, C), start, jac=True, **how).fun


small = partial(small_ranking, n_features=6)


def everywhere(n, low, high):
    return np.full(n, float(low)), np.full(n, float(high))


BOXES = {
    "positive": everywhere(6, 0, np.inf),
    "negative": everywhere(6, -np.inf, 0),
    "narrow": everywhere(6, -0.05, 0.02),
    "away from 0": everywhere(6, 0.3, 0.7),
    "mixed": (
        np.array([-np.inf, 0, -0.1, 0.2, 0.5, -1]),
        np.array([0.0, np.inf, 0.1, 0.2, 1, np.inf]),
    ),
    "a point": everywhere(6, 0.25, 0.25),
}


@examples(60)
@given(datasets(weights=True), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 1.0, 20.0]))
def test_the_kkt_conditions_hold(data, seed, C):
    """Free variables have no gradient, those at a bound one that points outwards."""
    rng = np.random.default_rng(seed)
    lower = rng.choice([-np.inf, -0.5, 0.0, 0.25], data.n_features)
    upper = np.maximum(lower, rng.choice([-1.0, 0.0, 0.5, np.inf], data.n_features))
    try:
        result = train(data, C=C, tol=1e-12, bounds=(lower, upper))
    except NoPairsError:
        assume(False)
    value, g = pair_function(data, C)(result.w)
    small_enough = 1e-5 * (1 + C * np.abs(g).max())
    assert_allclose(result.value, value, rtol=1e-9)
    assert ((lower <= result.w) & (result.w <= upper)).all()
    assert (g[result.w < upper] >= -small_enough).all()
    assert (g[result.w > lower] <= small_enough).all()
    off = result.w - np.clip(result.w - g, lower, upper)
    assert_allclose(result.kkt_residual, np.linalg.norm(off), atol=small_enough)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_a_quadratic_is_minimized_exactly(seed, n):
    """From any face: bounds that hold at the start and not at the end are released."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    M, g = A @ A.T + 0.1 * np.eye(n), rng.normal(size=n)
    lower = rng.choice([-np.inf, -0.5, 0.0], n)
    box = Box(lower, np.maximum(lower, rng.choice([0.0, 0.5, np.inf], n)))
    w = box.clip(rng.choice([-9.0, 0.0, 0.1, 9.0], n))
    d = metric_of(M, None).minimizer(w, g, box).d
    slope = g + M @ d
    off = w + d - box.clip(w + d - slope)
    assert_allclose(off, 0, atol=1e-4 * (1 + np.abs(g + M @ -w).max()))
    assert_allclose(w + d, box.clip(w + d), atol=1e-12)


@pytest.mark.parametrize("preconditioner", [lambda: Explicit(8), Diagonal, Plain])
@pytest.mark.parametrize("box", BOXES)
def test_every_preconditioner_leads_to_the_optimum(preconditioner, box):
    data, (lower, upper) = small(3), BOXES[box]
    risk = Risk(data.rows, SquaredHinge(Pairs(data.queries), 1), 0.5)
    objective = Sum(Ridge(Box(lower, upper)), risk)
    w0 = np.full(6, 5.0)  # outside of most boxes
    result = newton(objective, w0, preconditioner=preconditioner(), tol=1e-10)
    assert_allclose(result.value, generic_optimum(data, 0.5, lower, upper), rtol=1e-8)


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_gap_is_certified_at_every_iterate(box, loss):
    data, (lower, upper) = small(6), BOXES[box]
    best = train(data, loss=loss, tol=1e-9, max_iter=1000, bounds=(lower, upper))
    found = train(data, loss=loss, tol=1e-6, bounds=(lower, upper))
    history = found.history
    assert found.converged, found.message
    assert loss == "squared_hinge" or found.gap <= 1e-6 * found.value
    distance = np.array(history["objective"]) - best.value
    assert (np.array(history["gap"]) >= distance - 1e-8 * best.value).all()
    assert history["gap"][-1] <= 2e-3 * best.value


@given(st.integers(0, 2**32 - 1))
def test_the_gap_bounds_the_distance_at_any_point(seed):
    """Also far from the optimum; and no length of the dual point beats the one that is used."""
    rng = np.random.default_rng(seed)
    data = small(int(rng.integers(4)))
    lower, upper = BOXES[rng.choice(list(BOXES))]
    box = Box(lower, upper)
    point = Sum(Ridge(box), Risk(data.rows, SquaredHinge(Pairs(data.queries), 1), 0.3)).at(
        box.clip(rng.normal(size=6))
    )
    best = train(data, C=0.3, tol=1e-11, bounds=(lower, upper)).value
    gap = duality_gap(point)
    assert gap >= point.value - best - 1e-7 * point.value
    u, dual = point.w - point.gradient, point.dual
    for t in (0.0, 0.3, 0.9, 1.0, 1.1, 3.0):
        v = box.clip(t * u)
        value = t * dual.linear - t * t * dual.quadratic - (t * u @ v - 0.5 * v @ v)
        assert gap <= point.value - value + 1e-6 * (point.value + abs(value))


def test_positive_weights_of_harmful_features_are_all_zero():
    """The optimum is the vertex 0, with a gradient that is not small."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = -y[:, None] + 0.1 * rng.normal(size=(60, 4))
    result = train(Dataset.of(X, y), bounds=everywhere(4, 0, np.inf))
    assert (result.w == 0).all()
    assert result.converged
    assert result.kkt_residual == 0.0
    assert result.gap <= 1e-11 * result.value  # the rounding of F
    assert result.history["gradient_norm"][-1] > 1.0


def test_a_degenerate_vertex_is_no_trap():
    """Bounds at the free optimum itself: multipliers are 0, and the active set is not unique."""
    data = small(8)
    free = train(data, tol=1e-12)
    lower = np.where(np.arange(6) % 2 == 0, free.w, -np.inf)
    upper = np.where(np.arange(6) % 3 == 0, free.w, np.inf)
    result = train(data, tol=1e-10, bounds=(lower, np.maximum(lower, upper)), max_iter=30)
    assert result.converged
    assert_allclose(result.value, free.value, rtol=1e-9)


def test_tens_of_thousands_of_features():
    data = make_ranking(1, 3000, 30_000, 2, density=1e-3, random_state=3)
    n = data.n_features
    result = train(data, C=0.01, bounds=everywhere(n, 0, np.inf), tol=1e-6)
    assert result.converged
    assert result.gap <= 1e-4 * result.value
    assert (result.w >= 0).all()
    assert 1000 < (result.w == 0).sum() < n


def test_the_start_is_clipped_and_an_optimal_start_is_kept():
    data, bounds = small(4), BOXES["positive"]
    best = train(data, tol=1e-10, bounds=bounds)
    states = []
    again = train(data, bounds=bounds, w0=best.w, callback=lambda state: states.append(state["w"]))
    assert again.n_iter <= 1
    assert_allclose(again.value, best.value, rtol=1e-10)
    train(data, bounds=bounds, w0=np.full(6, -3.0), callback=lambda s: states.append(s["w"]))
    assert all((w >= 0).all() for w in states)
