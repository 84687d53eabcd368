"""Curves in engines: exactly where they compute curves, as steps within the error that is told."""

import json
from functools import cache

import numpy as np
import pandas
import pytest
from databases import DATABASES
from serving import PRECISION, SCORERS, STEPS, exported, scores_in, told_error

from linrank import LinearModel, RankSVM
from linrank.data.curves import Curves
from linrank.data.rows import DenseRows
from linrank.export.steps import as_steps

NAMES = ["bm25", "clicks", "age", "length"]
KINDS = ("quantile", "spline", "step")
ENGINES = [target for target in SCORERS if target not in ("ranklib", "liblinear")]


def rows(seed=0, n_rows=200):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.gamma(1.0, 3.0, n_rows), rng.poisson(1.0, n_rows)])
    X = np.column_stack([X, rng.normal(size=n_rows), rng.uniform(size=n_rows)])
    return X.astype(np.float32).astype(np.float64)


@cache
def fitted(kind, missing="error", **options):
    """A model of rows with gaps, the last feature being that of the query: no pair sees it."""
    X, qid = rows(), np.arange(200) // 10
    y = np.digitize(np.sin(X[:, 0]) + X[:, 1] - np.abs(X[:, 2]), [0.0, 1.0])
    X[:, 3] = X[qid * 10, 3]
    if missing != "error":
        X[::9, 0] = np.nan
    ranker = RankSVM(0.1, curves=kind, n_knots=12, missing=missing, **options)
    return ranker.fit(pandas.DataFrame(X, columns=NAMES), y, qid=qid).model_


def held_out(model):
    """Rows within the range of training, beyond which steps are constant."""
    X = rows(seed=9)
    X[:, :3] = np.clip(X, model.statistics.low, model.statistics.high)[:, :3]
    if model.missing.is_filled:
        X[::7, 0] = np.nan
    return X


def assert_close_up_to_the_error_that_is_told(model, target, **options):
    X = held_out(model)
    error = told_error(exported(model, target, **options))
    off = scores_in(target, model, X, **options) - model.predict(X)
    assert np.ptp(off) <= 2.02 * error + 1e-4  # an order knows no constant
    return error


@pytest.mark.parametrize("missing", ["error", "zero", "mean", "indicator"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("target", "options"), [*((t, {}) for t in ENGINES), ("onnx", {"precision": "float64"})]
)
def test_held_out_rows_have_their_scores_without_what_no_pair_sees(kind, missing, target, options):
    model = fitted(kind, missing)
    artefact = exported(model, target, **options)
    content = b"".join(artefact.files.values())
    assert (b"length" in content) == (target == "onnx")  # which takes the whole row
    if target not in STEPS:
        X, precision = held_out(model), options.get("precision", PRECISION[target])
        room = 1e-4 if precision == "float32" else 1e-12
        found = scores_in(target, model, X, **options)
        np.testing.assert_allclose(found, model.predict(X), rtol=room, atol=room)
    elif missing == "indicator" and kind != "step":
        assert any(f"no value in {target} can have" in text for text in artefact.warnings)
    elif missing != "indicator":
        error = assert_close_up_to_the_error_that_is_told(model, target)
        assert (error == 0.0) == (kind == "step")
        others = [json.loads(file) for name, file in artefact.files.items() if name != "model.json"]
        assert len(others) == (missing == "mean")
        for found in others:  # of features that were missing in training
            assert list(found) == ["bm25"] or [each["name"] for each in found] == ["bm25"]


@pytest.mark.parametrize("target", STEPS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{"steps": 10}, {"steps": 50}, {"tolerance": 0.05}], ids=str)
def test_steps_are_as_many_or_as_good_as_was_asked_for(target, kind, options):
    error = assert_close_up_to_the_error_that_is_told(fitted(kind), target, **options)
    assert error <= 3 * options.get("tolerance", np.inf)
    if target == "solr" and "steps" in options and kind != "step":  # those are exact
        model = json.loads(exported(fitted(kind), "solr", **options).content)
        assert 0 < len(model["params"]["trees"]) <= options["steps"]


def test_sql_gives_no_score_to_rows_that_the_model_refuses():
    model = fitted("spline")
    X = held_out(model)[:3]
    X[1, 2] = np.nan
    query = f"SELECT docid, {exported(model, 'sql').text} FROM documents"
    found = np.array(DATABASES["sqlite"].table(X, NAMES)(query), dtype=np.float64)
    assert np.isnan(found[:, 1]).tolist() == [False, True, False]
    np.testing.assert_allclose(found[::2, 1], model.predict(X[::2]), rtol=1e-12)


def test_interactions_go_to_json_alone():
    model = fitted("quantile", interactions=20, random_state=0)
    X = held_out(model)
    np.testing.assert_allclose(scores_in("json", model, X), model.predict(X), rtol=1e-9, atol=1e-9)
    for target in SCORERS.keys() - {"json"}:
        with pytest.raises(ValueError, match="interactions of features; these have: json"):
            model.export(target)


def test_as_steps_is_within_its_error_on_any_curve():
    rng = np.random.default_rng(0)
    for _ in range(50):
        t = np.sort(rng.choice(100, rng.integers(2, 9), replace=False)).astype(float)
        curves = Curves.of([(0, t, *(rng.normal(size=len(t) + 1) for _ in range(2)))])
        x, y = curves.polyline(0, t[0] - 5.0, t[-1] + 5.0)
        tolerance = float(rng.uniform(0.05, 1.0))
        cuts, heights, error = as_steps(x, y, tolerance)
        assert error <= tolerance * (1 + 1e-6)
        assert (np.diff(cuts) >= 0).all()
        points = np.linspace(t[0] - 5.0, t[-1] + 5.0, 500)
        exact = curves.sums(DenseRows(points[:, None]))
        steps = np.array(heights)[np.searchsorted(cuts, points - 1e-9)]
        is_clear = np.abs(points[:, None] - np.array([*cuts, 1e9])).min(axis=1) > 1e-6
        assert np.abs(exact - steps)[is_clear].max() <= error * (1 + 1e-6) + 1e-6


def test_what_cannot_be_is_refused():
    model, linear = fitted("spline"), LinearModel([1.0], ["a"])
    for exporter, target, options, words in (
        (model, "ranklib", {}, "no way to compute curves; these have: elasticsearch"),
        (model, "liblinear", {}, "no way to compute curves"),
        (model, "solr", {"steps": 5, "tolerance": 0.1}, "not both"),
        (model, "solr", {"tolerance": 0.0}, "without an error"),
        (linear, "solr", {"steps": 5}, "are of curves"),
    ):
        with pytest.raises(ValueError, match=words):
            exporter.export(target, **options)
