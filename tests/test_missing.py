"""Missing values: a policy of training that the model keeps, and scores by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import linrank
import papers
from hypothesis_profiles import examples
from linrank import Dataset, load_model
from linrank.data.missing import Filling, Missing
from linrank.data.rows import as_rows
from papers import RankSVM
from stored_data import dense

POLICIES = ("zero", "mean", "indicator")


def holed(seed: int = 0, n_rows: int = 60, n_features: int = 4, share: float = 0.2):
    """Rows of which some values are missing, labels that depend on two features, query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n_rows, n_features))
    y = np.clip(np.round(X[:, 0] - X[:, 1] + rng.normal(size=n_rows)) + 4, 0, 8)
    X[rng.random(X.shape) < share] = np.nan
    X[:, -1] = rng.normal(size=n_rows)  # one feature is never missing
    return X, y, np.arange(n_rows) // 10


def filled_by_hand(X, policy, weight=None):
    """The rows that a policy trains on, written out value by value."""
    X = np.array(X, dtype=float)
    u = np.ones(len(X)) if weight is None else weight
    columns = [list(column) for column in X.T]
    indicators = []
    for column in columns:
        there = [(x, w) for x, w in zip(column, u, strict=True) if x == x]
        total = sum(w for _, w in there)
        mean = sum(x * w for x, w in there) / total if total else 0.0
        value = mean if policy == "mean" else 0.0
        absent = [float(x != x) for x in column]
        if policy == "indicator" and any(a for a, w in zip(absent, u, strict=True) if w > 0):
            indicators.append(absent)
        column[:] = [x if x == x else value for x in column]
    return np.array([*columns, *indicators]).T


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@examples(40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["float32", "float64"]), st.booleans())
def test_rows_are_filled_as_by_hand(policy, sparse, seed, dtype, weighted):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 7, 2))
    X = np.where(rng.random(shape) < 0.5, 0.0, rng.normal(size=shape)).astype(dtype)
    X[rng.random(shape) < 0.3] = np.nan
    weight = rng.integers(0, 3, shape[0]).astype(float) if weighted else None
    rows = as_rows(csr_array(X) if sparse else X, check="missing")
    found = Filling.fit(policy, rows, weight).fill(rows)
    assert (found.is_sparse, found.dtype) == (sparse, dtype)
    assert found.core is not None  # columns increase: building the view checks it
    assert_allclose(dense(found.to_user()), filled_by_hand(X, policy, weight), rtol=1e-6)


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "query"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_model_scores_raw_rows_as_the_filled_ones_it_learnt_from(policy, scale, tmp_path):
    X, y, qid = holed()
    if (policy, scale) == ("indicator", "query"):
        with pytest.raises(
            ValueError, match=r"cannot be scaled within queries; use missing='mean'"
        ):
            RankSVM(missing=policy, scale=scale).fit(X, y, qid=qid)
        return
    ranker = RankSVM(missing=policy, scale=scale).fit(X, y, qid=qid)
    by_hand = filled_by_hand(X, policy)
    plain = RankSVM(scale=scale).fit(by_hand, y, qid=qid)
    assert ranker.coef_.shape == (X.shape[1],)
    assert_allclose(ranker.coef_, plain.coef_[: X.shape[1]], rtol=1e-9)
    assert_allclose(ranker.predict(X, qid=qid), plain.predict(by_hand, qid=qid), rtol=1e-9)
    ranker.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.missing.kind == policy
    assert_array_equal(again.predict(X, qid=qid), ranker.predict(X, qid=qid))


