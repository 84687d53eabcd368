"""Curves: the map is its definition, additive models are sums of it, and both survive a file."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import papers
from cli_files import write_svmlight
from linrank import AdditiveModel, Dataset, load_model
from linrank.data.curves import (
    CurveRows,
    Curves,
    choose_knots,
    dense_sample,
    fit_curves,
    level_curves,
)
from linrank.data.rows import DenseRows
from linrank.models.design import Shape
from papers import DominationRanker, RankSVM, RankSVMCV

KINDS = ("quantile", "spline", "step")


def value(function, x):
    """One function at one point, by the definition."""
    _, t, values, slopes = function
    p = sum(knot < x for knot in t)
    origin = t[max(p - 1, 0)] if len(t) else 0.0
    return values[p] + slopes[p] * (x - origin)


def problem(n_queries=12, n_rows=10, n_features=4, seed=0, dtype=np.float64):
    """Rows whose labels are a curve of the first feature, and a query for every ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_rows, n_features))
    X[:, 1] = np.maximum(X[:, 1], 0.0)  # half zeros
    X[:, 2] = np.round(X[:, 2])
    X = X.astype(dtype)
    y = np.digitize(-np.abs(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=len(X)), [-1.0, -0.3])
    return X, y, np.repeat(np.arange(n_queries), n_rows)


