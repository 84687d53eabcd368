"""``linrank train --method kernel``."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import papers
from linrank import KernelRankSVM, load_model
from linrank.cli.main import main

RBF, POLY, LINEAR = (["--method", "kernel", "--kernel", name] for name in ("rbf", "poly", "linear"))


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def train(files, model, *options):
    return main(["train", files["train"], model, "--scale", "standard", *options])


def ranker(files, kernel="rbf", **params):
    data = files["train_data"]
    params = {"scale": "standard", "random_state": 0, **params}
    return KernelRankSVM(kernel, **params).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize(
    ("options", "kernel", "params"),
    [
        ([], "rbf", {}),
        (["--gamma", "0.2", "-c", "3", "-j", "1"], "rbf", {"gamma": 0.2, "C": 3.0}),
        (["--gamma", "auto", "--loss", "hinge"], "rbf", {"gamma": "auto", "loss": "hinge"}),
        (["--degree", "2", "--coef0", "1"], "poly", {"degree": 2, "coef0": 1.0}),
        (["-e", "1e-6", "--pair-weighting", "gain-diff"], "linear", {}),
        (["--memory-limit", "4", "-j", "1", "--query-normalization", "pairs"], "rbf", {}),
        (["--scale", "query", "--seed", "4"], "rbf", {"scale": "query", "random_state": 4}),
    ],
)
def test_the_model_is_that_of_the_estimator(files, model, options, kernel, params):
    if "--pair-weighting" in options:
        params = {"tol": 1e-6, "pair_weighting": "gain_diff"}
    if "--memory-limit" in options:
        params = {"memory_limit": 4_000_000, "query_normalization": "pairs"}
    assert train(files, model, "--method", "kernel", "--kernel", kernel, "-q", *options) == 0
    found, twin = load_model(model), ranker(files, kernel, **params)
    assert_array_equal(found.coef, twin.dual_coef_)
    assert found.kernel.gamma == twin.gamma_
    assert found.training == {**twin.model_.training, "index_base": 1}


@pytest.mark.parametrize(
    ("options", "params"),
    [
        (["--approximation", "nystroem", "--n-components", "20"], {"approximation": "nystroem"}),
        (["--approximation", "fourier", "--n-components", "20"], {"approximation": "fourier"}),
    ],
)
def test_approximations(files, model, capsys, options, params):
    assert train(files, model, *RBF, *options, "--json") == 0
    captured = capsys.readouterr()
    twin = ranker(files, n_components=20, **params)
    assert_array_equal(load_model(model).coef, twin.dual_coef_)
    report = json.loads(captured.out)["training"]
    assert (report["approximation"], report["n_components"]) == (params["approximation"], 20)
    assert f"rbf by {params['approximation']}" in captured.err


def test_chosen_pairs(files, model, capsys):
    options = ["--pairs", "pruned", "--n-closest", "100", "--n-random", "50", "--seed", "3"]
    assert train(files, model, *RBF, *options, "--json") == 0
    captured = capsys.readouterr()
    sizes = {"n_closest": 100, "n_random": 50}
    twin = ranker(files, pairs="pruned", random_state=3, **sizes)
    assert_array_equal(load_model(model).coef, twin.dual_coef_)
    assert json.loads(captured.out)["training"]["pairs_compared"] == twin.n_pairs_ == 150
    assert "100 closest and 50 random of the labels, seed 3" in captured.err
    assert main(["train", "d", "m", *RBF, "--n-random", "5"]) == 2
    assert "--n-random needs --pairs pruned" in capsys.readouterr().err


def test_the_summary_and_the_report(files, model, capsys):
    options = ["-c", "0.5", "--valid", files["valid"], "--scoring", "ndcg@5"]
    assert train(files, model, *RBF, *options, "--json", "-v") == 0
    captured = capsys.readouterr()
    twin = ranker(files, C=0.5)
    n_rows = files["train_data"].n_rows
    for words in (
        "iteration   0  objective",
        f"rbf, γ = {twin.gamma_:.4g}, squared hinge, C = 0.5: {twin.n_iter_} iteration",
        f"objective {twin.objective_:.10g}, at most {twin.duality_gap_:.2g}",
        f"{twin.n_support_:,} of {n_rows:,} rows support it",
        "converged",
        "ndcg@5",
    ):
        assert words in captured.err
    report = json.loads(captured.out)
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs
    assert set(report["valid"]["metrics"]) == {"ndcg@5"}
    expected = {
        "kernel": "rbf",
        "gamma": twin.gamma_,
        "C": 0.5,
        "loss": "squared_hinge",
        "pairs": "all",
        "pairs_compared": twin.n_pairs_,
        "approximation": None,
        "seed": None,  # nothing was drawn
        "scale": "standard",
        "objective": twin.objective_,
        "duality_gap": twin.duality_gap_,
        "support_rows": twin.n_support_,
        "iterations": twin.n_iter_,
        "converged": True,
        "stopped": "tolerance",
    }
    assert {key: report["training"][key] for key in expected} == expected


def test_the_other_commands_know_the_model(files, model, capsys):
    assert train(files, model, *RBF, "-q") == 0
    valid = files["valid_data"]
    assert main(["predict", files["valid"], model, "-q"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    assert_allclose(scores, ranker(files).predict(valid.X), rtol=1e-9)
    assert main(["inspect", model]) == 0
    assert "rbf" in capsys.readouterr().out
    assert main(["evaluate", files["valid"], "--model", model, "-m", "map", "-q"]) == 0


def test_preferences(files, model, tmp_path, capsys):
    data = files["train_data"]
    pairs = [[1, 0], [2, 0]]
    path = tmp_path / "pairs.txt"
    path.write_text("1 0\n2 0 0.5\n")
    options = ["--preferences", str(path), "--across-queries"]
    options = papers.flags(*options, "--scale", "standard", method="kernel")
    assert train(files, model, *RBF, *options, "--no-labels", "--json") == 0
    twin = papers.KernelRankSVM(scale="standard", random_state=0)
    twin.fit_pairs(data.X, pairs, pair_weight=[1.0, 0.5])
    assert_array_equal(load_model(model).coef, twin.dual_coef_)
    assert load_model(model).training["n_preferences"] == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["data"]["preferences"], report["training"]["pairs_compared"]) == (2, 2)
    assert train(files, model, *RBF, *options, "-q") == 0
    twin.fit_pairs(
        data.X, pairs, pair_weight=[1.0, 0.5], y=data.y, qid=data.qid, across_queries=True
    )
    assert_array_equal(load_model(model).coef, twin.dual_coef_)


def test_too_few_iterations_end_with_3(files, model, capsys):
    assert train(files, model, *RBF, "--max-iter", "1", "-e", "1e-12") == 3
    assert "linrank: warning: did not converge" in capsys.readouterr().err
    assert load_model(model).training["converged"] is False


def test_quiet_is_silent(files, model, capsys):
    assert train(files, model, *RBF, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_leaves_no_file(files, tmp_path, monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("linrank.methods.kernel.fit_kernel", interrupted)
    path = tmp_path / "m.json"
    assert train(files, str(path), *RBF) == 130
    assert "linrank: interrupted" in capsys.readouterr().err
    assert not path.exists()


def test_bad_data_ends_with_1(tmp_path, model, capsys):
    path = tmp_path / "constant.txt"
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    assert main(["train", str(path), model, *RBF]) == 1
    assert "all 2 rows have the same label" in capsys.readouterr().err


def test_training_loads_neither_scipy_nor_scikit_learn(files, model):
    arguments = ["train", files["train"], model, *RBF, "-q"]
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
        ([*RBF, "--gamma", "0"], "must be finite and > 0, or scale or auto, got '0'"),
        ([*RBF, "--gamma", "wide"], "must be finite and > 0, or scale or auto, got 'wide'"),
        ([*RBF, "--degree", "2"], "--degree needs --kernel poly, not rbf"),
        ([*RBF, "--coef0", "2"], "--coef0 needs --kernel poly or sigmoid, not rbf"),
        ([*LINEAR, "--gamma", "1"], "--gamma needs --kernel rbf or poly or sigmoid, not linear"),
        ([*POLY, "--degree", "0"], "must be ≥ 1, got 0"),
        ([*POLY, "--coef0", "nan"], "must be a finite number, got 'nan'"),
        ([*RBF, "--n-components", "5"], "--n-components needs --approximation"),
        ([*RBF[:-1], "precomputed"], "must be one of rbf, poly, sigmoid, linear"),
    ],
)
def test_wrong_usage_ends_with_2(options, message, capsys):
    assert main(["train", "d", "m", *options]) == 2
    assert message in capsys.readouterr().err