def test_an_indicator_learns_what_a_missing_value_is_worth():
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    absent = rng.random(200) < 0.4
    y = np.where(absent, 5.0, x)  # rows without the value are the best ones
    X = np.where(absent, np.nan, x)[:, None]
    qid = np.arange(200) // 20
    scores = {p: RankSVM(missing=p, C=10).fit(X, y, qid=qid).score(X, y, qid=qid) for p in POLICIES}
    assert scores["indicator"] > 0.99
    assert scores["zero"] < 0.95
    assert scores["mean"] < 0.95


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_contributions_sum_to_scores(policy, sparse):
    X, y, qid = holed(1)
    model = RankSVM(missing=policy).fit(X, y, qid=qid).model_
    raw = csr_array(X) if sparse else X
    each = model.explain(raw)
    each = each.toarray() if sparse else each
    assert_allclose(each.sum(axis=1), model.predict(raw), rtol=1e-12, atol=1e-12)
    difference = model.explain(raw, pair=(0, 7))
    assert_allclose(difference, each[0] - each[7], rtol=1e-12, atol=1e-15)


def test_a_row_scores_the_same_bits_in_any_company():
    X, y, qid = holed(2)
    model = RankSVM(missing="mean").fit(X.astype(np.float32), y, qid=qid).model_
    whole = model.predict(X.astype(np.float32))
    one_by_one = [model.predict(row[None])[0] for row in X.astype(np.float32)]
    assert_array_equal(whole, one_by_one)
    assert_array_equal(whole, model.predict(X.astype(np.float32), n_jobs=1))


