"""``linrank report``: what it writes and says, what it refuses, what an interrupt leaves."""

from __future__ import annotations

import json
import os

import pytest

from cli_files import write_svmlight
from linrank.cli.main import main
from linrank.data.synthetic import make_ranking

QUICK = ["--Cs", "1e-4:1e-2:10"]


@pytest.fixture
def output(tmp_path):
    return str(tmp_path / "report.html")


def failure(capsys, *arguments):
    """Exit status and the last line on standard error."""
    status = main(["report", *arguments])
    return status, capsys.readouterr().err.strip().split("\n")[-1]


def test_it_trains_and_writes_a_page(files, output, cli):
    names = files["folder"] / "names.txt"
    names.write_text("one\ntwo\nthree\nfour\nfive\nsix <b>\n\n")
    options = ["--train", files["train"], "--names", str(names), "--title", "A & B"]
    captured = cli("report", files["valid"], *options, *QUICK, "-o", output)
    assert captured.out == ""
    assert f"wrote     {output}, " in captured.err
    with open(output, encoding="utf-8") as file:
        page = file.read()
    assert "<h1>A &amp; B</h1>" in page
    assert "six &lt;b&gt;" in page
    assert "How far the objective" in page


def test_the_json_summary_has_the_same_numbers_as_evaluate(files, output, cli):
    options = ["--model", files["model"], "--against", files["scores"], "--json", "-q"]
    captured = cli("report", files["valid"], *options, "-o", output)
    told = json.loads(captured.out)
    assert captured.err == ""
    assert (told["command"], told["output"]) == ("report", output)
    assert told["bytes"] == os.path.getsize(output) < 3_000_000
    assert told["model"]["name"] == "model"
    assert told["against"]["name"] == "scores"
    means = cli("evaluate", files["valid"], "--model", files["model"], "--json").json["metrics"]
    for name, cells in told["comparison"]["metrics"].items():
        assert cells["methods"]["model"]["mean"] == pytest.approx(means[name])
        assert cells["methods"]["model"]["difference"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.usefixtures("plain")
def test_the_page_can_go_to_standard_output(files, cli):
    assert cli("report", files["valid"], "--model", files["model"], "-q", "-o", "-").out.startswith(
        "<!doctype html>"
    )


@pytest.mark.usefixtures("plain")
def test_training_queries_in_the_test_data_are_told(files, output, capsys):
    assert main(["report", files["train"], "--train", files["train"], *QUICK, "-o", output]) == 0
    with open(output, encoding="utf-8") as file:
        assert "40 of the 40 queries of the test data are in the training data too" in file.read()
    assert "linrank: warning: 40 of the 40 queries of the test data are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --model MODEL to judge, or --train DATA"),
        (
            ["--valid", "{valid}", "--model", "{model}"],
            "--valid needs --train: it is what C is chosen on",
        ),
        (["--model", "{model}", "--Cs", "1"], "--Cs excludes --model"),
        (["--model", "{model}", "--scale", "none"], "--scale excludes --model"),
        (
            ["--train", "{train}", "--folds", "1"],
            "argument --folds: must be an integer ≥ 2, got '1'",
        ),
        (["--train", "{train}", "--valid", "{valid}", "--folds", "3"], "--folds excludes --valid"),
        (["--train", "-", "--model", "-"], "only one of the files can be standard input"),
        (
            ["--model", "{model}", "--json", "-o", "-"],
            "--json and FILE would both be written to standard output",
        ),
    ],
)
def test_wrong_usage_is_told(files, capsys, options, message):
    status, line = failure(capsys, files["valid"], *(o.format(**files) for o in options))
    assert status == 2
    assert message in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "{train}"], "train.txt:1: expected one finite score"),
        (["--model", "nowhere.json"], "nowhere.json: No such file"),
        (["--model", "{model}", "-o", "nowhere/report.html"], "there is no folder"),
        (["--model", "{model}", "-o", "{model}"], "is read and would be overwritten"),
        (["--model", "{model}", "-m", "ndgc@10"], "Did you mean 'ndcg'?"),
        (["--model", "{model}", "--names", "{scores}"], ""),
        (["--model", "{model}", "--convention", "letr"], "unknown convention 'letr'"),
        (["--model", "{model}", "--against", "{narrow}"], "scores of shape (2,)"),
        (["--train", "{wide}"], "has 6 features"),
    ],
)
def test_bad_files_and_values_are_told(files, tmp_path, capsys, options, message):
    narrow = tmp_path / "narrow.txt"
    narrow.write_text("1\n2\n")
    wide = make_ranking(n_queries=10, n_features=9, random_state=0)
    names = {**files, "narrow": str(narrow), "wide": write_svmlight(tmp_path / "wide.txt", wide)}
    where = [] if "-o" in options else ["-o", str(tmp_path / "report.html")]
    chosen = [option.format(**names) for option in options]
    if not message:  # more names than features are no error
        assert main(["report", files["valid"], *chosen, *where]) == 0
        return
    status, line = failure(capsys, files["valid"], *chosen, *where)
    assert status == 1
    assert message in line
    assert not (tmp_path / "report.html").exists()


def test_a_name_that_is_missing_is_told(files, tmp_path, capsys):
    names = tmp_path / "names.txt"
    names.write_text("one\n\nthree\n")
    options = ["--model", files["model"], "--names", str(names), "-o", str(tmp_path / "r.html")]
    status, line = failure(capsys, files["valid"], *options)
    assert status == 1
    assert "names.txt:2: a name is missing" in line
