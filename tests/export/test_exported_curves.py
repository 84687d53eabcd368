"""Curves in engines: exactly where they compute curves, as steps within the error that is told."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas
import pytest
from databases import DuckDB, SQLite
from serving import in_onnx, in_sql, in_vespa

from linrank import LinearModel, RankSVM
from linrank.cli.main import main
from linrank.data.curves import Curves
from linrank.data.rows import DenseRows
from linrank.errors import ExportWarning
from linrank.export.steps import as_steps

NAMES = ["bm25", "clicks", "age", "length"]
KINDS = ("quantile", "spline", "step")
MISSING = ("error", "mean", "indicator")


def rows(seed=0, n_rows=200):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.gamma(1.0, 3.0, n_rows), rng.poisson(1.0, n_rows)])
    X = np.column_stack([X, rng.normal(size=n_rows), rng.uniform(size=n_rows)])
    return X.astype(np.float32).astype(np.float64)


def fitted(kind, missing="error", **options):
    X = rows()
    y = np.digitize(np.sin(X[:, 0]) + X[:, 1] - np.abs(X[:, 2]), [0.0, 1.0])
    if missing != "error":
        X[::9, 0] = np.nan
    ranker = RankSVM(0.1, curves=kind, missing=missing, n_knots=12, **options)
    model = ranker.fit(X, y, qid=np.arange(len(X)) // 10).model_
    return type(model)(
        model.curves,
        NAMES,
        model.training,
        missing=model.missing,
        statistics=model.statistics,
        interactions=model.interactions,
    )


def exported(model, target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        return model.export(target, **options)


def fresh(model, seed=7):
    X = rows(seed)
    if model.missing.is_filled:
        X[::7, 0] = np.nan
    return X


def columns_of(X):
    return dict(zip(NAMES, X.T, strict=True))


CASES = [(kind, missing) for kind in KINDS for missing in MISSING]


@pytest.mark.parametrize(("kind", "missing"), CASES)
@pytest.mark.parametrize("database", [SQLite(), DuckDB()], ids=["sqlite", "duckdb"])
def test_sql_scores_exactly(kind, missing, database):
    model = fitted(kind, missing)
    X = fresh(model)
    query = database.table(X, NAMES)
    found = query(f"SELECT docid, {exported(model, 'sql').text} FROM documents")
    scores = np.array([score for _, score in sorted(found)])
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-12, atol=1e-12)
    ranked = query(exported(model, "sql", table="documents", qid="qid").text)
    assert len(ranked) == len(X)


def test_sql_gives_no_score_to_rows_that_the_model_refuses():
    model = fitted("spline")
    X = rows()[:3]
    X[1, 3] = np.nan
    found = SQLite().table(X, NAMES)(f"SELECT docid, {exported(model, 'sql').text} FROM documents")
    assert [score is None for _, score in sorted(found)] == [False, True, False]


@pytest.mark.parametrize(("kind", "missing"), CASES)
def test_vespa_scores_exactly(kind, missing):
    model = fitted(kind, missing)
    X = fresh(model)
    features = {name: f"attribute({name})" for name in NAMES}
    artefact = exported(model, "vespa", feature_map=features)
    served = {features[name]: x for name, x in columns_of(X).items()}
    np.testing.assert_allclose(in_vespa(artefact, served), model.predict(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kind", "missing"), CASES)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_onnx_scores_exactly(kind, missing, precision):
    model = fitted(kind, missing)
    X = fresh(model)
    found = in_onnx(exported(model, "onnx", precision=precision), columns_of(X))
    room = 1e-4 if precision == "float32" else 1e-12
    np.testing.assert_allclose(found, model.predict(X), rtol=room, atol=room)


def by_json(document, row):
    """The score of a row of values by column, as the text of the format defines it."""

    def curve(f, x):
        p = sum(t < x for t in f["knots"])
        return f["values"][p] + f["slopes"][p] * (x - (f["knots"] or [0.0])[max(p - 1, 0)])

    score = 0.0
    for f in document["features"]:
        x = row[f["column"]]
        score += f["missing"] if np.isnan(x) else curve(f, x)
    term = document.get("interactions")
    if term is not None:
        q = np.array([curve(f, row[f["column"]]) for f in term["quantiles"]])
        distances = ((np.array(term["landmarks"]) - q) ** 2).sum(axis=1)
        score += float(np.exp(-term["gamma"] * distances) @ term["coef"])
    return score


@pytest.mark.parametrize(("kind", "missing"), CASES)
def test_json_is_the_model(kind, missing):
    model = fitted(kind, missing)
    X = fresh(model)
    document = json.loads(exported(model, "json").content)
    assert document["format"] == "linrank-curves"
    found = [by_json(document, row) for row in X]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-12, atol=1e-12)


def test_interactions_go_to_json_alone():
    model = fitted("quantile", interactions=20, random_state=0)
    X = fresh(model)
    document = json.loads(exported(model, "json").content)
    found = [by_json(document, row) for row in X]
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9, atol=1e-9)
    for target in ("sql", "onnx", "solr", "elasticsearch", "vespa", "ranklib"):
        with pytest.raises(ValueError, match="interactions of features; these have: json"):
            model.export(target)


# ---- steps --------------------------------------------------------------------------------------


def by_solr(artefact, columns):
    """Trees as Solr walks them: left up to the threshold and a slack of 1e-6."""
    document = json.loads(artefact.content)
    assert document["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    score = np.zeros(len(next(iter(columns.values()))), dtype=np.float32)
    for tree in document["params"]["trees"]:
        root = tree["root"]
        x = columns[root["feature"]].astype(np.float32)
        threshold = np.float32(root["threshold"]) + np.float32(1e-6)
        leaf = np.where(x <= threshold, root["left"]["value"], root["right"]["value"])
        score += np.float32(tree["weight"]) * leaf.astype(np.float32)
    return score


def by_plugin(artefact, columns):
    """Trees as the plugin walks them: left below the condition."""
    model = json.loads(artefact.content)["model"]["model"]
    assert model["type"] == "model/xgboost+json"
    score = np.zeros(len(next(iter(columns.values()))), dtype=np.float32)
    for tree in json.loads(model["definition"]):
        below, above = tree["children"]
        assert (tree["yes"], tree["no"]) == (below["nodeid"], above["nodeid"])
        x = columns[tree["split"]].astype(np.float32)
        leaf = np.where(np.float32(tree["split_condition"]) > x, below["leaf"], above["leaf"])
        assert min(below["leaf"], above["leaf"]) == 0.0
        score += leaf.astype(np.float32)
    return score


def told_error(artefact):
    """The largest error of a score, as the warnings tell it."""
    found = [re.search(r"a score is at most (\S+) off", text) for text in artefact.warnings]
    return max((float(match[1]) for match in found if match), default=0.0)


ENGINES = {"solr": by_solr, "elasticsearch": by_plugin, "opensearch": by_plugin}


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"steps": 50}, {"tolerance": 0.05}], ids=str)
def test_steps_keep_the_order_up_to_the_error_that_is_told(target, kind, options):
    model = fitted(kind)
    X = np.clip(rows(seed=9), model.statistics.low, model.statistics.high)
    artefact = exported(model, target, **options)
    computed = ENGINES[target](artefact, columns_of(X)).astype(np.float64)
    scores, error = model.predict(X), told_error(artefact)
    off = (computed - scores) - (computed - scores).mean()
    assert np.ptp(computed - scores) <= 2.02 * error + 1e-4
    assert np.abs(off).max() <= 2.02 * error + 1e-4
    if kind == "step" and not options:
        assert error == 0.0
        assert np.array_equal(np.argsort(scores), np.argsort(np.round(computed, 4)))
    if "tolerance" in options and kind != "step":
        assert error <= 4 * 0.05


def test_a_number_of_steps_is_kept():
    model = fitted("quantile")
    for n in (10, 100):
        trees = json.loads(exported(model, "solr", steps=n).content)["params"]["trees"]
        assert 0 < len(trees) <= n


def test_missing_values_have_their_defaults():
    artefact = exported(fitted("spline", "mean"), "solr")
    defaults = json.loads(artefact.files["features.json"])
    assert [each["name"] for each in defaults] == ["bm25"]  # the others were never missing
    artefact = exported(fitted("spline", "indicator"), "elasticsearch")
    assert any("no value in elasticsearch can have" in text for text in artefact.warnings)


def query_fitted(kind, missing):
    """A model of a feature that is the same on all rows of a query, one that may be missing."""
    X, qid = rows(), np.arange(200) // 10
    y = np.digitize(np.sin(X[:, 0]) + X[:, 1] - np.abs(X[:, 2]), [0.0, 1.0])
    X[:, 3] = X[qid * 10, 3]
    X[::9, 0] = np.nan
    table = pandas.DataFrame(X, columns=NAMES)
    return RankSVM(0.1, curves=kind, n_knots=12, missing=missing).fit(table, y, qid=qid).model_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["zero", "mean"])
def test_every_engine_orders_held_out_rows_without_what_no_pair_sees(kind, missing):
    model = query_fitted(kind, missing)
    X = np.clip(rows(seed=9), model.statistics.low, model.statistics.high)
    X[:, 3] = rows(seed=9)[:, 3]
    X[::7, 0] = np.nan
    scores, kept = model.predict(X), NAMES[:3]
    columns = {name: x for name, x in columns_of(X).items() if name in kept}
    for target, precision in (("vespa", 1e-12), ("onnx", 1e-4), ("sql", 1e-12)):
        of = {name: f"attribute({name})" if target == "vespa" else name for name in NAMES}
        artefact = exported(model, target, feature_map=of)
        scorer = {"vespa": in_vespa, "onnx": in_onnx, "sql": in_sql}[target]
        given = columns_of(X) if target == "onnx" else columns  # ONNX takes the whole row
        found = scorer(artefact, {of[name]: x for name, x in given.items()})
        np.testing.assert_allclose(found, scores, rtol=precision, atol=precision)
    document = json.loads(exported(model, "json").content)
    assert [each["name"] for each in document["features"]] == kept
    np.testing.assert_allclose([by_json(document, row) for row in X], scores, rtol=1e-12)
    for target, scorer in ENGINES.items():
        artefact = exported(model, target)
        files = {name: json.loads(content) for name, content in artefact.files.items()}
        defaults = files.get("defaults.json") or {
            each["name"]: float(each["params"]["defaultValue"])
            for each in files.get("features.json", [])
        }
        assert list(defaults) == (["bm25"] if missing == "mean" else [])
        served = {
            name: np.nan_to_num(x, nan=defaults.get(name, 0.0)) for name, x in columns.items()
        }
        off = scorer(artefact, served) - scores
        assert np.ptp(off) <= 2.02 * told_error(artefact) + 1e-4


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


# ---- what is refused ----------------------------------------------------------------------------


def test_what_cannot_be_is_refused():
    model = fitted("spline")
    for target in ("ranklib", "liblinear", "ranklib"):
        with pytest.raises(ValueError, match="no way to compute curves; these have: elasticsearch"):
            model.export(target)
    with pytest.raises(ValueError, match="not both"):
        model.export("solr", steps=5, tolerance=0.1)
    with pytest.raises(ValueError, match="without an error"):
        model.export("solr", tolerance=0.0)
    with pytest.raises(ValueError, match="are of curves"):
        LinearModel([1.0], ["a"]).export("solr", steps=5)


def test_the_command_line_exports_curves(tmp_path, capsys):
    path = str(tmp_path / "model.json")
    fitted("spline").save(path)
    assert main(["export", path, "--to", "solr", "--option", "steps=40", "-q"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["params"]["trees"]) <= 40
    assert "a score is at most" in err
