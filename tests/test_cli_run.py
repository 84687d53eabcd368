"""``linrank evaluate --qrels --run``, and the runs that ``linrank predict --trec`` writes."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from linrank import Qrels, evaluate, evaluate_run, load_model, load_run, write_qrels
from linrank.cli.main import main

QRELS = "q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a 1\nq3 0 a 1\n"
RUN = "q1 Q0 a 1 3.5 t\nq1 Q0 z 2 2 t\nq2 Q0 b 1 1 t\nq9 Q0 a 1 1 t\n"


@pytest.fixture
def trec(tmp_path):
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "run.txt").write_text(RUN)
    return ["--qrels", str(tmp_path / "qrels.txt"), "--run", str(tmp_path / "run.txt")]


def test_the_table_and_what_was_left_out(trec, cli):
    captured = cli("evaluate", *trec, "-m", "nDCG@10", "-m", "P_5")
    result = evaluate_run(trec[1], trec[3], metrics=["ndcg@10", "p@5"])
    assert captured.out == result.to_text() + "\n"
    assert "convention trec_eval: gain y" in captured.out
    assert "1 query of the run without judgments left out" in captured.err
    assert "1 query of the qrels not in the run: left out; --complete counts them" in captured.err


def test_json_and_complete(trec, cli):
    captured = cli("evaluate", *trec, "--json", "-q", "--complete", "--convention", "linrank")
    report = json.loads(captured.out)
    result = evaluate_run(trec[1], trec[3], convention="linrank", complete=True)
    assert report["metrics"] == dict(result)
    assert (report["qrels"], report["run"]) == (trec[1], trec[3])
    assert (report["queries"], report["rows"], report["convention"]) == (3, 4, "linrank")
    assert captured.err == ""


def test_values_of_every_query(trec, tmp_path, capsys):
    path = tmp_path / "queries.csv"
    assert main(["evaluate", *trec, "-m", "map", "-o", str(path)]) == 0
    rows = list(csv.reader(path.open()))
    assert rows == [["qid", "map"], ["q1", "0.5"], ["q2", "0.0"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--qrels", "q"], "--qrels needs --run"),
        (["--run", "r"], "--run needs --qrels"),
        (["d", "--qrels", "q", "--run", "r"], "take the place of DATA"),
        (["--model", "m", "--qrels", "q", "--run", "r"], "take the place of DATA"),
        (["--qrels", "-", "--run", "-"], "only one of the files can be standard input"),
        (["d", "s", "--complete"], "--complete needs --run"),
        ([], "give DATA and its scores, or --qrels and --run"),
    ],
)
def test_wrong_usage(arguments, message, cli):
    assert message in cli("evaluate", *arguments, status=2).err


def test_wrong_files(trec, tmp_path, cli):
    def error_of(*arguments):
        captured = cli("evaluate", *arguments, status=1)
        assert captured.out == ""
        return captured.err

    assert "this looks like a run" in error_of("--qrels", trec[3], "--run", trec[1])
    assert "Did you mean 'ndcg'" in error_of(*trec, "-m", "ngcd@5")
    other = tmp_path / "other.txt"
    other.write_text("301 Q0 a 1 1 t\n")
    assert "the ids must be the same" in error_of("--qrels", trec[1], "--run", str(other))
    assert "is read and would be overwritten" in error_of(*trec, "-o", trec[1])
    assert "no-such" in error_of("--qrels", trec[1], "--run", str(tmp_path / "no-such"))


def test_from_a_model_to_a_run_and_back(files, tmp_path, capsys):
    """A run that predict wrote has the numbers of the scores themselves."""
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    arguments = ["predict", files["valid"], files["model"], "--trec", "--tag", "mine", "-o"]
    assert main([*arguments, str(run)]) == 0
    data = files["valid_data"]
    docids = [f"d{row}" for row in range(data.n_rows)]
    write_qrels(qrels, Qrels.of(data.qid, docids, data.labels))
    names = ["ndcg@10", "map", "pairwise_accuracy", "err"]
    options = [option for name in names for option in ("-m", name)]
    capsys.readouterr()
    assert main(["evaluate", "--qrels", str(qrels), "--run", str(run), "--json", *options]) == 0
    scores = load_model(files["model"]).predict(data)
    expected = evaluate(
        data.y, scores, qid=data.qid, docid=docids, metrics=names, convention="trec_eval"
    )
    found = json.loads(capsys.readouterr().out)["metrics"]
    assert found == pytest.approx(dict(expected), rel=1e-13)
    assert load_run(run).tag == "mine"
    assert np.isin(scores, load_run(run).scores).all()