def test_bounds_are_of_features_and_leave_indicators_free():
    X, y, qid = holed(10)
    y = y.max() - y  # so that missing values, and small ones, may be good
    bounds = np.array([(-0.1, 0.1)] * 4)
    ranker = RankSVM(missing="indicator", coef_bounds=bounds).fit(X, y, qid=qid)
    assert (np.abs(ranker.coef_) <= 0.1).all()
    assert np.abs(ranker.model_.missing.weights).max() > 0.1
    listed = RankSVM(missing="indicator", coef_bounds=(bounds[:, 0], bounds[:, 1]))
    assert_array_equal(listed.fit(X, y, qid=qid).coef_, ranker.coef_)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (RankSVM(missing="drop").fit, "missing must be 'error', .* or 'indicator', got 'drop'"),
        (lambda *data: Dataset.of(*data, missing="median"), "or 'keep', got 'median'"),
        (lambda *_: Missing("mean"), "missing='mean' needs values"),
        (lambda *_: Missing("zero", weights=np.zeros(2)), "missing='zero' takes no weights"),
        (papers.SGDRanker(missing="zero").partial_fit, "partial_fit cannot use missing='zero'"),
    ],
)
def test_bad_policies_are_named(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt(*holed()[:2])


def test_validation_rows_are_filled_as_the_training_rows():
    X, y, qid = holed(5)
    shifted = X + np.where(np.isnan(X), 0.0, 100.0)
    ranker = RankSVM(missing="mean", early_stopping=True)
    ranker.fit(X, y, qid=qid, X_val=shifted, y_val=y, qid_val=qid)
    scores = ranker.model_.predict(shifted)
    found = linrank.evaluate(y, scores, qid=qid, metrics="ndcg@10")["ndcg@10"]
    best = ranker.history_["val_ndcg@10"][ranker.best_iteration_]
    assert best == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("early", [False, True])
def test_warm_start_goes_on_with_indicators(early):
    X, y, qid = holed(6)
    ranker = RankSVM(missing="indicator", warm_start=True, early_stopping=early)
    given = {"X_val": X, "y_val": y, "qid_val": qid} if early else {}
    ranker.fit(X, y, qid=qid, **given)
    first = ranker.n_iter_
    ranker.fit(X, y, qid=qid, **given)
    assert ranker.n_iter_ <= max(1, first - 1)


def test_nulls_of_frames_are_missing():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    X, y, qid = holed(7)
    plain = RankSVM(missing="mean").fit(X, y, qid=qid)
    nullable = pd.DataFrame(X, columns=list("abcd")).astype("Float64")
    holes = {name: [None if x != x else x for x in X[:, j]] for j, name in enumerate("abcd")}
    for frame in (nullable, pl.DataFrame(holes), pa.table(holes)):
        ranker = RankSVM(missing="mean").fit(frame, y, qid=qid)
        assert_array_equal(ranker.coef_, plain.coef_)
        assert_array_equal(ranker.predict(frame), plain.predict(X))


@pytest.mark.parametrize("policy", POLICIES)
def test_infinity_is_never_missing(policy):
    X, y, qid = holed(8)
    ranker = RankSVM(missing=policy).fit(X, y, qid=qid)
    X[11, 2] = -np.inf
    for use in (ranker.predict, lambda X: ranker.fit(csr_array(X), y, qid=qid)):
        with pytest.raises(ValueError, match=r"infinity \(inf\) at row 11, column 2"):
            use(X)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_data_set_is_fitted_and_scored_as_its_parts(policy):
    X, y, qid = holed(11)
    plain = RankSVM(missing=policy).fit(X, y, qid=qid)
    kept, filled = (Dataset.of(X, y, qid=qid, missing=how) for how in ("keep", policy))
    for ranker in (RankSVM(missing=policy).fit(kept), RankSVM().fit(filled)):
        assert_array_equal(ranker.coef_, plain.coef_)
        assert ranker.n_features_in_ == X.shape[1]
        assert ranker.model_.missing.kind == policy
        assert_array_equal(ranker.predict(kept), plain.predict(X))
        assert_allclose(ranker.predict(filled), plain.predict(X), rtol=1e-12)
        assert_array_equal(ranker.rank(kept), plain.rank(X, qid=qid))
        assert ranker.score(kept) == plain.score(X, y, qid=qid)
    other = RankSVM(missing="zero" if policy == "mean" else "mean")
    of_others = Dataset.of(X + 1.0, y, qid=qid, missing="mean")
    for attempt, message in (
        (lambda: plain.predict(kept, qid=qid), "qid is part of the data set"),
        (lambda: RankSVM().fit(filled, qid=qid), "qid is part of the data set"),
        (lambda: other.fit(filled), "but the data set was filled in with"),
        (lambda: plain.predict(of_others), "load it with missing='keep'"),
    ):
        with pytest.raises(ValueError, match=message):
            attempt()


def test_a_model_knows_the_data_it_was_trained_on(tmp_path):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(50, 3)), rng.integers(0, 3, 50), np.arange(50) // 5
    known = RankSVM().fit(X, y, qid=qid).model_.statistics
    for name, values in (("mean", X.mean(0)), ("variance", X.var(0)), ("low", X.min(0))):
        assert_allclose(getattr(known, name), values, rtol=1e-12)
    mark, same, *others = (
        RankSVM(C=3).fit(rows, y, qid=ids).model_.training["fingerprint"]
        for rows, ids in (
            *((X, qid), (X, [f"q{q}" for q in qid])),
            *((X + 1e-9, qid), (X, np.arange(50) // 10)),
        )
    )
    assert mark == same
    assert mark not in others
    wide = csr_array((np.ones(2), ([0, 1], [0, 20_000])), shape=(2, 20_001))
    assert RankSVM().fit(wide, [0, 1]).model_.statistics is None


@pytest.mark.parametrize("policy", ["zero", "indicator"])
def test_filled_rows_in_another_order_or_of_another_size_are_refused(policy):
    X = np.array([[1.0, np.nan], [2.0, 5.0]])
    weights = np.array([0.0, 5.0]) if policy == "indicator" else None
    model = linrank.LinearModel([1.0, 10.0], ("a", "b"), missing=Missing(policy, None, weights))
    for rows, names, message in (
        (X, "ab", None),
        (X[:, ::-1], "ba", r"feature 0 is 'b'.*'a'"),
        (X[:, [0, 0, 1]], None, "the rows have 3 features, the model 2"),
    ):
        data = Dataset.of(rows, [0, 1], feature_names=names and list(names), missing=policy)
        if message is None:
            assert_array_equal(model.predict(data), model.predict(X))
            continue
        with pytest.raises(ValueError, match=message):
            model.predict(data)


# ---- stores of tables with missing values --------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A table with gaps, its queries apart, written in several row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, qid = holed(seed=3, n_rows=240)
    order = np.random.default_rng(0).permutation(len(y))
    columns = {f"x{j}": pa.array(X[order, j], from_pandas=True) for j in range(X.shape[1])}
    columns |= {"label": y[order], "qid": qid[order]}
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=50)
    return path


@pytest.mark.parametrize("memory_limit", [None, "4GiB"])
@pytest.mark.parametrize("options", [{}, {"scale": "standard"}, {"curves": "quantile"}], ids=str)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_store_of_a_table_trains_the_model_of_the_table(
    table, tmp_path, monkeypatch, policy, options, memory_limit
):
    """fit(store of the table) is fit(table): coefficients, policy and scores of rows with gaps."""
    monkeypatch.setattr("linrank.io.table_reader.PART_BYTES", 1000)  # several parts
    settings = {"C": 0.1, "tol": 1e-9, **options}
    twin = RankSVM(**settings, missing=policy).fit(linrank.load(table, missing="keep")).model_
    store = linrank.convert(table, tmp_path / "store", missing=policy, chunk_bytes=2000)
    assert store.n_chunks > 1
    assert (
        store.filling.kind == store.dataset().filling.kind == store.read(0).filling.kind == policy
    )
    model = RankSVM(**settings, memory_limit=memory_limit).fit(store).model_
    assert (model.missing.kind, model.n_features) == (policy, 4)
    assert model.feature_names == twin.feature_names
    for name in ("values", "weights", "absent") if "curves" not in options else ():
        found, expected = getattr(model.missing, name), getattr(twin.missing, name)
        assert (found is None) == (expected is None)
        if found is not None:
            assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert model.statistics is None or model.statistics.n_columns == 4
    fresh = Dataset.of(*holed(seed=9)[:2], missing="keep")
    scores = twin.predict(fresh)
    assert_allclose(model.predict(fresh), scores, atol=1e-5 * np.ptp(scores))
    model.save(tmp_path / "model.json")
    assert_array_equal(load_model(tmp_path / "model.json").predict(fresh), model.predict(fresh))


def test_several_tables_are_filled_in_as_one(table, tmp_path):
    data = linrank.load(table, missing="keep")
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, part in zip(paths, (slice(0, 100), slice(100, None)), strict=True):
        linrank.convert(data.select(part), path)
    store = linrank.convert(paths, tmp_path / "store", missing="mean")
    filling = Filling.fit("mean", data.rows)
    assert_allclose(store.filling.values, filling.values, rtol=1e-6)
    with open(paths[0], "rb") as a, open(paths[1], "rb") as b:
        given = {"missing": "mean", "format": "csv", "dtype": "float64"}
        linrank.convert([a, b], tmp_path / "pipes.parquet", **given)
    filled = linrank.load(tmp_path / "pipes.parquet").X
    assert_allclose(filled, filling.fill(data.rows).values, rtol=1e-6)


def test_a_store_has_a_value_in_every_place(table, tmp_path):
    path = tmp_path / "store"
    for write, message in (
        (lambda: linrank.Store.write(path, *holed()[:2], missing="keep"), "be 'error', 'zero'"),
        (lambda: linrank.convert(table, path, missing="keep"), "is NaN or infinite; say .*='zero'"),
        (lambda: linrank.convert(table, path), "is missing; say .*missing='zero'"),
    ):
        with pytest.raises(ValueError, match=message):
            write()
    assert not path.exists()


def test_another_policy_than_that_of_a_store_is_refused(table, tmp_path):
    store = linrank.convert(table, tmp_path / "store", missing="mean")
    for memory_limit in (None, "4GiB"):
        with pytest.raises(ValueError, match=r"missing='zero', but .* filled in with 'mean'"):
            RankSVM(missing="zero", memory_limit=memory_limit).fit(store)
        model = RankSVM(missing="mean", memory_limit=memory_limit).fit(store).model_
    with pytest.raises(ValueError, match="other data"):
        model.predict(linrank.load(table, missing="zero"))
