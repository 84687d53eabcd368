"""The command line: what it prints and writes, with the numbers of the library."""

import csv
import json
import os
from dataclasses import replace

import numpy as np
import pytest

from cli_files import write_svmlight
from linrank import Qrels, evaluate, evaluate_run, load_model, load_run, write_qrels
from linrank.cli.main import COMMANDS, main
from linrank.data.missing import Missing
from linrank.data.rows import DenseRows
from linrank.data.synthetic import make_ranking
from linrank.io.load import load
from linrank.models.linear import LinearModel

# ---- help and usage -----------------------------------------------------------------------------


def test_alone_it_prints_help(cli):
    out = cli("").out
    for command in COMMANDS:
        assert command in out
    assert "exit status" in out


def test_version(cli):
    from linrank import __version__

    assert cli("--version").out == f"linrank {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, cli):
    assert f"usage: linrank {command}" in cli(command, "--help").out


# ---- train --------------------------------------------------------------------------------------


def test_train_summary_on_stderr(files, tmp_path, cli):
    out, err = cli("train {train} {out} --valid {valid} -v", **files, out=tmp_path / "m.json")
    assert out == ""
    data = files["train_data"]
    assert f"{data.n_rows:,} rows, 40 queries, {data.queries.n_pairs:,} pairs" in err
    words = "trained", "objective", "above the minimum", "converged", "ndcg@10", "saved"
    for word in (*words, "iteration   1  objective"):
        assert word in err