# ---- the map ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_columns_and_sums_are_the_definition(dtype, n_threads):
    rng = np.random.default_rng(1)
    sizes = (0, 1, 2, 7, 8, 9, 16, 63, 200)
    functions = []
    for c, size in enumerate(sizes):
        t = np.sort(rng.choice(np.arange(-300, 300) / 100.0, size, replace=False))
        functions.append((c % 3, t, rng.normal(size=size + 1), rng.normal(size=size + 1)))
    curves = Curves.of(functions)
    x = np.round(rng.normal(size=(301, 3)), 2).astype(dtype)  # many values are knots
    rows = DenseRows(x)
    expected = [[value(f, float(row[f[0]])) for f in functions] for row in x]
    found = curves.columns(rows, n_threads).values
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, np.array(expected).astype(dtype), rtol=1e-6 if dtype == np.float32 else 1e-13
    )
    np.testing.assert_allclose(
        curves.sums(rows, n_threads), np.sum(expected, axis=1), rtol=1e-12, atol=1e-12
    )
    strided = DenseRows(np.hstack([x, x])[:, :3])
    assert curves.sums(strided, 1).tobytes() == curves.sums(rows, n_threads).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_products_by_pieces_are_those_of_the_columns(kind, dtype):
    X, _, _ = problem(n_queries=90, dtype=dtype)
    X = np.column_stack([X, np.ones(len(X)), X[:, 0] > 1]).astype(dtype)  # an indicator last
    rows = DenseRows(np.hstack([X, X])[:, :6])  # any stride
    curves = fit_curves(kind, rows, 5, n_knots=6)
    coded, columns = CurveRows(rows, curves), curves.columns(DenseRows(X.astype(np.float64)))
    rng = np.random.default_rng(0)
    w, index = rng.normal(size=len(curves)), rng.permutation(len(X))[:700]
    some = rng.normal(size=len(index))
    for order, r in ((None, rng.normal(size=len(X))), (index, some), (index[:0], some[:0])):
        z, g = columns.scores(w, order, 1), columns.gradient(r, order, 1)
        np.testing.assert_allclose(coded.scores(w, order, 2), z, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(coded.gradient(r, order, 1), g, rtol=1e-12, atol=1e-11)
        assert coded.gradient(r, order, 3).tobytes() == coded.gradient(r, order, 1).tobytes()
    assert coded.stored(index, 1).values.tobytes() == curves.columns(rows).values[index].tobytes()
    found, exact = coded.extents(), columns.extents()
    np.testing.assert_allclose(found.largest, exact.largest, rtol=1e-12)
    assert (found.norms >= exact.norms * (1 - 1e-12)).all()
    assert coded.shape == columns.shape


SOLVED = {"C": 0.1, "tol": 1e-6, "n_knots": 6}


@pytest.mark.parametrize(
    "ranker",
    [
        *(RankSVM(curves=kind, **SOLVED) for kind in KINDS),
        *(RankSVM(curves=kind, loss="hinge", **SOLVED) for kind in KINDS),
        *(RankSVM(curves=kind, pair_weighting="ndcg@5", **SOLVED) for kind in KINDS),
        RankSVMCV(Cs=[0.01, 0.1], curves="spline", increasing=[1], tol=1e-6, cv=3),
    ],
)
def test_fits_are_the_same_whether_columns_are_stored(monkeypatch, ranker):
    X, y, qid = problem(n_queries=60)
    stored = clone(ranker).fit(X, y, qid=qid)
    monkeypatch.setattr("linrank.models.design._STORED_BYTES", 0)
    coded = clone(ranker).fit(X, y, qid=qid)
    assert coded.objective_ == pytest.approx(stored.objective_, rel=1e-5)
    atol = 1e-3 * np.ptp(stored.predict(X))
    np.testing.assert_allclose(coded.predict(X), stored.predict(X), atol=atol)
    assert coded.model_.statistics.mean.tobytes() == stored.model_.statistics.mean.tobytes()
    if isinstance(ranker, RankSVMCV):
        np.testing.assert_allclose(coded.scores_, stored.scores_, atol=1e-4)


def test_offsets_and_penalties_have_their_columns_stored(monkeypatch):
    monkeypatch.setattr("linrank.models.design._STORED_BYTES", 0)
    monkeypatch.setattr("linrank.models.design.CurveRows", None)  # not to be called
    X, y, qid = problem()
    DominationRanker(curves="quantile").fit(X, y, qid=qid)
    X[:, 3] += 1e9
    RankSVM(curves="quantile").fit(X, y, qid=qid)
    RankSVM(curves="quantile", solver="bundle").fit(X[:, :3], y, qid=qid)


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_its_formula_with_variance_one(kind):
    X, _, _ = problem(n_queries=40)
    X = np.column_stack([X, np.ones(len(X))])  # a constant feature has no column
    curves = fit_curves(kind, DenseRows(X), 5, n_knots=6)
    assert set(curves.feature) == {0, 1, 2, 3}
    columns = curves.columns(DenseRows(X)).values
    np.testing.assert_allclose(columns.std(axis=0), 1.0, rtol=1e-10)
    c = 0
    for j in range(4) if kind != "step" else ():
        np.testing.assert_allclose(columns[:, c], X[:, j] / X[:, j].std())
        c += 1
    for j in range(4):
        x, t = X[:, j], choose_knots(np.sort(X[:, j]), 6)
        if kind == "quantile":
            shares = [((x < knot).mean() + (x <= knot).mean()) / 2 for knot in t]
            shapes = [np.interp(x, t, shares)]
        elif kind == "spline":
            shapes = [np.clip((x - a) / (b - a), 0, 1) for a, b in itertools.pairwise(t)]
        else:
            shapes = [(x > knot).astype(float) for knot in t[:-1]]
        for shape in shapes:
            np.testing.assert_allclose(columns[:, c], shape / shape.std(), atol=1e-12)
            c += 1
    assert c == len(curves)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80), st.integers(2, 12))
def test_knots_are_few_different_values_with_both_ends(values, n_knots):
    ordered = np.sort(np.array(values, dtype=float))
    knots = choose_knots(ordered, n_knots)
    assert set(knots) <= set(ordered)
    assert (np.diff(knots) > 0).all()
    assert {ordered[0], ordered[-1]} <= set(knots)
    assert len(knots) <= n_knots


def test_a_feature_that_is_mostly_zero_keeps_its_knots():
    ordered = np.sort(np.concatenate([np.zeros(900), np.arange(1, 101)]))
    assert len(choose_knots(ordered, 8)) == 8


