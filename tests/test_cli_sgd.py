"""``linrank train`` and ``tune`` by ``--method sgd``, on data in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linrank import SGDRanker, SGDRankerCV, load, load_model
from linrank.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def ranker(files, **params):
    data = files["train_data"]
    params = {"n_steps": 5000, "random_state": 0, **params}
    return SGDRanker(**params).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (
            ["--algorithm", "pa", "--aggressiveness", "0.5"],
            {"algorithm": "pa", "aggressiveness": 0.5},
        ),
        (["--algorithm", "hybrid", "--alpha", "1e-3"], {"algorithm": "hybrid", "alpha": 1e-3}),
        (["-c", "0.1"], {"C": 0.1}),
        (
            ["--sampling", "query-level", "--seed", "3"],
            {"sampling": "query-level", "random_state": 3},
        ),
        (["--average"], {"average": True}),
        (["--average", "uniform"], {"average": "uniform"}),
        (["--scale", "standard"], {"scale": "standard"}),
        (["--record", "exact"], {}),
    ],
)
def test_the_model_is_that_of_the_estimator(files, model, options, params):
    base = ["train", files["train"], model, "--method", "sgd", "--n-steps", "5e3", "-q"]
    assert main([*base, *options]) == 0
    assert_array_equal(load_model(model).coef, ranker(files, **params).coef_)


def test_the_summary_and_the_report(files, model, capsys):
    base = ["train", files["train"], model, "--method", "sgd", "--n-steps", "5000"]
    options = ["--record", "exact", "--valid", files["valid"], "--json", "-v"]
    assert main([*base, *options]) == 0
    captured = capsys.readouterr()
    for word in ("step         100  objective", "pegasos, λ = 0.0001", "5,000 steps", "ndcg@10"):
        assert word in captured.err
    report = json.loads(captured.out)
    assert report["command"] == "train"
    training = report["training"]
    twin = ranker(files, record="exact")
    assert training["objective"] == twin.objective_
    assert training["alpha"] == 1e-4
    assert (training["solver"], training["algorithm"]) == ("sgd", "pegasos")
    assert (training["steps"], training["stopped"]) == (5000, "n_steps")
    assert 0 < report["valid"]["metrics"]["ndcg@10"] <= 1
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs


def test_inspect_and_predict_know_the_model(files, model, capsys):
    assert main(["train", files["train"], model, "--method", "sgd", "-q"]) == 0
    assert main(["inspect", model]) == 0
    out = capsys.readouterr().out
    for line in ("algorithm", "pegasos", "n_steps", "100000", "sampling", "pairs"):
        assert line in out
    assert main(["inspect", model, "--json"]) == 0
    training = json.loads(capsys.readouterr().out)["training"]
    assert training["seed"] == 0
    assert training["objective"] is None
    assert main(["predict", files["valid"], model, "-q"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    assert len(scores) == files["valid_data"].n_rows


def test_tol_decides_the_exit_status(files, model, capsys):
    base = ["train", files["train"], model, "--method", "sgd", "--scale", "standard"]
    assert main([*base, "-e", "0.5", "--average", "--n-steps", "1e7"]) == 0
    assert "converged" in capsys.readouterr().err
    assert main([*base, "-e", "1e-9", "--n-steps", "300"]) == 3
    assert "took all 300 steps; raise --n-steps" in capsys.readouterr().err
    assert load_model(model).n_features == 6


def test_quiet_is_silent(files, model, capsys):
    assert main(["train", files["train"], model, "--method", "sgd", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "sgd", "--alpha", "1", "-c", "1"], "--alpha and --C exclude each other"),
        (["--method", "sgd", "--aggressiveness", "2"], "needs --algorithm pa, not pegasos"),
        (["--method", "sgd", "--alpha", "0"], "must be finite and > 0, got '0'"),
        (["--method", "sgd", "--alpha", "nan"], "must be finite and > 0, got 'nan'"),
        (["--method", "sgd", "--n-steps", "0"], "must be ≥ 1, got 0"),
        (["--method", "sgd", "--n-steps", "2.5"], "must be an integer, got '2.5'"),
        (["--method", "sgd", "--n-steps", "many"], "must be an integer, got 'many'"),
        (["--method", "sgd", "--seed", "-1"], "must be ≥ 0, got -1"),
        (["--method", "sgd", "--algorithm", "adam"], "logistic, hybrid, got 'adam'"),
        (["--method", "sgd", "--sampling", "all"], "must be one of pairs, query"),
        (
            ["--method", "sgd", "--average", "median"],
            "must be one of weighted, uniform, got 'median'",
        ),
    ],
)
def test_wrong_usage_ends_with_2(options, message, capsys):
    assert main(["train", "d", "m", *options]) == 2
    assert message in capsys.readouterr().err


def test_bad_data_ends_with_1(tmp_path, model, capsys):
    path = tmp_path / "constant.txt"
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    assert main(["train", str(path), model, "--method", "sgd"]) == 1
    assert "labels are constant" in capsys.readouterr().err
    path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    arguments = ["--method", "sgd", "--algorithm", "logistic", "--record", "exact"]
    assert main(["train", str(path), model, *arguments]) == 1
    assert "the logistic loss has no such sum" in capsys.readouterr().err


# ---- tune ---------------------------------------------------------------------------------------

GRID = ["--method", "sgd", "--alphas", "0.001:0.1:10", "--n-steps", "3000", "--folds", "3"]


def test_tune_does_what_the_estimator_does(files, model, capsys):
    options = [*GRID, "--algorithms", "pegasos,hybrid", "--scale", "standard", "--json"]
    assert main(["tune", files["train"], *options, "-o", model]) == 0
    report = json.loads(capsys.readouterr().out)
    data = load(files["train"])
    twin = SGDRankerCV(
        [0.1, 0.01, 0.001],
        algorithms=("pegasos", "hybrid"),
        n_steps=3000,
        cv=3,
        scale="standard",
        random_state=0,
    ).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(report["grid"]["scores"], twin.scores_, rtol=1e-12)
    np.testing.assert_allclose(report["grid"]["alphas"], twin.alphas_, rtol=1e-12)
    assert (report["algorithm"], report["folds"]) == (twin.algorithm_, 3)
    np.testing.assert_allclose(load_model(model).coef, twin.coef_, rtol=1e-9)
    assert load_model(model).training["score"] == twin.best_score_


def test_tune_prints_a_table(files, capsys):
    assert main(["tune", files["train"], *GRID]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert len(lines) == 1 + 3
    assert sum(line.split()[:2] == ["*", "pegasos"] for line in lines) == 1
    assert "10 models by sgd" in captured.err
    assert main(["tune", files["train"], *GRID[:-2], "--valid", files["valid"], "-q"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "sgd", "-e", "0.1"], "-e belongs to --method ranksvm, domination"),
        (["--method", "sgd", "--algorithms", "pa,adam"], "must be one of pegasos"),
        (["--method", "sgd", "--alphas", "0"], "must be finite and > 0, got 0"),
    ],
)
def test_tune_refuses_wrong_usage(options, message, capsys):
    assert main(["tune", "d", *options]) == 2
    assert message in capsys.readouterr().err
