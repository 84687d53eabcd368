"""Rows that still hold query ids or labels: a leak in training, a wrong feature in scoring."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import linrank
from hypothesis_profiles import examples
from linrank import (
    Dataset,
    DominationRanker,
    KernelRankSVM,
    LinearModel,
    RankSVM,
    RankSVMCV,
    SGDRanker,
)
from linrank.data.dataset import _columns_like
from linrank.data.rows import as_rows
from linrank.errors import DataWarning

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
        lambda X, Y: RankSVMCV(cv=2).fit(X, Y),
        lambda X, Y: DominationRanker().fit(X, Y),
        lambda X, Y: KernelRankSVM().fit(X, Y),
        lambda X, Y: SGDRanker().fit(X, Y),
        lambda X, Y: SGDRanker().partial_fit(X, Y),
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


def test_what_is_only_alike_is_a_feature():
    almost = GRADES.copy()
    almost[-1] += 1
    text_ids = np.array([f"q{i}" for i in QUERIES])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
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
    ranker, kernel = (kind().fit(rows, Y, qid=IDS) for kind in (RankSVM, KernelRankSVM))
    frame, model = make({"qid": IDS, "x": X}), ranker.model_
    scores = (ranker.predict, ranker.explain, model.predict, model.explain, kernel.model_.predict)
    for score in (*scores, lambda frame: ranker.rank(frame, qid=IDS)):
        with pytest.raises(ValueError, match="column named 'qid', which the model was not trained"):
            score(frame)
    model = LinearModel([1.0, 2.0], feature_names=["qid", "x"])
    assert model.predict(frame).tolist() == [a + 2 * b for a, b in zip(IDS, X, strict=True)]