def test_a_bound_that_says_nothing_is_no_number(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("linrank.ranksvm.train.CERTIFIED", 0)  # as of data so large
    data = make_ranking(n_queries=30, n_features=6, random_state=1)
    data = replace(data, rows=DenseRows(data.X * np.logspace(-3, 3, 6, dtype=np.float32)))
    path, model = write_svmlight(tmp_path / "raw.txt", data), str(tmp_path / "m.json")

    def lines(*options):
        main(["train", path, model, "--scale", "none", "-c", "1", *options])
        main(["inspect", model])
        out, err = capsys.readouterr()
        told = (line.partition(" ") for line in (err + out).splitlines())
        return {key: value.strip() for key, _, value in told}

    # Raw features take further steps, until the bound is one.
    gap = lines()["gap"]
    assert gap.endswith("above the minimum: certified by the dual")
    assert float(gap.partition("(")[2].partition(" of it")[0]) <= 1e-3
    told = lines("--max-iter", "1")
    assert told["optimum"].endswith("no useful bound on its distance to the minimum is proven")
    assert told["gap"] == "no useful bound on its distance to the minimum is proven"


@pytest.mark.parametrize(
    ("solver", "scale"),
    [("newton", "none"), ("newton", "query"), ("tron", "standard"), ("tron", "minmax")],
)
def test_json_agrees_with_the_model_and_with_evaluate(files, tmp_path, cli, solver, scale):
    model, how = tmp_path / "m.json", f"--solver {solver} --scale {scale}"
    line = f"train {{train}} {{out}} -c 0.1 -e 1e-6 {how} --valid {{valid}} -m ndcg@5,map --json"
    report = cli(line, **files, out=model).json
    training = report["training"]
    assert training["converged"] is True
    assert (training["C"], training["solver"], training["scale"]) == (0.1, solver, scale)
    assert training["duality_gap"] >= 0
    assert training["relative_gap"] == training["duality_gap"] / training["objective"]
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs
    assert set(report["seconds"]) == {"read", "train", "total"}
    valid = files["valid_data"]
    scores = load_model(model).predict(valid)
    expected = evaluate(valid.y, scores, qid=valid.qid, metrics=["ndcg@5", "map"])
    assert report["valid"]["metrics"] == dict(expected)
    again = "evaluate {valid} --model {out} -m ndcg@5 -m map --json"
    assert cli(again, **files, out=model).json["metrics"] == dict(expected)


# ---- predict ------------------------------------------------------------------------------------


def test_scores_read_back_bit_for_bit(files, tmp_path, cli):
    """Also where the output is an argument, as in liblinear: predict DATA MODEL SCORES."""
    out = tmp_path / "scores.txt"
    cli("predict {valid} {model} {out} -q", **files, out=out)
    assert out.read_text() == files["scores"].read_text()
    scores = [float(line) for line in out.read_text().splitlines()]
    np.testing.assert_array_equal(scores, load_model(files["model"]).predict(files["valid_data"]))


def test_trec_run_ranks_within_each_query(files, cli):
    lines = cli("predict {valid} {model} --trec --tag mine", **files).out.splitlines()
    valid = files["valid_data"]
    scores = load_model(files["model"]).predict(valid)
    assert len(lines) == valid.n_rows
    for qid in np.unique(valid.qid):
        rows = np.flatnonzero(valid.qid == qid)
        best = rows[np.argsort(-scores[rows], kind="stable")]
        assert [line for line in lines if line.startswith(f"{qid} ")] == [
            f"{qid} Q0 d{row} {rank} {float(scores[row])!r} mine"
            for rank, row in enumerate(best, 1)
        ]
    best = cli("predict {valid} {model} --trec --tag mine --topk 2", **files).out.splitlines()
    assert best == [line for line in lines if int(line.split()[3]) <= 2]


def test_rows_without_docid_are_numbered(files, tmp_path, cli):
    data = files["valid_data"]
    path = write_svmlight(tmp_path / "bare.txt", data, docid=False)
    whole = cli(f"predict {path} {files['model']} --trec").out
    numbers = sorted(int(line.split()[2]) for line in whole.splitlines())
    assert numbers == list(range(1, data.n_rows + 1))
    assert cli(f"predict {path} {files['model']} --trec --stream").out == whole


def test_data_may_lack_the_last_features(files, tmp_path, cli):
    short = tmp_path / "short.txt"
    short.write_text("1 qid:1 1:2\n0 qid:1 2:1\n")
    coef = load_model(files["model"]).coef
    scores = cli("predict {short} {model}", **files, short=short).out.split()
    assert [float(x) for x in scores] == [2 * coef[0], coef[1]]


@pytest.mark.parametrize("scale", ["none", "standard", "query"])
def test_unknown_features_count_nothing_and_are_told(files, tmp_path, cli, scale):
    model, new = str(tmp_path / "m.json"), tmp_path / "new.txt"
    cli(f"train {files['train']} {model} --scale {scale} -q")
    new.write_text(files["valid"].read_text().replace(" #", " 9:7 #"))
    (expected, _), (found, err) = (cli(f"predict {path} {model}") for path in (files["valid"], new))
    np.testing.assert_allclose(*(np.fromstring(text, sep="\n") for text in (found, expected)))
    assert "it knows 6, the file 9; they count nothing" in err


def test_bad_validation_data_does_not_cost_the_model(files, tmp_path, cli):
    bad, model = tmp_path / "bad.txt", tmp_path / "m.json"
    bad.write_text("1 qid:1 1:x\n")
    line = f"train {files['train']} {model} --valid {bad} -q"
    assert "bad.txt:1" in cli(line, status=1).err
    assert load_model(model).n_features == 6


def test_the_first_index_is_remembered_from_training(tmp_path, cli):
    """A file that lacks feature 0 of a model trained on 0-based data is not shifted by one."""
    train, model, test = tmp_path / "train.txt", str(tmp_path / "m.json"), tmp_path / "test.txt"
    train.write_text("1 qid:1 0:1 1:5 2:1\n0 qid:1 0:0 1:1 2:2\n")
    test.write_text("1 qid:1 1:1\n0 qid:1 2:1\n")
    cli(f"train {train} {model} -q")
    coef = load_model(model).coef
    assert len(set(coef)) == 3
    assert [float(x) for x in cli(f"predict {test} {model}").out.split()] == [coef[1], coef[2]]
    named = {w["feature"]: w["weight"] for w in cli(f"inspect {model} --json").json["weights"]}
    assert named == {str(j): coef[j] for j in range(3)}


# ---- evaluate -----------------------------------------------------------------------------------


def test_predict_then_evaluate_gives_the_numbers_of_train(files, tmp_path, cli):
    line = "train {train} {out} --valid {valid} --json"
    trained = cli(line, **files, out=tmp_path / "m").json["valid"]["metrics"]
    line = f"evaluate {{valid}} {{scores}} -m {','.join(trained)}"
    assert cli(f"{line} --json", **files).json["metrics"] == trained
    out = cli(line, **files).out
    assert all(name in out and f"{value:.4f}" in out for name, value in trained.items())


def test_negative_labels_leave_the_usual_ndcg_out(tmp_path, cli):
    path, model = tmp_path / "signs.txt", str(tmp_path / "m.json")
    path.write_text("1 1:3\n-1 1:1\n1 1:2\n-1 1:0\n")
    err = cli(f"train {path} {model} --valid {path}").err
    assert "1 query (no qid)" in err
    assert "ndcg is left out: a label below 0 (-1 occurs)" in err
    assert "map 1.0000   pairwise_accuracy 1.0000" in err
    measured = cli(f"evaluate {path} --model {model} --json").json["metrics"]
    assert set(measured) == {"map", "mrr", "pairwise_accuracy"}
    err = cli(f"evaluate {path} --model {model} -m ndcg@2", status=1).err
    assert "negative label -1" in err


def test_convention_changes_the_numbers(files, cli):
    line = "evaluate {valid} {scores} -m ndcg@10 --json --convention "
    ours, theirs = (cli(line + name, **files).json["metrics"] for name in ("linrank", "letor"))
    assert ours != theirs


def test_the_file_of_all_queries(files, tmp_path, cli):
    """A metric with a comma is one column."""
    path, name = tmp_path / "values.csv", "domination_error(ties=error, over=queries)"
    line = f"evaluate {{valid}} {{scores}} -m ndcg@10 -m '{name}' -o {path} --json"
    means = cli(line, **files).json["metrics"]
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["qid", "ndcg@10", name]
    assert [int(row[0]) for row in rows] == list(dict.fromkeys(files["valid_data"].qid))
    assert np.mean([float(row[1]) for row in rows]) == pytest.approx(means["ndcg@10"])
    assert {len(row) for row in rows} == {3}


# ---- inspect ------------------------------------------------------------------------------------


def test_inspect_data(files, cli):
    report, data = cli("inspect {train} --json", **files).json, files["train_data"]
    assert report["kind"] == "data"
    assert (report["rows"], report["queries"], report["features"]) == (data.n_rows, 40, 6)
    assert report["pairs"] == data.queries.n_pairs
    assert sum(report["labels"].values()) == data.n_rows
    assert f"{data.queries.n_pairs:,}" in cli("inspect {train}", **files).out


def test_inspect_points_out_a_row_id(tmp_path, cli):
    path = tmp_path / "ids.txt"
    path.write_text("".join(f"{i % 3} qid:{i} 1:{i} 2:1\n" for i in range(30)))
    out = cli(f"inspect {path}").out
    assert "[qid-like-row-id] 30 of 30 queries have a single row" in out
    assert "[no-pairs]" in out


def test_inspect_model(files, cli):
    report = cli("inspect {model} --top 2 --json", **files).json
    coef = load_model(files["model"]).coef
    assert report["kind"] == "model"
    importance = abs(coef) * load(files["train"]).X.astype(float).std(axis=0)
    best = np.argsort(-importance)[:2]
    assert [item["weight"] for item in report["weights"]] == coef[best].tolist()
    assert [item["feature"] for item in report["weights"]] == [str(j + 1) for j in best]
    shares = [item["share"] for item in report["weights"]]
    np.testing.assert_allclose(shares, importance[best] / importance.sum(), rtol=1e-9)
    assert report["training"]["n_queries"] == 40
    assert "objective" in cli("inspect {model}", **files).out


def test_inspect_lists_the_weights_that_are_not_zero(tmp_path, cli):
    coef, path = np.zeros(5000), tmp_path / "sparse.json"
    coef[[7, 4000, 11]] = 0.5, -2.0, 1e-9
    LinearModel(coef, training={"index_base": 1}).save(path)
    out = cli(f"inspect {path}").out
    assert "5,000, 3 with a weight (0.06 %)" in out
    assert out.endswith(
        "weight  feature, all 3 that are not zero\n    -2  4001\n  +0.5  8\n+1e-09  12\n"
    )
    assert "the 2 largest of 3 that are not zero" in cli(f"inspect {path} --top 2").out
    coef[:200] = 1.0
    LinearModel(coef).save(path)
    report = cli(f"inspect {path} --top all --json").json
    assert (len(report["weights"]), report["nonzero_weights"]) == (201, 201)
    assert report["density"] == 201 / 5000
    LinearModel([0.0, 0.0]).save(path)
    assert cli(f"inspect {path}").out.endswith("no feature has a weight: all rows score 0\n")


def test_train_says_how_many_features_have_a_weight(files, tmp_path, cli):
    """Where bounds put some at zero; a fit without zeros has nothing to say."""
    line = f"train {files['train']} {tmp_path / 'm.json'} --json"
    assert "weights" not in cli(line).err
    out, err = cli(f"{line} --bounds 1:0:0,2:0:0")
    assert "4 of 6 features (66.7 %)" in err
    assert json.loads(out)["training"]["nonzero_weights"] == 4
    assert load_model(tmp_path / "m.json").n_nonzero == 4


# ---- errors -------------------------------------------------------------------------------------


def test_verbose_shows_where_an_error_came_from(cli):
    err = cli("train nowhere.txt m -v", status=1).err
    assert "Traceback" in err
    assert err.splitlines()[-1] == "linrank: error: nowhere.txt: No such file or directory"


def test_a_fault_of_ours_keeps_its_traceback(files, monkeypatch):
    monkeypatch.setattr("linrank.cli.inspect.run", lambda args, parser: {}["missing"])
    with pytest.raises(KeyError):
        main(["inspect", str(files["train"])])


def test_inspect_tells_what_missing_values_add(tmp_path, cli):
    """Also of a feature that has no weight otherwise; names stay on their lines."""
    missing = Missing("indicator", None, np.array([-3.0, 0.0, 0.0]))
    names = ["age", "b\n\x1b[2J", "c"]
    LinearModel([0.0, 1.0, 2.0], names, missing=missing).save(tmp_path / "m.json")
    assert cli(f"inspect {tmp_path / 'm.json'}").out.endswith(
        "weight  if missing  feature, all 3 that are not zero\n"
        "    +2          +0  c\n"
        "    +1          +0  'b\\n\\x1b[2J'\n"
        "    +0          -3  age\n"
        "if missing: what a row gains that lacks the feature\n"
    )


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
