"""The methods of a contest: all grids on small data, in this process."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from linrank import Dataset, RankSVM, evaluate, make_ranking
from linrank.judging.contest.methods import (
    METHODS,
    Task,
    chosen_methods,
    fair_convention,
    method_named,
)
from linrank.judging.contest.rivals import pair_balance

RULES = fair_convention("linrank")


@pytest.fixture(autouse=True)
def one_thread():
    """As the workers have it: threads that wait for each other are slow on a busy machine."""
    with threadpool_limits(1):
        yield


def small_task(scoring="ndcg@10", scale="standard", sparse=False):
    data = make_ranking(n_queries=40, n_features=5, noise=0.3, random_state=1)
    parts = []
    for chosen in (data.qid < 25, data.qid >= 25):  # of one ranking, so that there is much to learn
        part = data.select(chosen)
        parts.append(Dataset.of(csr_array(part.X) if sparse else part.X, part.y, qid=part.qid))
    return Task(*parts, scoring, RULES, scale, seed=3)


def candidates(name, task, most=2):
    method = method_named(name)
    if method.needs is not None:
        pytest.importorskip(method.needs)
    return list(islice(method.load()(task), most))


# ---- every method -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_candidates_score_rows_and_can_be_told_of(name):
    task = small_task()
    found = candidates(name, task)
    assert found
    for candidate in found:
        json.dumps(dict(candidate.parameters))
        scores = np.asarray(candidate.predict(task.valid))
        assert scores.shape == (task.valid.n_rows,)
        assert np.isfinite(scores).all()
        size = candidate.size()
        assert size.n_bytes > 0 or name == "random"
        assert candidate.seconds is not None or candidate.fit is not None
    assert len({json.dumps(dict(c.parameters)) for c in found}) == len(found)


@pytest.mark.parametrize("name", [n for n in METHODS if n not in ("random", "forest", "catboost")])
def test_a_method_ranks_better_than_chance(name):
    task = small_task("pairwise_accuracy")
    most = None if METHODS[name].family == "linrank" else 6
    best = max(task.judge(c.predict(task.valid)) for c in candidates(name, task, most))
    assert best > 0.65


@pytest.mark.parametrize("name", [n for n in METHODS if n != "random"])
def test_sparse_rows_do(name):
    task = small_task(sparse=True)
    (candidate,) = candidates(name, task, 1)
    assert np.isfinite(candidate.predict(task.valid)).all()


@pytest.mark.parametrize("name", ["ranksvm", "sgd", "svr-l2", "lightgbm", "forest", "random"])
def test_the_same_seed_gives_the_same_scores(name):
    first, second = (
        [c.predict(task.valid) for c in candidates(name, task, 1)]
        for task in (small_task(), small_task())
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
@pytest.mark.parametrize("name", ["ranksvm", "svr-l2", "domination-l2"])
def test_linear_models_score_raw_rows(name, scale):
    """Features in other units are the same features, once they are scaled."""
    task = small_task(scale=scale)
    units = np.array([1.0, 10.0, 0.1, 2.0, 0.5])
    changed = [Dataset.of(d.X * units, d.y, qid=d.qid) for d in (task.train, task.valid)]
    other = Task(*changed, task.scoring, RULES, scale, seed=3)
    plain, scaled = (candidates(name, t, 3)[-1].predict(t.valid) for t in (task, other))
    agree = np.corrcoef(plain, scaled)[0, 1] > 1 - 1e-6
    assert agree == (scale != "none")


# ---- particular ones ----------------------------------------------------------------------------


def test_the_path_of_ranksvm_is_its_fits():
    task = small_task()
    for candidate in candidates("ranksvm", task, None)[10:20:4]:
        ranker = RankSVM(C=candidate.parameters["C"], scale="standard", tol=1e-8)
        ranker.fit(task.train.X, task.train.y, qid=task.train.qid)
        expected = ranker.predict(task.valid.X)
        scores = candidate.predict(task.valid)
        assert np.linalg.norm(scores - expected) < 0.02 * np.linalg.norm(expected)
        assert candidate.fit().w.shape == (5,)


@pytest.mark.parametrize(
    "name", ["gbdt", "lightgbm", "xgboost-pairwise", "xgboost-ndcg", "catboost"]
)
def test_boosters_stop_at_their_best_round_on_validation(name):
    """The model kept is that of the round whose measure was the best of those tried."""
    task = small_task("map")
    seen = []
    judge = Task.judge

    class Spied(Task):
        def judge(self, scores):
            seen.append(judge(self, scores))
            return seen[-1]

    spied = Spied(task.train, task.valid, "map", RULES, "standard", 3)
    (candidate,) = candidates(name, spied, 1)
    assert len(seen) > candidate.parameters["rounds"] > 0
    assert task.judge(candidate.predict(task.valid)) == pytest.approx(max(seen), abs=1e-12)


@pytest.mark.parametrize("name", ["gbdt", "lightgbm", "xgboost-ndcg", "catboost"])
def test_the_fit_of_a_booster_that_is_timed_is_the_chosen_one_and_no_more(name):
    """Not the rounds after the best, and no look at the validation part."""
    looks = []

    class Spied(Task):
        def judge(self, scores):
            looks.append(super().judge(scores))
            return looks[-1]

    task = small_task("map")
    spied = Spied(task.train, task.valid, "map", RULES, "standard", 3)
    (candidate,) = candidates(name, spied, 1)
    before = len(looks)
    again = candidate.fit()
    rows = task.valid.X
    if name == "xgboost-ndcg":
        import xgboost

        rows = xgboost.DMatrix(rows)
    np.testing.assert_allclose(again.predict(rows), candidate.predict(task.valid), rtol=1e-6)
    assert len(looks) == before


@pytest.mark.parametrize("name", ["xgboost-pairwise", "catboost"])
def test_pairs_have_an_order_whatever_the_labels(name):
    """Shifted by a fraction below 0, labels order the same pairs."""
    task = small_task("pairwise_accuracy")
    shifted = [Dataset.of(d.X, d.y - 2.5, qid=d.qid) for d in (task.train, task.valid)]
    (plain,), (moved,) = (
        candidates(name, t, 1) for t in (task, Task(*shifted, task.scoring, RULES, seed=3))
    )
    assert moved.parameters == plain.parameters
    np.testing.assert_allclose(moved.predict(task.valid), plain.predict(task.valid), rtol=1e-3)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost-ndcg", "catboost"])
def test_high_grades_do(name):
    """2^y is no number for a price."""
    task = small_task("pairwise_accuracy")
    high = [Dataset.of(d.X, 700 * d.y, qid=d.qid) for d in (task.train, task.valid)]
    (candidate,) = candidates(name, Task(*high, task.scoring, RULES, seed=3), 1)
    assert task.judge(candidate.predict(task.valid)) > 0.6


@pytest.mark.parametrize("name", ["lightgbm", "xgboost-ndcg"])
def test_labels_that_are_no_grades_are_refused_by_name(name):
    data = make_ranking(n_queries=4, n_features=2, random_state=0)
    half = Dataset.of(data.X, data.y + 0.5, qid=data.qid)
    with pytest.raises(ValueError, match=r"grades 0, 1, 2.*[0-9]\.5 occurs"):
        candidates(name, Task(half, half, "map", RULES))


def test_the_balance_of_rows_is_that_of_the_pairs():
    data = make_ranking(n_queries=5, n_features=3, random_state=4)
    queries = data.queries
    expected = np.zeros(data.n_rows)
    for i in range(data.n_rows):
        for j in range(data.n_rows):
            if data.qid[i] == data.qid[j]:
                expected[i] += np.sign(data.y[i] - data.y[j])
    np.testing.assert_array_equal(queries.scatter(pair_balance(queries)), expected)


def test_the_best_feature_is_found_whatever_its_direction():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200).astype(float)
    X = rng.normal(size=(200, 30))
    X[:, 17] -= 2 * y
    data = Dataset.of(X, y, qid=np.arange(200) // 10)
    found = candidates("best-feature", Task(data, data, "map", RULES), None)
    assert found[0].parameters == {"feature": 18, "order": "ascending"}
    assert len(found) == 20
    scores = found[0].predict(data)
    assert evaluate(y, scores, qid=data.qid, metrics="map")["map"] > 0.8


# ---- names --------------------------------------------------------------------------------------


def test_unknown_methods_are_told_the_nearest():
    with pytest.raises(ValueError, match=r"unknown method 'lightgmb'; did you mean 'lightgbm'\?"):
        chosen_methods(["lightgmb"])
    with pytest.raises(ValueError, match="unknown method 'foret'"):
        chosen_methods("all", ["foret"])


def test_no_name_is_not_the_baseline_alone():
    with pytest.raises(ValueError, match=r"methods is empty; name some of ranksvm, .*, or 'all'"):
        chosen_methods([], baseline="ranksvm")


def test_the_baseline_takes_part_in_any_case():
    names = [m.name for m in chosen_methods(["gbdt", "sgd", "gbdt"], baseline="ranksvm")]
    assert names == ["ranksvm", "gbdt", "sgd"]
    with pytest.raises(ValueError, match="'sgd' is the baseline and is left out"):
        chosen_methods("all", ["sgd"], "sgd")


def test_all_without_some():
    names = [m.name for m in chosen_methods("all", ["catboost", "forest"])]
    assert set(METHODS) - set(names) == {"catboost", "forest"}
    with pytest.raises(ValueError, match="no method is left"):
        chosen_methods(["sgd"], ["sgd"])
