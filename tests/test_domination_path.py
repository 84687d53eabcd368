"""Paths of alpha: certified, equal to separate fits; strong rules that never decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from hypothesis_profiles import examples
from linrank import ConvergenceWarning, Store, domination_path, make_ranking
from linrank.data.dataset import Dataset
from linrank.domination import path as pathwise
from linrank.domination.coordinate import Descent, descend
from linrank.domination.path import geometric_alphas, strong_features
from linrank.domination.train import make_problem
from papers import DominationRanker
from plain_domination import PlainDomination
from small_data import small

SHAPE = {"n_queries": 15, "rows_per_query": (4, 9), "n_features": 8, "n_levels": 3}
DATA = make_ranking(noise=1.0, random_state=3, dtype="float64", **SHAPE)


def path(data=DATA, n_alphas=8, tol=1e-7, **options):
    return domination_path(data.X, data.y, data.qid, n_alphas=n_alphas, tol=tol, **options)


def problem(data=DATA, penalty="l1", alpha=1.0, **options):
    return make_problem(data, penalty=penalty, alpha=alpha, n_jobs=1, **options)


def text(seed=0, n_rows=300, n_features=2000):
    """Sparse rows of many features, few of which matter."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, n_features), density=0.01, rng=rng, format="csr")
    w = np.zeros(n_features)
    w[rng.choice(n_features, 30, replace=False)] = rng.normal(size=30) * 3
    scores = X @ w + 0.3 * rng.normal(size=n_rows)
    return Dataset.of(X, np.digitize(scores, [0.2, 0.8]), qid=np.arange(n_rows) // 30)


# ---- the law: certified, and equal to separate fits ---------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"penalty": "l2"},
        {"penalty": "l2", "solver": "coordinate", "scale": "query"},
        {"margin": "linear", "layers": "binary"},
        {"pooled": True, "scale": "standard", "eps": 0.1},
    ],
    ids=str,
)
def test_the_path_equals_separate_fits(options):
    found = path(**options)
    options.pop("eps", None)
    assert found.converged.all(), found.messages
    assert (found.gaps <= 1e-7 * found.objectives).all()
    assert len(found) == len(found.alphas) == 8
    for k, alpha in enumerate(found.alphas):
        one = DominationRanker(alpha=alpha, tol=1e-8, **options).fit(DATA.X, DATA.y, qid=DATA.qid)
        assert_allclose(found.objectives[k], one.objective_, rtol=2e-7)
        assert_allclose(found.coefs[k], one.coef_, atol=5e-3 * max(1e-9, np.abs(one.coef_).max()))


@examples(15)
@given(seed=st.integers(0, 10_000), n_features=st.integers(1, 12))
def test_every_model_is_the_optimum_of_the_plain_problem(seed, n_features):
    data = small(seed, n_features=n_features)
    found = path(data, n_alphas=4, eps=0.05, tol=1e-6)
    plain = PlainDomination(data.X, data.y, data.qid)
    slope = plain.loss(np.zeros(n_features))[1]
    assert_allclose(found.alphas[0], np.abs(slope).max(), rtol=1e-9)
    for alpha, coef, value in zip(found.alphas, found.coefs, found.objectives, strict=True):
        assert_allclose(value, plain.objective(coef, "l1", alpha), rtol=1e-9)
        g = plain.loss(coef)[1]
        room = 0.03 * alpha
        assert (np.abs(g) <= alpha + room).all()
        assert (np.abs(g + alpha * np.sign(coef))[coef != 0] <= room).all()


@pytest.mark.parametrize("memory_limit", [None, "64GB"])
def test_a_store_has_the_path_of_its_rows(tmp_path, memory_limit):
    store = Store.write(tmp_path / "store", DATA.X, DATA.y, qid=DATA.qid, chunk_bytes=1000)
    options = {"penalty": "l2", "n_alphas": 4, "tol": 1e-7}
    found = domination_path(store, memory_limit=memory_limit, **options)
    assert_allclose(found.objectives, path(**options).objectives, rtol=1e-6)


def test_the_attributes():
    found = path(scale="standard")
    assert found.coefs.shape == (8, 8)
    assert_array_equal(found.n_nonzero, (found.coefs != 0).sum(axis=1))
    assert (found.n_nonzero[0], found.n_iter[0]) == (0, 0)
    assert found.n_nonzero[-1] > found.n_nonzero[1] > 0
    assert_array_equal(found.sparse_coefs.toarray(), found.coefs)
    assert_allclose(found.norms[-1], np.linalg.norm(found.results[-1].w))
    assert not np.allclose(found.results[-1].w, found.coefs[-1])  # those of the scaled features
    assert (found.seconds >= 0).all()
    assert [h["alpha"][0] for h in found.history] == found.alphas.tolist()
    assert found.history[-1]["gap"][-1] == found.gaps[-1]
    assert repr(found).startswith("<DominationPathResult: 8 models, alpha ")


# ---- the grid -----------------------------------------------------------------------------------


