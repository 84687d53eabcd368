"""``linrank evaluate --qrels --run``, and the runs that ``linrank predict --trec`` writes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from linrank import Qrels, evaluate, evaluate_run, load_model, load_run, write_qrels

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


def test_values_of_every_query(trec, tmp_path, cli):
    path = tmp_path / "queries.csv"
    cli("evaluate", *trec, "-m", "map", "-o", path)
    assert path.read_text() == "qid,map\nq1,0.5\nq2,0.0\n"


def test_from_a_model_to_a_run_and_back(files, tmp_path, cli):
    """A run that predict wrote has the numbers of the scores themselves."""
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    cli(f"predict {files['valid']} {files['model']} --trec --tag mine -o {run}")
    data = files["valid_data"]
    docids = [f"d{row}" for row in range(data.n_rows)]
    write_qrels(qrels, Qrels.of(data.qid, docids, data.labels))
    names = ["ndcg@10", "map", "pairwise_accuracy", "err"]
    line = f"evaluate --qrels {qrels} --run {run} --json -m {','.join(names)}"
    found, scores = cli(line).json["metrics"], load_model(files["model"]).predict(data)
    how = {"docid": docids, "metrics": names, "convention": "trec_eval"}
    expected = evaluate(data.y, scores, qid=data.qid, **how)
    assert found == pytest.approx(dict(expected), rel=1e-13)
    assert load_run(run).tag == "mine"
    assert np.isin(scores, load_run(run).scores).all()
