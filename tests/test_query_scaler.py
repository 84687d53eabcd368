"""QueryScaler: its formulas, its place in pipelines, and frames out of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hypothesis_profiles import examples
from linrank import QueryKFold, QueryScaler, make_ranking, ranking_scorer
from papers import RankSVM

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

KINDS = ("range", "minmax", "standard")


def expected_to_fail(_):
    """What a scaler by query cannot promise: a row is scaled by the others that come with it."""
    return {"check_methods_subset_invariance": "rows are scaled by the rows they come with"}


@parametrize_with_checks([QueryScaler(KINDS[0])], expected_failed_checks=expected_to_fail)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_a_constant_feature_is_zero_although_its_mean_rounds():
    assert not QueryScaler("standard").fit_transform(np.full((3, 1), 0.1)).any()


@pytest.mark.slow
@parametrize_with_checks(
    [QueryScaler(kind) for kind in KINDS[1:]], expected_failed_checks=expected_to_fail
)
def test_scikit_learn_accepts_every_kind(estimator, check):
    check(estimator)


def by_formula(X, qid, kind):
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
    assert_allclose(out, by_formula(X, qid, kind), rtol=1e-6, atol=1e-7)


@pytest.fixture(scope="module")
def data():
    data = make_ranking(n_queries=30, n_features=5, n_levels=3, random_state=1)
    return data.select(np.random.default_rng(0).permutation(data.n_rows))


@pytest.mark.parametrize("kind", ["range", "minmax"])
def test_a_pipeline_is_scale_query(data, routing, kind):
    """What is subtracted within a query no pair can see."""
    piped = make_pipeline(QueryScaler(kind), RankSVM(C=0.1, tol=1e-10))
    piped.fit(data.X, data.y, qid=data.qid)
    own = RankSVM(C=0.1, tol=1e-10, scale="query").fit(data.X, data.y, qid=data.qid)
    assert_allclose(piped[-1].coef_, own.coef_, rtol=1e-5, atol=1e-8)
    a = piped.score(data.X, data.y, qid=data.qid)
    assert a == own.score(data.X, data.y, qid=data.qid)
    if kind == "range":
        scores = piped.predict(data.X, qid=data.qid)
        assert_allclose(scores, own.predict(data.X, qid=data.qid), rtol=1e-5)


def test_one_qid_reaches_the_scaler_in_a_search(data, routing):
    search = GridSearchCV(
        make_pipeline(QueryScaler(), RankSVM()),
        {"queryscaler__kind": KINDS, "ranksvm__C": [0.1]},
        cv=QueryKFold(3),
        scoring=ranking_scorer("ndcg@10"),
        error_score="raise",
    ).fit(data.X, data.y, qid=data.qid)
    by_kind = search.cv_results_["mean_test_score"]
    own = cross_val_score(
        RankSVM(C=0.1, scale="query"),
        data.X,
        data.y,
        cv=QueryKFold(3),
        scoring=ranking_scorer("ndcg@10"),
        params={"qid": data.qid},
    )
    assert_allclose(by_kind[:2], own.mean(), rtol=1e-3)
    assert by_kind[2] != by_kind[0]


def test_sparse_rows_stay_sparse():
    X = sparse.random_array((12, 4), density=0.4, format="csr", rng=np.random.default_rng(0))
    qid = np.repeat([3, 1, 2], 4)
    out = QueryScaler("range").fit_transform(X, qid=qid)
    assert sparse.issparse(out)
    assert_allclose(out.toarray(), by_formula(X.toarray(), qid.tolist(), "range"))
    with pytest.raises(ValueError, match="kind='minmax' subtracts from every value"):
        QueryScaler("minmax").fit(X, qid=qid)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_in_and_out(make):
    if make is pl.DataFrame:  # older scikit-learn reads no names from current polars
        pytest.importorskip("sklearn", minversion="1.9")
    frame = make({"bm25": np.float32([1, 3, 10, 30]), "age": np.float32([0, 0, 2, 8])})
    scaler = QueryScaler().set_output(transform=make.__module__.partition(".")[0])
    out = scaler.fit_transform(frame, qid=["a", "a", "b", "b"])
    assert type(out) is make
    assert list(out.columns) == scaler.get_feature_names_out().tolist() == ["bm25", "age"]
    assert_array_equal(out.to_numpy(), np.float32([[0, 0], [1, 0], [0, 0], [1, 1]]))
    assert out["bm25"].to_numpy().dtype == np.float32


def test_a_forgotten_qid_is_an_error(data, routing):
    scaler = QueryScaler().fit(data.X, qid=data.qid)
    with pytest.raises(ValueError, match=r"transform\(\) needs qid, because this QueryScaler"):
        scaler.transform(data.X)
    piped = make_pipeline(QueryScaler(), RankSVM()).fit(data.X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match=r"transform\(\) needs qid"):
        piped.predict(data.X)


def test_what_is_wrong_is_told():
    X = np.array([[1.5e308], [1.5e308], [-1.5e308]])  # neither the range nor the sum can be held
    with warnings.catch_warnings():
        warnings.simplefilter("error")
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
