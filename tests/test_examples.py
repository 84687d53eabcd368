"""The scripts of examples/ run as a user runs them, and show what they are to show."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linrank

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/run.py"))


def run(name: str, *arguments: object) -> str:
    """What the script of the example prints, run in this process to save the imports."""
    path, said = EXAMPLES / name / "run.py", io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        runpy.run_path(str(path), run_name="__main__")
    return said.getvalue()


def number(pattern: str, text: str) -> float:
    found = re.search(pattern + r"\s+(-?\d[\d.e+-]*)", text)
    assert found is not None, f"no {pattern} in\n{text}"
    return float(found[1])


def test_clicks_to_engine(tmp_path):
    """Weighted clicks beat clicks as they are on true relevance, in every world, and by the log."""
    text = run("clicks_to_engine", tmp_path, "--seeds", 3)
    rows = [
        [float(x) for x in re.findall(r"[+-]?\d+\.\d+", line)]
        for line in text.splitlines()
        if re.match(r"\| \d", line)
    ]
    assert len(rows) == 3
    for production, naive, ips, grades, gain, error, true_gain in rows:
        assert production + 0.1 < naive
        assert naive + 0.02 < ips  # 0.028 to 0.057 over ten seeds
        assert ips > grades - 0.01  # nearly as good as if relevance were known
        assert gain > 4 * error
        assert abs(gain - true_gain) < 0.03
    check_order(tmp_path)


def check_order(folder: Path) -> None:
    """Both artefacts order any rows as the model does, by weights alone."""
    model = linrank.load_model(folder / "model.json")
    solr = json.loads((folder / "solr.json").read_text())["params"]["weights"]
    body = json.loads((folder / "elasticsearch.json").read_text())
    elastic = json.loads(body["model"]["model"]["definition"])
    assert list(solr) == list(elastic)
    assert list(solr)[:2] == ["title_match", "body_match"]
    X = np.random.default_rng(0).gamma(2.0, size=(500, len(solr)))
    scores = model.predict(X)
    for weights in (solr, elastic):
        assert np.array_equal(np.argsort(X @ list(weights.values())), np.argsort(scores))
    for name in ("solr", "elasticsearch"):
        assert "curl" in (folder / f"{name}.README.txt").read_text()


def test_click_log_to_model(tmp_path):
    """Joined by names, clicks rank better with propensities; command and library agree."""
    pytest.importorskip("pyarrow")
    text = run("click_log_to_model", tmp_path)
    assert re.search(r"warning: .* records \(\d\S* %\) have no row in the data", text)
    names = ("production", "clicks as they are", "clicks by inverse propensities", "of the command")
    production, naive, weighted, command = (number(rf"ndcg@10 {name}:", text) for name in names)
    assert production + 0.1 < naive
    assert naive + 0.02 < weighted
    assert abs(weighted - command) < 2e-4
    assert number("query_idf, the same within each query:", text) == 0.0
    assert len((tmp_path / "propensities.txt").read_text().split()) == 10


def test_parquet_to_solr(tmp_path):
    """The files alone score as the model does, nulls included."""
    pytest.importorskip("pyarrow")
    text = run("parquet_to_solr", tmp_path)
    assert "features: bm25_title, bm25_body, popularity, age_days, rating, price\n" in text
    test, in_solr = (re.search(rf"{name}: +(.*)", text)[1] for name in ("test", "in Solr"))
    assert test == in_solr
    assert number(r"ndcg@10", test) > 0.9
    patch = json.loads((tmp_path / "solr" / "features.json").read_text())
    assert {"rating", "price"} <= {feature["name"] for feature in patch}


def test_optuna_search():
    """The search does not end below the defaults, which are its first trial."""
    pytest.importorskip("optuna")
    text = run("optuna_search", "--trials", 12)
    assert re.search(r"^12 trials, [1-9]\d* of them cut short$", text, re.MULTILINE)
    default, chosen = (number(rf"over folds, {name}", text) for name in ("default", "chosen"))
    assert chosen >= default
    assert number("other queries, chosen", text) > 0.65  # 0.58 for a random order


@pytest.mark.slow
def test_mlflow_tracking(tmp_path):
    """What was logged is found again and scores as it did, by linrank and by onnxruntime."""
    for package in ("mlflow", "onnx", "onnxruntime"):
        pytest.importorskip(package)
    # The tables of a database take ten times as long to make as all the rest.
    where = {"MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    source = str(Path(linrank.__file__).resolve().parent.parent)
    command = [sys.executable, str(EXAMPLES / "mlflow_tracking" / "run.py"), str(tmp_path)]
    # Apart: the package leaves threads and settings behind.
    env = {**os.environ, "PYTHONPATH": source, **where}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert re.search(r"^chosen: C = 1?e?[\d.e-]+, data crc32c:[0-9a-f]{8}$", text, re.MULTILINE)
    assert number(r"ndcg@10", text) > 0.7
    assert number(r"largest score:", text) < 1e-6
    models = list((tmp_path / "artifacts").glob("*/artifacts/model/*"))
    assert sorted(path.name for path in models) == sorted(
        3 * ["model.json", "model.onnx", "model.README.txt"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_told_of_and_tested(name):
    assert f"def test_{name}(" in Path(__file__).read_text()
    for page in (EXAMPLES / "README.md", ROOT / "docs" / "examples.md"):
        assert f"examples/{name}" in page.read_text()


def test_the_gallery_is_short():
    """`make docs` runs it; here its promise is kept: at most 40 lines of code below a title."""
    files = sorted((EXAMPLES / "gallery").glob("*.py"))
    assert len(files) >= 20
    for path in files:
        head, code = path.read_text().removeprefix('"""\n').split('"""\n', 1)
        assert re.match(r"[^\n]+\n=+\n\n\S", head), path.name
        assert sum(bool(line.strip()) for line in code.splitlines()) <= 40, path.name
