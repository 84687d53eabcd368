"""The command line: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from cli_files import write_svmlight
from linrank.cli.main import COMMANDS, main
from linrank.data.missing import Missing
from linrank.data.rows import DenseRows
from linrank.data.synthetic import make_ranking
from linrank.io.load import load
from linrank.metrics import evaluate
from linrank.models.linear import LinearModel, load_model

# ---- help and usage -----------------------------------------------------------------------------


def test_alone_it_prints_help(cli):
    out = cli().out
    for command in COMMANDS:
        assert command in out
    assert "exit status" in out


def test_version(cli):
    from linrank import __version__

    assert cli("--version").out == f"linrank {__version__}\n"


PUBLISHED = ("--method", "published")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, cli):
    assert f"usage: linrank {command}" in cli(command, "--help").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "unknown command bogus; linrank --help lists the commands"),
        (["trian", "data"], "unknown command trian; did you mean train?"),
        (["--hlep"], "unknown option --hlep; did you mean --help?"),
        (["train", "data"], "say where to write MODEL: -o MODEL"),
        (
            ["train", "d", "m", "--jobs", "0"],
            "must be an integer ≥ 1, or -1 for all cores, got '0'",
        ),
        (
            ["train", "d", "m", "--solver", "adam"],
            "must be one of newton, bundle, tron, prsvm, prsvm+, got 'adam'",
        ),
        (["train", "d", "m", "--counting", "avl"], "--counting belongs to --method published"),
        (["train", "d", "m", *PUBLISHED, "--counting", "abacus"], "must be one of selection-tree"),
        (["train", "d", "m", "--scal", "none"], "unknown option --scal; did you mean --scale?"),
        (["train", "d", "m", "n"], "one argument too many: n"),
        (["train", "d", "m", "-q", "-v"], "not allowed with"),
        (["train", "d", "-", "--json"], "exclude each other"),
        (["train", "-", "m", "--valid", "-"], "only one of the files"),
        (["train", "d", "-o", "m", "-m", "map"], "-m needs --valid FILE"),
        (["predict", "-", "-"], "only one of the files"),
        (["predict", "d", "m", "--topk", "3"], "--topk needs --trec"),
        (["predict", "d", "m", "--trec", "--tag", "a b"], "--tag must be one word, got 'a b'"),
        (["predict", "d", "m", "s", "-o", "t"], "-o t and s both name SCORES"),
        (["evaluate", "d"], "give either SCORES or --model"),
        (["evaluate", "d", "s", "--model", "m"], "give either SCORES or --model"),
        (["evaluate", "-", "-"], "only one of the files"),
        (["evaluate", "d", "s", "--json", "-o", "-"], "would both be written to standard output"),
    ],
)
def test_wrong_usage_ends_with_2(arguments, message, cli):
    captured = cli(*arguments, status=2)
    assert message in captured.err
    assert captured.out == ""
    assert arguments == ["bogus"] or len(captured.err.splitlines()) == 1


# ---- train --------------------------------------------------------------------------------------


def test_train_summary_on_stderr(files, tmp_path, cli):
    model = str(tmp_path / "m.json")
    captured = cli("train", files["train"], model, "--valid", files["valid"])
    assert captured.out == ""
    data = files["train_data"]
    assert f"{data.n_rows:,} rows, 40 queries, {data.queries.n_pairs:,} pairs" in captured.err
    for word in ("trained", "objective", "above the minimum", "converged", "ndcg@10", "saved"):
        assert word in captured.err


def test_a_bound_that_says_nothing_is_no_number(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("linrank.ranksvm.train.CERTIFIED", 0)  # as of data so large
    data = make_ranking(n_queries=30, n_features=6, random_state=1)
    data = replace(data, rows=DenseRows(data.X * np.logspace(-3, 3, 6, dtype=np.float32)))
    path, model = write_svmlight(tmp_path / "raw.txt", data), str(tmp_path / "m.json")

    def lines(*options):
        main(["train", path, model, "--scale", "none", *options])
        trained = capsys.readouterr().err
        main(["inspect", model])
        told = (line.partition(" ") for line in (trained + capsys.readouterr().out).splitlines())
        return {key: value.strip() for key, _, value in told}

    # Raw features take further steps, until the bound is one.
    told = lines("-c", "1")
    assert told["gap"].endswith("above the minimum: certified by the dual")
    share = float(told["gap"].partition("(")[2].partition(" of it")[0])
    assert share <= 1e-3
    told = lines("-c", "1", "--max-iter", "1")
    assert told["optimum"].endswith("no useful bound on its distance to the minimum is proven")
    assert told["gap"] == "no useful bound on its distance to the minimum is proven"


def test_verbose_lists_the_iterations(files, tmp_path, cli):
    assert "iteration   1  objective" in cli("train", files["train"], tmp_path / "m.json", "-v").err


@pytest.mark.parametrize(
    ("solver", "scale"),
    [("newton", "none"), ("newton", "query"), ("tron", "standard"), ("tron", "minmax")],
)
def test_json_agrees_with_the_model_and_with_evaluate(files, tmp_path, cli, solver, scale):
    model = str(tmp_path / "m.json")
    options = ["-c", "0.1", "-e", "1e-6", "--solver", solver, "--scale", scale, "--json"]
    scoring = ["--valid", files["valid"], "-m", "ndcg@5", "-m", "map"]
    report = cli("train", files["train"], model, *options, *scoring).json
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

    again = ["evaluate", files["valid"], "--model", model, "-m", "ndcg@5", "-m", "map", "--json"]
    assert cli(*again).json["metrics"] == dict(expected)


def test_model_to_standard_output(files, cli):
    out = cli("train", files["train"], "-", "-q").out
    with open(files["model"]) as file:
        assert json.loads(out)["coef"] == json.load(file)["coef"]


# ---- predict ------------------------------------------------------------------------------------


def test_scores_read_back_bit_for_bit(files):
    model, valid = load_model(files["model"]), files["valid_data"]
    with open(files["scores"]) as file:
        scores = [float(line) for line in file]
    np.testing.assert_array_equal(scores, model.predict(valid))


def test_the_output_may_be_an_argument(files, tmp_path):
    """As in liblinear: predict DATA MODEL SCORES."""
    out = tmp_path / "scores.txt"
    assert main(["predict", files["valid"], files["model"], str(out), "-q"]) == 0
    with open(files["scores"]) as file:
        assert out.read_text() == file.read()


def test_trec_run_ranks_within_each_query(files, cli):
    arguments = ["predict", files["valid"], files["model"], "--trec", "--tag", "mine"]
    lines = [line.split(" ") for line in cli(*arguments).out.splitlines()]
    valid = files["valid_data"]
    scores = load_model(files["model"]).predict(valid)
    assert len(lines) == valid.n_rows
    for qid in np.unique(valid.qid):
        rows = np.flatnonzero(valid.qid == qid)
        best = rows[np.argsort(-scores[rows], kind="stable")]
        mine = [line for line in lines if line[0] == str(qid)]
        assert mine == [
            [str(qid), "Q0", f"d{row}", str(rank), repr(float(scores[row])), "mine"]
            for rank, row in enumerate(best, 1)
        ]


def test_topk_keeps_the_best(files, cli):
    whole = ["predict", files["valid"], files["model"], "--trec"]
    lines = cli(*whole).out.splitlines()
    best = cli(*whole, "--topk", "2").out.splitlines()
    assert best == [line for line in lines if int(line.split()[3]) <= 2]


def test_rows_without_docid_are_numbered(files, tmp_path, cli):
    path = write_svmlight(tmp_path / "bare.txt", files["valid_data"], docid=False)
    names = [
        int(line.split()[2])
        for line in cli("predict", path, files["model"], "--trec").out.splitlines()
    ]
    assert sorted(names) == list(range(1, files["valid_data"].n_rows + 1))


def test_data_may_lack_the_last_features(files, tmp_path, capsys):
    short = tmp_path / "short.txt"
    short.write_text("1 qid:1 1:2\n0 qid:1 2:1\n")
    assert main(["predict", str(short), files["model"]]) == 0
    coef = load_model(files["model"]).coef
    assert [float(x) for x in capsys.readouterr().out.split()] == [2 * coef[0], coef[1]]


@pytest.mark.parametrize("scale", ["none", "standard", "query"])
def test_unknown_features_count_nothing_and_are_told(files, tmp_path, cli, scale):
    model, new = str(tmp_path / "m.json"), tmp_path / "new.txt"
    cli("train", files["train"], model, "--scale", scale, "-q")
    with open(files["valid"]) as file:
        lines = file.read().splitlines()
    new.write_text("".join(line.replace(" #", " 9:7 #") + "\n" for line in lines))
    expected = cli("predict", files["valid"], model).out
    captured = cli("predict", new, model)
    np.testing.assert_allclose(
        np.fromstring(captured.out, sep="\n"), np.fromstring(expected, sep="\n")
    )
    assert "it knows 6, the file 9; they count nothing" in captured.err


def test_bad_validation_data_does_not_cost_the_model(files, tmp_path, cli):
    bad, model = tmp_path / "bad.txt", tmp_path / "m.json"
    bad.write_text("1 qid:1 1:x\n")
    assert "bad.txt:1" in cli("train", files["train"], model, "--valid", bad, "-q", status=1).err
    assert load_model(model).n_features == 6


def test_the_first_index_is_remembered_from_training(tmp_path, cli):
    """A file that lacks feature 0 of a model trained on 0-based data is not shifted by one."""
    train, model, test = tmp_path / "train.txt", str(tmp_path / "m.json"), tmp_path / "test.txt"
    train.write_text("1 qid:1 0:1 1:5 2:1\n0 qid:1 0:0 1:1 2:2\n")
    test.write_text("1 qid:1 1:1\n0 qid:1 2:1\n")
    cli("train", train, model, "-q")
    coef = load_model(model).coef
    assert len(set(coef)) == 3
    assert [float(x) for x in cli("predict", test, model).out.split()] == [coef[1], coef[2]]
    named = {w["feature"]: w["weight"] for w in cli("inspect", model, "--json").json["weights"]}
    assert named == {str(j): coef[j] for j in range(3)}


# ---- evaluate -----------------------------------------------------------------------------------


def test_predict_then_evaluate_gives_the_numbers_of_train(files, tmp_path, cli):
    arguments = ["train", files["train"], str(tmp_path / "m"), "--valid", files["valid"], "--json"]
    trained = cli(*arguments).json["valid"]["metrics"]
    metrics = [option for name in trained for option in ("-m", name)]
    assert (
        cli("evaluate", files["valid"], files["scores"], *metrics, "--json").json["metrics"]
        == trained
    )


def test_evaluate_prints_a_table(files, cli):
    out = cli("evaluate", files["valid"], files["scores"], "-m", "ndcg@10", "-m", "map").out
    valid = files["valid_data"]
    expected = evaluate(valid.y, np.loadtxt(files["scores"]), qid=valid.qid, metrics=["map"])
    assert f"{expected['map']:.4f}" in out
    assert "ndcg@10" in out


def test_negative_labels_leave_the_usual_ndcg_out(tmp_path, cli):
    path, model = tmp_path / "signs.txt", str(tmp_path / "m.json")
    path.write_text("1 1:3\n-1 1:1\n1 1:2\n-1 1:0\n")
    err = cli("train", path, model, "--valid", path).err
    assert "1 query (no qid)" in err
    assert "ndcg is left out: a label below 0 (-1 occurs)" in err
    assert "map 1.0000   pairwise_accuracy 1.0000" in err
    assert set(cli("evaluate", path, "--model", model, "--json").json["metrics"]) == {
        "map",
        "mrr",
        "pairwise_accuracy",
    }
    err = cli("evaluate", path, "--model", model, "-m", "ndcg@2", status=1).err
    assert "negative label -1" in err


def test_convention_changes_the_numbers(files, cli):
    values = {}
    for convention in ("linrank", "letor"):
        options = ["-m", "ndcg@10", "--convention", convention, "--json"]
        values[convention] = cli("evaluate", files["valid"], files["scores"], *options).json[
            "metrics"
        ]["ndcg@10"]
    assert values["linrank"] != values["letor"]


def test_per_query_file(files, tmp_path, cli):
    path = tmp_path / "values.csv"
    options = ["-m", "ndcg@10", "-m", "pairwise_accuracy", "-o", str(path)]
    means = cli("evaluate", files["valid"], files["scores"], *options, "--json").json["metrics"]
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["qid"]) for row in rows] == list(dict.fromkeys(files["valid_data"].qid))
    assert np.mean([float(row["ndcg@10"]) for row in rows]) == pytest.approx(means["ndcg@10"])


# ---- inspect ------------------------------------------------------------------------------------


def test_a_metric_with_a_comma_is_one_column(files, tmp_path):
    path, name = tmp_path / "values.csv", "domination_error(ties=error, over=queries)"
    arguments = ["evaluate", files["valid"], "--model", files["model"], "-o", str(path)]
    assert main([*arguments, "-m", name, "-m", "map"]) == 0
    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["qid", name, "map"]
    assert {len(row) for row in rows} == {3}


def test_inspect_data(files, cli):
    report = cli("inspect", files["train"], "--json").json
    data = files["train_data"]
    assert report["kind"] == "data"
    assert (report["rows"], report["queries"], report["features"]) == (data.n_rows, 40, 6)
    assert report["pairs"] == data.queries.n_pairs
    assert sum(report["labels"].values()) == data.n_rows
    assert f"{data.queries.n_pairs:,}" in cli("inspect", files["train"]).out


def test_inspect_points_out_a_row_id(tmp_path, cli):
    path = tmp_path / "ids.txt"
    path.write_text("".join(f"{i % 3} qid:{i} 1:{i} 2:1\n" for i in range(30)))
    out = cli("inspect", path).out
    assert "[qid-like-row-id] 30 of 30 queries have a single row" in out
    assert "[no-pairs]" in out


def test_inspect_model(files, cli):
    report = cli("inspect", files["model"], "--top", "2", "--json").json
    coef = load_model(files["model"]).coef
    assert report["kind"] == "model"
    importance = abs(coef) * load(files["train"]).X.astype(float).std(axis=0)
    best = np.argsort(-importance)[:2]
    assert [item["weight"] for item in report["weights"]] == coef[best].tolist()
    assert [item["feature"] for item in report["weights"]] == [str(j + 1) for j in best]
    shares = [item["share"] for item in report["weights"]]
    np.testing.assert_allclose(shares, importance[best] / importance.sum(), rtol=1e-9)
    assert report["training"]["n_queries"] == 40
    assert "objective" in cli("inspect", files["model"]).out


def test_inspect_lists_the_weights_that_are_not_zero(tmp_path, cli):
    coef = np.zeros(5000)
    coef[[7, 4000, 11]] = 0.5, -2.0, 1e-9
    path = str(tmp_path / "sparse.json")
    LinearModel(coef, training={"index_base": 1}).save(path)
    out = cli("inspect", path).out
    assert "5,000, 3 with a weight (0.06 %)" in out
    assert out.endswith(
        "weight  feature, all 3 that are not zero\n    -2  4001\n  +0.5  8\n+1e-09  12\n"
    )
    assert "the 2 largest of 3 that are not zero" in cli("inspect", path, "--top", "2").out
    coef[:200] = 1.0
    LinearModel(coef).save(path)
    report = cli("inspect", path, "--top", "all", "--json").json
    assert (len(report["weights"]), report["nonzero_weights"]) == (201, 201)
    assert report["density"] == 201 / 5000
    err = cli("inspect", path, "--top", "none", status=2).err
    assert "must be an integer ≥ 1 or all, got 'none'" in err
    LinearModel([0.0, 0.0]).save(path)
    assert cli("inspect", path).out.endswith("no feature has a weight: all rows score 0\n")


def test_train_says_how_many_features_have_a_weight(files, tmp_path, cli):
    """Where bounds put some at zero; a fit without zeros has nothing to say."""
    model = str(tmp_path / "m.json")
    assert "weights" not in cli("train", files["train"], model).err
    bounds = "1:0:0,2:0:0"
    assert "4 of 6 features (66.7 %)" in cli("train", files["train"], model, "--bounds", bounds).err
    report = cli("train", files["train"], model, "--bounds", bounds, "--json", "-q").json
    assert report["training"]["nonzero_weights"] == load_model(model).n_nonzero == 4


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere.txt", "m"], "nowhere.txt: No such file or directory"),
        (["train", "{train}", "nowhere/m"], "there is no folder"),
        (["train", "{train}", "{folder}"], "is a folder"),
        (["train", "{bad}", "{out}"], "bad.txt:2"),
        (["train", "{flat}", "{out}"], "have the same label"),
        (["train", "{train}", "{out}", "--valid", "nowhere"], "nowhere: No such file"),
        (
            ["train", "{train}", "{out}", "--valid", "{valid}", "-m", "ndgc"],
            "unknown metric",
        ),
        (["predict", "{valid}", "nowhere"], "nowhere: No such file or directory"),
        (["predict", "{valid}", "{train}"], "train.txt: not JSON .*; pass a file written by"),
        (["predict", "{model}", "{model}"], "model.json: is JSON, like a model, not data"),
        (["train", "{model}", "{out}"], "model.json: is JSON, like a model, not data"),
        (["train", "{train}", "{train}"], "train.txt: is read and would be overwritten"),
        (["train", "{train}", "{valid}", "--valid", "{valid}"], "valid.txt: is read and would"),
        (["predict", "{valid}", "{model}", "{valid}"], "valid.txt: is read and would be"),
        (["predict", "{valid}", "{model}", "-o", "{model}"], "model.json: is read and would be"),
        (["evaluate", "{valid}", "{scores}", "-o", "{scores}"], "scores.txt: is read"),
        (["evaluate", "nowhere", "{scores}", "-m", "ndgc"], "unknown metric 'ndgc'"),
        (["evaluate", "{valid}", "{model}"], "model.json:1: expected one finite score, .* --model"),
        (["evaluate", "{valid}", "{short}"], "has 2 scores, .* rows"),
        (["evaluate", "{valid}", "{words}"], "words.txt:2: expected one finite score, got 'two'"),
        (["evaluate", "{valid}", "{nan}"], "nan.txt:2: expected one finite score, got 'nan'"),
        (["evaluate", "{valid}", "{empty}"], "empty.txt: no scores"),
        (["evaluate", "{valid}", "{scores}", "--convention", "mine"], "mine"),
        (["inspect", "{empty}"], "empty.txt"),
        (["inspect", "nowhere"], "nowhere: No such file or directory"),
    ],
)
def test_user_errors_are_one_line_and_1(files, tmp_path, cli, arguments, message):
    texts = {
        "bad": "1 qid:1 1:1\n0 qid:1 1:x\n",
        "flat": "1 qid:1 1:1\n1 qid:1 1:2\n",
        "short": "1\n2\n",
        "words": "1\ntwo\n",
        "nan": "1\nnan\n",
        "empty": "",
    }
    names = {"out": str(tmp_path / "out.json"), **files}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
        names[name] = str(tmp_path / f"{name}.txt")
    captured = cli(*(argument.format(**names) for argument in arguments), status=1)
    lines = captured.err.splitlines()
    assert lines[-1].startswith("linrank: error: ")
    assert re.search(message, lines[-1])
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not (tmp_path / "out.json").exists()


def test_verbose_shows_where_an_error_came_from(cli):
    err = cli("train", "nowhere.txt", "m", "-v", status=1).err
    assert "Traceback" in err
    assert err.splitlines()[-1] == "linrank: error: nowhere.txt: No such file or directory"


def test_a_fault_of_ours_keeps_its_traceback(files, monkeypatch):
    monkeypatch.setattr("linrank.cli.inspect.run", lambda args, parser: {}["missing"])
    with pytest.raises(KeyError):
        main(["inspect", files["train"]])


def test_inspect_tells_what_missing_values_add(tmp_path, cli):
    """Also of a feature that has no weight otherwise; names stay on their lines."""
    missing = Missing("indicator", None, np.array([-3.0, 0.0, 0.0]))
    names = ["age", "b\n\x1b[2J", "c"]
    LinearModel([0.0, 1.0, 2.0], names, missing=missing).save(tmp_path / "m.json")
    assert cli("inspect", tmp_path / "m.json").out.endswith(
        "weight  if missing  feature, all 3 that are not zero\n"
        "    +2          +0  c\n"
        "    +1          +0  'b\\n\\x1b[2J'\n"
        "    +0          -3  age\n"
        "if missing: what a row gains that lacks the feature\n"
    )