def test_the_sample_is_even_and_without_rows_of_no_weight():
    rows = DenseRows(np.arange(25_000.0)[:, None])
    assert dense_sample(rows).values[:3, 0].tolist() == [0.0, 2.0, 5.0]
    weight = np.zeros(25_000)
    weight[7:9] = 1.0
    assert dense_sample(rows, weight).values[:, 0].tolist() == [7.0, 8.0]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"knots": [1.0, 1.0, 0.0]}, "ascend"),
        ({"knots": [2.0, 1.0, 0.0]}, "ascend"),
        ({"knots": [0.0, np.nan, 0.0]}, "finite"),
        ({"slopes": [0.0, np.inf, 0.0, 0.0, 0.0]}, "finite"),
        ({"offsets": [0, 2, 4]}, "offsets"),
        ({"offsets": [0, 4, 3]}, "knots"),
        ({"offsets": [1, 2, 3]}, "offsets"),
        ({"values": [0.0]}, "pieces"),
    ],
)
def test_curves_that_are_none_are_refused(broken, said):
    parts = {"feature": [0, 1], "offsets": [0, 2, 3], "knots": [0.0, 1.0, 0.0]}
    parts |= {"values": np.zeros(5), "slopes": np.zeros(5)}
    Curves(**parts)
    with pytest.raises(ValueError, match=said):
        Curves(**(parts | broken))


# ---- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_the_linear_one_on_the_columns(kind):
    X, y, qid = problem()
    ranker = RankSVM(C=0.1, curves=kind, n_knots=5).fit(X, y, qid=qid)
    columns = fit_curves(kind, DenseRows(X), 4, n_knots=5).columns(DenseRows(X)).values
    linear = RankSVM(C=0.1).fit(columns, y, qid=qid)
    np.testing.assert_allclose(ranker.predict(X), linear.predict(columns), rtol=1e-8, atol=1e-8)
    assert ranker.objective_ == linear.objective_
    assert ranker.duality_gap_ == linear.duality_gap_
    assert isinstance(ranker.model_, AdditiveModel)
    assert not hasattr(ranker, "coef_")
    assert ranker.model_.training["curves"] == kind
    assert ranker.score(X, y, qid=qid) > RankSVM().fit(X, y, qid=qid).score(X, y, qid=qid)


@pytest.mark.parametrize("interactions", [0, 20])
@pytest.mark.parametrize("missing", ["error", "zero", "mean", "indicator"])
def test_explanations_sum_to_scores_and_models_survive_a_file(tmp_path, missing, interactions):
    X, y, qid = problem()
    if missing != "error":
        X[::7, 0] = np.nan
    options = {"curves": "quantile", "interactions": interactions, "random_state": 3}
    ranker = RankSVM(missing=missing, **options).fit(X, y, qid=qid)
    scores, terms = ranker.predict(X), ranker.explain(X)
    assert terms.shape == (len(X), 4 + bool(interactions))
    np.testing.assert_allclose(terms.sum(axis=1), scores, rtol=1e-9, atol=1e-9)
    pair = ranker.explain(X, pair=(3, -1))
    np.testing.assert_allclose(pair.sum(), scores[3] - scores[-1], rtol=1e-9, atol=1e-9)
    ranker.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.predict(X).tobytes() == scores.tobytes()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    assert ranker.model_.n_nonzero == 4
    assert repr(loaded) == repr(ranker.model_)
    filled = Dataset.of(X, y, qid=qid, missing=missing)
    np.testing.assert_allclose(loaded.predict(filled), scores, rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10_000))
