"""Metrics of the user's: functions of the labels and scores of a query, wherever names go."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import linrank
from linrank import RankSVMCV, evaluate
from linrank.metrics import CustomMeasure, Evaluation, parse


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


def test_cross_validation_chooses_by_it(data):
    fit = {"Cs": [1e-4, 1e-2, 1.0], "cv": 3}
    ours = RankSVMCV(scoring=top_three, **fit).fit(data)
    named = RankSVMCV(scoring="p@3", **fit).fit(data)
    errors = RankSVMCV(scoring=MISSED, **fit).fit(data)
    assert_array_equal(ours.scores_, named.scores_)
    np.testing.assert_allclose(errors.scores_, named.scores_ - 1.0)  # a minus sign: of an error
    assert ours.C_ == named.C_ == errors.C_
    assert ours.model_.training["scoring"] == "top_three"
    assert "scoring=<function top_three" in repr(ours)


@pytest.mark.parametrize("kind", ["SGDRankerCV", "DominationRankerCV", "KernelRankSVMCV"])
def test_every_search_takes_it(data, kind):
    own = {"Cs": [0.1], "gammas": [0.1]} if kind.startswith("Kernel") else {"alphas": [0.01, 0.1]}
    fit = {"cv": 3, **own} | ({"random_state": 0} if kind != "DominationRankerCV" else {})
    searcher = getattr(linrank, kind)
    ours, named = (searcher(scoring=s, **fit).fit(data) for s in (top_three, "p@3"))
    assert_array_equal(ours.scores_, named.scores_)


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
