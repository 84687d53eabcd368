"""QueryScaler and PivotedTfidf: their formulas, and their place in pipelines."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from hypothesis_profiles import examples
from linrank import PivotedTfidf, QueryScaler, make_ranking
from papers import RankSVM

KINDS = ("range", "minmax", "standard")


def test_a_constant_feature_is_zero_although_its_mean_rounds():
    assert not QueryScaler("standard").fit_transform(np.full((3, 1), 0.1)).any()


def scaled_by_formula(X, qid, kind):
    """One query and one feature after the other."""
    X, out = np.asarray(X, float), np.zeros(np.shape(X))
    for q in set(qid):
        rows = [i for i, other in enumerate(qid) if other == q]
        for j in range(X.shape[1]):
            x = X[rows, j]
            if x.min() == x.max():
                continue
            shift = {"range": 0.0, "minmax": x.min(), "standard": x.mean()}[kind]
            width = x.std() if kind == "standard" else x.max() - x.min()
            out[rows, j] = (x - shift) / width
    return out


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-2, 2)), min_size=1),
    st.sampled_from(KINDS),
    st.sampled_from([np.float32, np.float64]),
)
@examples(40)
def test_the_formulas(rows, kind, dtype):
    qid = [f"q{row[0]}" for row in rows]
    X = np.array([row[1:] for row in rows], dtype)
    out = QueryScaler(kind).fit_transform(X, qid=qid)
    assert out.dtype == dtype
    assert_allclose(out, scaled_by_formula(X, qid, kind), rtol=1e-6, atol=1e-7)


DATA = make_ranking(n_queries=30, n_features=5, n_levels=3, random_state=1)
DATA = DATA.select(np.random.default_rng(0).permutation(DATA.n_rows))


@pytest.mark.parametrize("kind", ["range", "minmax"])
def test_a_pipeline_is_scale_query(routing, kind):
    """What is subtracted within a query no pair can see."""
    piped = make_pipeline(QueryScaler(kind), RankSVM(C=0.1, tol=1e-10))
    piped.fit(DATA.X, DATA.y, qid=DATA.qid)
    own = RankSVM(C=0.1, tol=1e-10, scale="query").fit(DATA.X, DATA.y, qid=DATA.qid)
    assert_allclose(piped[-1].coef_, own.coef_, rtol=1e-5, atol=1e-8)
    a = piped.score(DATA.X, DATA.y, qid=DATA.qid)
    assert a == own.score(DATA.X, DATA.y, qid=DATA.qid)
    if kind == "range":
        scores = piped.predict(DATA.X, qid=DATA.qid)
        assert_allclose(scores, own.predict(DATA.X, qid=DATA.qid), rtol=1e-5)


def test_sparse_rows_stay_sparse():
    X = sparse.random_array((12, 4), density=0.4, format="csr", rng=np.random.default_rng(0))
    qid = np.repeat([3, 1, 2], 4)
    out = QueryScaler("range").fit_transform(X, qid=qid)
    assert sparse.issparse(out)
    assert_allclose(out.toarray(), scaled_by_formula(X.toarray(), qid.tolist(), "range"))
    with pytest.raises(ValueError, match="kind='minmax' subtracts from every value"):
        QueryScaler("minmax").fit(X, qid=qid)


def test_a_forgotten_qid_is_an_error(routing):
    scaler = QueryScaler().fit(DATA.X, qid=DATA.qid)
    with pytest.raises(ValueError, match=r"transform\(\) needs qid, because this QueryScaler"):
        scaler.transform(DATA.X)
    piped = make_pipeline(QueryScaler(), RankSVM()).fit(DATA.X, DATA.y, qid=DATA.qid)
    with pytest.raises(ValueError, match=r"transform\(\) needs qid"):
        piped.predict(DATA.X)


@pytest.mark.filterwarnings("error")
def test_what_is_wrong_is_told():
    X = np.array([[1.5e308], [1.5e308], [-1.5e308]])  # neither the range nor the sum can be held
    for kind in ("minmax", "standard"):
        with pytest.raises(ValueError, match="feature 0 spans more than double precision"):
            QueryScaler(kind).fit_transform(X)
    with pytest.raises(ValueError, match="kind must be 'range', 'minmax' or 'standard', got 'z'"):
        QueryScaler("z").fit(X)
    with pytest.raises(ValueError, match="'query_id' but qid is None"):
        QueryScaler().fit(pd.DataFrame({"query_id": [1, 2], "x": [1.0, 2.0]}))
    assert clone(QueryScaler("range", n_jobs=2)).get_params() == {"kind": "range", "n_jobs": 2}


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1.0, 1e200, 1e307])
def test_squares_neither_vanish_nor_overflow(size):
    X = size * np.array([[1.0], [3.0], [0.0], [2.0]])
    scaled = QueryScaler("standard").fit_transform(X, qid=[0, 0, 0, 0])
    expected = (X / size - 1.5) / np.sqrt(1.25)
    assert_allclose(scaled, expected, rtol=1e-14)


def weighed_by_formula(training, documents, slope=0.3, min_count=1):
    """``x_ij`` one by one; the terms outside the dictionary are struck out first."""
    n_terms = len(training[0])
    known = [sum(d[j] for d in training) >= min_count for j in range(n_terms)]

    def terms(document):
        return {j: document[j] for j in range(n_terms) if known[j] and document[j] > 0}

    mean_unique = sum(len(terms(d)) for d in training) / len(training)
    x = np.zeros((len(documents), n_terms))
    for i, document in enumerate(documents):
        counts = terms(document)
        for j, count in counts.items():
            idf = math.log(len(training) / sum(d[j] > 0 for d in training))
            mean_count = sum(counts.values()) / len(counts)
            tf = (1 + math.log(count)) / (1 + math.log(mean_count))
            x[i, j] = idf * tf / (1 - slope + slope * len(counts) / mean_unique)
    return x


def corpora(max_rows=7):
    shape = st.tuples(st.integers(1, max_rows), st.integers(1, 6))
    counts = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 50])
    return shape.flatmap(lambda s: arrays.arrays(np.float64, s, elements=counts))


@given(
    training=corpora(),
    more=st.data(),
    slope=st.sampled_from([0.0, 0.3, 1.0]) | st.floats(0, 1),
    min_count=st.integers(1, 4),
    dtype=st.sampled_from([np.float64, np.float32, np.int64]),
)
@pytest.mark.filterwarnings("error")
def test_it_is_the_formula(training, more, slope, min_count, dtype):
    """Training and new documents, empty ones and unseen terms among them, dense and sparse."""
    counts, shape = st.sampled_from([0.0, 0.0, 1.0, 2.0, 9.0]), (3, training.shape[1])
    new = more.draw(arrays.arrays(np.float64, shape, elements=counts))
    weigh = PivotedTfidf(slope=slope, min_count=min_count).fit(training.astype(dtype))
    single = dtype is np.float32
    for documents in (training, new):
        truth = weighed_by_formula(training.tolist(), documents.tolist(), slope, min_count)
        dense = weigh.transform(documents.astype(dtype))
        assert_allclose(dense, truth, rtol=1e-6 if single else 1e-13, atol=0)
        assert dense.dtype == (np.float32 if single else np.float64)
        got = weigh.transform(sparse.csr_matrix(documents.astype(dtype)))
        assert got.format == "csr"
        assert np.all(got.data != 0)
        assert_array_equal(got.toarray(), dense)


def test_repeated_entries_and_stored_zeros_are_understood():
    """And what was passed in is left as it was."""
    X = sparse.csr_array(([1.0, 2.0, 1.0, 0.0, 1.0], [1, 1, 0, 2, 1], [0, 2, 5]), shape=(2, 3))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    found = PivotedTfidf().fit_transform(X)
    assert_array_equal(found.toarray(), PivotedTfidf().fit_transform([[0, 3, 0], [1, 1, 0]]))
    for part, kept in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert_array_equal(part, kept)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, r"Negative values in data: X has -1 at row 1, column 2;"),
        (0.5, r"X has 0.5 at row 1, column 2; .* whole numbers >= 0, as CountVectorizer"),
        (np.nan, "contains NaN"),
        (np.inf, "contains infinity"),
    ],
)
def test_what_is_no_count_is_refused_with_its_place(make, value, message):
    X = make(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, value], [1.0, 1.0, 1.0]]))
    for use in (PivotedTfidf().fit, PivotedTfidf().fit(make(np.ones((2, 3)))).transform):
        with pytest.raises(ValueError, match=message):
            use(X)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("slope", (1.5, -0.1, math.nan, "0.3"), "slope must be a number from 0 to 1, got"),
        ("min_count", (0, 1.5, True), "min_count must be an integer >= 1, got"),
    ],
)
def test_wrong_parameters_are_refused(name, values, message):
    for value in values:
        with pytest.raises(ValueError, match=message):
            PivotedTfidf(**{name: value}).fit([[1]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transformer", [QueryScaler(), PivotedTfidf()], ids=str)
def test_frames_keep_type_and_names(transformer, library, make, dtype):
    if make is not pd.DataFrame:  # older scikit-learn reads no names from current polars
        pytest.importorskip("sklearn", minversion="1.9")
    counts = np.array([[1, 0], [0, 2], [3, 1]], dtype)
    frame = make({"tea": counts[:, 0], "pepper": counts[:, 1]})
    fitted = clone(transformer).set_output(transform=library)
    out = fitted.fit_transform(frame)
    assert type(out).__module__.startswith(library)
    assert list(out.columns) == ["tea", "pepper"] == fitted.get_feature_names_out().tolist()
    assert out.to_numpy().dtype == dtype
    again = pickle.loads(pickle.dumps(fitted)).transform(frame)
    assert_array_equal(again.to_numpy(), out.to_numpy())
    assert_array_equal(out.to_numpy(), clone(transformer).fit_transform(counts))


def test_what_is_no_count_is_named_by_its_column():
    frame = pd.DataFrame({"tea": [1.0], "pepper": [0.25]})
    with pytest.raises(ValueError, match=r"X has 0.25 at row 0, column 1 \('pepper'\)"):
        PivotedTfidf().fit(frame)


def test_texts_are_ranked_by_a_pipeline():
    texts = ["good tea", "bad tea", "good good coffee", "bad coffee", "tea", ""]
    ranker = make_pipeline(CountVectorizer(), PivotedTfidf(), RankSVM(C=10.0))
    ranker.fit(texts, [2, 0, 2, 0, 1, 1])
    good, neutral, bad = ranker.predict(["good milk", "milk", "bad milk"])
    assert good > neutral == 0 > bad
    names = ranker[:-1].get_feature_names_out()
    assert dict(zip(names, ranker[-1].coef_, strict=True))["good"] > 0
