"""``linrank tune --method``: the choice of the estimator, told and written."""

from __future__ import annotations

import json

import pytest
from numpy.testing import assert_allclose

import linrank
from linrank import load_model
from linrank.cli.main import NOT_CONVERGED, main

pytestmark = pytest.mark.filterwarnings("ignore:the best", "ignore:every alpha")
# Of each method: its estimator, and the grid that the tests give to the command and to it.
FACES = {
    "ranksvm": (linrank.RankSVMCV, "--Cs 0.01,0.1,1", {"Cs": [0.01, 0.1, 1.0]}),
    "sgd": (
        linrank.SGDRankerCV,
        "--alphas 0.001:0.1:10 --n-steps 3000",
        {"alphas": [0.1, 0.01, 0.001], "n_steps": 3000},
    ),
    "domination": (linrank.DominationRankerCV, "--n-alphas 6", {"n_alphas": 6}),
    "kernel": (
        linrank.KernelRankSVMCV,
        "--Cs 0.01,0.1 --gammas 0.02,0.2",
        {"Cs": [0.01, 0.1], "gammas": [0.02, 0.2]},
    ),
}


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def tune(files, method, *options, folds="--folds 3"):
    base = ["--method", method, *FACES[method][1].split(), *folds.split()]
    return main(["tune", files["train"], *base, *" ".join(options).split()])


def fitted(files, method, **params):
    data, (cls, _, grid) = files["train_data"], FACES[method]
    ranker = cls(**{**grid, "cv": 3, "random_state": 0, **params})
    return ranker.fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize(
    ("method", "options", "params"),
    [
        *((method, "", {}) for method in FACES),
        (
            "ranksvm",
            "--positive --bounds 1::0.01 --loss hinge",
            {"positive": True, "coef_bounds": {0: (None, 0.01)}, "loss": "hinge"},
        ),
        (
            "sgd",
            "--algorithms pegasos,hybrid --scale standard",
            {"algorithms": ("pegasos", "hybrid"), "scale": "standard"},
        ),
        ("domination", "--penalty l2 --margin 2", {"penalty": "l2", "margin": 2.0}),
        ("domination", "--max-features 2 -m map", {"max_features": 2, "scoring": "map"}),
        (
            "kernel",
            "--kernel poly --degree 2 --coef0 1 --memory-limit 5 --selection one_se",
            {"kernel": "poly", "degree": 2, "coef0": 1.0, "selection": "one_se"},
        ),
    ],
)
def test_it_does_what_the_estimator_does(files, model, capsys, method, options, params):
    assert tune(files, method, options, "--json -q -o", model) == 0
    captured, twin = capsys.readouterr(), fitted(files, method, **params)
    told, training = json.loads(captured.out), load_model(model).training
    assert captured.err == ""
    found = told["path" if method in ("ranksvm", "domination") else "grid"]
    # The estimator ends the kernels of a path at another tolerance.
    rtol = 0.02 if method == "kernel" else 1e-9
    assert_allclose(found["scores"], twin.scores_, rtol=rtol)
    assert_allclose(found["mean_scores"], twin.mean_scores_, rtol=rtol)
    assert told["folds"] == 3
    assert training["score"] == told["score"]
    if method == "kernel":
        assert (told["C"], told["gamma"]) == (twin.C_, pytest.approx(twin.gamma_))
        assert (training["C"], load_model(model).kernel.gamma) == (told["C"], told["gamma"])
        assert training["n_pairs"] == twin.n_pairs_
        assert told["memory_limit"] == (5_000_000 if "memory" in options else None)
    else:
        assert_allclose(load_model(model).coef, twin.coef_, rtol=1e-9)
        chosen = "C" if method == "ranksvm" else "alpha"
        assert told[chosen] == training[chosen] == getattr(twin, f"{chosen}_")
    assert main(["evaluate", files["valid"], "--model", model, "-q"]) == 0


