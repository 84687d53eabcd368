"""``linrank tune --method kernel``: what it chooses, prints, draws, writes and refuses."""

from __future__ import annotations

import json

import pytest
from numpy.testing import assert_allclose

from linrank import KernelRankSVMCV
from linrank.cli.main import NOT_CONVERGED, main
from linrank.io.load import load
from linrank.metrics import evaluate
from linrank.models.linear import load_model

KERNEL = ["--method", "kernel", "--kernel"]
GRID = [*KERNEL, "rbf", "--Cs", "0.01,0.1", "--gammas", "0.02,0.2", "--folds", "2"]

pytestmark = pytest.mark.filterwarnings("ignore:the best")


def report(capsys, *arguments):
    assert main(["tune", *arguments, "--json", "-q"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_it_does_what_the_estimator_does(files, tmp_path, capsys):
    data = load(files["train"])
    truth = KernelRankSVMCV(Cs=[0.01, 0.1], gammas=[0.02, 0.2], cv=2, random_state=0)
    truth.fit(data.X, data.y, qid=data.qid)
    model = str(tmp_path / "m.json")
    told = report(capsys, files["train"], *GRID, "-o", model)
    assert told["grid"]["gammas"] == [0.02, 0.2]
    assert_allclose(told["grid"]["Cs"], [0.01, 0.1])
    assert_allclose(told["grid"]["scores"], truth.scores_, rtol=0.02)
    assert_allclose(told["grid"]["mean_scores"], truth.mean_scores_, rtol=0.01)
    assert (told["kernel"], told["folds"], told["converged"]) == ("rbf", 2, True)
    assert told["score"] == max(max(row) for row in told["grid"]["mean_scores"])
    written = load_model(model)
    assert written.training["C"] == told["C"]
    assert written.kernel.gamma == told["gamma"]
    assert written.training["score"] == told["score"]
    assert main(["evaluate", files["valid"], "--model", model]) == 0


def test_options_go_through(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    options = [
        *KERNEL,
        "poly",
        "--degree",
        "2",
        "--coef0",
        "1",
        "--gammas",
        "0.1",
        "--Cs",
        "0.1,1",
    ]
    options += ["--pairs", "adjacent", "--scale", "standard", "--memory-limit", "5", "--folds", "2"]
    told = report(capsys, files["train"], *options, "--selection", "one_se", "-o", model)
    data = load(files["train"])
    truth = KernelRankSVMCV(
        "poly", degree=2, coef0=1.0, gammas=[0.1], Cs=[0.1, 1], pairs="adjacent", scale="standard",
        cv=2, selection="one_se", random_state=0,
    ).fit(data.X, data.y, qid=data.qid)  # fmt: skip
    assert_allclose(told["grid"]["mean_scores"], truth.mean_scores_, rtol=0.01)
    assert (told["C"], told["degree"], told["memory_limit"]) == (truth.C_, 2, 5_000_000)
    kernel = load_model(model).kernel
    assert (kernel.name, kernel.degree, kernel.coef0, kernel.gamma) == ("poly", 2, 1.0, 0.1)


def test_pairs_are_chosen_in_each_training_part(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    options = ["--pairs", "pruned", "--n-closest", "200", "--n-random", "100", "--seed", "3"]
    told = report(capsys, files["train"], *GRID, *options, "-o", model)
    data = load(files["train"])
    truth = KernelRankSVMCV(
        Cs=[0.01, 0.1], gammas=[0.02, 0.2], cv=2, pairs="pruned", n_closest=200, n_random=100,
        random_state=3,
    ).fit(data.X, data.y, qid=data.qid)  # fmt: skip
    assert_allclose(told["grid"]["mean_scores"], truth.mean_scores_, rtol=0.01)
    assert (told["n_closest"], told["n_random"], told["seed"]) == (200, 100, 3)
    assert load_model(model).training["n_pairs"] == 300 == truth.n_pairs_


def test_a_validation_file(files, tmp_path, capsys):
    model = str(tmp_path / "m.json")
    options = ["--valid", files["valid"], "--scoring", "map", "-o", model]
    told = report(capsys, files["train"], *GRID[:-2], *options)
    valid = files["valid_data"]
    scores = load_model(model).predict(valid.X)
    value = evaluate(valid.y, scores, qid=valid.qid, metrics="map")["map"]
    assert told["score"] == pytest.approx(value, rel=1e-3)
    assert told["folds"] == 1


def test_table_summary_and_picture(files, tmp_path, capsys):
    picture = tmp_path / "grid.svg"
    assert main(["tune", files["train"], *GRID, "--plot", str(picture)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].split() == ["gamma", "C", "ndcg@10", "deviation"]
    assert len(lines) == 5
    starred = [line.split() for line in lines if line.startswith("*")]
    assert len(starred) == 1
    assert max(float(line[-19:].split()[0]) for line in lines[1:]) == float(starred[0][3])
    assert "9 models by kernel" in captured.err
    assert "chosen    gamma = " in captured.err
    assert ", C = " in captured.err
    assert "certified by the dual" in captured.err
    assert picture.read_text().startswith("<?xml")


def test_a_kernel_without_gamma_has_no_column_of_it(files, capsys):
    assert main(["tune", files["train"], *KERNEL, "linear", "--Cs", "0.1,1"]) == 0
    captured = capsys.readouterr()
    assert captured.out.split()[:3] == ["C", "ndcg@10", "deviation"]
    assert "gamma" not in captured.err
    assert "is the " in captured.err  # one of two values is always an edge


def test_progress_is_a_line_a_model(files, capsys):
    assert main(["tune", files["train"], *GRID, "-v"]) == 0
    err = capsys.readouterr().err
    assert err.count(" of 8 models  fold ") == 8
    assert "gamma 0.02  C 0.01  objective" in err


def test_what_did_not_converge_is_told(files, capsys):
    options = ["--max-iter", "1", "--tol", "1e-9", "--query-normalization", "none"]
    assert main(["tune", files["train"], *GRID, *options]) == NOT_CONVERGED
    err = capsys.readouterr().err
    assert "8 of 8 models on the folds did not reach the tolerance" in err
    assert "did not converge: the certified gap" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*KERNEL, "precomputed"], "must be one of rbf, poly, sigmoid, linear"),
        ([*KERNEL, "rbf", "--gammas", "0:1"], "must be finite and > 0"),
        ([*KERNEL, "rbf", "--gammas", "-1"], "--gammas"),
        ([*KERNEL, "linear", "--gammas", "1"], "--gammas needs --kernel rbf or poly or sigmoid"),
        ([*KERNEL, "rbf", "--degree", "2"], "--degree needs --kernel poly, not rbf"),
        ([*KERNEL, "rbf", "--coef0", "nan"], "must be a finite number"),
    ],
)
def test_options_that_do_not_go_together_are_refused(files, capsys, options, message):
    try:
        code = main(["tune", files["train"], *options])
    except SystemExit as stop:
        code = stop.code
    assert code != 0
    assert message in capsys.readouterr().err
