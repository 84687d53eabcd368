"""``linrank train --method domination``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linrank import DominationRanker, load_model
from linrank.cli.main import main
from linrank.cli.options import margin, share


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def ranker(files, **params):
    data = files["train_data"]
    params = {"alpha": 5.0, "random_state": 0, **params}
    return DominationRanker(**params).fit(data.X, data.y, qid=data.qid)


def train(files, model, *options, alpha="5"):
    weight = [] if alpha is None else ["--alpha", alpha]
    return main(["train", files["train"], model, "--method", "domination", *weight, *options])


@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--penalty", "l2"], {"penalty": "l2"}),
        (["--penalty", "l2", "--solver", "coordinate"], {"penalty": "l2", "solver": "coordinate"}),
        (["--penalty", "l2", "--solver", "newton", "-e", "1e-8"], {"penalty": "l2", "tol": 1e-8}),
        (["--layers", "binary", "--pooled"], {"layers": "binary", "pooled": True}),
        (["--margin", "2"], {"margin": 2.0}),
        (["--margin", "linear:3"], {"margin": ("linear", 3)}),
        (
            ["--negative-sampling", "0.5", "--seed", "3"],
            {"negative_sampling": 0.5, "random_state": 3},
        ),
        (["--scale", "standard"], {"scale": "standard"}),
        (["--feature-induction", "2"], {"feature_induction": 2}),
    ],
)
def test_the_model_is_that_of_the_estimator(files, model, options, params):
    assert train(files, model, "-q", *options) == 0
    assert_array_equal(load_model(model).coef, ranker(files, **params).coef_)


def test_the_report_has_the_rounds_of_feature_induction(files, model, capsys):
    assert train(files, model, "--feature-induction", "2", "--json", "-q") == 0
    rounds = json.loads(capsys.readouterr().out)["training"]["rounds"]
    twin = ranker(files, feature_induction=2)
    assert [r["features"] for r in rounds] == [r.features.tolist() for r in twin.rounds_]
    assert [r["objective"] for r in rounds] == [r.objective for r in twin.rounds_]


def test_alpha_is_1_if_not_given(files, model):
    assert train(files, model, "-q", alpha=None) == 0
    assert load_model(model).training["alpha"] == 1.0
    assert_array_equal(load_model(model).coef, ranker(files, alpha=1.0).coef_)


def test_the_summary_and_the_report(files, model, capsys):
    options = ["--margin", "linear:1,0.5", "--valid", files["valid"], "--scoring", "ndcg@5"]
    assert train(files, model, *options, "--json", "-v") == 0
    captured = capsys.readouterr()
    twin = ranker(files, margin=("linear", 1, 0.5))
    n_used = f"{twin.n_nonzero_} of 6 features"
    for words in ("iteration   0  objective", "domination loss, l1, α = 5", n_used, "ndcg@5"):
        assert words in captured.err
    assert "above the minimum" in captured.err
    report = json.loads(captured.out)
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs
    assert set(report["valid"]["metrics"]) == {"ndcg@5"}
    expected = {
        "method": "domination",
        "penalty": "l1",
        "alpha": 5.0,
        "margin": "linear:1,0.5",
        "layers": "labels",
        "pooled": False,
        "seed": None,
        "objective": twin.objective_,
        "duality_gap": twin.duality_gap_,
        "nonzero_weights": twin.n_nonzero_,
        "density": twin.density_,
        "iterations": twin.n_iter_,
        "converged": True,
        "stopped": "tolerance",
    }
    assert {key: report["training"][key] for key in expected} == expected


@pytest.mark.parametrize(
    ("penalty", "words"),
    [
        ("l2", ("l2, α = 5: ", "Newton step", "above the minimum", "6 of 6 features")),
        ("none", ("no penalty: ", "sweep", "the last steps lowered F")),
    ],
)
def test_progress_and_summary_of_every_penalty(files, model, capsys, penalty, words):
    alpha = None if penalty == "none" else "5"
    assert train(files, model, "-v", "--json", "--penalty", penalty, alpha=alpha) == 0
    captured = capsys.readouterr()
    for word in ("iteration   1  objective", *words):
        assert word in captured.err
    gap = json.loads(captured.out)["training"]["duality_gap"]
    assert (gap is None) == (penalty == "none")


def test_inspect_and_predict_know_the_model(files, model, capsys):
    assert train(files, model, "-q", "--margin", "linear:2", "--pooled") == 0
    assert main(["inspect", model]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[:30])
    told = {"method": "domination", "penalty": "l1", "alpha": "5", "margin": "linear:2,0"}
    assert {key: lines[key] for key in told} == told
    assert lines["pooled"] == "yes"
    assert (
        f"{ranker(files, margin=('linear', 2), pooled=True).n_nonzero_} with a weight"
        in (lines["features"])
    )
    assert main(["predict", files["valid"], model, "-q"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    assert len(scores) == files["valid_data"].n_rows


def test_too_few_iterations_end_with_3(files, model, capsys):
    assert train(files, model, "--max-iter", "1", "-e", "1e-12", alpha="0.01") == 3
    assert "linrank: warning: did not converge" in capsys.readouterr().err
    assert load_model(model).n_features == 6


def test_quiet_is_silent(files, model, capsys):
    assert train(files, model, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_leaves_no_file(files, tmp_path, monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("linrank.methods.domination.solve", interrupted)
    path = tmp_path / "m.json"
    assert train(files, str(path)) == 130
    assert "linrank: interrupted" in capsys.readouterr().err
    assert not path.exists()


DOMINATION = ["--method", "domination"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--solver", "auto"], "must be one of newton, bundle, tron, prsvm, prsvm+, got 'auto'"),
        ([*DOMINATION, "--solver", "tron"], "must be one of auto, coordinate, newton, got 'tron'"),
        (
            [*DOMINATION, "--solver", "newton", "--penalty", "l2", "--feature-induction", "3"],
            "--feature-induction needs --solver auto or coordinate, not newton",
        ),
        ([*DOMINATION, "--penalty", "none", "--alpha", "1"], "--alpha needs --penalty l1 or l2"),
        ([*DOMINATION, "--alpha", "-1"], "must be finite and > 0, got '-1'"),
        ([*DOMINATION, "--penalty", "l0"], "must be one of l1, l2, none, got 'l0'"),
        ([*DOMINATION, "--layers", "all"], "must be one of labels, binary, got 'all'"),
        ([*DOMINATION, "--margin", "exp"], "must be a finite number, linear[:K1[,K2]]"),
        ([*DOMINATION, "--negative-sampling", "2"], "must be a number > 0 and ≤ 1, got '2'"),
        ([*DOMINATION, "--feature-induction", "0"], "must be ≥ 1, got 0"),
        (["--method", "svm"], "no method is named 'svm'"),
    ],
)
def test_wrong_usage_ends_with_2(options, message, capsys):
    assert main(["train", "d", "m", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.5", 2.5),
        ("-1", -1.0),
        ("log", ("log", 1.0, 0.0)),
        ("linear:200", ("linear", 200.0, 0.0)),
        ("log:1,2.7", ("log", 1.0, 2.7)),
    ],
)
def test_margins_on_the_command_line(text, expected):
    assert margin(text) == expected


@pytest.mark.parametrize("text", ["", "nan", "inf", "log:", "log:1,2,3", "exp:1", "linear:inf"])
def test_wrong_margins_on_the_command_line(text):
    with pytest.raises(Exception, match=r"must be a finite number, linear\[:K1"):
        margin(text)


@pytest.mark.parametrize("text", ["0", "-0.1", "1.01", "nan", "half"])
def test_wrong_shares_on_the_command_line(text):
    with pytest.raises(Exception, match="must be a number > 0 and ≤ 1"):
        share(text)
    assert share("1") == 1.0


def test_bad_data_ends_with_1(tmp_path, model, capsys):
    path = tmp_path / "constant.txt"
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    assert main(["train", str(path), model, *DOMINATION]) == 1
    assert "all 2 rows have the same label" in capsys.readouterr().err
    path.write_text("0 qid:1 1:1\n-1 qid:1 1:2\n")
    assert main(["train", str(path), model, *DOMINATION, "--margin", "log"]) == 1
    assert "row 0, above the lowest layer of its query, has label 0" in capsys.readouterr().err
    assert main(["train", str(path), model, *DOMINATION, "--layers", "binary"]) == 1
    assert "all 2 rows are in the same layer by 'binary'" in capsys.readouterr().err


def test_without_a_method_nothing_changes(files, tmp_path):
    """The same bytes as with the default spelt out."""
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    assert main(["train", files["train"], str(a), "-q"]) == 0
    explicit = ["--method", "ranksvm", "--solver", "newton"]
    assert main(["train", files["train"], str(b), "-q", *explicit]) == 0
    assert a.read_bytes() == b.read_bytes()
    assert load_model(a).training["solver"] == "newton"
    assert "method" not in load_model(a).training
