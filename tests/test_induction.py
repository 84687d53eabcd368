"""Feature induction: who enters, when it ends, and what the certificate of some features means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from hypothesis_profiles import examples
from linrank import InductionDisplay, evaluate, make_ranking
from linrank.data.scaling import Scaling
from linrank.domination.coordinate import Descent, Log, descend
from linrank.domination.induction import InductionResult, induce
from linrank.domination.train import make_problem, train
from papers import DominationRanker
from plain_domination import PlainDomination

PENALTIES = ["l1", "l2", "none"]


def scaled(seed=0, n_features=9):
    shape = {"n_queries": 12, "rows_per_query": (4, 8), "n_features": n_features, "n_levels": 3}
    data = make_ranking(noise=1.0, random_state=seed, dtype="float64", **shape)
    return Scaling.fit("standard", data.rows).applied(data)


DATA = scaled()


def descent(penalty="l1", alpha=2.0, data=DATA, **options):
    return Descent(make_problem(data, penalty=penalty, alpha=alpha, n_jobs=1), **options)


def plain(data=DATA):
    return PlainDomination(data.X, data.y, data.qid)


# ---- the certificate of some features -----------------------------------------------------------


@examples(25)
@given(
    seed=st.integers(0, 1000),
    penalty=st.sampled_from(["l1", "l2"]),
    alpha=st.sampled_from([0.3, 2.0, 8.0]),
    share=st.sampled_from([0.2, 0.5, 1.0]),
)
def test_the_gap_bounds_what_some_features_can_gain(seed, penalty, alpha, share):
    """Weights of the others are given, and need not be 0."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=DATA.n_features) * 0.3
    among = np.flatnonzero(rng.random(DATA.n_features) < share)
    problem = make_problem(DATA, penalty=penalty, alpha=alpha, n_jobs=1)
    point = problem.at(w, among=among)
    moved = Descent(problem, w)
    found = descend(moved, tol=1e-8, max_iter=500, among=among)
    assert found.converged
    assert found.value >= point.value - point.gap - 1e-9 * point.value
    fixed = np.setdiff1d(np.arange(DATA.n_features), among)
    assert_array_equal(found.w[fixed], w[fixed])


@pytest.mark.parametrize("penalty", PENALTIES)
def test_columns_give_the_same_certificate(penalty):
    w = np.random.default_rng(1).normal(size=DATA.n_features)
    among = np.array([1, 4, 5])
    made = descent(penalty, w0=w)
    by_columns = made.point(among)
    by_rows = made.problem.at(w, among=among)
    assert_allclose(by_columns.derivatives, by_rows.derivatives, rtol=1e-12)
    assert_allclose(by_columns.derivatives, plain().loss(w)[1][among], rtol=1e-8)
    assert_allclose(by_columns.gap, by_rows.gap, rtol=1e-9)
    others = np.setdiff1d(np.arange(DATA.n_features), among)
    assert not by_columns.subgradient[others].any()
    assert by_columns.subgradient[among].all()


def test_no_feature_may_move():
    problem = make_problem(DATA, penalty="l1", alpha=2.0, n_jobs=1)
    point = problem.at(np.zeros(DATA.n_features), among=np.empty(0, dtype=np.int64))
    assert point.gap <= 1e-11 * point.value  # its rounding
    assert point.kkt_residual == 0.0


# ---- rounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("penalty", "n"), [("l1", 1), ("l2", 3), ("none", 3)])
def test_the_largest_promises_enter_and_are_kept(penalty, n):
    """A promise is kept by moving the feature alone; the rounds one by one, by hand."""
    after = {}
    log = Log(lambda state: after.update({state["round"]: state["w"]}))
    result = induce(descent(penalty), n, tol=1e-5, max_iter=500, log=log)
    assert isinstance(result, InductionResult)
    assert result.converged, result.message
    by_hand = plain()
    entered, w = set(), np.zeros(DATA.n_features)
    for number, done in enumerate(result.rounds):
        start = by_hand.objective(w, penalty, 2.0)
        outside = [r for r in range(DATA.n_features) if r not in entered]
        made = descent(penalty, w0=w)
        promise = made.measure(np.array(outside)).decreases(w, penalty, 2.0)
        expected = sorted(zip(-promise, outside, strict=True))[:n]
        expected = [r for p, r in expected if -p > 1e-5 * start]
        assert done.features.tolist() == expected
        assert_allclose(done.promises, sorted(promise, reverse=True)[: len(expected)], rtol=1e-6)
        for r, least in zip(done.features, done.promises, strict=True):
            e = np.eye(DATA.n_features)[r]
            line = minimize_scalar(lambda t: by_hand.objective(w + t * e, penalty, 2.0))  # noqa: B023
            assert start - line.fun >= least - 1e-9
        entered |= set(expected)
        w = after[number + 1]
        assert_allclose(by_hand.objective(w, penalty, 2.0), done.objective, rtol=1e-9)
        assert not w[[r for r in range(DATA.n_features) if r not in entered]].any()
    assert result.order.tolist() == [r for done in result.rounds for r in done.features]


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_with_a_small_tolerance_it_ends_at_the_optimum_of_all(penalty):
    result = induce(descent(penalty, alpha=4.0), 2, tol=1e-10, max_iter=1000)
    whole = descend(descent(penalty, alpha=4.0), tol=1e-10, max_iter=1000)
    assert_allclose(result.value, whole.value, rtol=1e-8)