def test_monotone_curves_are_monotone_on_fresh_points(seed):
    X, y, qid = problem(seed=seed)
    kind = KINDS[seed % 3]
    ranker = RankSVM(curves=kind, increasing=[0], decreasing=[3], n_knots=7).fit(X, y, qid=qid)
    fresh = np.sort(np.random.default_rng(seed + 1).normal(scale=2.0, size=300))
    for j, sign in ((0, 1.0), (3, -1.0)):
        rows = np.zeros((300, 4))
        rows[:, j] = fresh
        f = sign * ranker.explain(rows)[:, j]
        assert (np.diff(f) >= -1e-12 * max(1.0, np.abs(f).max())).all()
    assert ranker.duality_gap_ <= 1e-2 * ranker.objective_
    free = RankSVM(curves=kind, n_knots=7).fit(X, y, qid=qid)
    assert free.objective_ - free.duality_gap_ <= ranker.objective_


def test_features_go_by_their_names_too():
    import pandas as pd

    X, y, qid = problem()
    frame = pd.DataFrame(X, columns=["bm25", "clicks", "age", "length"])
    named = RankSVM(curves="spline", increasing=["bm25"]).fit(frame, y, qid=qid)
    numbered = RankSVM(curves="spline", increasing=[0]).fit(X, y, qid=qid)
    assert named.predict(frame).tobytes() == numbered.predict(X).tobytes()
    assert named.model_.term_names == ("bm25", "clicks", "age", "length")
    with pytest.raises(ValueError, match="increasing names 'bm52', which is no feature"):
        RankSVM(curves="spline", increasing=["bm52"]).fit(frame, y, qid=qid)


@pytest.mark.parametrize("n_levels", [1, 2, 5])
def test_levels_are_parts_of_the_distribution(n_levels):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.gamma(1.0, size=500), rng.poisson(0.2, 500), np.ones(500), rng.integers(0, 2, 500)]
    )
    ordered = np.sort(X.T, axis=1)
    levels = Curves.of(level_curves(ordered, n_levels))
    assert levels.feature.tolist() == np.repeat([0, 1, 3], n_levels).tolist()  # 2 is constant
    found = levels.columns(DenseRows(X)).values.reshape(500, 3, n_levels)
    assert found.min() == 0.0
    assert found.max() == 1.0
    for k, j in enumerate((0, 1, 3)):
        t = choose_knots(ordered[j], 200)  # linear between them; by the definition at them
        shares = [((X[:, j] < x).mean() + (X[:, j] <= x).mean()) / 2 for x in t]
        F = np.interp(X[:, j], t, (np.array(shares) - shares[0]) / (shares[-1] - shares[0]))
        np.testing.assert_allclose(found[:, k].sum(axis=1), n_levels * F, atol=0.02)
        at_knots = np.isin(X[:, j], t)
        expected = np.clip(n_levels * F[:, None] - np.arange(n_levels), 0, 1)
        np.testing.assert_allclose(found[at_knots, k], expected[at_knots], atol=1e-12)


def test_interactions_are_the_kernel_and_weigh_the_same_whatever_their_number():
    X, y, qid = problem(n_queries=40)
    X[:, 3] = 1.0
    data = Dataset.of(X, y, qid=qid)
    for n_landmarks in (50, 400):  # of 400 rows
        shape = Shape("quantile", None, n_landmarks, (), (), 0)
        design = shape.fit(data)
        z = design.dataset(data).rows.values[:, len(design.curves) :]
        assert z.shape == (400, n_landmarks)
        assert z.var(axis=0).sum() == pytest.approx(8.0 * 3, rel=1e-3)  # three features vary
    levels = design.nystroem.quantiles.columns(data.rows).values
    distances = ((levels[:, None] - levels) ** 2).sum(axis=2)
    product = z @ z.T
    expected = np.exp(-design.nystroem.gamma * distances)
    np.testing.assert_allclose(product / product[0, 0], expected, atol=2e-3)


def test_domination_chooses_curves_by_its_penalty():
    X, y, qid = problem(n_features=8)
    ranker = DominationRanker(alpha=30.0, curves="spline").fit(X, y, qid=qid)
    assert 0 < ranker.n_nonzero_ < 8
    assert ranker.model_.is_used[0]
    assert ranker.density_ == ranker.n_nonzero_ / 8


