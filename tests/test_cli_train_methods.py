"""``linrank train --method``: every method by its command is the estimator, told and written."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linrank
from linrank import load_model
from linrank.cli.main import main
from linrank.methods.base import METHODS

# Of each method: its estimator, and what the tests give to the command and to the estimator.
FACES = {
    "ranksvm": (linrank.RankSVM, "-c 0.5", {"C": 0.5}),
    "sgd": (linrank.SGDRanker, "--n-steps 5e3", {"n_steps": 5000}),
    "domination": (linrank.DominationRanker, "--alpha 5", {"alpha": 5.0}),
    "factorized": (
        linrank.FactorizedRankSVM,
        "-c 0.01 --scale standard",
        {"C": 0.01, "scale": "standard"},
    ),
    "regularized": (
        linrank.RegularizedRankSVM,
        "-c 0.01 --scale standard",
        {"C": 0.01, "scale": "standard"},
    ),
    "kernel": (linrank.KernelRankSVM, "--scale standard", {"scale": "standard"}),
}
SEED = {"random_state": 3}
POLY = {"kernel": "poly", "degree": 2, "coef0": 1.0}


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


def train(files, model, method, *options):
    base = ["--method", method, *FACES[method][1].split()]
    return main(["train", files["train"], model, *base, *" ".join(options).split()])


def fitted(files, method, **params):
    """The estimator that the command is to equal."""
    data, (cls, _, base) = files["train_data"], FACES[method]
    return cls(**{"random_state": 0, **base, **params}).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize(
    ("method", "options", "params"),
    [
        *((method, "", {}) for method in FACES),
        ("ranksvm", "--solver tron --scale minmax", {"solver": "tron", "scale": "minmax"}),
        ("ranksvm", "--query-normalization none", {"query_normalization": None}),
        ("sgd", "--algorithm pa --aggressiveness 0.5", {"algorithm": "pa", "aggressiveness": 0.5}),
        ("sgd", "-c 0.1 --average uniform --seed 3", {"C": 0.1, "average": "uniform", **SEED}),
        ("domination", "--penalty l2 -e 1e-8", {"penalty": "l2", "tol": 1e-8}),
        ("domination", "--layers binary --margin 2", {"layers": "binary", "margin": 2.0}),
        ("factorized", "--constraint ball --seed 3", {"constraint": "ball", **SEED}),
        ("regularized", "--gamma 0.5 --lam 2", {"gamma": 0.5, "lam": 2.0}),
        ("kernel", "--kernel poly --degree 2 --coef0 1", POLY),
        ("kernel", "--loss hinge --memory-limit 4", {"loss": "hinge", "memory_limit": 4_000_000}),
    ],
)
def test_the_model_is_that_of_the_estimator(files, model, method, options, params):
    assert train(files, model, method, "-q", options) == 0
    found, twin = load_model(model), fitted(files, method, **params)
    assert_array_equal(found.coef, twin.model_.coef)
    assert found.training == {**twin.model_.training, "index_base": 1}
    if method == "kernel":
        assert found.kernel.gamma == twin.gamma_


# Of each method: options and what they mean, words of the summary, values and attributes that the
# report has.
TOLD = {
    "sgd": (
        "--record exact",
        {"record": "exact"},
        ["step         100  objective", "pegasos, λ = 0.0001", "5,000 steps"],
        {"solver": "sgd", "algorithm": "pegasos", "alpha": 1e-4, "stopped": "n_steps"},
        {"objective": "objective_", "steps": "n_steps_"},
    ),
    "domination": (
        "--margin linear:1,0.5",
        {"margin": ("linear", 1, 0.5)},
        ["domination loss, l1, α = 5", "{twin.n_nonzero_} of 6 features", "above the minimum"],
        {
            **{"method": "domination", "penalty": "l1", "alpha": 5.0, "margin": "linear:1,0.5"},
            **{"layers": "labels", "pooled": False, "seed": None, "stopped": "tolerance"},
        },
        {"nonzero_weights": "n_nonzero_", "density": "density_", "duality_gap": "duality_gap_"},
    ),
    "factorized": (
        "--n-components 3",
        {"n_components": 3},
        [
            "factorized, K = 3, box, C = 0.01: ",
            "objective {twin.hinge_objective_:.10g} of RankSVM with the hinge",
            "at least {twin.lower_bound_:.10g}",
        ],
        {
            **{"method": "factorized", "n_components": 3, "constraint": "box", "C": 0.01},
            **{"seed": 0, "scale": "standard", "nonzero_weights": 6, "stopped": "tolerance"},
        },
        {"lower_bound": "lower_bound_", "hinge_objective": "hinge_objective_"},
    ),
    "regularized": (
        "",
        {},
        ["regularized, γ = ", "above the minimum", "by query, mean"],
        {"method": "regularized"},
        {"duality_gap": "duality_gap_", "ranks": "ranks_"},
    ),
    "kernel": (
        "-c 0.5",
        {"C": 0.5},
        [
            "rbf, γ = {twin.gamma_:.4g}, squared hinge, C = 0.5: {twin.n_iter_} iteration",
            "objective {twin.objective_:.10g}, at most {twin.duality_gap_:.2g}",
            "{twin.n_support_:,} of {n_rows:,} rows support it",
        ],
        {
            **{"kernel": "rbf", "C": 0.5, "loss": "squared_hinge", "pairs": "all"},
            **{"approximation": None, "scale": "standard", "stopped": "tolerance"},
            "seed": None,  # nothing was drawn
        },
        {"gamma": "gamma_", "pairs_compared": "n_pairs_", "support_rows": "n_support_"},
    ),
}


@pytest.mark.parametrize("method", TOLD)
def test_the_summary_and_the_report(files, model, capsys, method):
    options, params, words, values, attributes = TOLD[method]
    asked = f"--valid {files['valid']} -m ndcg@5 --json -v"
    assert train(files, model, method, options, asked) == 0
    captured, twin = capsys.readouterr(), fitted(files, method, **params)
    data, is_exact = files["train_data"], method != "sgd"
    usual = ["iteration   0  objective", "converged"] if is_exact else []
    for word in (*words, *usual, "ndcg@5"):
        assert word.format(twin=twin, n_rows=data.n_rows) in captured.err
    report = json.loads(captured.out)
    assert report["command"] == "train"
    assert report["data"]["pairs"] == data.queries.n_pairs
    assert set(report["valid"]["metrics"]) == {"ndcg@5"}
    if is_exact:
        attributes = {**attributes, "iterations": "n_iter_", "objective": "objective_"}
        values = {**values, "converged": True}
    expected = values | {key: getattr(twin, name) for key, name in attributes.items()}
    np.testing.assert_equal({key: report["training"][key] for key in expected}, expected)
    assert ("seed" in report["training"]) == (method != "regularized")


@pytest.mark.parametrize("method", FACES)
def test_the_other_commands_know_the_model(files, model, capsys, method, cli):
    assert train(files, model, method, "-q") == 0
    assert capsys.readouterr() == ("", "")
    shown = cli("inspect", model).out
    told = cli("inspect", model, "--json").json["training"]
    training = load_model(model).training
    assert told == dict(training)
    for key in {"method", "algorithm", "penalty", "alpha", "constraint", "gamma"} & told.keys():
        value = told[key]
        expected = value if isinstance(value, str) else f"{value:g}"
        assert [key, expected] in [line.split() for line in shown.splitlines()]
    scores = np.array(cli("predict", files["valid"], model, "-q").out.split(), dtype=float)
    assert_allclose(scores, fitted(files, method).predict(files["valid_data"].X), rtol=1e-6)
    cli("evaluate", files["valid"], "--model", model, "-m", "map", "-q")


@pytest.mark.parametrize("method", FACES)
def test_what_did_not_converge_ends_with_3(files, model, capsys, method):
    few = "--n-steps 300 -e 1e-9" if method == "sgd" else "--max-iter 1 -e 1e-12"
    assert train(files, model, method, few, "--alpha 0.01" if method == "domination" else "") == 3
    said = "took all 300 steps; raise --n-steps" if method == "sgd" else "warning: did not converge"
    assert said in capsys.readouterr().err
    assert load_model(model).training.get("converged", False) is False


@pytest.mark.parametrize("method", FACES)
def test_an_interrupt_leaves_no_file(files, tmp_path, monkeypatch, capsys, method):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, method, replace(METHODS[method], train=interrupted))
    path = tmp_path / "m.json"
    assert train(files, str(path), method) == 130
    assert "linrank: interrupted" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize("method", FACES)
def test_bad_data_end_with_1(tmp_path, model, capsys, method):
    path = tmp_path / "constant.txt"
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    assert main(["train", str(path), model, "--method", method]) == 1
    assert "all 2 rows have the same label" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ("10", "sgd --algorithm logistic --record exact", "the logistic loss has no such sum"),
        ("0-1", "domination --margin log", "row 0, above the lowest layer of its query, has label"),
        ("0-1", "domination --layers binary", "all 2 rows are in the same layer by 'binary'"),
    ],
)
def test_labels_that_an_option_cannot_take(tmp_path, model, cli, labels, options, message):
    path = tmp_path / "two.txt"
    path.write_text(f"{labels[0]} qid:1 1:1\n{labels[1:]} qid:1 1:2\n")
    assert message in cli("train", path, model, "--method", *options.split(), status=1).err


# ---- of one method -------------------------------------------------------------------------------


def test_the_report_has_the_rounds_of_feature_induction(files, model, capsys):
    assert train(files, model, "domination", "--feature-induction 2 --json -q") == 0
    rounds = json.loads(capsys.readouterr().out)["training"]["rounds"]
    twin = fitted(files, "domination", feature_induction=2)
    assert [r["features"] for r in rounds] == [r.features.tolist() for r in twin.rounds_]
    assert [r["objective"] for r in rounds] == [r.objective for r in twin.rounds_]


@pytest.mark.parametrize("method", ["ranksvm", "kernel"])
def test_chosen_pairs(files, model, capsys, method):
    options = "--pairs pruned --n-closest 100 --n-random 50 --seed 3"
    assert train(files, model, method, options, "--json") == 0
    captured = capsys.readouterr()
    sizes = {"n_closest": 100, "n_random": 50}
    twin = fitted(files, method, pairs="pruned", random_state=3, **sizes)
    assert_array_equal(load_model(model).coef, twin.model_.coef)
    report = json.loads(captured.out)
    key = "n_pairs" if method == "ranksvm" else "pairs_compared"
    assert report["training"][key] == twin.n_pairs_ == 150
    expected = {"pairs": "pruned", "seed": 3, **sizes}
    assert {name: report["training"][name] for name in expected} == expected
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs
    assert "100 closest and 50 random of the labels, seed 3" in captured.err


def test_all_pairs_have_no_sizes(files, model, capsys, cli):
    assert train(files, model, "ranksvm", "--json") == 0
    out, err = capsys.readouterr()
    told = json.loads(out)["training"]
    assert told["n_closest"] is told["n_random"] is told["seed"] is None
    assert "closest" not in err
    assert "n_closest" not in cli("inspect", model).out


def test_without_a_method_it_is_ranksvm(files, tmp_path):
    """The same bytes as with the default spelt out."""
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    assert main(["train", files["train"], str(a), "-q"]) == 0
    explicit = ["--method", "ranksvm", "--solver", "newton"]
    assert main(["train", files["train"], str(b), "-q", *explicit]) == 0
    assert a.read_bytes() == b.read_bytes()
    assert load_model(a).training["solver"] == "newton"
    assert "method" not in load_model(a).training


# ---- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("svm", "no method is named 'svm'"),
        ("ranksvm --solver auto", "must be one of newton, bundle, tron, prsvm, prsvm+, got 'auto'"),
        ("sgd --alpha 1 -c 1", "--alpha excludes --C"),
        ("sgd --aggressiveness 2", "needs --algorithm pa, not pegasos"),
        ("sgd --average median", "must be one of weighted, uniform, got 'median'"),
        (
            "domination --solver newton --penalty l2 --feature-induction 3",
            "--feature-induction needs --solver auto or coordinate, not newton",
        ),
        ("kernel --kernel linear --gamma 1", "--gamma needs --kernel rbf or poly or sigmoid"),
        ("kernel --n-components 5", "--n-components needs --approximation"),
        ("kernel --kernel precomputed", "must be one of rbf, poly, sigmoid, linear"),
    ],
)
def test_wrong_usage_ends_with_2(options, message, cli):
    assert message in cli("train", "d", "m", "--method", *options.split(), status=2).err
