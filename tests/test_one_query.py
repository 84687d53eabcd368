"""Rows that seem to be of many queries and are taken for one, or whose queries folds split."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import linrank
from linrank import RankSVM, SGDRanker, evaluate, make_ranking
from linrank.errors import DataWarning

DATA = make_ranking(24, 8, 3, random_state=0)
X, Y, QID = DATA.X, DATA.y, DATA.qid
ASKED = (
    r"{}.fit got no query ids, and the labels look like grades \(\d levels from 0 to \d\): .* "
    r"Pass qid= \(the query of each row\) or group= .*, or qid=None if it is one query"
)
GRID = {"C": [0.01, 0.1]}


def data_warnings(act) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [one for one in caught if issubclass(one.category, DataWarning)]


FITS = {
    "RankSVM": lambda **ids: RankSVM().fit(X, Y, **ids),
    "RankSVMCV": lambda **ids: linrank.RankSVMCV([0.1], cv=2).fit(X, Y, **ids),
    "DominationRanker": lambda **ids: linrank.DominationRanker(max_iter=3).fit(X, Y, **ids),
    "KernelRankSVM": lambda **ids: linrank.KernelRankSVM(max_iter=3).fit(X, Y, **ids),
    "SGDRanker": lambda **ids: SGDRanker(n_steps=10).fit(X, Y, **ids),
}


@pytest.mark.parametrize("name", FITS)
def test_graded_rows_without_queries_are_asked_for_once(name):
    """Who says what the queries are, or that there are none, is not asked."""
    (said,) = data_warnings(FITS[name])
    assert said.filename == __file__
    assert re.match(ASKED.format(name), str(said.message))
    for ids in (None, QID):
        assert data_warnings(partial(FITS[name], qid=ids)) == []


def test_other_ways_to_learn():
    sizes = np.diff(DATA.queries.offsets)
    assert data_warnings(lambda: RankSVM().fit(X, Y, group=sizes)) == []
    whole = linrank.Dataset.of(X, Y)
    (said,) = data_warnings(lambda: RankSVM().fit(whole))
    assert "got no query ids" in str(said.message)
    assert data_warnings(lambda: RankSVM().fit(whole, qid=None)) == []
    assert data_warnings(lambda: RankSVM().fit(DATA)) == []
    assert data_warnings(lambda: RankSVM().fit_pairs(X, [[1, 0]])) == []  # pairs need no query
    assert len(data_warnings(lambda: RankSVM().fit_pairs(X, [[1, 0]], y=Y))) == 1
    stream = SGDRanker()
    assert len(data_warnings(lambda: stream.partial_fit(X, Y).partial_fit(X, Y))) == 1
    assert data_warnings(lambda: SGDRanker().partial_fit(X, Y, qid=None)) == []
    topics = np.column_stack([Y, Y > 1])  # each topic is a query
    assert data_warnings(lambda: linrank.PerQueryRanker(RankSVM()).fit(X, topics)) == []


@pytest.mark.parametrize(
    "labels",
    [
        np.random.default_rng(0).normal(size=len(Y)),
        np.arange(len(Y)),
        np.arange(len(Y)) // 3,
        np.where(Y > 1, 1, -1),
    ],
    ids=["regression", "distinct", "many", "classes"],
)
def test_labels_that_are_no_grades_are_of_one_query(labels):
    assert data_warnings(lambda: RankSVM().fit(X, labels)) == []


@pytest.mark.parametrize("is_routed", [True, False])
def test_groups_of_a_search_do_not_reach_the_ranker(is_routed):
    search = GridSearchCV(RankSVM(), GRID, cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=is_routed):
        (said,) = data_warnings(lambda: search.fit(X, Y, groups=QID))
    assert said.filename == __file__
    for told in (
        "In cross-validation, groups= reaches the splitter alone: call sklearn.set_",
        "pass qid= to fit of the search, or params={'qid': qid} to cross_validate",
    ):
        assert told in str(said.message)


def test_one_query_in_a_search_is_said_by_none_or_by_one_id(routing):
    search = GridSearchCV(RankSVM(), GRID, cv=3)
    assert data_warnings(lambda: search.fit(X, Y, qid=np.zeros(len(Y)))) == []
    with sklearn.config_context(enable_metadata_routing=False):
        assert data_warnings(lambda: search.fit(X, Y, qid=None)) == []


SPLIT = "the folds split queries: .* cv=linrank.QueryKFold"


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), 5], ids=str)
def test_folds_that_split_queries_are_told_once(routing, cv):
    search = GridSearchCV(RankSVM(), GRID, cv=cv)
    (said,) = data_warnings(lambda: search.fit(X, Y, qid=QID))
    assert said.filename == __file__
    assert re.match(SPLIT, str(said.message))
    how = {"cv": cv, "params": {"qid": QID}, "scoring": linrank.ranking_scorer("ndcg@5")}
    with pytest.warns(DataWarning, match=SPLIT):
        cross_val_score(make_pipeline(StandardScaler(), RankSVM()), X, Y, **how)


def test_whole_queries_are_not_warned_of(routing):
    by_query = GridSearchCV(RankSVM(), GRID, cv=linrank.QueryKFold(3), return_train_score=True)
    assert data_warnings(lambda: by_query.fit(X, Y, qid=QID)) == []
    by_group = GridSearchCV(RankSVM(), GRID, cv=GroupKFold(3))
    assert data_warnings(lambda: by_group.fit(X, Y, qid=QID, groups=QID)) == []
    # Outside of folds an id may come again: of the same query, or of another in another file.
    ranker = by_query.best_estimator_
    assert data_warnings(lambda: ranker.score(X[::2], Y[::2], qid=QID[::2])) == []
    assert data_warnings(lambda: by_query.score(X[::2], Y[::2], qid=QID[::2])) == []
    assert not hasattr(ranker, "_fitted_queries")


def test_evaluate_asks_where_a_measure_is_of_lists():
    n_times = 1 + 1000 // len(Y)
    y, scores = np.tile(Y, n_times), np.tile(X[:, 0], n_times)
    for metrics in ({}, {"metrics": ["auc", "ndcg@10"]}):
        with pytest.warns(DataWarning, match="evaluate got no query ids.*qid=None"):
            evaluate(y, scores, **metrics)
    for metrics in ("auc", ["pairwise_accuracy", "kendall_tau"]):
        assert data_warnings(partial(evaluate, y, scores, metrics=metrics)) == []
    for ids in ({"qid": None}, {"qid": np.arange(len(y)) // 8}, {"group": [len(y)]}):
        assert data_warnings(partial(evaluate, y, scores, **ids)) == []
    assert data_warnings(lambda: evaluate(scores, scores, metrics="mrr")) == []
    assert data_warnings(lambda: evaluate(Y, X[:, 0])) == []  # a list of the usual length


def test_leaving_it_out_is_seen_by_nobody_else(routing):
    """The default is neither None nor an id: routing, clones and pickles do not know it."""
    default = inspect.signature(RankSVM.fit).parameters["qid"].default
    assert repr(default) == "<not given>"
    ranker = RankSVM().set_fit_request(qid="query")
    assert clone(ranker).get_metadata_routing().fit.requests["qid"] == "query"
    fitted = pickle.loads(pickle.dumps(RankSVM().fit(X, Y, qid=None)))
    assert not fitted.needs_qid_
