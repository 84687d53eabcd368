"""Query ids: grouping is a stable sort by first appearance, and ids are no features."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

import linrank
from hypothesis_profiles import examples
from linrank import Dataset, RankSVM, _core
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


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 5])
@pytest.mark.parametrize("n_values", [3, 17, 1000, 10**9])
def test_large_queries_rank_as_unique_does(n_jobs, n_values):
    """The sorted path, chunked and merged, on one giant query beside small ones."""
    rng = np.random.default_rng(n_values)
    labels = rng.integers(0, n_values, 210_000) / 7
    qid = np.repeat([0, 1, 2], [150_000, 10, 59_990])
    queries = Queries.of(labels, qid, n_jobs=n_jobs)
    for q in range(3):
        rows = slice(queries.offsets[q], queries.offsets[q + 1])
        values, ranks = np.unique(labels[rows], return_inverse=True)
        assert_array_equal(queries.levels[rows], ranks)
        assert queries.n_levels[q] == len(values)


def test_pairs_of_a_giant_query_need_64_bits():
    n = 200_000
    queries = Queries.of(np.arange(n) % 100_000)
    assert queries.n_pairs == (n**2 - 100_000 * 2**2) // 2 > 2**33


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


Y = [0, 1, 0, 1]
IDS = [1, 1, 2, 2]
X = [1.0, 2.0, 5.0, 7.0]
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("name", ["qid", "QID", "query_id", "QueryId", "group_id", "groupid"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_training_refuses_ids_that_nobody_named(name, make):
    frame = make({"x": X, name: IDS})
    if make is pd.DataFrame:
        frame[0] = X  # a name of another type does not hide it
    message = rf"column named '{name}' but qid is None; pass it as qid=X\['{name}'\]"
    with pytest.raises(ValueError, match=message):
        Dataset.of(frame, Y)
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(frame, Y)


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
        learn(pd.DataFrame({"x": X, "query_id": IDS}), Y)


@pytest.mark.parametrize("name", ["group", "query", "qid_length", "n_query_id"])
def test_other_names_are_features(name):
    assert Dataset.of(pd.DataFrame({"x": X, name: IDS}), Y).feature_names == ("x", name)


def test_with_qid_the_column_is_constant_within_queries_and_kept():
    frame = pd.DataFrame({"x": X, "qid": IDS})
    with pytest.warns(DataWarning, match="X has the column 'qid', which seems to be qid itself"):
        ranker = RankSVM().fit(frame, Y, qid=frame["qid"])
    assert abs(ranker.coef_[1]) < 1e-12
    assert ranker.predict(frame).shape == (4,)  # it was there in training
    assert ranker.model_.predict(frame).shape == (4,)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("name", ["label", "Relevance", "rel", "grade"])
def test_a_column_named_like_the_labels_is_told(name, make):
    frame = make({"x": X, name: [3, 1, 2, 0]})
    said = f"X has the column '{name}', which seems to be y itself and is learned from as a feature"
    with pytest.warns(DataWarning, match=said):
        RankSVM().fit(frame, Y, qid=IDS)


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
    rows = pd.DataFrame({"x": X, "z": X}) if named else np.column_stack([X, X])
    ranker, kernel = (kind().fit(rows, Y, qid=IDS) for kind in (RankSVM, linrank.KernelRankSVM))
    frame, model = make({"qid": IDS, "x": X}), ranker.model_
    scores = (ranker.predict, ranker.explain, model.predict, model.explain, kernel.model_.predict)
    for score in (*scores, lambda frame: ranker.rank(frame, qid=IDS)):
        with pytest.raises(ValueError, match="column named 'qid', which the model was not trained"):
            score(frame)
    model = linrank.LinearModel([1.0, 2.0], feature_names=["qid", "x"])
    assert model.predict(frame).tolist() == [a + 2 * b for a, b in zip(IDS, X, strict=True)]
