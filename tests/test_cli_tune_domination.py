"""``linrank tune --method domination``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linrank import DominationRankerCV, load_model
from linrank.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore:the best alpha", "ignore:every alpha")


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def ranker(files, **params):
    data = files["train_data"]
    params = {"n_alphas": 6, "cv": 3, "random_state": 0, **params}
    return DominationRankerCV(**params).fit(data.X, data.y, qid=data.qid)


def tune(files, *options, folds="3", n_alphas="6"):
    base = ["tune", files["train"], "--method", "domination"]
    grid = [] if n_alphas is None else ["--n-alphas", n_alphas]
    return main([*base, *grid, *([] if folds is None else ["--folds", folds]), *options])


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--penalty", "l2"], {"penalty": "l2"}),
        (["--penalty", "l2", "--solver", "coordinate"], {"penalty": "l2", "solver": "coordinate"}),
        (["--eps", "0.1", "--scale", "standard"], {"eps": 0.1, "scale": "standard"}),
        (["--layers", "binary", "--margin", "2"], {"layers": "binary", "margin": 2.0}),
        (["--pooled", "--scoring", "map"], {"pooled": True, "scoring": "map"}),
        (["--selection", "one_se"], {"selection": "one_se"}),
        (["--max-features", "2", "-e", "1e-6"], {"max_features": 2, "tol": 1e-6}),
        (
            ["--negative-sampling", "0.5", "--seed", "3"],
            {"negative_sampling": 0.5, "random_state": 3},
        ),
    ],
)
def test_the_model_is_that_of_the_estimator(files, model, options, params):
    assert tune(files, "-o", model, "-q", *options) == 0
    found, twin = load_model(model), ranker(files, **params)
    assert_array_equal(found.coef, twin.coef_)
    assert found.training["alpha"] == twin.alpha_
    assert found.training["method"] == "domination"
    assert found.training["score"] == twin.best_score_


def test_the_table_and_the_summary(files, capsys):
    assert tune(files, "-v") == 0
    captured = capsys.readouterr()
    twin = ranker(files)
    lines = captured.out.splitlines()
    assert lines[0].split() == ["alpha", "weights", "ndcg@10", "deviation", "norm", "objective"]
    assert len(lines) == 7
    for line, alpha, n, mean in zip(
        lines[1:], twin.alphas_, twin.path_.n_nonzero, twin.mean_scores_, strict=True
    ):
        fields = line.replace("*", " ").split()
        assert fields[:3] == [f"{alpha:.6g}", str(n), f"{mean:.4f}"]
        assert line.startswith("*") == (alpha == twin.alpha_)
    for words in (
        "18 of 18 models",
        "24 models by domination",
        f"alpha = {twin.alpha_:g}: ndcg@10 {twin.best_score_:.4f} over 3 folds",
        f"{twin.n_nonzero_} of 6 features",
    ):
        assert words in captured.err


def test_alphas_and_a_validation_file(files, capsys):
    options = ["--alphas", "1:100:10", "--valid", files["valid"], "--json", "-q"]
    assert tune(files, *options, folds=None, n_alphas=None) == 0
    report = json.loads(capsys.readouterr().out)
    valid = files["valid_data"]
    twin = ranker(files, alphas=[1, 10, 100], cv=(valid.X, valid.y, valid.qid))
    assert_allclose(report["path"]["alpha"], [100, 10, 1])
    assert_allclose(report["path"]["scores"], twin.scores_)
    assert report["path"]["nonzero_weights"] == twin.path_.n_nonzero.tolist()
    assert report["nonzero_weights"] == twin.n_nonzero_
    assert (report["method"], report["penalty"], report["folds"]) == ("domination", "l1", 1)
    assert report["alpha"] == twin.alpha_
    assert report["score"] == twin.best_score_
    assert all(report["path"]["converged"])


def test_the_picture(files, tmp_path):
    picture = tmp_path / "path.svg"
    assert tune(files, "--plot", str(picture), "-q") == 0
    assert "<svg" in picture.read_text()


def test_a_model_on_standard_output(files, capsys):
    assert tune(files, "-o", "-", "-q") == 0
    assert json.loads(capsys.readouterr().out)["training"]["method"] == "domination"


def test_too_few_sweeps(files, capsys):
    assert tune(files, "--max-iter", "1", "-e", "1e-12") == 3
    assert "did not converge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--solver", "bundle"], "must be one of auto, coordinate, newton, got 'bundle'"),
        (["--penalty", "none"], "must be one of l1, l2, got 'none'"),
        (["--alphas", "1,2"], "--n-alphas and --alphas exclude each other"),
        (["--eps", "2"], "must be a number > 0 and ≤ 1, got '2'"),
        (["--max-features", "0"], "must be ≥ 1, got 0"),
        (["--folds", "1"], "argument --folds: must be ≥ 2"),
    ],
)
def test_options_that_do_not_go_together(files, capsys, options, words):
    assert tune(files, *options) == 2
    assert words in capsys.readouterr().err


def test_the_other_ways_are_as_before(files, model):
    assert main(["tune", files["train"], "-o", model, "--Cs", "0.1,1", "--folds", "2", "-q"]) == 0
    assert load_model(model).training["solver"] == "newton"
    assert np.isin(load_model(model).training["C"], [0.1, 1.0])
