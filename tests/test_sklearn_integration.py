"""RankSVM inside scikit-learn: its checks, pipelines, searches and metadata routing."""

import pickle

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linrank import QueryKFold, RankerMixin, RankSVM, evaluate, make_ranking, ranking_scorer
from strategies import query_ids

DATA = make_ranking(n_queries=40, n_features=6, n_levels=3, random_state=5)
DATA = DATA.select(np.random.default_rng(0).permutation(DATA.n_rows))


def scores_of(ranker, data, cv, params=None, **options):
    given = {"qid": data.qid, **(params or {})}
    return cross_val_score(
        ranker, data.X, data.y, cv=cv, params=given, error_score="raise", **options
    )


def by_hand(data, cv, fit, measure="ndcg@10"):
    """Scores of the folds without any of scikit-learn's tools."""
    values = []
    for train, test in cv.split(data.X, data.y, data.qid):
        scores = fit(data.X[train], data.y[train], data.qid[train])(data.X[test])
        result = evaluate(data.y[test], scores, qid=data.qid[test], metrics=[measure])
        values.append(result[measure])
    return values


def fit_plain(X, y, qid):
    return RankSVM(C=0.1).fit(X, y, qid=qid).predict


def test_one_qid_reaches_splitter_fit_and_score(routing):
    cv = QueryKFold(4)
    found = scores_of(RankSVM(C=0.1), DATA, cv, scoring=ranking_scorer("ndcg@10"))
    assert_allclose(found, by_hand(DATA, cv, fit_plain))
    default = scores_of(RankSVM(C=0.1), DATA, cv)
    assert_allclose(default, by_hand(DATA, cv, fit_plain, "pairwise_accuracy"))


def test_grid_search_over_a_pipeline(routing):
    cv = QueryKFold(3, shuffle=True, random_state=0)
    pipeline, grid = make_pipeline(StandardScaler(), RankSVM()), {"ranksvm__C": [1e-3, 1.0]}
    how = {"cv": cv, "scoring": ranking_scorer("ndcg@10"), "error_score": "raise"}
    search = GridSearchCV(pipeline, grid, **how).fit(DATA.X, DATA.y, qid=DATA.qid)

    def fit(X, y, qid):
        scaler = StandardScaler().fit(X)
        ranker = RankSVM(C=1e-3).fit(scaler.transform(X), y, qid=qid)
        return lambda rows: ranker.predict(scaler.transform(rows))

    assert_allclose(search.cv_results_["mean_test_score"][0], np.mean(by_hand(DATA, cv, fit)))
    fitted = search.best_estimator_[-1]
    assert fitted.needs_qid_
    assert fitted.n_queries_ == 40
    expected = evaluate(DATA.y, search.predict(DATA.X), qid=DATA.qid, metrics=["ndcg@10"])
    assert_allclose(search.score(DATA.X, DATA.y, qid=DATA.qid), expected["ndcg@10"])


def test_scaling_by_query_works_through_a_search(routing):
    """The scorer hands qid to decision_function, through the pipeline too."""
    ranker, how = RankSVM(C=0.1, scale="query"), {"scoring": ranking_scorer()}
    bare = scores_of(ranker, DATA, QueryKFold(3), **how)
    piped = scores_of(make_pipeline("passthrough", ranker), DATA, QueryKFold(3), **how)
    assert_array_equal(bare, piped)
    assert np.isfinite(bare).all()


def test_a_pointwise_model_can_be_compared(routing):
    found = scores_of(Ridge(), DATA, QueryKFold(3), scoring=ranking_scorer())
    expected = by_hand(DATA, QueryKFold(3), lambda X, y, qid: Ridge().fit(X, y).predict)
    assert_allclose(found, expected, rtol=1e-6)


def test_weights_are_passed_only_when_requested(routing):
    params = {"sample_weight": np.ones(DATA.n_rows)}
    with pytest.raises(UnsetMetadataPassedError):
        scores_of(RankSVM(), DATA, QueryKFold(3), params)
    asking = RankSVM().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    found = scores_of(asking, DATA, QueryKFold(3), params)
    assert_allclose(found, scores_of(RankSVM(), DATA, QueryKFold(3)), rtol=1e-3)


def test_query_weights_survive_the_splitting(routing):
    """Arrays are sliced with the rows; a mapping goes along whole."""
    mapping = {q: 1.0 + q % 3 for q in range(40)}
    by_row = np.array([mapping[q] for q in DATA.qid.tolist()])
    asking = RankSVM().set_fit_request(query_weight=True)
    a, b = (
        scores_of(asking, DATA, QueryKFold(3), {"query_weight": weight})
        for weight in (mapping, by_row)
    )
    assert_array_equal(a, b)


# ---- routing off: an error, never a wrong number ------------------------------------------------


@pytest.mark.parametrize("scoring", [None, ranking_scorer("ndcg@10")])
def test_without_routing_the_score_is_an_error(scoring):
    arguments = {"cv": QueryKFold(3), "groups": DATA.qid, "scoring": scoring}
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        cross_val_score(
            RankSVM(), DATA.X, DATA.y, params={"qid": DATA.qid}, error_score="raise", **arguments
        )
    with pytest.raises(ValueError, match="QueryKFold needs query ids"):
        GridSearchCV(RankSVM(), {"C": [1.0]}, cv=QueryKFold(3)).fit(DATA.X, DATA.y, qid=DATA.qid)


# ---- conventions --------------------------------------------------------------------------------


def test_the_mixin_serves_other_rankers(routing):
    class FirstFeature(RankerMixin, BaseEstimator):
        def fit(self, X, y, *, qid=None):
            self.needs_qid_ = qid is not None
            return self

        def decision_function(self, X, qid=None):
            return X[:, 0]

    found = scores_of(FirstFeature(), DATA, QueryKFold(3))
    expected = by_hand(
        DATA, QueryKFold(3), lambda X, y, qid: lambda rows: rows[:, 0], "pairwise_accuracy"
    )
    assert_allclose(found, expected)
    ranker = FirstFeature().fit(DATA.X, DATA.y, qid=DATA.qid)
    with pytest.raises(ValueError, match="this FirstFeature was fitted with qid"):
        ranker.score(DATA.X, DATA.y)


@pytest.mark.filterwarnings("error")
def test_a_search_in_processes(routing):
    """Estimators, splitters and scorers travel to other processes."""
    how = {"scoring": ranking_scorer(), "n_jobs": 2}
    found = scores_of(RankSVM(n_jobs=1), DATA, QueryKFold(2), **how)
    assert np.isfinite(found).all()


# ---- folds and scorers --------------------------------------------------------------------------


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
