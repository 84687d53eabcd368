"""Query ids: grouping is a stable sort by first appearance, and ids are no features."""

import inspect
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import linrank
from hypothesis_profiles import examples
from linrank import Dataset, RankSVM, SGDRanker, _core, evaluate, make_ranking
from linrank.data.dataset import _columns_like
from linrank.data.queries import Queries
from linrank.data.rows import as_rows
from linrank.errors import DataWarning
from strategies import label_vectors, query_ids, scored_queries


def grouped_by_definition(labels, qid):
    """Queries in order of first appearance, each a list of rows, and their dense ranks."""
    ids = list(dict.fromkeys(qid.tolist()))
    rows = [[i for i in range(len(qid)) if qid[i] == id_] for id_ in ids]
    ranks = [[sorted(set(labels[r])).index(labels[i]) for i in r] for r in rows]
    return ids, rows, ranks


@given(scored_queries(max_rows=40))
def test_equals_definition(case):
    queries = case.queries
    ids, rows, ranks = grouped_by_definition(case.labels, case.qid)
    order = np.arange(len(case.qid)) if queries.order is None else queries.order
    assert queries.ids.tolist() == ids
    assert order.tolist() == [i for r in rows for i in r]
    assert queries.offsets.tolist() == np.cumsum([0] + [len(r) for r in rows]).tolist()
    assert queries.levels.tolist() == [level for r in ranks for level in r]
    assert queries.n_levels.tolist() == [max(r) + 1 for r in ranks]
    assert queries.n_pairs == len(case.pairs())
    per_query = [sum(case.qid[i] == id_ for i, _ in case.pairs()) for id_ in ids]
    assert queries.pairs_per_query.tolist() == per_query
    runs = 1 + int(np.count_nonzero(case.qid[1:] != case.qid[:-1]))
    assert (queries.order is None) == (runs == len(ids))


@examples(200)
@given(scored_queries(max_rows=30), st.data())
def test_queries_of_some_rows_are_those_of_their_labels(case, data):
    """Whole queries need not be grouped anew; whatever else is asked for is."""
    sorted_rows = np.argsort(case.qid, kind="stable")
    together = data.draw(st.booleans())
    qid = case.qid[sorted_rows] if together else case.qid
    whole = Queries.of(case.labels, qid)
    ids = list(dict.fromkeys(qid.tolist()))
    taken = data.draw(st.sets(st.sampled_from(ids)))
    index = np.flatnonzero([one in taken for one in qid.tolist()])
    cut, turned = data.draw(st.booleans()), data.draw(st.booleans())
    index = index[1:] if cut else index
    index = index[::-1] if turned else index
    expected = Queries.of(case.labels[index], qid[index]) if index.size else None
    found = whole.of_rows(index)
    if whole.order is None and index.size and not cut and not (turned and len(index) > 1):
        assert found is not None
    if found is not None:
        for name in ("offsets", "order", "levels", "n_levels", "ids"):
            one, other = getattr(found, name), getattr(expected, name)
            assert (one is None) == (other is None), name
            assert one is None or (one.dtype == other.dtype and one.tolist() == other.tolist())


def test_data_sets_of_whole_queries_are_grouped_already():
    data = linrank.make_ranking(6, (3, 5), 4, random_state=0)
    of_row = data.queries.query_of_rows()
    part = data.select(np.flatnonzero((of_row == 1) | (of_row == 4)))
    assert "queries" in part.__dict__
    expected = Queries.of(part.labels, part.qid)
    assert part.queries.ids.tolist() == expected.ids.tolist()
    assert part.queries.levels.tolist() == expected.levels.tolist()
    for index in ([0, 1], [-1], slice(0, 2), of_row == 2):
        part = data.select(index)
        assert part.queries.levels.tolist() == Queries.of(part.labels, part.qid).levels.tolist()


@given(scored_queries(max_rows=30))
def test_scatter_undoes_gather(case):
    queries, one = case.queries, Queries.of(case.labels)
    assert_array_equal(queries.scatter(queries.gather(case.scores)), case.scores)
    if queries.order is None:
        assert queries.gather(case.scores) is case.scores
    assert (one.ids, one.order, one.n_queries) == (None, None, 1)  # without ids


