"""Malformed arrays and tables: each is refused, and the message says what, where and why."""

import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from linrank import LinearModel, PerQueryRanker, RankSVM, SGDRanker, evaluate
from linrank.clicks import ips_weights
from linrank.data.dataset import Dataset
from linrank.data.queries import Queries

X = np.arange(12, dtype=np.float32).reshape(4, 3)
y = np.array([0.0, 1, 2, 1])


def with_value(value, row=2, column=1, dtype=np.float64):
    bad = X.astype(dtype)
    bad[row, column] = value
    return bad


def csr_with(data=(1.0, 2.0), indices=(0, 1), indptr=(0, 1, 2, 2, 2)):
    """A CSR array with the given arrays, bypassing the checks of its constructor."""
    csr = sparse.csr_array((4, 3))
    csr.data, csr.indices = np.array(data), np.array(indices, np.int32)
    csr.indptr = np.array(indptr, np.int32)
    return csr


frame = partial(pd.DataFrame, columns=["a", "bm25", "c"])
BAD_X = [
    (with_value(np.nan), "Input X contains NaN at row 2, column 1;"),
    (with_value(np.inf), "contains infinity (inf) at row 2, column 1"),
    (np.asfortranarray(with_value(np.nan)), "row 2, column 1"),
    (sparse.csr_array(with_value(np.nan)), "NaN at row 2, column 1"),
    (sparse.csc_matrix(with_value(np.inf)), "(inf) at row 2, column 1"),
    (frame(with_value(np.nan)), "NaN at row 2, column 1 ('bm25')"),
    (pl.DataFrame({"a": [1, 2, None, 4], "b": [1.0, 2, 3, 4]}), "NaN at row 2, column 0 ('a')"),
    (pa.table({"a": [1, 2, 3, 4], "b": [1.0, None, 3, 4]}), "NaN at row 1, column 1 ('b')"),
    (pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64")}), "NaN at row 1, column 0 ('a')"),
    (with_value(np.longdouble("1e4000"), dtype=np.longdouble), "infinity (inf) at row 2"),
    (y, "Expected 2D array, got 1D array instead (shape (4,)). Reshape your data"),
    (3.0, "Expected 2D array, got 0D array instead"),
    (sparse.coo_array(y), "Expected 2D array, got a sparse array of shape"),
    (X[:0], "0 sample(s) (shape=(0, 3)) while a minimum of 1 is required."),
    (X[:, :0], "0 feature(s) (shape=(4, 0)) while a minimum of 1 is"),
    ([], "Expected 2D array, got 1D array instead (shape (0,))"),
    (pd.DataFrame(index=range(4)), "0 feature(s)"),
    ([[1, 2], [3]], "inhomogeneous"),
    (X + 1j, "Complex data not supported: X has dtype complex64"),
    (np.full((4, 3), "a"), "X has dtype <U1, which is not numeric"),
    (X.astype("datetime64[D]"), "X has dtype datetime64[D], which is not"),
    (with_value({"foo": "bar"}, dtype=object), "X is not numeric: float() argument", TypeError),
    (with_value("x", dtype=object), "could not convert string"),
    (pd.DataFrame({"a": [1.0, 2, 3, 4], "title": list("abcd")}), "column 'title' of X"),
    (pa.table({"title": list("abcd"), "a": [1.0, 2, 3, 4]}), "column 'title' of X"),
    (frame({"c": pd.date_range("2020", periods=4)}), "column 'c' of X has dtype datetime64"),
    (pl.DataFrame(X).lazy(), "LazyFrame; call .collect() first", TypeError),
    (np.matrix(X), "np.matrix is not supported", TypeError),
    (np.ma.masked_equal(X, 5), "masked array with masked values"),
    (None, "X must be a 2-D array or table of numbers, got NoneType", TypeError),
    ("train.txt", "got str", TypeError),
    ({"a": [1, 2, 3, 4]}, "got dict", TypeError),
    (
        pd.DataFrame({"qid": [1, 1, 2, 2], "a": [1.0, 2, 3, 4]}),
        "X has a column named 'qid' but qid is None; pass it as qid=X['qid'] and drop",
    ),
    # Two finite values that overflow when duplicates are added.
    (csr_with((1e308, 1e308), (1, 1), (0, 2, 2, 2, 2)), "infinity (inf) at row 0, column 1"),
    (csr_with(indices=(0, 3)), "column index is out of range"),
    (csr_with(indices=(-1, 1)), "column index is out of range"),
    (csr_with(indptr=(0, 2, 1, 2, 2)), "offsets decrease"),
    (csr_with(indptr=(0, 1, 2, 2, 9)), "do not match"),
    (csr_with(indices=(0,)), "differ in length"),
]


@pytest.mark.parametrize("case", BAD_X, ids=lambda case: case[1])
def test_bad_features(case):
    bad, message, *error = case
    with pytest.raises(*(error or [ValueError]), match=re.escape(message)):
        Dataset.of(bad, y)


IDS = "; group= takes sizes, the number of rows of each query; for ids, one per row, use qid="
BAD_OTHERS = [
    ({"y": None}, "requires y to be passed, but the target y is None"),
    ({"y": [0, 1, np.nan, 1]}, "Input y contains NaN at row 2"),
    ({"y": pa.array([1, None, 0, 0])}, "Input y contains NaN at row 1"),
    ({"y": [0, 1]}, "X has 4 rows but y has 2 elements"),
    ({"y": X}, "y should be a 1d array, got an array of shape (4, 3)"),
    ({"y": list("abcd")}, "y has dtype <U1, which is not numeric"),
    ({"y": y + 1j}, "Complex data not supported: y"),
    ({"qid": [1, 2]}, "qid has 2 elements but there are 4 rows"),
    ({"qid": [2, 2]}, "(pass query sizes as group)"),
    ({"qid": X}, "qid must be 1-D, one id per row; got shape (4, 3)"),
    ({"qid": [1, 1, np.nan, 2]}, "qid of row 2 is missing"),
    ({"qid": ["a", "a", None, "b"]}, "qid of row 2 is missing"),
    ({"qid": pd.Series(["a", None, "b", "b"], dtype="category")}, "qid of row 1 is missing"),
    ({"qid": pd.array([1, 1, 2, None], dtype="Int64")}, "qid of row 3 is missing"),
    (
        {"qid": np.array(["2020", "NaT", "2020", "2020"], "datetime64[D]")},
        "qid of row 1 is missing",
    ),
    ({"qid": pd.DataFrame({"q": y})}, "qid is a table; pass the column", TypeError),
    ({"qid": 3}, "qid must hold one id per row, got 3", TypeError),
    ({"qid": [[1], [1], [2], [2]]}, "query ids must be hashable", TypeError),
    ({"qid": y, "group": [4]}, "give qid (one id per row) or group"),
    ({"group": [2, 3]}, "group sizes sum to 5 but there are 4 rows"),
    ({"group": [7, 7, 8, 8]}, f"sum to 30 but there are 4 rows, as many as sizes{IDS}"),
    ({"group": [0, 0, 1, 1]}, f"group[0] is 0, no number of rows{IDS}"),
    ({"group": ["a", "a", "b", "b"]}, "for ids, one per row, use qid="),
    ({"group": [4, 0]}, "group[1] is 0, no number of rows"),
    ({"group": [2.0, 2.0]}, "float64; convert them with .astype(int)"),
    ({"group": 4}, "got shape () and dtype int64"),
    ({"sample_weight": [1, -0.5, 1, 1]}, "sample_weight must be >= 0, got -0.5 at row 1"),
    ({"sample_weight": [1, 1, 1, np.nan]}, "Input sample_weight contains NaN at row 3"),
    ({"sample_weight": [1]}, "sample_weight has 1 elements"),
    ({"sample_weight": [0] * 4}, "sample_weight is zero everywhere"),
    ({"feature_names": ["a"]}, "X has 3 columns but feature_names has 1"),
    ({"feature_names": [1, 2, 3]}, "must be a sequence of strings", TypeError),
    ({"feature_names": "abc"}, "must be a sequence of strings", TypeError),
    ({"feature_names": ["a", "\ud800", "c"]}, "feature 1, '\\ud800', is not valid Unicode"),
    (
        {"feature_names": ["a", "b", "c" * 65_537]},
        "has 65537 characters; the most is 65536: rename",
    ),
    (
        {"y": np.array([0, 2**53, 2**53 + 1, 7])},
        "y holds 9007199254740992 and 9007199254740993, which are the same number in float64",
    ),
    ({"y": [-(2**70), -(2**70) - 1, 0, 1]}, "which are the same number in float64"),
    ({"n_jobs": 0}, "n_jobs must be >= 1, or -1 or None for all cores"),
]


@pytest.mark.parametrize("case", BAD_OTHERS, ids=lambda case: case[1])
def test_bad_labels_ids_weights_and_names(case):
    arguments, message, *error = case
    with pytest.raises(*(error or [ValueError]), match=re.escape(message)):
        Dataset.of(X, **{"y": y, **arguments})


def test_large_labels_that_stay_apart_are_taken():
    labels = np.array([2**53, 2**53 + 2, -(2**62), 2**62], np.int64)
    assert Dataset.of(X, labels).queries.n_pairs == 6


def masked(values):
    """The values, the last of them hidden."""
    mask = np.zeros(np.shape(values), bool)
    mask.flat[-1] = True
    return np.ma.array(values, mask=mask)


PAIRS = [[0, 1], [2, 3]]
MASKED = {
    "y": lambda: RankSVM().fit(X, masked(y)),
    "qid": lambda: RankSVM().fit(X, y, qid=masked([1, 1, 2, 2])),
    "group": lambda: RankSVM().fit(X, y, group=masked([2, 2])),
    "sample_weight": lambda: RankSVM().fit(X, y, sample_weight=masked(np.ones(4))),
    "query_weight": lambda: RankSVM().fit(X, y, qid=[1, 1, 2, 2], query_weight=masked([1.0, 2])),
    "pairs": lambda: RankSVM().fit_pairs(X, masked(PAIRS)),
    "pair_weight": lambda: RankSVM().fit_pairs(X, PAIRS, pair_weight=masked([1.0, 2.0])),
    "the lower bound": lambda: RankSVM(coef_bounds=(masked(np.zeros(3)), None)).fit(X, y),
    "y of a stream": lambda: SGDRanker().partial_fit(X, masked(y)),
    "y of a measure": lambda: evaluate(masked(y), y),
    "scores": lambda: evaluate(y, masked(y)),
    "docid": lambda: evaluate(y, y, docid=masked([1, 2, 3, 4]), convention="trec_eval"),
    "Y": lambda: PerQueryRanker(RankSVM()).fit(X, masked(np.eye(4, 2))),
    "propensity": lambda: ips_weights([1, 2], masked([1.0, 0.5])),
    "coef": lambda: LinearModel(masked(np.ones(3))),
    "rows to score": lambda: LinearModel(np.ones(3)).predict(masked(X)),
}


@pytest.mark.parametrize("case", list(MASKED))
def test_what_is_under_a_mask_is_no_value(case):
    with pytest.raises(ValueError, match="is a masked array with masked values"):
        MASKED[case]()


def test_a_mask_that_hides_nothing_is_no_matter():
    plain = RankSVM().fit(X, y, qid=[1, 1, 2, 2])
    shown = RankSVM().fit(np.ma.array(X), np.ma.array(y), qid=np.ma.array([1, 1, 2, 2]))
    assert shown.coef_.tolist() == plain.coef_.tolist()


def test_queries_alone_check_too():
    with pytest.raises(ValueError, match="Input y contains NaN at row 1"):
        Queries.of([0.0, np.nan])
    with pytest.raises(ValueError, match=r"or group \(sizes\), not both"):
        Queries.of([0.0, 1.0], qid=[1, 1], group=[2])