def test_grids_begin_where_the_first_weight_moves_or_zero_is_nearly_optimal():
    grid = geometric_alphas(problem(), 7, None)
    assert_allclose(grid[-1] / grid[0], 1e-3)
    assert_allclose(grid[1:] / grid[:-1], grid[1] / grid[0])
    assert_allclose(geometric_alphas(problem(), 1, None), grid[:1])
    for share, moves in ((1.001, False), (0.98, True)):
        descent = Descent(problem(alpha=share * grid[0]))
        assert descend(descent, tol=1e-12, max_iter=99).w.any() == moves
    grid = geometric_alphas(problem(penalty="l2"), 5, None)
    assert_allclose(grid[-1] / grid[0], 1e-6)
    start = problem(penalty="l2", alpha=grid[0]).at(np.zeros(8))
    assert_allclose(start.gap, 0.01 * start.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": "none"}, "penalty='none' has no alpha to follow"),
        ({"n_alphas": True}, "n_alphas must be an integer >= 1, got True"),
        ({"max_features": 0}, "max_features must be an integer >= 1, or None, got 0"),
        ({"eps": 1.0}, "eps must be a number > 0 and < 1, or None, got 1.0"),
        ({"alphas": [1, -1]}, r"alphas\[1\] is -1"),
        ({"alphas": "all"}, "alphas must be 'auto' or numbers > 0"),
        ({"tol": 0}, "tol must be a finite number > 0, got 0"),
    ],
)
def test_bad_parameters(options, words):
    with pytest.raises(ValueError, match=words):
        path(**{"tol": None, **options})


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_rounding_of_constant_features_is_no_slope(penalty):
    X = np.tile([1.0, 0.1, 1e8 + 0.3], (30, 1))
    y = np.random.default_rng(0).integers(0, 3, 30)
    with pytest.raises(ValueError, match="the loss has no slope at 0"):
        domination_path(X, y, np.repeat([0, 1, 2], 10), penalty=penalty)


def test_a_path_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("linrank.system.resources.available", lambda: 100)
    with pytest.raises(MemoryError, match="a path of 8 models of 8 features would take"):
        path()


# ---- early ends ---------------------------------------------------------------------------------


def test_the_path_ends_with_the_first_model_of_more_features():
    whole, part = path(n_alphas=20), path(n_alphas=20, max_features=1)
    n = len(part)
    assert 2 < n < 20
    assert part.n_nonzero[-1] > 1
    assert (part.n_nonzero[:-1] <= 1).all()
    assert_array_equal(part.coefs, whole.coefs[:n])


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_callback_ends_the_path_with_what_is_done(penalty):
    whole = path(penalty=penalty)
    third = whole.alphas[3]
    part = path(penalty=penalty, callback=lambda state: state["alpha"] <= third)
    assert_array_equal(part.coefs, whole.coefs[:3])
    nothing = path(penalty=penalty, callback=lambda state: True)
    assert nothing.coefs.shape == (0, 8)


def test_too_few_sweeps_are_told():
    with pytest.warns(ConvergenceWarning, match=r"the gap of \d of 8 values of alpha"):
        found = path(max_iter=1, tol=1e-9)
    assert not found.converged[-1]
    assert found.n_iter.max() == 1


@pytest.mark.filterwarnings("ignore::linrank.ConvergenceWarning")
def test_a_tolerance_within_rounding_ends():
    # The certificates of some features and of all may be on two sides of it.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    calls = []
    options = {"tol": 1e-15, "n_alphas": 5, "max_iter": 30}
    options["callback"] = lambda state: calls.append(1) or len(calls) > 500
    assert len(domination_path(X, y, np.repeat([0, 1, 2], 10), **options)) == 5


# ---- the strong rule ----------------------------------------------------------------------------


def test_the_strong_rule_by_its_formula():
    made = problem(alpha=20.0)
    point = made.at(descend(Descent(made), tol=1e-10, max_iter=200).w)
    g = PlainDomination(DATA.X, DATA.y, DATA.qid).loss(point.w)[1]
    expected = [r for r in range(8) if abs(g[r]) >= 0.8 * (2 * 15.0 - 20.0) or point.w[r] != 0]
    assert strong_features(point, 15.0).tolist() == expected
    assert 0 < len(expected) < 8


@pytest.mark.parametrize("kept", [None, 0, 1])
def test_the_rule_saves_derivatives_and_never_decides(monkeypatch, kept):
    """Features that a rule misses are found by the certificate: it costs time only."""
    sizes = []

    def rule(point, alpha):
        strong = strong_features(point, alpha)
        sizes.append(len(strong) if kept is None else kept)
        return strong if kept is None else np.flatnonzero(point.w)[:kept]

    data = text()
    monkeypatch.setattr(pathwise, "strong_features", lambda point, alpha: np.arange(2000))
    honest = path(data, tol=1e-6, eps=0.05)
    monkeypatch.setattr(pathwise, "strong_features", rule)
    found = path(data, tol=1e-6, eps=0.05)
    assert found.converged.all()
    assert_allclose(found.objectives, honest.objectives, rtol=2e-6)
    assert np.mean(sizes) < 0.6 * data.n_features


def test_certificates_that_differ_do_not_keep_it_going_round(monkeypatch):
    # As rounding may have it, the gap over all features is larger than that over the screened ones.
    tol, whole = 1e-4, Descent.point

    def point(self, among=None):
        made = whole(self, among)
        if among is None:
            vars(made)["gap"] = 3.0 * made.gap
        return made

    seen = []
    monkeypatch.setattr(Descent, "point", point)
    found = path(tol=tol, callback=lambda state: seen.append(1) or len(seen) > 1000)
    assert found.converged.all()
    assert (found.gaps <= tol * found.objectives).all()
