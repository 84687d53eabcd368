"""``linrank train --method factorized`` and ``regularized``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linrank import FactorizedRankSVM, RegularizedRankSVM, load_model
from linrank.cli.main import main
from linrank.cli.options import nonnegative

FACTORIZED = ["--method", "factorized"]
REGULARIZED = ["--method", "regularized"]


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def ranker(files, **params):
    data = files["train_data"]
    params = {"C": 0.01, "scale": "standard", "random_state": 0, **params}
    return FactorizedRankSVM(**params).fit(data.X, data.y, qid=data.qid)


def train(files, model, *options):
    base = ["train", files["train"], model, *FACTORIZED, "-c", "0.01", "--scale", "standard"]
    return main([*base, *options])


# ---- factorized ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--n-components", "2"], {"n_components": 2}),
        (["--constraint", "ball", "--seed", "3"], {"constraint": "ball", "random_state": 3}),
        (["-c", "2", "--query-normalization", "pairs"], {"C": 2, "query_normalization": "pairs"}),
        (["-e", "1e-3", "-j", "1"], {"tol": 1e-3}),
        (["--scale", "query"], {"scale": "query"}),
    ],
)
def test_the_model_is_that_of_the_estimator(files, model, options, params):
    assert train(files, model, "-q", *options) == 0
    found, twin = load_model(model), ranker(files, **params)
    assert_array_equal(found.coef, twin.coef_)
    assert found.training == {**twin.model_.training, "index_base": 1}


def test_the_summary_and_the_report(files, model, capsys):
    options = ["--n-components", "3", "--valid", files["valid"], "--scoring", "ndcg@5"]
    assert train(files, model, *options, "--json", "-v") == 0
    captured = capsys.readouterr()
    twin = ranker(files, n_components=3)
    for words in (
        "iteration   0  objective",
        "factorized, K = 3, box, C = 0.01: ",
        f"objective {twin.hinge_objective_:.10g} of RankSVM with the hinge",
        f"at least {twin.lower_bound_:.10g}",
        "converged",
        "ndcg@5",
    ):
        assert words in captured.err
    report = json.loads(captured.out)
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs
    assert set(report["valid"]["metrics"]) == {"ndcg@5"}
    expected = {
        "method": "factorized",
        "n_components": 3,
        "constraint": "box",
        "C": 0.01,
        "seed": 0,
        "scale": "standard",
        "objective": twin.objective_,
        "lower_bound": twin.lower_bound_,
        "hinge_objective": twin.hinge_objective_,
        "duality_gap": twin.duality_gap_,
        "iterations": twin.n_iter_,
        "nonzero_weights": 6,
        "converged": True,
        "stopped": "tolerance",
    }
    assert {key: report["training"][key] for key in expected} == expected


def test_inspect_and_predict_know_the_model(files, model, capsys):
    assert train(files, model, "-q", "--constraint", "ball", "--seed", "4") == 0
    assert main(["inspect", model]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    told = {"method": "factorized", "n_components": "5", "constraint": "ball", "C": "0.01"}
    assert {key: lines[key] for key in told} == told
    assert lines["seed"] == "4"
    assert float(lines["lower_bound"]) == -float(lines["objective"]) > 0
    assert main(["predict", files["valid"], model, "-q"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    assert len(scores) == files["valid_data"].n_rows


def test_too_few_epochs_end_with_3(files, model, capsys):
    assert train(files, model, "--max-iter", "1", "-e", "1e-12") == 3
    assert "linrank: warning: did not converge" in capsys.readouterr().err
    assert load_model(model).training["converged"] is False


def test_quiet_is_silent(files, model, capsys):
    assert train(files, model, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_leaves_no_file(files, tmp_path, monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("linrank.methods.lowrank.solve_factorized", interrupted)
    path = tmp_path / "m.json"
    assert train(files, str(path)) == 130
    assert "linrank: interrupted" in capsys.readouterr().err
    assert not path.exists()


def test_bad_data_ends_with_1(tmp_path, model, capsys):
    path = tmp_path / "constant.txt"
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    assert main(["train", str(path), model, *FACTORIZED]) == 1
    assert "all 2 rows have the same label" in capsys.readouterr().err


def test_training_loads_neither_scipy_nor_scikit_learn(files, model):
    arguments = ["train", files["train"], model, *FACTORIZED, "-q", "-c", "0.01"]
    code = (
        f"import sys; from linrank.cli.main import main; main({arguments!r}); "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"scipy", "sklearn"} & set(run.stdout.split()) == set()


# ---- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*FACTORIZED, "--n-components", "0"], "must be ≥ 1, got 0"),
        ([*FACTORIZED, "--n-components", "2.5"], "must be an integer, got '2.5'"),
        ([*FACTORIZED, "--constraint", "sphere"], "must be one of box, ball, got 'sphere'"),
        ([*FACTORIZED, "-c", "0"], "must be finite and > 0, got '0'"),
        ([*FACTORIZED, "-e", "-1"], "must be finite and > 0, got '-1'"),
        ([*REGULARIZED, "--gamma", "-1"], "must be a finite number ≥ 0, got '-1'"),
        ([*REGULARIZED, "--lam", "0"], "must be finite and > 0, got '0'"),
        ([*REGULARIZED, "--memory-limit", "0"], "must be a size such as 2GB or 512MiB, got '0'"),
    ],
)
def test_wrong_usage_ends_with_2(options, message, capsys):
    assert main(["train", "d", "m", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "much"])
def test_wrong_weights_on_the_command_line(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a finite number ≥ 0"):
        nonnegative(text)
    assert nonnegative("0") == 0.0


# ---- regularized --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--gamma", "0.5", "--lam", "2"], {"gamma": 0.5, "lam": 2.0}),
        (["--memory-limit", "100", "-e", "1e-2"], {"memory_limit": 100_000_000, "tol": 1e-2}),
    ],
)
def test_the_regularised_model_is_that_of_the_estimator(files, model, capsys, options, params):
    base = ["train", files["train"], model, *REGULARIZED, "-c", "0.01", "--scale", "standard"]
    assert main([*base, *options, "--json", "-v"]) == 0
    captured = capsys.readouterr()
    data = files["train_data"]
    twin = RegularizedRankSVM(C=0.01, scale="standard", **params)
    twin.fit(data.X, data.y, qid=data.qid)
    found = load_model(model)
    assert_array_equal(found.coef, twin.coef_)
    assert found.training == {**twin.model_.training, "index_base": 1}
    report = json.loads(captured.out)["training"]
    assert report["method"] == found.training["method"] == "regularized"
    assert report["objective"] == twin.objective_
    assert report["duality_gap"] == twin.duality_gap_
    assert report["ranks"] == twin.ranks_.tolist()
    assert "seed" not in report
    for words in ("regularized, γ = ", "above the minimum", "by query, mean", "iteration   0"):
        assert words in captured.err