def test_a_search_maps_every_fold_by_its_training_part():
    X, y, qid = problem()
    train, valid = np.flatnonzero(qid < 8), np.flatnonzero(qid >= 8)
    options = {"curves": "step", "n_knots": 4, "increasing": [1]}
    search = RankSVMCV([0.001, 1.0], cv=[(train, valid)], scoring="pairwise_accuracy", **options)
    search.fit(X, y, qid=qid)
    for k, C in enumerate((0.001, 1.0)):
        alone = RankSVM(C, tol=1e-4, **options).fit(X[train], y[train], qid=qid[train])
        score = alone.score(X[valid], y[valid], qid=qid[valid])
        assert search.scores_[0, k] == pytest.approx(score, abs=0.02)
    assert isinstance(search.model_, AdditiveModel)
    whole = RankSVM(search.C_, **options).fit(X, y, qid=qid)
    np.testing.assert_allclose(search.predict(X), whole.predict(X), atol=0.05)


def test_validation_data_are_mapped_as_the_training_data():
    X, y, qid = problem()
    ranker = RankSVM(curves="spline", scoring="pairwise_accuracy")
    ranker.fit(X, y, qid=qid, X_val=X, y_val=y, qid_val=qid)
    assert ranker.history_["val_pairwise_accuracy"][-1] == ranker.score(X, y, qid=qid)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"curves": "splines"}, "curves must be None"),
        ({"n_knots": 5}, "curves is None"),
        ({"curves": "spline", "n_knots": 201}, "from 2 to 200"),
        ({"increasing": [0]}, "has no curves"),
        ({"curves": "spline", "interactions": 5, "decreasing": [0]}, "keep no sign"),
        ({"curves": "spline", "increasing": [0], "decreasing": [0]}, "cannot be increasing and"),
        ({"curves": "spline", "increasing": [9]}, "increasing has the column 9"),
        ({"curves": "spline", "scale": "query"}, "does not go with curves"),
        ({"curves": "spline", "positive": True}, "increasing="),
        ({"curves": "spline", "coef_bounds": {0: (0, None)}}, "increasing="),
        ({"interactions": -1}, "interactions must be an integer"),
    ],
)
def test_what_does_not_go_together_is_refused(options, said):
    X, y, qid = problem()
    with pytest.raises(ValueError, match=said):
        RankSVM(**options).fit(X, y, qid=qid)


def test_warm_starts_are_refused():
    X, y, qid = problem()
    ranker = RankSVM(curves="spline", warm_start=True).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="set warm_start=False"):
        ranker.fit(X, y, qid=qid)


@pytest.mark.parametrize("estimator", [RankSVM(), RankSVMCV([0.1, 1.0], cv=3)])
def test_sparse_rows_have_the_curves_of_dense_ones(estimator):
    X, y, qid = problem(n_queries=20)
    estimator.set_params(curves="spline", missing="zero")
    expected = estimator.fit(X, y, qid=qid).predict(X)
    found = estimator.fit(csr_array(X), y, qid=qid)
    assert found.predict(X).tobytes() == expected.tobytes()
    np.testing.assert_allclose(found.predict(csr_array(X)), expected, rtol=1e-12)
    assert found.model_.statistics.low.tolist() == X.min(axis=0).tolist()


