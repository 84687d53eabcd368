"""``linrank report``: what it writes and says."""

from __future__ import annotations

import json
import os

import pytest

QUICK = "--Cs 1e-4:1e-2:10"


def test_it_trains_and_writes_a_page(files, tmp_path, cli):
    names, output = tmp_path / "names.txt", tmp_path / "report.html"
    names.write_text("one\ntwo\nthree\nfour\nfive\nsix <b>\n\n")
    line = f"report {{valid}} --train {{train}} --names {names} --title 'A & B' {QUICK} -o {output}"
    out, err = cli(line, **files)
    assert out == ""
    assert f"wrote     {output}, " in err
    page = output.read_text("utf-8")
    assert "<h1>A &amp; B</h1>" in page
    assert "six &lt;b&gt;" in page
    assert "How far the objective" in page


def test_the_json_summary_has_the_same_numbers_as_evaluate(files, tmp_path, cli):
    output = str(tmp_path / "report.html")
    line = "report {valid} --model {model} --against {scores} --json -q -o " + output
    out, err = cli(line, **files)
    told = json.loads(out)
    assert err == ""
    assert (told["command"], told["output"]) == ("report", output)
    assert told["bytes"] == os.path.getsize(output) < 3_000_000
    assert told["model"]["name"] == "model"
    assert told["against"]["name"] == "scores"
    means = cli("evaluate {valid} --model {model} --json", **files).json["metrics"]
    for name, cells in told["comparison"]["metrics"].items():
        assert cells["methods"]["model"]["mean"] == pytest.approx(means[name])
        assert cells["methods"]["model"]["difference"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.usefixtures("plain")
def test_the_page_can_go_to_standard_output(files, cli):
    """More names than features are no error."""
    out = cli("report {valid} --model {model} --names {scores} -q -o -", **files).out
    assert out.startswith("<!doctype html>")


@pytest.mark.usefixtures("plain")
def test_training_queries_in_the_test_data_are_told(files, tmp_path, cli):
    output = tmp_path / "report.html"
    err = cli(f"report {{train}} --train {{train}} {QUICK} -o {output}", **files).err
    told = "40 of the 40 queries of the test data are"
    assert f"{told} in the training data too" in output.read_text("utf-8")
    assert f"linrank: warning: {told}" in err