@pytest.mark.parametrize("method", FACES)
def test_a_validation_file(files, capsys, method):
    valid = files["valid_data"]
    options = f"--valid {files['valid']} -m map --json -q"
    assert tune(files, method, options, folds="") == 0
    told = json.loads(capsys.readouterr().out)
    twin = fitted(files, method, cv=(valid.X, valid.y, valid.qid), scoring="map")
    assert told["folds"] == 1
    assert told["score"] == pytest.approx(twin.best_score_, rel=1e-3)


@pytest.mark.parametrize(
    ("method", "columns", "n_models"),
    [
        ("ranksvm", ["C", "ndcg@10", "deviation", "norm", "objective"], 3),
        ("sgd", ["algorithm", "alpha", "ndcg@10", "deviation"], 3),
        ("domination", ["alpha", "weights", "ndcg@10", "deviation", "norm", "objective"], 6),
        ("kernel", ["gamma", "C", "ndcg@10", "deviation"], 4),
    ],
)
def test_table_summary_and_progress(files, capsys, method, columns, n_models):
    assert tune(files, method, "-v") == 0
    captured, twin = capsys.readouterr(), fitted(files, method)
    head, *lines = captured.out.splitlines()
    assert head.split() == columns
    assert len(lines) == n_models
    (starred,) = [line.lstrip("*").split() for line in lines if line.startswith("*")]
    assert float(starred[columns.index("ndcg@10")]) == pytest.approx(twin.best_score_, abs=6e-5)
    has_path = method in ("ranksvm", "domination")
    models, trained = 3 * n_models, 3 * n_models + (n_models if has_path else 1)
    for words in (f"{models} of {models} models", f"{trained} models by {method}", "over 3 folds"):
        assert words in captured.err
    if method == "domination":
        shown = [line.replace("*", " ").split()[:2] for line in lines]
        n_weights = map(str, twin.path_.n_nonzero)
        assert shown == [[f"{a:.6g}", n] for a, n in zip(twin.alphas_, n_weights, strict=True)]
        assert f"{twin.n_nonzero_} of 6 features" in captured.err


def test_alphas_are_told_with_their_weights(files, cli):
    options = "--alphas 1:100:10 --folds 3 --json -q"
    told = cli("tune", files["train"], "--method", "domination", *options.split()).json
    twin = fitted(files, "domination", alphas=[1, 10, 100])
    assert_allclose(told["path"]["alpha"], [100, 10, 1])
    assert told["path"]["nonzero_weights"] == twin.path_.n_nonzero.tolist()
    assert told["nonzero_weights"] == twin.n_nonzero_
    assert (told["method"], told["penalty"]) == ("domination", "l1")
    assert all(told["path"]["converged"])


def test_a_kernel_without_gamma_has_no_column_of_it(files, cli):
    options = "--method kernel --kernel linear --Cs 0.1,1"
    captured = cli("tune", files["train"], *options.split())
    assert captured.out.split()[:3] == ["C", "ndcg@10", "deviation"]
    assert "gamma" not in captured.err
    assert "is the " in captured.err  # one of two values is always an edge


@pytest.mark.parametrize("method", FACES)
def test_a_model_on_standard_output(files, capsys, method):
    assert tune(files, method, "-o - -q") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["training"]["score"] > 0.5
    assert captured.err == ""


@pytest.mark.parametrize("method", ["ranksvm", "domination", "kernel"])
def test_what_did_not_converge_is_told(files, capsys, method):
    normalized = "--query-normalization none" if method == "kernel" else ""
    assert tune(files, method, "--max-iter 1 -e 1e-12", normalized) == NOT_CONVERGED
    err = capsys.readouterr().err
    assert "did not converge" in err
    if method == "kernel":
        assert "12 of 12 models on the folds did not reach the tolerance" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("sgd -e 0.1", "-e belongs to --method ranksvm, domination"),
        ("domination --penalty none", "must be one of l1, l2, got 'none'"),
        ("domination --n-alphas 6 --alphas 1,2", "--n-alphas excludes --alphas"),
        ("kernel --kernel linear --gammas 1", "--gammas needs --kernel rbf or poly or sigmoid"),
    ],
)
def test_wrong_usage_ends_with_2(options, message, cli):
    assert message in cli("tune", "d", "--method", *options.split(), status=2).err
