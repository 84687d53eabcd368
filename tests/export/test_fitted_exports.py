"""From training to the engine: estimators and the command line, with data that lack values."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from rounding import bounds, first_inversion
from serving import FILLS_ZERO, PRECISION, SCORERS, columns_of
from test_order import exported

import linrank
from linrank.cli.main import main
from linrank.export.artefact import Artefact

NAMES = ("bm25", "age", "clicks", "length", "links")


def training_data(missing: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    qid = np.repeat(np.arange(30), 10)
    rows = rng.normal(size=(300, 5)) * [1.0, 1e-3, 50.0, 1e4, 1.0] + [3.0, 0.0, 50.0, 2e4, 0.0]
    labels = np.digitize(rows[:, 0] + rows[:, 3] / 1e4 - rows[:, 2] / 50, [3.0, 5.0])
    rows[:, 4] = 1.0  # constant: scaled away, so of no weight
    if missing:
        rows[rng.random(rows.shape) < 0.15] = np.nan
    return rows.astype(np.float32), labels, qid


def status_of(arguments: list[str]) -> object:
    """The exit status; wrong usage leaves by an exception."""
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


def check_order(model, target, artefact, rows):
    computed = SCORERS[target](artefact, columns_of(model, rows)).astype(np.float64)
    added = model.missing.contributions(model.coef)
    terms = np.where(np.isnan(rows), added, model.coef * rows)
    bound = bounds(terms, PRECISION[target])
    assert first_inversion(model.predict(rows), bound, computed) is None


@pytest.mark.parametrize("missing", ["error", "zero", "mean", "indicator"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_a_fitted_ranker_orders_alike_in_every_engine(scale, missing, tmp_path):
    rows, labels, qid = training_data(missing != "error")
    ranker = linrank.RankSVM(scale=scale, missing=missing).fit(rows, labels, qid=qid)
    model = ranker.model_
    if scale != "none" and missing in ("error", "mean"):
        assert model.coef[4] == 0.0  # the constant feature, left out of most artefacts
    model.save(tmp_path / "model.json")
    loaded = linrank.load_model(tmp_path / "model.json")
    for target in SCORERS:
        artefact = exported(ranker, target)
        assert dict(exported(loaded, target).files) == dict(artefact.files)
        if target in FILLS_ZERO and missing in ("mean", "indicator"):
            assert artefact.warnings
        else:
            check_order(model, target, artefact, rows)


def served_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which the last feature is the same within a query, and the second may be missing."""
    rows, labels, qid = training_data(missing=False)
    rows[:, 4] = np.random.default_rng(6).gamma(2.0, size=30)[qid]
    rows[::7, 1] = np.nan
    return rows, labels, qid


@pytest.mark.parametrize("missing", ["zero", "mean", "indicator"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_held_out_rows_keep_their_order_without_what_no_pair_sees(scale, missing):
    rows, labels, qid = served_data()
    train, test = qid < 20, qid >= 20
    table = pandas.DataFrame(rows, columns=NAMES)
    ranker = linrank.RankSVM(scale=scale, missing=missing).fit(
        table[train], labels[train], qid=qid[train]
    )
    assert ranker.coef_[4] == 0.0
    for target in SCORERS:
        artefact = exported(ranker, target)
        if target not in ("onnx",):  # which takes the whole row
            assert b"links" not in b"".join(artefact.files.values())
        told = " ".join(artefact.warnings)
        if target in FILLS_ZERO and missing in ("mean", "indicator"):
            assert "fill in those of 1 of the features" in told
            continue
        check_order(ranker.model_, target, artefact, rows[test])
    defaults = json.loads(exported(ranker, "elasticsearch").files.get("defaults.json", b"{}"))
    assert list(defaults) == ([] if missing == "zero" else ["age"])
    patch = json.loads(exported(ranker, "solr").files.get("features.json", b"[]"))
    assert [each["name"] for each in patch] == list(defaults)


def test_a_model_file_knows_what_was_missing(tmp_path):
    rows, labels, qid = served_data()
    model = linrank.RankSVM(missing="mean").fit(rows, labels, qid=qid).model_
    assert model.missing.absent.tolist() == [False, True, False, False, False]
    model.save(tmp_path / "model.json")
    found = linrank.load_model(tmp_path / "model.json").missing
    np.testing.assert_array_equal(found.absent, model.missing.absent)
    document = json.loads((tmp_path / "model.json").read_text())
    document["absent"] = [0.0, 0.5, 0.0, 0.0, 0.0]
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(
        linrank.ModelFormatError, match="'absent' holds a number other than 0 and 1"
    ):
        linrank.load_model(tmp_path / "model.json")


@pytest.mark.parametrize("target", SCORERS)
def test_the_command_line_writes_what_the_engine_reads(target, tmp_path, capsys):
    rows, labels, qid = training_data(missing=True)
    model = linrank.RankSVM(scale="standard", missing="zero").fit(rows, labels, qid=qid).model_
    named = linrank.LinearModel(model.coef, NAMES, model.scaling, missing=model.missing)
    named.save(tmp_path / "model.json")
    path = tmp_path / "artefact"
    command = ["export", str(tmp_path / "model.json"), "--to", target, "-o", str(path), "-q"]
    assert main(command) == 0
    assert path.is_file()  # of one file: zeros need no defaults beside it
    capsys.readouterr()
    check_order(named, target, Artefact(target, {"model": path.read_bytes()}, ""), rows)


def test_the_command_line_takes_a_feature_map(tmp_path, capsys):
    named = linrank.LinearModel([0.5, 1.0, 2.0, 0.25, 3.0], NAMES)
    named.save(tmp_path / "model.json")
    (tmp_path / "map.txt").write_text("bm25\ttitle score\nlinks\tinlinks\n")
    command = ["export", str(tmp_path / "model.json"), "--to", "es", "-q", "--name", "mine"]
    assert main([*command, "--feature-map", str(tmp_path / "map.txt")]) == 0
    body = json.loads(capsys.readouterr().out)
    weights = json.loads(body["model"]["model"]["definition"])
    assert body["model"]["name"] == "mine"
    assert list(weights) == ["title score", "age", "clicks", "length", "inlinks"]


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--to", "slor"], 2, "'solr'"),
        (["--to", "solr", "--option", "color=red"], 2, "color"),
        (["--to", "solr", "--feature-map", "nowhere.map"], 1, "nowhere.map"),
        (["--to", "solr", "-o", "nowhere/model.json"], 1, "nowhere"),
        (["--to", "solr", "--name", "two words"], 1, "two words"),
    ],
)
def test_the_command_line_says_what_is_wrong(arguments, status, told, tmp_path, capsys):
    linrank.LinearModel([0.5, 1.0], ["a", "b"]).save(tmp_path / "model.json")
    assert status_of(["export", str(tmp_path / "model.json"), *arguments]) == status
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error


def test_the_command_line_takes_the_options_of_a_target(tmp_path, capsys):
    linrank.LinearModel([0.5, 0.25], ["bm25", "age"]).save(tmp_path / "model.json")
    options = ["--option", "table=docs", "--option", "qid=q", "--option", "dialect=mysql"]
    command = ["export", str(tmp_path / "model.json"), "--to", "sql"]
    assert main([*command, "--name", "web", *options]) == 0
    said, told = capsys.readouterr()
    assert "FROM `docs` listed" in said
    assert "PARTITION BY scored.`q`" in said
    assert "web_rank" in told
    assert main([*command, "--option", "dialect=mysq"]) == 1
    assert "did you mean 'mysql'?" in capsys.readouterr().err
