"""SGDRankerCV: equal to separate fits, without leaks and copies, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import evaluate, make_ranking
from linrank.data.dataset import Dataset
from linrank.data.rows import DenseRows
from linrank.data.scaling import Scaling
from linrank.methods import sgd as sgd_tuning
from linrank.methods.sgd import tune_sgd
from linrank.search.folds import Fold, deal
from linrank.search.tuning import Tuning
from linrank.stochastic.descent import Rule, course_over
from linrank.stochastic.samplers import pair_sampler
from papers import SGDRanker, SGDRankerCV

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")

ALPHAS = [1e-1, 1e-2, 1e-3]
STEPS = 3000


@pytest.fixture(scope="module")
def data():
    data = make_ranking(n_queries=24, n_features=6, n_levels=3, dtype="float64", random_state=3)
    data = Scaling.fit("standard", data.rows).applied(data)
    return data.select(np.random.default_rng(0).permutation(data.n_rows))


@pytest.fixture(scope="module")
def held_out():
    data = make_ranking(n_queries=12, n_features=6, n_levels=3, dtype="float64", random_state=4)
    return Scaling.fit("standard", data.rows).applied(data)


def fit(data, **params):
    params = {"alphas": ALPHAS, "n_steps": STEPS, "random_state": 0, "cv": 3, **params}
    return SGDRankerCV(**params).fit(data.X, data.y, qid=data.qid)


# ---- equal to the same by hand ------------------------------------------------------------------


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("scale", ["none", "standard", "query"])
def test_a_validation_set_equals_separate_fits(data, held_out, scale, average):
    algorithms = ("pegasos", "pa", "hybrid", "sgd-svm")
    validation = (held_out.X, held_out.y, held_out.qid)
    options = {"n_steps": STEPS, "random_state": 7, "scale": scale, "average": average}
    found = SGDRankerCV(ALPHAS, algorithms=algorithms, cv=validation, **options)
    found.fit(data.X, data.y, qid=data.qid)
    expected = np.empty((4, 3))
    coefs = {}
    for a, algorithm in enumerate(algorithms):
        for k, alpha in enumerate(ALPHAS):
            one = SGDRanker(algorithm, alpha=alpha, **options).fit(data.X, data.y, qid=data.qid)
            scores = one.predict(held_out.X, qid=held_out.qid)
            expected[a, k] = evaluate(held_out.y, scores, qid=held_out.qid)["ndcg@10"]
            coefs[algorithm, alpha] = one.coef_
    assert_allclose(found.scores_[0], expected, rtol=1e-12)
    assert found.best_score_ == found.mean_scores_.max()
    assert_array_equal(found.coef_, coefs[found.algorithm_, found.alpha_])


def test_folds_of_queries_equal_the_same_by_hand(data):
    """The training part of a fold is drawn by a mask over queries."""
    found = fit(data)
    for k, fold in enumerate(deal(data, 3)):
        keep = np.ones(24, dtype=bool)
        keep[np.isin(data.queries.ids, data.qid[fold.valid])] = False
        sampler = pair_sampler(data.queries, keep=keep)
        valid = data.select(fold.valid)
        for j, alpha in enumerate(ALPHAS):
            run = course_over(data.rows, sampler, [Rule("pegasos", alpha)], STEPS, seed=0)
            run.until(STEPS)
            scores = valid.X @ run.weights()[0]
            measure = evaluate(valid.y, scores, qid=valid.qid)["ndcg@10"]
            assert_allclose(found.scores_[k, 0, j], measure, rtol=1e-12)


def test_training_on_part_of_a_query_is_allowed_and_copies(data):
    """A list of row numbers may leave out rows of training queries."""
    fold = deal(data, 3)[0]
    some = fold.train[::2]
    found = fit(data, cv=[(some, fold.valid)])
    part, valid = data.select(some), data.select(fold.valid)
    one = SGDRanker(alpha=1e-2, n_steps=STEPS, random_state=0).fit(part.X, part.y, qid=part.qid)
    measure = evaluate(valid.y, one.predict(valid.X), qid=valid.qid)["ndcg@10"]
    assert_allclose(found.scores_[0, 0, 1], measure, rtol=1e-12)


def test_whole_queries_are_trained_on_without_a_copy(data, monkeypatch):
    """No part is taken out, not even to be scored; each row is scored once."""
    all_vary = lambda rows, *_: np.ones(rows.shape[1], dtype=bool)  # noqa: E731
    monkeypatch.setattr("linrank.methods.ground.varying_columns", all_vary)  # looks at rows too
    taken, take = [], DenseRows.take
    monkeypatch.setattr(Dataset, "select", lambda self, rows: pytest.fail("rows were copied"))
    monkeypatch.setattr(
        DenseRows, "take", lambda self, rows: taken.append(rows) or take(self, rows)
    )
    fit(data)
    scored = np.concatenate([rows for rows in taken if not isinstance(rows, slice)])
    assert_array_equal(np.sort(scored), np.arange(data.n_rows))


def test_weights_reach_the_folds(data):
    weight = np.where(np.arange(24) < 12, 0.0, 1.0)
    by_row = data.queries.scatter(np.repeat(weight, np.diff(data.queries.offsets)))
    kept = data.select(by_row > 0)
    options = {"n_steps": STEPS, "random_state": 0}
    found = SGDRankerCV(ALPHAS, cv=(data.X, data.y, data.qid), **options)
    found.fit(data.X, data.y, qid=data.qid, query_weight=by_row)
    assert found.n_pairs_ == kept.queries.n_pairs
    plain = SGDRankerCV(ALPHAS, cv=(data.X, data.y, data.qid), **options)
    plain.fit(data.X, data.y, qid=data.qid)
    assert not np.array_equal(plain.scores_, found.scores_)


# ---- the choice ---------------------------------------------------------------------------------


def test_the_rules_of_choice():
    scores = np.array([[[0.5, 0.7, 0.72], [0.4, 0.9, 0.9]], [[0.5, 0.7, 0.7], [0.4, 0.7, 0.9]]])
    alphas = np.array([1.0, 0.1, 0.01])
    grid = {"algorithm": ("pegasos", "pa"), "alpha": alphas}
    best = Tuning(grid, scores, "best")
    assert best.best_params == {"algorithm": "pa", "alpha": 0.01}
    assert "the best alpha, 0.01, is the smallest of the grid; try smaller" in best.edge
    assert Tuning(grid, scores, "one_se").chosen == (1, 2)
    scores[1, 1, 2] = 0.7
    noisy = Tuning(grid, scores, "one_se")
    assert (noisy.algorithm, noisy.alpha) == ("pa", 0.1)
    assert noisy.edge is None
    equal = Tuning(grid, np.full((2, 2, 3), 0.5), "best")
    assert (equal.algorithm, equal.alpha) == ("pegasos", 1.0)
    assert "every alpha of the grid scores 0.5, and the largest is taken" in equal.edge


def test_what_a_fit_records(data):
    ranker = fit(
        data, alphas=[1e-3, 1e-1, 1e-3, 1e-2], algorithms=["pa", "pegasos"], record="exact"
    )
    assert_array_equal(ranker.alphas_, ALPHAS)
    assert ranker.algorithms_ == ("pa", "pegasos")
    assert ranker.scores_.shape == (3, 2, 3)
    assert ranker.n_steps_ == STEPS
    assert ranker.history_["objective"][-1] == ranker.objective_
    assert ranker.n_pairs_ == data.queries.n_pairs
    assert SGDRankerCV().fit(data.X, data.y, qid=data.qid).alphas_.tolist() == [
        10.0**-k for k in range(8)
    ]


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"alphas": [1.0, 0.0]}, ValueError, r"alphas\[1\] is 0; all must be finite and > 0"),
        ({"alphas": [np.nan]}, ValueError, r"alphas\[0\] is nan; all must be finite and > 0"),
        ({"alphas": []}, ValueError, "non-empty list of numbers"),
        ({"alphas": "all"}, ValueError, "alphas must be 'auto' or numbers"),
        ({"algorithms": "adam"}, ValueError, "algorithms must be some of .*, got 'adam'"),
        ({"algorithms": ()}, ValueError, "at least one"),
        ({"algorithms": ("pa", "pa")}, ValueError, "must be different"),
        ({"n_steps": 0}, ValueError, "n_steps must be an integer >= 1, got 0"),
        ({"n_steps": 2.5}, ValueError, "n_steps must be an integer >= 1, got 2.5"),
        ({"sampling": "all"}, ValueError, "sampling must be 'pairs'"),
        ({"average": "median"}, ValueError, "average must be"),
    ],
)
def test_wrong_parameters_are_told(data, params, error, message):
    with pytest.raises(error, match=message):
        fit(data, **params)


def test_a_fault_in_one_fold_ends_the_others(data, monkeypatch):
    """Without the call-off the first fold would go on for 10^12 steps."""
    folds, kept_queries = deal(data, 2), sgd_tuning._whole_queries

    def faulty(data, train):
        if train is folds[1].train:
            raise KeyboardInterrupt
        return kept_queries(data, train)

    monkeypatch.setattr(sgd_tuning, "_whole_queries", faulty)
    with pytest.raises(KeyboardInterrupt):
        tune_sgd(data, folds, ("pegasos",), np.array([0.1]), n_steps=10**12, n_jobs=2)


def test_a_fold_on_all_rows_needs_no_mask(data, held_out):
    found = tune_sgd(data, [Fold(None, held_out)], ("pegasos",), np.array([0.1]), n_steps=100)
    assert found.scores.shape == (1, 1, 1)
