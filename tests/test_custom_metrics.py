"""Measures that steer: functions of the user's, and errors, of which less is better."""

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import linrank
from linrank import make_ranking, ranking_scorer
from linrank.metrics import CustomMeasure, Evaluation, evaluate, parse
from linrank.search.tuning import Tuning
from papers import (
    DominationRanker,
    DominationRankerCV,
    KernelRankSVMCV,
    RankSVM,
    RankSVMCV,
    SGDRanker,
    SGDRankerCV,
)


def top_three(y, scores):
    """The precision among the first three, as ``p@3`` has it."""
    best = np.argsort(-scores, kind="stable")[:3]
    return np.sum(y[best] >= 1) / 3


def missed(y, scores):
    """An error: less is better."""
    return 1.0 - top_three(y, scores)


MISSED = CustomMeasure(missed, higher_is_better=False)


@pytest.fixture(scope="module")
def data():
    return linrank.make_ranking(n_queries=30, n_features=4, noise=1.0, random_state=5)


@pytest.fixture(scope="module")
def scores(data):
    return np.random.default_rng(0).normal(size=data.n_rows)


def test_a_function_is_a_metric_by_query(data, scores):
    shuffled = np.random.default_rng(1).permutation(data.n_rows)  # queries in pieces
    y, s, qid = data.y[shuffled], scores[shuffled], data.qid[shuffled]
    found = evaluate(y, s, qid=qid, metrics=[top_three, "p@3", MISSED])
    assert list(found) == ["top_three", "p@3", "missed"]
    assert_array_equal(found.per_query["top_three"], found.per_query["p@3"])
    assert found["top_three"] == found[top_three] == found["p@3"]
    assert found["missed"] == pytest.approx(1.0 - found["p@3"])
    alone = evaluate(y, s, qid=qid, metrics=top_three)
    assert alone.means == {"top_three": found["top_three"]}


def test_a_query_of_nan_is_left_out(data, scores):
    def graded_only(y, scores):
        return math.nan if y.max() < 2 else top_three(y, scores)

    found = evaluate(data.y, scores, qid=data.qid, metrics=[graded_only, "p@3"])
    judged = ~np.isnan(found.per_query["graded_only"])
    assert 0 < judged.sum() < found.n_queries
    assert found["graded_only"] == pytest.approx(found.per_query["p@3"][judged].mean())
    numerator, denominator = found.terms("graded_only")
    assert numerator.sum() / denominator.sum() == pytest.approx(found["graded_only"])
    never = evaluate(data.y, scores, qid=data.qid, metrics=CustomMeasure(lambda y, s: math.nan))
    assert math.isnan(never["<lambda>"])


def test_results_go_on_by_the_name(data, scores):
    found = evaluate(data.y, scores, qid=data.qid, metrics=[top_three, MISSED])
    assert "'top_three': 0." in repr(found)
    assert "top_three" in found.to_text()
    assert json.loads(json.dumps(found.to_dict()))["means"]["top_three"] == found["top_three"]
    joined = Evaluation.joined([found, found])
    assert joined["top_three"] == pytest.approx(found["top_three"])
    better = data.y + 0.1 * scores
    compared = linrank.compare(
        data.y, {"a": scores, "b": better}, qid=data.qid, metrics=[top_three, MISSED]
    )
    assert compared.cells["b", "top_three"].wins == compared.cells["b", "missed"].wins > 0
    assert compared.cells["b", "missed"].difference < 0.0


def test_another_process_has_the_numbers_without_the_function(data, scores):
    found = evaluate(data.y, scores, qid=data.qid, metrics=[top_three])
    program = (
        "import pickle, sys; found = pickle.loads(sys.stdin.buffer.read());"
        "print(found['top_three'], found.terms('top_three')[0].sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(found), capture_output=True, check=True
    )
    mean, total = map(float, done.stdout.split())
    assert mean == found["top_three"]
    assert total == pytest.approx(mean * found.n_queries)


SEARCHES = {
    "C": RankSVMCV(Cs=[1e-6, 1e-4, 1e-2, 1.0], cv=3),
    "lambda": SGDRankerCV([10.0, 1e-1, 1e-3], cv=3, n_steps=2000, random_state=0),
    "alpha": DominationRankerCV(alphas=[10.0, 3.0, 1.0, 0.1], cv=3),
    "gamma": KernelRankSVMCV(Cs=[0.1], gammas=[0.1], cv=3, random_state=0),
}


def search(name, data, **params):
    return clone(SEARCHES[name]).set_params(**params).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_chooses_by_it(data, name):
    ours, named, errors = (search(name, data, scoring=s) for s in (top_three, "p@3", MISSED))
    assert_array_equal(ours.scores_, named.scores_)
    assert_allclose(errors.scores_, named.scores_ - 1.0)  # a minus sign: of an error
    assert ours.best_params_ == named.best_params_
    assert ours.model_.training["scoring"] == "top_three"
    assert "scoring=<function top_three" in repr(ours)


def ndcg(y, scores):
    return 0.0