@given(scored_queries(max_rows=30))
def test_any_type_of_id_groups_alike(case):
    expected = case.queries
    names = np.array([f"query {code}" for code in case.qid])
    for qid in [
        case.qid.astype(np.int8),
        case.qid.astype(np.uint64) + np.uint64(2**63),
        case.qid.astype(np.float32),
        case.qid[:, None],
        case.qid.tolist(),
        names,
        names.astype("S"),
        names.astype(object),
        names.tolist(),
        [("a", int(code)) for code in case.qid],
        case.qid.astype("datetime64[D]"),
        pd.Series(names).astype("category"),
        pd.Series(case.qid, dtype="Int64"),
        pl.Series(names.tolist(), dtype=pl.Categorical),
        pa.array(names.tolist()).dictionary_encode(),
        pa.chunked_array([pa.array(case.qid)]),
    ]:
        queries = Queries.of(case.labels, qid)
        assert_array_equal(queries.offsets, expected.offsets)
        assert_array_equal(queries.levels, expected.levels)
        assert (queries.order is None) == (expected.order is None)
        if expected.order is not None:
            assert_array_equal(queries.order, expected.order)


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(label_vectors(n), query_ids(n))))
def test_group_equals_qid(case):
    labels, qid = case[0], np.sort(case[1])
    sizes = np.unique(qid, return_counts=True)[1]
    a, b = Queries.of(labels, qid), Queries.of(labels, group=sizes)
    assert_array_equal(a.offsets, b.offsets)
    assert_array_equal(a.levels, b.levels)
    assert b.order is None
    assert b.ids.tolist() == list(range(len(sizes)))


def test_mixed_ids_stay_apart():
    assert Queries.of([0, 1, 2], qid=[1, "1", 1.5]).n_queries == 3
    assert Queries.of([0, 1], qid=[2**70, 2**70 + 1]).n_queries == 2
    assert Queries.of([0, 1], qid=np.array([0.0, -0.0])).n_queries == 1
    assert Queries.of([0.0, -0.0]).n_pairs == 0


def test_sum_of_pairs_does_not_overflow():
    queries = Queries.of(np.arange(4), qid=[0, 0, 1, 1])
    object.__setattr__(queries, "pairs_per_query", np.array([2**62 + 1, 2**62 + 1, 2**62 + 1]))
    assert queries.n_pairs == 3 * 2**62 + 3


def test_integer_ids_survive_a_growing_table():
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.arange(-30_000, 30_000) * 2**40)
    codes, first = _core.factorize(np.concatenate([ids, ids[::-1]]))
    assert_array_equal(codes[:60_000], np.arange(60_000))
    assert_array_equal(codes[60_000:], np.arange(60_000)[::-1])
    assert_array_equal(first, np.arange(60_000))


def test_what_the_core_works_by_is_read_only():
    queries = Queries.of([0.0, 1.0, 2.0, 0.0], qid=[1, 2, 1, 2])
    for shown in (queries.offsets, queries.order, queries.levels, queries.n_levels):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 9


LABELS = [0, 1, 0, 1]
IDS = [1, 1, 2, 2]
FEATURE = [1.0, 2.0, 5.0, 7.0]
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("name", ["qid", "QID", "query_id", "QueryId", "group_id", "groupid"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_training_refuses_ids_that_nobody_named(name, make):
    frame = make({"x": FEATURE, name: IDS})
    if make is pd.DataFrame:
        frame[0] = FEATURE  # a name of another type does not hide it
    message = rf"column named '{name}' but qid is None; pass it as qid=X\['{name}'\]"
    with pytest.raises(ValueError, match=message):
        Dataset.of(frame, LABELS)
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(frame, LABELS)


@pytest.mark.parametrize(
    "learn",
    [
        lambda X, Y: RankSVM().fit_pairs(X, [[1, 0]]),
        lambda X, Y: linrank.RankSVMCV(cv=2).fit(X, Y),
        lambda X, Y: linrank.DominationRanker().fit(X, Y),
        lambda X, Y: linrank.KernelRankSVM().fit(X, Y),
        lambda X, Y: linrank.SGDRanker().fit(X, Y),
        lambda X, Y: linrank.SGDRanker().partial_fit(X, Y),
        lambda X, Y: RankSVM().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], X_val=X, y_val=Y),
    ],
)
def test_however_it_learns(learn):
    with pytest.raises(ValueError, match="column named 'query_id' but qid is None"):
        learn(pd.DataFrame({"x": FEATURE, "query_id": IDS}), LABELS)


@pytest.mark.parametrize("name", ["group", "query", "qid_length", "n_query_id"])
def test_other_names_are_features(name):
    assert Dataset.of(pd.DataFrame({"x": FEATURE, name: IDS}), LABELS).feature_names == ("x", name)


