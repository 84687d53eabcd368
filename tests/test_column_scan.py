"""Columns: the scan against NumPy, for every storage, weight and number of threads; scaling."""

from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import linrank
from linrank import _core
from linrank.data.rows import ColumnStatistics, DenseRows, Scan, as_rows
from linrank.data.scaling import Scaling
from linrank.models.linear import fingerprint
from linrank.ranksvm.train import train
from stored_data import dense
from strategies import datasets

MAKES = {
    "dense": lambda X: X,
    "csr": sparse.csr_array,
    "csr, wide indices": lambda X: _with_indices(sparse.csr_array(X), np.int64),
    "strided": lambda X: np.hstack([X, np.full_like(X, np.nan)])[:, : X.shape[1]],
}
TYPES = (np.float32, np.float64)
SHAPES = [(1, 1), (3, 7), (41, 8), (1025, 13), (3001, 46)]


def _with_indices(matrix, dtype):
    matrix.indices, matrix.indptr = matrix.indices.astype(dtype), matrix.indptr.astype(dtype)
    return matrix


def some_values(n_rows, n_columns, dtype=np.float64, seed=0):
    """Of different sizes, a third of them 0, the first column nearly constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.integers(-3, 4, n_columns)
    X[rng.random(X.shape) < 0.3] = 0
    X[:, 0] = 5.0
    X[n_rows // 2, 0] = 5.5
    return X.astype(dtype)


def check_against_numpy(X, scan, weight):
    """The definition of every number of a scan; X may have missing values."""
    assert_array_equal(scan.n_missing, np.isnan(X).sum(axis=0))
    for j, x in enumerate(np.asarray(X, dtype=np.float64).T):
        assert_allclose(scan.extents.norms[j], np.sqrt(np.nansum(x**2)), rtol=1e-12)
        assert scan.extents.largest[j] == np.nanmax(np.abs(x), initial=0.0)
    check_statistics(X, scan.statistics, weight)


def check_statistics(X, known, weight):
    X, u = np.asarray(X, dtype=np.float64), np.ones(len(X)) if weight is None else weight
    assert known.n_rows == len(X)
    assert known.weight == pytest.approx(u.sum())
    assert_array_equal(known.n_nonzero, (X != 0).sum(axis=0))
    for j, x in enumerate(X.T):
        here, w = x[(u > 0) & ~np.isnan(x)], u[(u > 0) & ~np.isnan(x)]
        if len(here) == 0:
            found = known.mean[j], known.variance[j], known.low[j], known.high[j]
            assert found == (0.0, 0.0, np.inf, -np.inf)
            continue
        mean, size = np.average(here, weights=w), np.abs(here).max()
        assert abs(known.mean[j] - mean) <= 1e-12 * size
        assert abs(known.variance[j] - np.average((here - mean) ** 2, weights=w)) <= 1e-11 * size**2
        assert (known.low[j], known.high[j]) == (here.min(), here.max())


def same_bits(one, two):
    assert one.checksum == two.checksum
    assert_array_equal(one.n_missing, two.n_missing)
    for part in ("statistics", "extents"):
        for name, value in vars(getattr(one, part)).items():
            assert_array_equal(value, getattr(getattr(two, part), name), f"{part}.{name}")


# ---- what is found ------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "dtype"), list(product(MAKES, TYPES)))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("shape", "gaps"), [*(((n, d), 0.0) for n, d in SHAPES), ((1, 3), 1.0), ((2000, 11), 0.2)]
)
def test_a_scan_is_that_of_numpy_on_any_number_of_threads(make, dtype, weighted, shape, gaps):
    """Missing values, of a whole column too, have no part in moments."""
    X, rng = some_values(*shape, dtype), np.random.default_rng(1)
    weight = rng.integers(0, 3, shape[0]) / 2.0 if weighted else None
    if weight is not None:
        weight[0] = 1.0
    if gaps:
        X[rng.random(X.shape) < gaps] = np.nan
        X[0] = np.nan  # the pivot of every column
        X[:, -1] = np.nan
    rows = as_rows(MAKES[make](X), check="missing")
    one = Scan.of(rows, weight, 1)
    check_against_numpy(X, one, weight)
    for n_threads in (2, 3):
        same_bits(one, Scan.of(rows, weight, n_threads))


@pytest.mark.parametrize("make", MAKES)
def test_rows_without_weight_leave_counts_and_norms(make):
    X, none = some_values(1500, 5), np.zeros(1500)
    scan = Scan.of(as_rows(MAKES[make](X)), none, 2)
    check_against_numpy(X, scan, none)
    with pytest.raises(ValueError, match="no row of positive weight"):
        Scaling.of_statistics("standard", scan.statistics)


def test_no_rows_at_all():
    scan = Scan.of(DenseRows(np.empty((0, 3))), None, 2)
    check_against_numpy(np.empty((0, 3)), scan, None)


def test_variance_survives_a_large_offset():
    """A one-pass sum of squares around 0 would lose every digit here."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 3)) + 1e8
    for make, weight in product((np.asarray, sparse.csr_array), (None, rng.uniform(0.1, 1, 1000))):
        mean = np.average(X, axis=0, weights=weight)
        truth = np.average((X - mean) ** 2, axis=0, weights=weight)
        for step in (1000, 10):  # of blocks that are merged
            blocks = [slice(i, i + step) for i in range(0, 1000, step)]
            parts = (
                ColumnStatistics.of(as_rows(make(X)).take(b), None if weight is None else weight[b])
                for b in blocks
            )
            found = reduce(ColumnStatistics.__add__, parts)
            assert_allclose(found.variance, truth, rtol=1e-6)