@pytest.mark.parametrize(
    ("metrics", "kind", "told"),
    [
        (ndcg, ValueError, "a metric of yours is called 'ndcg', as one of linrank's; rename"),
        (CustomMeasure(ndcg, "P@3"), ValueError, "called 'P@3', as one of linrank's"),
        ([top_three, CustomMeasure(missed, "top_three")], ValueError, "two metrics are called"),
        (lambda y, scores: "good", TypeError, "<lambda> returned 'good' for the query of row 0"),
        (3, TypeError, "not iterable"),
        ([3], TypeError, r"a name such as 'ndcg@10', a Measure or a function f\(y, scores\)"),
    ],
)
def test_what_is_refused(data, scores, metrics, kind, told):
    with pytest.raises(kind, match=told):
        evaluate(data.y, scores, qid=data.qid, metrics=metrics)


def test_runs_and_contests_say_what_to_do(data):
    with pytest.raises(TypeError, match=r"scoring='top_three' is a function, .*pass it in metrics"):
        linrank.compare_methods(data, data, data, methods=["random"], scoring=top_three)
    with pytest.raises(TypeError, match="a metric of yours must be callable"):
        CustomMeasure("ndcg")
    with pytest.raises(ValueError, match="which runs are not judged by"):
        linrank.evaluate_run(
            linrank.Qrels.of(["q"], ["d"], [1]), linrank.Run.of(["q"], ["d"], [1.0]), metrics=missed
        )


def test_names_stand_for_the_last_function():
    def mine(y, scores):
        return 0.0

    first = parse(mine)
    assert parse("mine") is first
    second = CustomMeasure(lambda y, s: 1.0, "mine", higher_is_better=False)
    assert parse(second) is parse("mine") is second


@pytest.fixture(scope="module")
def parts():
    data = make_ranking(n_queries=40, n_features=8, noise=2.0, random_state=3)
    return data.select(data.qid < 30), data.select(data.qid >= 30)


@pytest.mark.parametrize("selection", ["best", "one_se"])
@pytest.mark.parametrize("name", ["C", "lambda", "alpha"])
def test_the_least_error_chooses_the_model_of_the_largest_accuracy(parts, name, selection):
    accuracy, error = (
        search(name, parts[0], scoring=scoring, selection=selection)
        for scoring in ("pairwise_accuracy", "all_pairs_error")
    )
    assert np.ptp(accuracy.mean_scores_) > 0
    assert error.best_params_ == accuracy.best_params_
    assert_allclose(error.scores_, accuracy.scores_ - 1.0, atol=1e-12)
    assert error.best_score_ <= 0.0


@pytest.mark.parametrize(
    "ranker",
    [
        RankSVM(C=10.0, tol=1e-8),
        SGDRanker(alpha=1e-4, n_steps=20_000, random_state=0),
        DominationRanker(alpha=0.1, tol=1e-8),
    ],
)
def test_early_stopping_keeps_the_least_error(parts, ranker):
    train, valid = parts
    histories = {}
    for name in ("pairwise_accuracy", "all_pairs_error"):
        ranker.set_params(scoring=name, early_stopping=True, n_iter_no_change=100)
        ranker.fit(train.X, train.y, qid=train.qid, X_val=valid.X, y_val=valid.y, qid_val=valid.qid)
        histories[name] = np.array(ranker.history_[f"val_{name}"]), ranker.best_iteration_
    errors, best = histories["all_pairs_error"]
    assert errors.min() >= 0.0  # as it is, without a sign
    assert best == np.argmin(errors) == histories["pairwise_accuracy"][1]
    assert best > 0


def test_the_scorer_turns_an_error_around(parts):
    train, valid = parts
    ranker = RankSVM().fit(train.X, train.y, qid=train.qid)
    name = "domination_error(ties=error)"
    truth = evaluate(valid.y, ranker.predict(valid.X), qid=valid.qid, metrics=name)[name]
    assert truth > 0
    assert ranking_scorer(name)(ranker, valid.X, valid.y, qid=valid.qid) == -truth


@pytest.mark.parametrize("name", ["domination_error", "dominated_error"])
def test_an_error_that_likes_ties_is_refused(data, name):
    for ranker in (*SEARCHES.values(), RankSVM()):
        with pytest.raises(ValueError, match="counts rows that are only tied as right"):
            clone(ranker).set_params(scoring=name).fit(data)
    with pytest.raises(ValueError, match="counts rows that are only tied as right"):
        ranking_scorer(name)


def test_the_edge_of_the_grid_is_that_of_the_least_error():
    errors = 0.0 - np.array([[0.4, 0.3, 0.2]])
    tuning = Tuning({"C": np.array([0.1, 1.0, 10.0])}, errors)
    assert "the best C, 10, is the largest" in tuning.edge


def test_the_command_line_tunes_by_an_error(files, cli):
    told = cli("tune {train} -m domination_error", status=1, **files).err
    assert "write domination_error(ties=error)" in told
    line = "tune {train} -m 'domination_error(ties=error)' --json --Cs 0.01,1"
    report = cli(line, **files).json
    assert report["score"] == max(report["path"]["mean_scores"]) <= 0
    line = "evaluate {valid} {scores} -m domination_error --json"
    assert 0 < cli(line, **files).json["metrics"]["domination_error"] < 1
