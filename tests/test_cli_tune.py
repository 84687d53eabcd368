"""``linrank tune``: the choice of the estimator, told and written, and notes on it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linrank
from cli_files import write_svmlight
from linrank import AutoRanker, evaluate, load, load_model, make_ranking
from linrank.cli.main import NOT_CONVERGED

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
def tune(files, cli):
    """Run ``linrank tune`` with the grid of a method: what it has told."""

    def run(method, options, folds="--folds 3", status=0, **names):
        line = f"tune {{train}} --method {method} {FACES[method][1]} {folds} {options}"
        return cli(line, status=status, **files, **names)

    return run


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
def test_it_does_what_the_estimator_does(files, tmp_path, cli, tune, method, options, params):
    model = str(tmp_path / "m.json")
    out, err = tune(method, f"{options} --json -q -o {model}")
    twin, told = fitted(files, method, **params), json.loads(out)
    training = load_model(model).training
    assert err == ""
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
    cli(f"evaluate {files['valid']} --model {model} -q")


@pytest.mark.parametrize("method", FACES)
def test_a_validation_file(files, tune, method):
    valid = files["valid_data"]
    told = tune(method, "--valid {valid} -m map --json -q", folds="").json
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
def test_table_summary_and_progress(files, tune, method, columns, n_models):
    (out, err), twin = tune(method, "-v"), fitted(files, method)
    head, *lines = out.splitlines()
    assert head.split() == columns
    assert len(lines) == n_models
    (starred,) = [line.lstrip("*").split() for line in lines if line.startswith("*")]
    assert float(starred[columns.index("ndcg@10")]) == pytest.approx(twin.best_score_, abs=6e-5)
    has_path = method in ("ranksvm", "domination")
    models, trained = 3 * n_models, 3 * n_models + (n_models if has_path else 1)
    for words in (f"{models} of {models} models", f"{trained} models by {method}", "over 3 folds"):
        assert words in err
    if method == "domination":
        shown = [line.replace("*", " ").split()[:2] for line in lines]
        n_weights = map(str, twin.path_.n_nonzero)
        assert shown == [[f"{a:.6g}", n] for a, n in zip(twin.alphas_, n_weights, strict=True)]
        assert f"{twin.n_nonzero_} of 6 features" in err


def test_alphas_are_told_with_their_weights(files, cli):
    line = "tune {train} --method domination --alphas 1:100:10 --folds 3 --json -q"
    told, twin = cli(line, **files).json, fitted(files, "domination", alphas=[1, 10, 100])
    assert_allclose(told["path"]["alpha"], [100, 10, 1])
    assert told["path"]["nonzero_weights"] == twin.path_.n_nonzero.tolist()
    assert told["nonzero_weights"] == twin.n_nonzero_
    assert (told["method"], told["penalty"]) == ("domination", "l1")
    assert all(told["path"]["converged"])


def test_a_kernel_without_gamma_has_no_column_of_it(files, cli):
    out, err = cli("tune {train} --method kernel --kernel linear --Cs 0.1,1", **files)
    assert out.split()[:3] == ["C", "ndcg@10", "deviation"]
    assert "gamma" not in err
    assert "is the " in err  # one of two values is always an edge


@pytest.mark.parametrize("method", FACES)
def test_a_model_on_standard_output(tune, method):
    out, err = tune(method, "-o - -q")
    assert json.loads(out)["training"]["score"] > 0.5
    assert err == ""


@pytest.mark.parametrize("method", ["ranksvm", "domination", "kernel"])
def test_what_did_not_converge_is_told(tune, tmp_path, method):
    normalized = "--query-normalization none" if method == "kernel" else ""
    model = tmp_path / "m.json"
    options = f"--max-iter 1 -e 1e-12 {normalized} -o {model}"
    err = tune(method, options, status=NOT_CONVERGED).err
    assert "did not converge" in err
    assert load_model(model).training["converged"] is False
    if method == "kernel":
        assert "12 of 12 models on the folds did not reach the tolerance" in err


def test_auto_does_what_the_estimator_does(files, tmp_path, cli):
    model = str(tmp_path / "m.json")
    line = f"tune {{train}} --auto --folds 3 -m ndcg@5 --seed 0 --json -q -o {model}"
    told, data = cli(line, **files).json, load(files["train"])
    assert told["method"] == "auto"
    truth = AutoRanker("ndcg@5", cv=3, random_state=0).fit(data.X, data.y, qid=data.qid)
    assert told["score"] == pytest.approx(truth.best_score_)
    assert (told["chosen"], told["model"]) == (truth.best_params_["model"], model)
    assert_allclose(load_model(model).predict(data.X), truth.predict(data.X), rtol=1e-9)
    cli(f"train {{train}} {model} --method auto -q", **files)
    assert load_model(model).training["model"] in truth.models_


# ---- data, grids and notes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "pattern", "text"), [(5, r" 6:\S+", ""), (6, " #", " 9:1 #")], ids=["few", "many"]
)
def test_a_validation_file_with_other_features(files, tmp_path, cli, known, pattern, text):
    valid, model, path = files["valid_data"], tmp_path / "m.json", tmp_path / "other.txt"
    path.write_text(re.sub(pattern, text, files["valid"].read_text()))
    out, err = cli(f"tune {files['train']} --Cs 0.1 --valid {path} --json -o {model}")
    scores = valid.X[:, :known] @ load_model(model).coef[:known]
    value = evaluate(valid.y, scores, qid=valid.qid, metrics="ndcg@10")["ndcg@10"]
    assert json.loads(out)["score"] == pytest.approx(value)
    assert ("they count nothing" in err) == (known == 6)


def test_the_edge_is_a_note(files, cli):
    err = cli("tune {train} --Cs 1e-9,1e-8 --folds 2", **files).err
    assert "every C of the grid scores" in err
    assert "of the grid; try" in cli("tune {train} --Cs 1e-4,1e2 --folds 2", **files).err


def test_the_number_of_threads_changes_nothing(files, cli):
    line = "tune {train} --Cs 1e-4:1:10 --json -q -j "
    one, two = (cli(line + n, **files).json for n in "12")
    assert one["path"] == two["path"]


def test_labels_below_zero_are_measured_by_pairs(tmp_path, cli):
    data = make_ranking(n_queries=20, n_features=3, random_state=1)
    path = write_svmlight(tmp_path / "signed.txt", replace(data, labels=data.labels - 1))
    out, err = cli(f"tune {path} --Cs 0.1,1 --json")
    assert json.loads(out)["scoring"] == "pairwise_accuracy"
    assert "ndcg is left out" in err


def test_the_usual_grid(files, cli):
    told = cli("tune {train} --folds 2 --json -q", **files).json
    assert_allclose(told["path"]["C"], 2.0 ** np.arange(-10, 15) / 40)