@pytest.mark.parametrize("make", MAKES)
def test_squares_beyond_the_largest_number_are_no_missing_values(make):
    X = np.full((3, 2), 1e300)
    rows = as_rows(MAKES[make](X))
    scan = Scan.of(rows, None, 1)
    assert not scan.n_missing.any()
    assert np.isinf(scan.extents.norms).all()
    assert rows.is_finite(None, 1)


# ---- statistics of blocks, merged ---------------------------------------------------------------


@given(datasets(), st.data())
def test_blocks_merge_into_the_whole(data, draw):
    n, values = data.n_rows, st.sampled_from([0.0, 0.5, 1.0, 3.0])
    u = np.array(draw.draw(st.lists(values, min_size=n, max_size=n)))
    cuts = sorted(draw.draw(st.lists(st.integers(0, n), max_size=4)))
    bounds = [0, *cuts, n]
    blocks = [ColumnStatistics.of(data.rows.take(slice(a, b)), u[a:b]) for a, b in pairwise(bounds)]
    check_statistics(dense(data.X), reduce(ColumnStatistics.__add__, blocks), u)


@pytest.mark.parametrize("weight", [None, np.array([0.5, 2.0, 0.0]), np.zeros(3)])
def test_widened_statistics_are_those_of_rows_with_columns_of_zeros(weight):
    x = np.array([[1.0, -2.0], [0.0, 3.0], [4.0, 0.0]])
    found = ColumnStatistics.of(as_rows(x), weight).widen(5)
    truth = ColumnStatistics.of(as_rows(np.pad(x, ((0, 0), (0, 3)))), weight)
    for name in ("weight", "n_rows", "mean", "variance", "low", "high", "n_nonzero"):
        assert_array_equal(getattr(found, name), getattr(truth, name))
    with pytest.raises(ValueError, match="n_columns must be at least 5, got 4"):
        found.widen(4)


# ---- the checksum -------------------------------------------------------------------------------


def crc32c(*arrays):
    check = 0
    for array in arrays:
        check = _core.crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8), check)
    return check


@pytest.mark.parametrize("dtype", TYPES)
def test_the_checksum_is_that_of_all_bytes_one_behind_the_other(dtype):
    X = some_values(5000, 13, dtype)
    shape, csr = np.array(X.shape, dtype=np.int64), as_rows(sparse.csr_array(X))
    for rows, arrays in (
        (as_rows(X), [X]),
        (as_rows(MAKES["strided"](X)), [X]),
        (csr, [csr.offsets, csr.columns, csr.values]),
    ):
        for n_threads in (1, 3):
            assert Scan.of(rows, None, n_threads).checksum == crc32c(shape, *arrays)


def test_a_fit_records_the_rows_that_it_was_trained_on():
    """Rows that were scanned and then written to are scanned again by the next fit."""
    X = some_values(240, 4)
    y, qid = np.arange(240) % 3, np.repeat(np.arange(24), 10)
    data = linrank.Dataset.of(X, y, qid=qid)
    ranker = linrank.RankSVM()
    before = ranker.fit(data).model_
    X *= 3.0
    after = ranker.fit(data).model_
    expected = linrank.RankSVM().fit(X.copy(), y, qid=qid).model_
    assert after.training["fingerprint"] == expected.training["fingerprint"]
    assert after.training["fingerprint"] != before.training["fingerprint"]
    assert_array_equal(after.statistics.variance, expected.statistics.variance)
    assert_array_equal(after.coef, expected.coef)


def test_a_fit_looks_at_the_rows_once(monkeypatch):
    """Finite values, moments, extents and fingerprint come from one pass."""
    scans = []
    for name in ("scan_columns", "first_non_finite"):
        call = getattr(_core, name)
        monkeypatch.setattr(_core, name, lambda *a, c=call, n=name: scans.append(n) or c(*a))
    X, y, qid = some_values(240, 4), np.arange(240) % 3, np.repeat(np.arange(24), 10)
    model = linrank.RankSVM(n_jobs=2).fit(X, y, qid=qid, sample_weight=np.ones(240)).model_
    assert scans == ["scan_columns"]
    assert model.statistics is not None
    data = linrank.Dataset.of(X, y, qid=qid, sample_weight=np.ones(240))
    assert model.training["fingerprint"] == fingerprint(data)


# ---- values that are not finite -----------------------------------------------------------------