def test_the_end_is_where_no_feature_promises_more():
    result = induce(descent("l2", alpha=4.0), 2, tol=1e-2, max_iter=1000)
    assert "features outside promises" in result.message
    left = np.setdiff1d(np.arange(DATA.n_features), result.order)
    assert len(left)
    promise = descent("l2", alpha=4.0, w0=result.w).measure(left).decreases(result.w, "l2", 4.0)
    assert (promise <= 1e-2 * result.value).all()
    assert min(p for done in result.rounds for p in done.promises) > 1e-2 * result.value
    assert not result.w[left].any()


@pytest.mark.parametrize(("n_features", "start"), [(1, 50.0), (9, 5.0)])
def test_a_start_with_weights_keeps_its_features(n_features, start):
    """Also where other features promise nothing next to a weight that is far too large."""
    data, w0 = scaled(n_features=n_features), np.zeros(n_features)
    w0[0] = start
    result = induce(descent("l1", data=data, w0=w0), 2, tol=1e-8, max_iter=500)
    assert 0 not in result.order
    assert len(result.rounds) == 1 or n_features > 1
    whole = descend(descent("l1", data=data), tol=1e-8, max_iter=99).value
    assert_allclose(result.value, whole, rtol=1e-6)


def test_too_few_sweeps_end_it():
    result = induce(descent("l2", curvature="paper"), 3, tol=1e-10, max_iter=2)
    assert (result.converged, result.stopped, len(result.rounds)) == (False, "max_iter", 1)
    assert result.message.startswith("round 1: ")


def test_the_history_knows_the_rounds():
    result = train(DATA, alpha=2.0, feature_induction=2, tol=1e-6, n_jobs=1)
    history = result.history
    n = len(result.rounds)
    assert history["round"][-1] == 0  # the certificate of all features
    assert sorted(set(history["round"][:-1])) == list(range(1, n + 1))
    for number, done in enumerate(result.rounds, 1):
        assert history["round"][done.last] == number
        assert history["round"][done.last + 1] != number
        assert history["objective"][done.last] == done.objective
        assert history["n_chosen"][done.last] == done.n_chosen
    assert result.n_iter == sum(done.n_sweeps for done in result.rounds)
    assert history["gap"][-1] == result.gap


# ---- the estimator and the picture --------------------------------------------------------------


@pytest.fixture(scope="module")
def ranker():
    held = scaled(7)
    return DominationRanker(alpha=2.0, feature_induction=2, tol=1e-6, scoring="ndcg@5").fit(
        DATA.X, DATA.y, qid=DATA.qid, X_val=held.X, y_val=held.y, qid_val=held.qid
    )


def test_the_estimator_has_the_rounds_with_their_measure(ranker):
    held, result = scaled(7), train(DATA, alpha=2.0, feature_induction=2, tol=1e-6)
    assert_array_equal(ranker.feature_order_, result.order)
    assert [r.objective for r in ranker.rounds_] == [r.objective for r in result.rounds]
    scores = held.X @ ranker.coef_
    measure = evaluate(held.y, scores, qid=held.qid, metrics="ndcg@5")["ndcg@5"]
    assert_allclose(ranker.rounds_[-1].validation, measure)
    other = DominationRanker(alpha=2.0, feature_induction=2).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert other.rounds_[0].validation is None
    other.set_params(feature_induction=None).fit(DATA.X, DATA.y, qid=DATA.qid)
    assert not hasattr(other, "rounds_")


@pytest.mark.parametrize("by", ["features", "rounds"])
def test_the_picture(ranker, by):
    axes = Figure(layout="constrained").subplots(3, 1)
    InductionDisplay.from_estimator(ranker, by=by).plot(axes)
    rounds, lines = ranker.rounds_, [ax.get_lines()[0] for ax in axes]
    x = {"features": [r.n_chosen for r in rounds], "rounds": range(1, len(rounds) + 1)}[by]
    assert_array_equal(lines[1].get_xdata(), list(x))
    for line, name in zip(lines, ("validation", "objective", "n_nonzero"), strict=True):
        assert_array_equal(line.get_ydata(), [getattr(r, name) for r in rounds])
    assert axes[0].get_ylabel() == "ndcg@5"
    result = train(DATA, alpha=2.0, feature_induction=2)  # without validation
    assert InductionDisplay.from_estimator(result).plot(axes[1:]).n_panels == 2
    with pytest.raises(ValueError, match="ax has 1 axes for 2 panels"):
        InductionDisplay.from_estimator(result).plot(axes[0])
    with pytest.raises(TypeError, match="with at least one round; got Result"):
        InductionDisplay.from_estimator(train(DATA, alpha=2.0))