def test_with_qid_the_column_is_constant_within_queries_and_kept():
    frame = pd.DataFrame({"x": FEATURE, "qid": IDS})
    with pytest.warns(DataWarning, match="X has the column 'qid', which seems to be qid itself"):
        ranker = RankSVM().fit(frame, LABELS, qid=frame["qid"])
    assert abs(ranker.coef_[1]) < 1e-12
    assert ranker.predict(frame).shape == (4,)  # it was there in training
    assert ranker.model_.predict(frame).shape == (4,)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("name", ["label", "Relevance", "rel", "grade"])
def test_a_column_named_like_the_labels_is_told(name, make):
    frame = make({"x": FEATURE, name: [3, 1, 2, 0]})
    said = f"X has the column '{name}', which seems to be y itself and is learned from as a feature"
    with pytest.warns(DataWarning, match=said):
        RankSVM().fit(frame, LABELS, qid=IDS)


def rows_with(*columns):
    return np.column_stack([np.random.default_rng(0).normal(size=(60, 2)), *columns])


GRADES, QUERIES = np.arange(60) % 4, np.arange(60) // 6


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.float32, np.asfortranarray])
def test_labels_and_ids_are_known_by_their_values(form):
    with pytest.warns(DataWarning) as caught:
        RankSVM().fit(form(rows_with(QUERIES, GRADES, GRADES + 1)), GRADES, qid=QUERIES)
    assert [str(one.message).partition(" and is")[0] for one in caught] == [
        "X has the column 3, which seems to be y itself",
        "X has the column 2, which seems to be qid itself",
    ]
    assert {one.filename for one in caught} == {__file__}


def test_a_column_of_a_table_that_is_the_label_is_told():
    table = pd.DataFrame({"label": GRADES, "qid": QUERIES, "x": rows_with()[:, 0], "gain": GRADES})
    with pytest.warns(DataWarning, match="X has the column 'gain', which seems to be y itself"):
        linrank.load(table)


@pytest.mark.filterwarnings("error::linrank.errors.DataWarning")
def test_what_is_only_alike_is_a_feature():
    almost = GRADES.copy()
    almost[-1] += 1
    text_ids = np.array([f"q{i}" for i in QUERIES])
    RankSVM().fit(rows_with(almost), GRADES, qid=text_ids)
    RankSVM().fit(rows_with(np.zeros(60)), GRADES, qid=np.zeros(60))  # one query, a constant
    RankSVM().fit_pairs(rows_with(np.zeros(60)), [[0, 1]])
    RankSVM().fit(rows_with(GRADES)[:19], GRADES[:19], qid=text_ids[:19])  # too few to tell


@examples(60)
@given(st.integers(1, 300), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_columns_alike_are_those_that_equal_in_every_row(n_rows, n_columns, seed, is_sparse):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, n_rows).astype(float)
    X = np.repeat(values[:, None], n_columns, axis=1)
    X[rng.integers(0, n_rows), rng.integers(0, n_columns)] = 2.0 - values[0]
    X[rng.integers(0, n_rows), rng.integers(0, n_columns)] = 0.0
    rows = as_rows(sparse.csr_array(X) if is_sparse else X)
    equal = [j for j in range(n_columns) if (X[:, j] == values).all()]
    assert _columns_like(rows, values) == equal


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("named", [True, False])
def test_scoring_refuses_ids_that_were_no_feature(make, named):
    """Without names in training, a column of ids in the place of a feature would be scored."""
    rows = (
        pd.DataFrame({"x": FEATURE, "z": FEATURE}) if named else np.column_stack([FEATURE, FEATURE])
    )
    ranker, kernel = (
        kind().fit(rows, LABELS, qid=IDS) for kind in (RankSVM, linrank.KernelRankSVM)
    )
    frame, model = make({"qid": IDS, "x": FEATURE}), ranker.model_
    scores = (ranker.predict, ranker.explain, model.predict, model.explain, kernel.model_.predict)
    for score in (*scores, lambda frame: ranker.rank(frame, qid=IDS)):
        with pytest.raises(ValueError, match="column named 'qid', which the model was not trained"):
            score(frame)
    model = linrank.LinearModel([1.0, 2.0], feature_names=["qid", "x"])
    assert model.predict(frame).tolist() == [a + 2 * b for a, b in zip(IDS, FEATURE, strict=True)]


# ---- rows that seem to be of many queries, or whose queries folds split -------------------------


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