@pytest.mark.parametrize(("make", "dtype"), list(product(MAKES, TYPES)))
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_the_first_value_that_is_not_finite_is_named(make, dtype, value, name):
    X = some_values(3000, 6, dtype)
    for place, n_jobs in product(((2999, 5), (1700, 3), (1700, 2), (0, 0)), (1, 3)):
        X[place] = value
        told = f"contains {name}.* at row {place[0]}, column {place[1]}"
        with pytest.raises(ValueError, match=told):
            linrank.Dataset.of(MAKES[make](X), np.arange(3000) % 2, n_jobs=n_jobs)


def by_query(X, qid):
    """The definition: every row over the range of its query, constant features 0."""
    out = np.zeros_like(X)
    for q in np.unique(qid):
        block = X[qid == q]
        width = block.max(axis=0) - block.min(axis=0)
        out[qid == q] = np.divide(block, width, out=np.zeros_like(block), where=width > 0)
    return out


@given(datasets(), st.data())
def test_rows_of_weight_zero_are_absent_and_weight_two_counts_twice(data, draw):
    n = data.n_rows
    u = np.array(draw.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=np.float64)
    u[0] = 1.0
    repeated = data.rows.take(np.repeat(np.arange(n), u.astype(int)))
    for kind in ("standard", "minmax"):
        weighted = Scaling.fit(kind, data.rows, weight=u).factors
        assert_allclose(weighted, Scaling.fit(kind, repeated).factors, rtol=1e-9)


def test_factors_are_those_of_scikit_learn():
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    X = np.random.default_rng(0).lognormal(size=(200, 7))
    X[:, 3], is_varying = 2.5, np.arange(7) != 3
    for kind, factors in (
        ("standard", 1 / StandardScaler().fit(X).scale_),
        ("minmax", MinMaxScaler().fit(X).scale_),
    ):
        found = Scaling.fit(kind, as_rows(X)).factors
        assert_allclose(found, np.where(is_varying, factors, 0.0))


@pytest.mark.parametrize("kind", ["standard", "minmax"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_folded_equals_transformed(kind, make):
    """Training with factors equals training on columns multiplied by them."""
    data = linrank.make_ranking(n_queries=20, n_features=6, dtype="float64", random_state=4)
    data = replace(data, rows=as_rows(make(data.X)))
    scaling, X = Scaling.fit(kind, data.rows), dense(data.X)
    folded = train(data, scale=scaling.factors, tol=1e-10)
    transformed = train(replace(data, rows=as_rows(X * scaling.factors)), tol=1e-10)
    assert_allclose(folded.value, transformed.value, rtol=1e-9)
    assert_allclose(folded.w, transformed.w, rtol=1e-5, atol=1e-7)
    assert_allclose(X @ scaling.fold(folded.w), X * scaling.factors @ folded.w)
    assert_allclose(scaling.unfold(scaling.fold(folded.w)), folded.w)


@given(datasets(), st.sampled_from(["none", "standard", "minmax", "query"]))
def test_scaled_rows_equal_the_definition(data, kind):
    scaling, before = Scaling.fit(kind, data.rows), dense(data.X).copy()
    scaled = scaling.rows(data.rows, data.queries)
    expected = by_query(before, data.qid) if kind == "query" else before
    if scaling.factors is not None:
        expected = before * scaling.factors
    assert_allclose(dense(scaled.to_user()), expected, rtol=1e-6)
    assert scaled.dtype == data.rows.dtype
    assert (scaled is data.rows) == (kind == "none")
    assert type(scaled) is type(data.rows)
    assert_array_equal(dense(data.X), before)


def scale(kind, factors, make):
    rows = as_rows(make(np.array([[1.0, 0.0], [2.0, 1e38]], dtype=np.float32)))
    return Scaling(kind, factors).rows(rows)


def fit_range(kind, *column):
    return Scaling.fit(kind, as_rows(np.column_stack([[1.0, 2.0], column])))


SCALINGS = [
    ("standard", np.array([1.0, 100.0]), r"row 1, column 1 by 100, .* too large for float32"),
    ("minmax", np.ones(3), "3 scaling factors for 2 features"),
    ("query", None, "within a query: give the queries"),
    ("robust", None, "must be 'none', 'standard', 'minmax' or 'query', got 'robust'"),
    ("standard", None, "needs factors"),
    ("query", np.ones(2), "takes no factors"),
    *(("minmax", np.array([1.0, d]), "finite and >= 0") for d in (-1.0, np.nan)),
]
REFUSED = [
    *(
        (partial(scale, kind, factors, make), message)
        for kind, factors, message in SCALINGS
        for make in (np.asarray, sparse.csr_array)
    ),
    *(
        (partial(fit_range, kind, *column), "feature 1 ranges from .* rescale it")
        for kind in ("standard", "minmax")
        for column in ((-1.7e308, 1.7e308), (0.0, 5e-324))
    ),
    (
        lambda: ColumnStatistics.empty(3) + ColumnStatistics.empty(4),
        "3 columns do not merge with those of 4",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_scaled_or_merged_is_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
