"""``linrank tune``: what it chooses, prints and writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cli_files import write_svmlight
from linrank import AutoRanker
from linrank.cli.main import main
from linrank.data.synthetic import make_ranking
from linrank.io.load import load
from linrank.metrics import evaluate
from linrank.models.linear import load_model

GRID = ["--Cs", "1e-4:1:10"]


def report(cli, *arguments):
    captured = cli("tune", *arguments, "--json", "-q")
    assert captured.err == ""
    return json.loads(captured.out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--solver", "bundle", "--positive"], "--positive needs --solver newton, not bundle"),
        (["--bounds", "1:2"], "is not FEATURE:LOW:HIGH"),
        (["--counting", "avl"], "unknown option --counting"),
    ],
)
def test_options_that_do_not_go_together_are_refused(files, capsys, options, message):
    try:
        code = main(["tune", files["train"], *options])
    except SystemExit as stop:
        code = stop.code
    assert code != 0
    assert message in capsys.readouterr().err


def test_a_validation_file_with_other_features(files, tmp_path, cli):
    valid = files["valid_data"]
    lines = Path(files["valid"]).read_text().splitlines()
    few = [line.rsplit(" 6:", 1)[0] for line in lines]
    (tmp_path / "few.txt").write_text("\n".join(few) + "\n")
    many = [line.replace(" #", " 9:1 #") for line in lines]
    (tmp_path / "many.txt").write_text("\n".join(many) + "\n")
    for name, X in (("few", valid.X * [1, 1, 1, 1, 1, 0]), ("many", valid.X)):
        arguments = [
            "tune",
            files["train"],
            "--Cs",
            "0.1",
            "--valid",
            str(tmp_path / f"{name}.txt"),
        ]
        captured = cli(*arguments, "--json", "-o", tmp_path / "m.json")
        told = json.loads(captured.out)
        coef = load_model(tmp_path / "m.json").coef
        value = evaluate(valid.y, X @ coef, qid=valid.qid, metrics="ndcg@10")["ndcg@10"]
        assert told["score"] == pytest.approx(value)
        assert ("they count nothing" in captured.err) == (name == "many")


def test_the_edge_is_a_note(files, cli):
    err = cli("tune", files["train"], "--Cs", "1e-9,1e-8", "--folds", "2").err
    assert "every C of the grid scores" in err
    assert "of the grid; try" in cli("tune", files["train"], "--Cs", "1e-4,1e2", "--folds", "2").err


def test_the_number_of_threads_changes_nothing(files, cli):
    one, two = (report(cli, files["train"], *GRID, "-j", n) for n in ("1", "2"))
    assert one["path"] == two["path"]


def test_labels_below_zero_are_measured_by_pairs(tmp_path, cli):
    data = make_ranking(n_queries=20, n_features=3, random_state=1)
    path = write_svmlight(tmp_path / "signed.txt", data)
    lines = [line.split(" ", 1) for line in Path(path).read_text().splitlines()]
    text = "".join(f"{float(label) - 1:g} {rest}\n" for label, rest in lines)
    Path(path).write_text(text)
    captured = cli("tune", path, "--Cs", "0.1,1", "--json")
    assert json.loads(captured.out)["scoring"] == "pairwise_accuracy"
    assert "ndcg is left out" in captured.err


def test_too_few_iterations_end_with_3(files, tmp_path, cli):
    model = str(tmp_path / "m.json")
    options = ["--Cs", "100", "--max-iter", "1", "-e", "1e-12", "-o", model]
    assert "did not converge" in cli("tune", files["train"], *options, status=3).err
    assert load_model(model).training["converged"] is False


def test_the_usual_grid(files, cli):
    told = report(cli, files["train"], "--folds", "2")
    assert_allclose(told["path"]["C"], 2.0 ** np.arange(-10, 15) / 40)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: DATA"),
        (["d", "--Cs=-2^2"], "must be finite and > 0, got -2^2"),
        (["d", "--folds", "1"], "argument --folds: must be an integer ≥ 2, got '1'"),
        (["d", "--folds", "3", "--valid", "v"], "--folds excludes --valid"),
        (["-", "--valid", "-"], "only one of the files can be standard input"),
        (["d", "-o", "-", "--json"], "exclude each other"),
        (["d", "--selection", "one_se", "--valid", "v"], "that needs the spread over folds"),
    ],
)
def test_wrong_usage_ends_with_2(arguments, message, cli):
    captured = cli("tune", *arguments, status=2)
    assert message in captured.err
    assert captured.out == ""


def test_bad_values_end_with_1(files, tmp_path, cli):
    nowhere = str(tmp_path / "nowhere" / "m.json")
    for arguments, message in [
        ([str(tmp_path / "none.txt")], "No such file"),
        ([files["train"], "--valid", str(tmp_path / "none.txt")], "No such file"),
        ([files["train"], "-o", nowhere], "there is no folder"),
        ([files["train"], "-o", files["train"]], "would be overwritten"),
        ([files["train"], "-m", "accurracy"], "accurracy"),
        ([files["train"], "--convention", "mine"], "mine"),
        ([files["train"], "--folds", "41"], "40 queries cannot fill 41 folds"),
    ]:
        captured = cli("tune", *arguments, status=1)
        assert message in captured.err.splitlines()[-1]


def test_auto_does_what_the_estimator_does(files, tmp_path, cli):
    model = str(tmp_path / "m.json")
    options = ["--method", "auto", "--folds", "3", "-m", "ndcg@5", "--seed", "0"]
    told = report(cli, files["train"], *options, "-o", model)
    data = load(files["train"])
    truth = AutoRanker("ndcg@5", cv=3, random_state=0).fit(data.X, data.y, qid=data.qid)
    assert told["score"] == pytest.approx(truth.best_score_)
    assert (told["chosen"], told["model"]) == (truth.best_params_["model"], model)
    assert_allclose(load_model(model).predict(data.X), truth.predict(data.X), rtol=1e-9)
