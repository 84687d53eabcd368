"""PivotedTfidf against its formula, written out term by term."""

from __future__ import annotations

import math
import pickle
import warnings

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
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from linrank import PivotedTfidf, RankSVM


@parametrize_with_checks([PivotedTfidf()])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([PivotedTfidf(slope=1.0, min_count=2)])
def test_scikit_learn_accepts_other_parameters(estimator, check):
    check(estimator)


def by_formula(training, documents, slope=0.3, min_count=1):
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
)
def test_it_is_the_formula(training, more, slope, min_count):
    """Training and new documents, empty ones and unseen terms among them, dense and sparse."""
    n_terms = training.shape[1]
    counts = st.sampled_from([0.0, 0.0, 1.0, 2.0, 9.0])
    new = more.draw(arrays.arrays(np.float64, (3, n_terms), elements=counts))
    weigh = PivotedTfidf(slope=slope, min_count=min_count).fit(training)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for documents in (training, new):
            truth = by_formula(training.tolist(), documents.tolist(), slope, min_count)
            dense = weigh.transform(documents)
            assert_allclose(dense, truth, rtol=1e-13, atol=0)
            got = weigh.transform(sparse.csr_matrix(documents))
            assert got.format == "csr"
            assert np.all(got.data != 0)
            assert_array_equal(got.toarray(), dense)


def test_the_mean_document_is_the_pivot():
    """A document of the mean number of terms has no correction; longer ones weigh less."""
    training = [[1, 1, 0, 0], [0, 0, 1, 1]]
    for slope in (0.0, 0.3, 0.9):
        weigh = PivotedTfidf(slope=slope).fit(training)
        x = weigh.transform([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
        assert_allclose(x[0, 0], math.log(2))
        assert (x[1, 0] > x[0, 0] > x[2, 0]) == (slope > 0)


def test_float32_stays_float32_and_integers_become_float64():
    counts = np.array([[3, 0, 1], [0, 5, 1], [1, 0, 0]])
    exact = PivotedTfidf().fit_transform(counts)
    assert exact.dtype == np.float64
    for matrix in (counts.astype(np.float32), sparse.csc_array(counts.astype(np.float32))):
        got = PivotedTfidf().fit_transform(matrix)
        assert got.dtype == np.float32
        got = got.toarray() if sparse.issparse(got) else got
        assert_array_equal(got, exact.astype(np.float32))


def test_repeated_entries_and_stored_zeros_are_understood():
    """And what was passed in is left as it was."""
    values, columns = [1.0, 2.0, 1.0, 0.0, 1.0], [1, 1, 0, 2, 1]
    X = sparse.csr_array((values, columns, [0, 2, 5]), shape=(2, 3))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    dense = np.array([[0, 3, 0], [1, 1, 0]])
    assert_array_equal(
        PivotedTfidf().fit_transform(X).toarray(), PivotedTfidf().fit_transform(dense)
    )
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
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, value], [1.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match=message):
        PivotedTfidf().fit(make(X))
    fitted = PivotedTfidf().fit(make(np.ones((2, 3))))
    with pytest.raises(ValueError, match=message):
        fitted.transform(make(X))


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


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frames_keep_type_and_names(library, make, dtype):
    if make is not pd.DataFrame:  # older scikit-learn reads no names from current polars
        pytest.importorskip("sklearn", minversion="1.9")
    counts = np.array([[1, 0], [0, 2], [3, 1]], dtype)
    frame = make({"tea": counts[:, 0], "pepper": counts[:, 1]})
    weigh = PivotedTfidf().set_output(transform=library)
    out = weigh.fit_transform(frame)
    assert type(out).__module__.startswith(library)
    assert list(out.columns) == ["tea", "pepper"] == weigh.get_feature_names_out().tolist()
    assert out.to_numpy().dtype == dtype
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(weigh)).transform(frame)
    assert_array_equal(again.to_numpy(), out.to_numpy())
    assert_array_equal(out.to_numpy(), PivotedTfidf().fit_transform(counts))
    with pytest.raises(ValueError, match=r"X has 0.25 at row 0, column 1 \('pepper'\)"):
        weigh.fit(make({"tea": [1.0], "pepper": [0.25]}))


def test_texts_are_ranked_by_a_pipeline():
    texts = ["good tea", "bad tea", "good good coffee", "bad coffee", "tea", ""]
    ranker = make_pipeline(CountVectorizer(), PivotedTfidf(), RankSVM(C=10.0))
    ranker.fit(texts, [2, 0, 2, 0, 1, 1])
    good, neutral, bad = ranker.predict(["good milk", "milk", "bad milk"])
    assert good > neutral == 0 > bad
    names = ranker[:-1].get_feature_names_out()
    assert dict(zip(names, ranker[-1].coef_, strict=True))["good"] > 0
