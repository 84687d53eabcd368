"""check: data beside what a model was trained on; the counts by a loop over single values."""

import io
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import linrank
from hypothesis_profiles import examples
from linrank import Dataset, LinearModel, RankSVM
from linrank.data.rows import as_rows
from linrank.judging.check import column_tallies

NAMES = ["bm25", "age", "clicks"]


@pytest.fixture(scope="module")
def trained():
    """Rows, and a model of them that knows their statistics."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (80, 3))
    y = (X @ [1.0, -0.5, 0.2] + rng.normal(size=80)).round()
    model = RankSVM().fit(X, y, qid=np.repeat(range(8), 10)).model_
    return X, replace(model, feature_names=NAMES)


def codes(found):
    return [(item.code, item.severity, item.feature) for item in found]


def named(X, names=NAMES):
    return Dataset.of(X, np.zeros(len(X)), feature_names=names, missing="keep")


# ---- the counts ---------------------------------------------------------------------------------

number = st.one_of(st.just(0.0), st.just(math.nan), st.floats(-9, 9, width=32))


def plain(X, low, high):
    """One column at a time, one value at a time."""
    found = []
    for j, column in enumerate(X.T.tolist()):
        there = [x for x in column if not math.isnan(x)]
        beyond = [max(x - high[j], low[j] - x) for x in there]
        counts = len(column) - len(there), sum(e > 0 for e in beyond)
        ends = min(there, default=0.0), max(there, default=0.0), max([0.0, *beyond])
        found.append((*counts, math.fsum(there) / max(1, len(there)), *ends))
    return np.array(found).T


@examples(50)
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(number, min_size=d, max_size=d), min_size=1, max_size=9)
    ),
    st.data(),
)
def test_tallies_are_those_of_a_loop(values, data):
    X = np.array(values)
    n_columns = X.shape[1]
    ends = data.draw(st.lists(st.floats(-5, 5), min_size=2 * n_columns, max_size=2 * n_columns))
    low, high = np.sort(np.array(ends).reshape(2, n_columns), axis=0)
    expected = plain(X, low, high)
    for rows in (as_rows(X, check="missing"), as_rows(sp.csr_array(X), check="missing")):
        found = SimpleNamespace(**column_tallies(rows, low, high))
        counted = found.n_missing, found.n_outside, found.mean, found.low, found.high, found.excess
        assert_allclose(np.array(counted), expected, rtol=1e-12, atol=1e-12)
        for j in range(n_columns):
            absent = np.flatnonzero(np.isnan(X[:, j]))
            assert found.first_missing[j] == (absent[0] if len(absent) else -1)
            if found.worst_row[j] >= 0:
                assert X[found.worst_row[j], j] == found.worst[j]
            elif found.n_outside[j]:
                assert (rows.is_sparse, found.worst[j]) == (True, 0.0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_tallies_do_not_depend_on_the_threads(make):
    X = np.random.default_rng(1).normal(size=(5000, 3))
    X[7, 1] = X[3300, 1] = np.nan
    X[2500, 0] = X[4100, 0] = 9.0  # the first one is told
    rows, low, high = as_rows(make(X), check="missing"), np.full(3, -1.0), np.ones(3)
    one, three = (column_tallies(rows, low, high, n_jobs) for n_jobs in (1, 3))
    for name, value in one.items():
        assert_array_equal(value, three[name], name)
    assert (one["worst_row"][0], one["worst"][0], one["first_missing"][1]) == (2500, 9.0, 7)
    assert_array_equal(one["n_outside"], (np.abs(X) > 1.0).sum(axis=0))


# ---- the findings -------------------------------------------------------------------------------


def test_the_training_data_have_no_findings(trained):
    X, model = trained
    found = linrank.check(named(X), model)
    assert (codes(found), found.ok, len(found)) == ([], True, 0)
    shuffled = [2, 0, 1]
    assert codes(linrank.check(named(X[:, shuffled], [NAMES[j] for j in shuffled]), model)) == []
    bare = LinearModel(model.coef, NAMES)
    assert codes(linrank.check(named(X * 100), bare)) == [("no-statistics", "note", None)]
    with pytest.raises(TypeError, match="a linear model or one of curves, got int"):
        linrank.check(np.eye(2), 3)


def test_features_that_one_of_the_two_lacks(trained):
    X, model = trained
    found = linrank.check(named(X[:, :2], ["age", "new"]), model)
    by_code = {(item.code, item.feature) for item in found.of("error")}
    assert ("missing-feature", "bm25") in by_code
    assert ("missing-feature", "clicks") in by_code
    assert ("no-signal", None) in by_code  # bm25 has most of the importance
    unknown = next(item for item in found if item.code == "unknown-features")
    assert (unknown.severity, unknown.values["features"]) == ("warning", ["new"])
    assert not found.ok
    assert "error: [missing-feature] feature bm25 is not among the columns" in str(found)


def test_values_beyond_training_name_the_worst_row(trained):
    X, model = trained
    wide = np.vstack([X, X, X])
    wide[41, 0] = X[:, 0].max() + 1.0
    (found,) = linrank.check(named(wide), model)
    assert (found.code, found.severity, found.feature) == ("outside-range", "note", "bm25")
    assert (found.values["rows"], found.values["worst_row"]) == (1, 41)
    assert found.values["worst"] == wide[41, 0]
    wide[41, 0] = 1e6
    assert linrank.check(named(wide), model)[0].severity == "warning"


def test_constant_and_drifted_features(trained):
    X, model = trained
    moved = X.copy()
    moved[:, 0] = 5.0
    moved[:, 1] = 5.0 + X[:, 1] / 2
    found = linrank.check(named(moved), model)
    assert ("constant", "warning", "bm25") in codes(found)
    drift = next(item for item in found if item.code == "drift")
    std = X[:, 1].std()
    assert drift.feature == "age"
    assert_allclose(drift.values["deviations"], (moved[:, 1].mean() - X[:, 1].mean()) / std)


def test_missing_values_are_an_error_where_the_model_refuses_them(trained):
    X, model = trained
    X = X.copy()
    X[5:7, 1] = np.nan
    (found,) = linrank.check(named(X), model)
    assert (found.code, found.severity) == ("missing-values", "error")
    assert (found.values["rows"], found.values["first_row"]) == (2, 5)
    filled = RankSVM(missing="indicator").fit(X, np.arange(80) % 3, qid=np.repeat(range(8), 10))
    assert [item.severity for item in linrank.check(X, filled.model_)] == ["note"]
    X[9, 0] = np.nan
    unseen = linrank.check(X, filled.model_)[0]
    assert (unseen.severity, unseen.feature) == ("warning", "0")
    assert "never happened in training" in unseen.message


def test_numbers_that_start_elsewhere_are_an_error():
    model = LinearModel([1.0, 2.0], training={"index_base": 1})
    data = linrank.load(io.BytesIO(b"1 0:1 1:2\n0 0:2 1:1\n"))
    assert linrank.check(data, model)[0].code == "index-base"


# ---- the command --------------------------------------------------------------------------------


def test_the_command_tells_and_sets_its_status(files, tmp_path, cli):
    text, options = tmp_path / "odd.txt", "--against {model}"
    out = cli(f"check {{train}} {options} --strict", **files).out
    assert out.endswith("rows: nothing stands out\n")
    text.write_text("".join(f"{i % 2} qid:1 1:{1000 + i} 2:0.1 9:1\n" for i in range(9)))
    line = f"check {text} {options}"
    out = cli(line, status=4, **files).out
    assert out.index("error") < out.index("[outside-range] feature 1 ")
    report = cli(f"{line} --json", status=4, **files).json
    assert (report["ok"], report["rows"], report["command"]) == (False, 9, "check")
    found = {(item["code"], item["feature"]): item["values"] for item in report["findings"]}
    assert found["outside-range", "1"]["worst"] == 1008.0
    kinds = {"unknown-features", "constant", "drift", "no-signal"}
    assert kinds <= {code for code, _ in found}
    assert " more; --top shows them" in cli(f"{line} --top 1", status=4, **files).out
    # a warning, an error if strict
    text.write_text(files["train"].read_text().replace(" #", " 7:1 #"))
    assert "warning  [unknown-features] the model has not seen 7" in cli(line, **files).out
    cli(f"{line} --strict", status=4, **files)


# ---- false alarms -------------------------------------------------------------------------------


def sparse_in_values(policy, seed=0):
    """A model whose features were missing more often than not, and its own training rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(10.0, 1.0, (200, 3))
    y = rng.integers(0, 3, 200)
    X[rng.random(X.shape) < 0.6] = np.nan
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 1.0)  # there or not: that is all it says
    return X, RankSVM(missing=policy).fit(X, y, qid=np.arange(200) // 10).model_


@pytest.mark.parametrize("policy", ["zero", "mean", "indicator"])
@pytest.mark.parametrize("filled", [False, True])
def test_the_training_rows_of_a_model_that_fills_in_are_fine(policy, filled):
    X, model = sparse_in_values(policy)
    data = Dataset.of(X, np.zeros(200), missing=policy) if filled else X
    assert {item.severity for item in linrank.check(data, model)} <= {"note"}


@pytest.mark.parametrize("dtypes", [(np.float32, np.float64), (np.float64, np.float32)])
def test_the_same_values_in_another_precision_are_in_range(dtypes):
    rng = np.random.default_rng(0)
    X, y = rng.choice([0.1, 0.3, 0.7, -0.7], (80, 3)), rng.integers(0, 3, 80)
    model = RankSVM().fit(X.astype(dtypes[0]), y, qid=np.arange(80) // 10).model_
    assert not linrank.check(X.astype(dtypes[1]), model)
    assert [c for c, _, _ in codes(linrank.check(X.astype(dtypes[1]) * 1.001, model))]


def test_a_constant_of_training_whose_weight_is_rounding_may_move(trained):
    X, model = trained
    coef, known = np.array([*model.coef[:2], 1e-14]), model.statistics
    last = {"mean": 7.0, "variance": 0.0, "low": 7.0, "high": 7.0}
    of_last = {name: np.array([*getattr(known, name)[:2], x]) for name, x in last.items()}
    known = replace(known, **of_last)
    moved = np.column_stack([X[:, :2], np.full(len(X), 9.0)])
    model = replace(model, coef=coef, statistics=known)
    assert not linrank.check(moved, model)
    (item,) = linrank.check(moved, replace(model, coef=np.array([*coef[:2], 0.1])))
    assert (item.code, item.feature) == ("outside-range", "clicks")


def test_a_feature_that_is_missing_everywhere_tells_nothing():
    X, model = sparse_in_values("mean")
    gone = X.copy()
    gone[:, 0] = np.nan
    found = [item for item in linrank.check(gone, model) if item.feature == "0"]
    assert [(item.code, item.severity) for item in found] == [("missing-values", "warning")]
    gone[:] = np.nan
    assert ("no-signal", "error", None) in codes(linrank.check(gone, model))
