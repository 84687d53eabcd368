"""QueryKFold keeps queries whole and folds even; ranking_scorer computes what it names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from linrank import QueryKFold, RankSVM, evaluate, make_ranking, ranking_scorer
from strategies import query_ids


@given(st.integers(2, 40).flatmap(query_ids), st.integers(2, 5), st.booleans())
def test_folds_partition_the_rows_by_query(qid, n_splits, shuffle):
    n_queries = len(np.unique(qid))
    cv = QueryKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    X = np.zeros((len(qid), 1))
    if n_queries < n_splits:
        with pytest.raises(ValueError, match=f"{n_queries} queries cannot fill {n_splits} folds"):
            next(cv.split(X, groups=qid))
        return
    tests = []
    for train, test in cv.split(X, groups=qid):
        assert set(qid[train]) & set(qid[test]) == set()
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(qid)))
        assert test.size > 0
        tests.append(test)
    assert_array_equal(np.sort(np.concatenate(tests)), np.arange(len(qid)))
    # Dealt to the smallest fold each time, sizes differ by one query at most.
    sizes = [len(test) for test in tests]
    assert max(sizes) - min(sizes) <= np.bincount(qid).max()


def folds(cv, qid):
    return [test.tolist() for _, test in cv.split(np.zeros((len(qid), 1)), None, qid)]


def test_folds_depend_on_the_grouping_only():
    codes = np.array([3, 1, 1, 2, 0, 3, 2, 4, 4, 4, 0])
    spellings = [
        codes,
        codes.astype(float),
        codes.tolist(),
        np.array([f"q{c}" for c in codes]),
        [("q", int(c)) for c in codes],
        np.array(["zebra", 7, ("t",), b"x", 2.5], dtype=object)[codes],
    ]
    expected = folds(QueryKFold(3), codes)
    for qid in spellings:
        assert folds(QueryKFold(3), qid) == expected


def test_shuffling_follows_the_seed():
    qid = np.repeat(np.arange(50), 3)
    cv = QueryKFold(5, shuffle=True, random_state=1)
    assert folds(cv, qid) == folds(QueryKFold(5, shuffle=True, random_state=1), qid)
    assert folds(cv, qid) != folds(QueryKFold(5, shuffle=True, random_state=2), qid)
    assert folds(cv, qid) != folds(QueryKFold(5), qid)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_splits": 1}, ValueError, "n_splits must be >= 2, got 1"),
        ({"n_splits": 2.5}, TypeError, "n_splits must be an integer, got 2.5"),
        ({"n_splits": True}, TypeError, "n_splits must be an integer, got True"),
        ({"random_state": 0}, ValueError, "no effect without shuffle=True"),
    ],
)
def test_wrong_folds_are_an_error(arguments, error, message):
    with pytest.raises(error, match=message):
        QueryKFold(**arguments)


def test_ids_of_the_wrong_length_are_an_error():
    with pytest.raises(ValueError, match="qid has 3 elements but there are 4 rows"):
        next(QueryKFold(2).split(np.zeros((4, 1)), groups=[1, 2, 3]))
    with pytest.raises(ValueError, match="QueryKFold needs query ids"):
        next(QueryKFold(2).split(np.zeros((4, 1))))


@pytest.fixture(scope="module")
def fitted():
    data = make_ranking(n_queries=20, n_features=5, random_state=1)
    return data, RankSVM().fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("convention", ["linrank", "letor", "lightgbm"])
@pytest.mark.parametrize("metric", ["ndcg@10", "map", "pairwise_accuracy"])
def test_the_scorer_computes_what_it_names(fitted, metric, convention, routing):
    data, ranker = fitted
    scorer = ranking_scorer(metric, convention=convention)
    expected = evaluate(
        data.y, ranker.predict(data.X), qid=data.qid, metrics=[metric], convention=convention
    )
    with sklearn.config_context(enable_metadata_routing=routing):
        assert_allclose(scorer(ranker, data.X, data.y, qid=data.qid), expected[metric])


def test_the_scorer_refuses_to_guess(fitted):
    data, ranker = fitted
    with pytest.raises(ValueError, match=r"ranking_scorer\('map'\) got no qid.*numpy.zeros"):
        ranking_scorer("map")(ranker, data.X, data.y)


@pytest.mark.parametrize("arguments", [("ndgc@10",), ("ndcg@0",)])
def test_a_misspelt_measure_fails_at_once(arguments):
    with pytest.raises(ValueError, match="ndcg"):
        ranking_scorer(*arguments)
    with pytest.raises(ValueError, match="sql"):
        ranking_scorer("map", convention="sql")


def test_scorers_are_values():
    assert ranking_scorer("map") == ranking_scorer("map") != ranking_scorer("mrr")
    scorer = ranking_scorer("map", convention="letor")
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    assert repr(scorer) == "ranking_scorer('map', convention='letor')"
