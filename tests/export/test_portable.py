"""Trained models and the command line: the same order by every target that computes anywhere."""

import json
import sqlite3

import numpy as np
import onnxruntime
import pytest
from portable_models import KINDS

import linrank
from linrank.cli.main import main

NAMES = ("bm25", "title length", "clicks", "age")


def by_onnx(artefact, X):
    session = onnxruntime.InferenceSession(artefact.content)
    return session.run(["score"], {"X": X})[0][:, 0]


def by_sql(artefact, X):
    connection = sqlite3.connect(":memory:")
    columns = ", ".join(f'"{name}" REAL' for name in NAMES)
    connection.execute(f"CREATE TABLE t ({columns})")
    rows = np.where(np.isnan(X), None, X).tolist()
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    found = connection.execute(f"SELECT {artefact.text} FROM t ORDER BY rowid").fetchall()
    return np.array(found)[:, 0]


def by_json(artefact, X):
    features = json.loads(artefact.text)["features"]
    places = [NAMES.index(feature["name"]) for feature in features]
    weights = [feature["weight"] for feature in features]
    missing = [feature["missing"] or 0.0 for feature in features]
    chosen = X[:, places]
    return np.where(np.isnan(chosen), missing, chosen * weights).sum(axis=1)


SCORERS = {"onnx": by_onnx, "sql": by_sql, "json": by_json}


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_target_scores_as_a_trained_model(kind, scale):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 4)) * [1.0, 30.0, 0.01, 1.0] + [5.0, 0.0, 0.0, 2e4]
    y = (X[:, 0] + X[:, 1] / 30 + rng.normal(size=80) > 5).astype(int)
    if kind != "error":
        X[rng.random(X.shape) < 0.2] = np.nan
    qid = np.repeat(np.arange(8), 10)
    ranker = linrank.RankSVM(scale=scale, missing=kind).fit(X, y, qid=qid)
    renamed = dict(enumerate(NAMES))
    expected = ranker.predict(X)
    scores = np.abs(np.nan_to_num(X) * ranker.coef_).sum(axis=1) + np.abs(expected)
    for target, scorer in SCORERS.items():
        options = {"precision": "float64"} if target == "onnx" else {}
        found = scorer(ranker.export(target, feature_map=renamed, **options), X)
        assert (np.abs(found - expected) <= 1e-13 * scores).all(), target


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.json"
    linrank.LinearModel([0.5, 0.25], ["bm25", "age"]).save(path)
    return str(path)


def test_the_command_line_takes_the_options_of_a_target(saved, capsys):
    options = ["--option", "table=docs", "--option", "qid=q", "--option", "dialect=mysql"]
    assert main(["export", saved, "--to", "sql", "--name", "web", *options]) == 0
    said, told = capsys.readouterr()
    assert "FROM `docs` listed" in said
    assert "PARTITION BY scored.`q`" in said
    assert "web_rank" in told


def test_the_command_line_writes_a_graph(saved, tmp_path):
    path = tmp_path / "web.onnx"
    assert (
        main(["export", saved, "--to", "onnx", "-o", str(path), "--option", "precision=float64"])
        == 0
    )
    (found,) = onnxruntime.InferenceSession(path).run(None, {"X": np.array([[2.0, 4.0]])})
    assert found.tolist() == [[2.0]]
    assert '"web.onnx"' in (tmp_path / "web.README.txt").read_text()


def test_the_command_line_says_what_is_wrong(saved, capsys):
    assert main(["export", saved, "--to", "sql", "--option", "dialect=mysq"]) == 1
    assert "did you mean 'mysql'?" in capsys.readouterr().err