def test_sparse_rows_that_memory_cannot_hold_dense_are_refused():
    n = 100_000
    X = csr_array((np.ones(n), np.arange(n), np.arange(n + 1)), shape=(n, 1 << 20))
    with pytest.raises(MemoryError, match=r"sparse rows .* dense, would .*; use a linear model"):
        RankSVM(curves="spline").fit(X, np.arange(n) % 2, qid=np.arange(n) // 10)


# ---- what else models of curves do ---------------------------------------------------------------


def test_the_command_line_trains_inspects_and_scores_curves(tmp_path, cli):
    X, y, qid = problem()
    data = write_svmlight(tmp_path / "data.txt", Dataset.of(X, y, qid=qid))
    model, scores, store = (tmp_path / name for name in ("model.json", "scores", "store"))
    options = papers.flags("--curves", "spline", "--n-knots", "5", "--increasing", "2")
    cli("train", data, model, *options, "--dtype", "float64", "-q")
    cli(f"predict {data} {model} {scores} -q --dtype float64")
    expected = RankSVM(curves="spline", n_knots=5, increasing=[1]).fit(X, y, qid=qid)
    np.testing.assert_allclose(np.loadtxt(scores), expected.predict(X), rtol=1e-9)
    told = cli(f"inspect {model}").out
    assert all(word in told for word in ("additive", "rises", "4 with a curve"))
    report = cli(f"inspect {model} --json").json
    assert report["family"] == "additive"
    assert len(report["curves"][0]["x"]) >= 4
    assert "nothing stands out" in cli(f"check {data} --against {model} -q").out
    cli(f"convert {data} {store} --dtype float64 -q")
    cli("train", store, model, *options, "--memory-limit", "64GB", "-q")
    np.testing.assert_allclose(load_model(model).predict(X), expected.predict(X), atol=1e-3)
    cli(f"train {data} {model} --n-knots 5", status=2)


def test_a_report_on_curves_names_interactions_and_missing_values(tmp_path):
    from linrank import report

    X, y, qid = problem(n_queries=30)
    X[::2, 0] = np.nan
    options = {"interactions": 20, "random_state": 0, "missing": "mean"}
    ranker = RankSVM(C=1e-3, curves="spline", n_knots=3, **options).fit(X, y, qid=qid)
    page = report(Dataset.of(X, y, qid=qid, missing="keep"), model=ranker.model_)
    page.save(tmp_path / "page.html")
    told = (tmp_path / "page.html").read_text()
    assert ">interactions<" in told
    assert ">missing<" in told
    assert "by their value" in told
    assert "difference of its curve" in told
    assert "without the share of each feature" not in told


def test_data_are_checked_against_curves():
    from linrank import check

    X, y, qid = problem(n_queries=40)
    model = RankSVM(curves="step").fit(X, y, qid=qid).model_
    assert len(check(X, model)) == 0
    beyond = X.copy()
    beyond[5, 0] = 99.0
    assert len(check(beyond, model)) == 0  # steps end flat: the score is that of the largest value
    rising = RankSVM(curves="quantile").fit(X, y, qid=qid).model_
    (one,) = check(beyond, rising)
    assert (one.code, one.feature, one.values["worst_row"]) == ("outside-range", "0", 5)
    found = check(X[:, 1:2] * 0.0, rising)
    by_feature = {item.feature: item.code for item in found}
    assert by_feature == {None: "no-signal", "0": "constant"} | dict.fromkeys(
        "123", "missing-feature"
    )
    (lacks,) = [item for item in found if item.feature == "2"]
    low, high = model_range(rising, 2)
    assert lacks.values["weight"] == pytest.approx(high - low)
    assert "has a curve that spans" in lacks.message
    mixed = RankSVM(curves="step", interactions=10, random_state=0).fit(X, y, qid=qid).model_
    assert [item.code for item in check(beyond, mixed)] == ["outside-range"]


def model_range(model, j):
    _, heights = model.curve(j)
    return heights.min(), heights.max()


@pytest.mark.slow
@parametrize_with_checks(
    [RankSVM(curves="quantile"), DominationRanker(curves="step")],
    expected_failed_checks=lambda ranker: {
        f"check_sample_weight_equivalence_on_{kind}_data": "knots are those of rows, not of weights"
        for kind in ("dense", "sparse")
    },
)
def test_estimators_with_curves_are_those_of_scikit_learn(estimator, check):
    check(estimator)
