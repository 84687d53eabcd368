"""Every method by its command is the estimator; scores, measures and cards of its models."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import linrank
from linrank import KernelModel, load, load_model
from linrank.data.rows import as_rows, resized
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel
from linrank.methods.base import METHODS
from linrank.metrics import evaluate

SCALED = {"C": 0.01, "scale": "standard"}
# Of each method: its estimator, and what the tests give to the command and to the estimator.
FACES = {
    "ranksvm": (linrank.RankSVM, "-c 0.5", {"C": 0.5}),
    "sgd": (linrank.SGDRanker, "--n-steps 5e3", {"n_steps": 5000}),
    "domination": (linrank.DominationRanker, "--alpha 5", {"alpha": 5.0}),
    "factorized": (linrank.FactorizedRankSVM, "-c 0.01 --scale standard", SCALED),
    "regularized": (linrank.RegularizedRankSVM, "-c 0.01 --scale standard", SCALED),
    "kernel": (linrank.KernelRankSVM, "--scale standard", {"scale": "standard"}),
}
SEED = {"random_state": 3}
POLY = {"kernel": "poly", "degree": 2, "coef0": 1.0}


@pytest.fixture
def model(tmp_path):
    return str(tmp_path / "m.json")


@pytest.fixture
def train(files, model, cli):
    """Train by a method, with what the tests give to it: what the command has told."""

    def run(method, options="-q", status=0):
        line = f"train {{train}} {model} --method {method} {FACES[method][1]} {options}"
        return cli(line, status=status, **files)

    return run


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
def test_the_model_is_that_of_the_estimator(files, model, train, method, options, params):
    train(method, f"-q {options}")
    found, twin = load_model(model), fitted(files, method, **params)
    assert_array_equal(found.coef, twin.model_.coef)
    assert found.training == {**twin.model_.training, "index_base": 1}
    if method == "kernel":
        assert found.kernel.gamma == twin.gamma_


# Of each method: options and what they mean, words of the summary, and what the report has: values,
# and attributes of the estimator.
TOLD = {
    "ranksvm": (
        "--loss hinge --solver bundle",
        {"loss": "hinge", "solver": "bundle"},
        ["bundle, hinge, C = 0.5", "certified: F - F* <= 0.001·F"],
        {"C": 0.5, "solver": "bundle", "n_closest": None, "n_random": None, "seed": None},
        {"duality_gap": "duality_gap_"},
    ),
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
        {"penalty": "l1", "alpha": 5.0, "margin": "linear:1,0.5", "layers": "labels", "seed": None},
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
        {"n_components": 3, "constraint": "box", "C": 0.01, "seed": 0, "nonzero_weights": 6},
        {"lower_bound": "lower_bound_", "hinge_objective": "hinge_objective_"},
    ),
    "regularized": (
        "",
        {},
        ["regularized, γ = ", "above the minimum", "by query, mean"],
        {},
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
        {"kernel": "rbf", "C": 0.5, "loss": "squared_hinge", "approximation": None, "seed": None},
        {"gamma": "gamma_", "pairs_compared": "n_pairs_", "support_rows": "n_support_"},
    ),
}


@pytest.mark.parametrize("method", TOLD)
def test_the_summary_and_the_report(files, train, method):
    options, params, words, values, attributes = TOLD[method]
    out, err = train(method, f"{options} --valid {{valid}} -m ndcg@5 --json -v")
    twin, data, is_exact = fitted(files, method, **params), files["train_data"], method != "sgd"
    usual = ["iteration   0  objective", "converged"] if is_exact else []
    for word in (*words, *usual, "ndcg@5"):
        assert word.format(twin=twin, n_rows=data.n_rows) in err
    report = json.loads(out)
    assert report["command"] == "train"
    assert report["data"]["pairs"] == data.queries.n_pairs
    assert set(report["valid"]["metrics"]) == {"ndcg@5"}
    if is_exact:
        attributes = {**attributes, "iterations": "n_iter_", "objective": "objective_"}
        values = {**values, "converged": True, "stopped": "tolerance"}
        values |= {} if method == "ranksvm" else {"method": method}
    expected = values | {key: getattr(twin, name) for key, name in attributes.items()}
    np.testing.assert_equal({key: report["training"][key] for key in expected}, expected)
    assert ("seed" in report["training"]) == (method != "regularized")


@pytest.mark.parametrize("method", FACES)
def test_the_other_commands_know_the_model(files, model, method, train, cli):
    assert train(method) == ("", "")
    shown = [line.split() for line in cli(f"inspect {model}").out.splitlines()]
    told = cli(f"inspect {model} --json").json["training"]
    assert told == dict(load_model(model).training)
    for key in {"method", "algorithm", "penalty", "alpha", "constraint", "gamma"} & told.keys():
        value = told[key]
        assert [key, value if isinstance(value, str) else f"{value:g}"] in shown
    scores = np.array(cli(f"predict {files['valid']} {model} -q").out.split(), dtype=float)
    assert_allclose(scores, fitted(files, method).predict(files["valid_data"].X), rtol=1e-6)
    cli(f"evaluate {files['valid']} --model {model} -m map -q")


@pytest.mark.parametrize("method", FACES)
def test_what_did_not_converge_ends_with_3(model, train, method):
    few = "--n-steps 300 -e 1e-9" if method == "sgd" else "--max-iter 1 -e 1e-12"
    err = train(method, few + " --alpha 0.01" * (method == "domination"), status=3).err
    said = "took all 300 steps; raise --n-steps" if method == "sgd" else "warning: did not converge"
    assert said in err
    assert load_model(model).training.get("converged", False) is False


@pytest.mark.parametrize("method", FACES)
def test_an_interrupt_leaves_no_file(tmp_path, monkeypatch, train, method):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setitem(METHODS, method, replace(METHODS[method], train=interrupted))
    assert "linrank: interrupted" in train(method, status=130).err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", FACES)
def test_bad_data_end_with_1(tmp_path, model, cli, method):
    path = tmp_path / "constant.txt"
    path.write_text("1 qid:1 1:1\n1 qid:1 1:2\n")
    err = cli(f"train {path} {model} --method {method}", status=1).err
    assert "all 2 rows have the same label" in err


# ---- of one method -------------------------------------------------------------------------------


def test_the_report_has_the_rounds_of_feature_induction(files, train):
    rounds = train("domination", "--feature-induction 2 --json -q").json["training"]["rounds"]
    twin = fitted(files, "domination", feature_induction=2)
    assert [r["features"] for r in rounds] == [r.features.tolist() for r in twin.rounds_]
    assert [r["objective"] for r in rounds] == [r.objective for r in twin.rounds_]


@pytest.mark.parametrize(("method", "key"), [("ranksvm", "n_pairs"), ("kernel", "pairs_compared")])
def test_chosen_pairs(files, model, train, method, key):
    out, err = train(method, "--pairs pruned --n-closest 100 --n-random 50 --seed 3 --json")
    sizes = {"n_closest": 100, "n_random": 50}
    twin = fitted(files, method, pairs="pruned", random_state=3, **sizes)
    assert_array_equal(load_model(model).coef, twin.model_.coef)
    report = json.loads(out)
    assert report["training"][key] == twin.n_pairs_ == 150
    expected = {"pairs": "pruned", "seed": 3, **sizes}
    assert {name: report["training"][name] for name in expected} == expected
    assert report["data"]["pairs"] == files["train_data"].queries.n_pairs
    assert "100 closest and 50 random of the labels, seed 3" in err


def test_without_a_method_it_is_ranksvm(files, tmp_path, cli):
    """The same bytes as with the default spelt out."""
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    cli(f"train {{train}} {a} -q", **files)
    cli(f"train {{train}} {b} -q --method ranksvm --solver newton", **files)
    assert a.read_bytes() == b.read_bytes()
    assert load_model(a).training["solver"] == "newton"
    assert "method" not in load_model(a).training


RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(6, 3)).astype(np.float32)
WIDE = RNG.normal(size=(6, 5)).astype(np.float32)
COEF = np.array([1.0, -2.0, 0.5, 0.25, -0.125, 4.0])
LINES = "2 qid:1 1:0.5 2:1 # a\n1 qid:1 1:-1\n0 qid:1 2:2 3:0.25\n1 qid:2 1:1\n0 qid:2 3:3\n"
X = np.array([[0.5, 1, 0], [-1, 0, 0], [0, 2, 0.25], [1, 0, 0], [0, 0, 3]])


@pytest.fixture
def saved(tmp_path):
    """Data of three features, and a model in a file."""

    def save(rows=ROWS, kernel=None, **options):
        model = KernelModel(
            rows,
            COEF,
            kernel or Kernel("rbf", 0.5),
            **{"support": [9, 3, 4, 1, 0, 7], "n_train": 12, "training": {"C": 2.0}, **options},
        )
        model.save(tmp_path / "m.json")
        (tmp_path / "data.txt").write_text(LINES)
        return model, str(tmp_path / "data.txt"), str(tmp_path / "m.json")

    return save


def predicted(data, model, cli):
    return np.array(cli(f"predict {data} {model} -q").out.split(), dtype=float)


def test_scores_and_measures_are_those_of_the_model(saved, cli):
    for kind, factors in (("minmax", np.array([1.0, 0.5, 2.0])), ("query", None), ("none", None)):
        model, data, path = saved(scaling=Scaling(kind, factors))
        expected = model.predict(X.astype(np.float32), qid=[1, 1, 1, 2, 2])
        assert_array_equal(predicted(data, path, cli), expected)
    found = cli(f"evaluate {data} --model {path} -m map --json").json["metrics"]
    assert found == evaluate([2, 1, 0, 1, 0], expected, qid=[1, 1, 1, 2, 2], metrics="map")


@pytest.mark.parametrize(
    ("rows", "training", "columns"),
    [
        # Features that the file leaves out are 0; else a distance would lack some of its terms.
        (WIDE[:, :5], {}, [0, 1, 2, 3, 3]),
        (sparse.csr_array(WIDE[:, :5]), {}, [0, 1, 2, 3, 3]),
        (ROWS[:, :2], {}, [0, 1]),  # features that the model does not know count nothing
        (WIDE[:, :4], {"index_base": 0}, [3, 0, 1, 2]),  # features are counted as in training
    ],
)
def test_features_are_those_of_the_training_rows(rows, training, columns, saved, cli):
    model, data, path = saved(rows, training=training)
    wide = np.pad(X, ((0, 0), (0, 1))).astype(np.float32)
    assert_allclose(predicted(data, path, cli), model.predict(wide[:, columns]), rtol=1e-12)
    told = "it knows 2, the file 3; they count nothing" in cli(f"predict {data} {path}").err
    assert told == (len(columns) == 2)


def test_a_precomputed_kernel_needs_a_column_for_each_training_row(saved, cli):
    model, data, path = saved(None, Kernel("precomputed"))
    err = cli(f"predict {data} {path}", status=1).err
    assert "the matrix has 3 columns, the model was trained on 12 rows" in err
    with open(data, "w") as file:
        file.write("0 qid:1 1:0.5 12:2\n1 qid:1 10:1\n")
    assert_allclose(predicted(data, path, cli), model.predict(load(data).X))


CARD = """\
model     kernel, trained with linrank 0.1.0
file      {path}, of {date}
kernel    rbf: exp(-γ‖a - b‖²), γ = 0.5
features  3
support   6 rows of 12 (50 %); dense float32, 6 × 3, 72 B
scale     minmax
C         2
coefficient  training row, counted from 0, the 2 largest of 6 that are not zero
         +4  7
         -2  3
"""


def test_the_card_of_a_kernel_model(saved, cli):
    _, _, path = saved(scaling=Scaling("minmax", np.ones(3)))
    out = cli(f"inspect {path} --top 2").out
    date = out.splitlines()[1].partition(", of ")[2]
    assert out == CARD.format(path=path, date=date)


def test_the_card_as_json(saved, cli):
    _, _, path = saved(kernel=Kernel("poly", 0.5, 2, 1.0))
    report = cli(f"inspect {path} --json --top 1").json
    expected = {
        **{"family": "kernel", "kernel": "poly", "support_rows": 6, "training_rows": 12},
        **{"parameters": {"gamma": 0.5, "degree": 2, "coef0": 1.0}, "bytes": 72},
        "coefficients": [{"term": 5, "training_row": 7, "coefficient": 4.0}],
    }
    assert {name: report[name] for name in expected} == expected


def test_cards_of_other_kernel_models(saved, cli):
    _, _, path = saved(None, Kernel("precomputed"))
    out = cli(f"inspect {path}").out
    for text in ("precomputed: given as a matrix", "12 columns, one for each", "6 rows of 12 (50"):
        assert text in out
    saved(sparse.csr_array(ROWS), support=None, n_train=None)
    out = cli(f"inspect {path}").out
    assert "6 rows; CSR float32" in out
    assert "support row, counted from 0" in out


def test_a_model_without_support_rows_has_a_card(tmp_path, cli):
    KernelModel(np.empty((0, 2)), [], Kernel("linear")).save(tmp_path / "m.json")
    assert "no row has a coefficient: all rows score 0" in cli(f"inspect {tmp_path / 'm.json'}").out


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 4, 7])
def test_rows_are_cut_and_widened(make, n_columns):
    before = X.copy()
    found = resized(as_rows(make(X)), n_columns).to_user()
    found = np.asarray(found.todense() if sparse.issparse(found) else found)
    expected = np.hstack([X, np.zeros((5, 4))])[:, :n_columns]
    assert_array_equal(found, expected)
    assert_array_equal(X, before)


def test_rows_that_would_not_fit_into_memory_are_not_widened():
    with pytest.raises(MemoryError, match=r"1000 dense rows of 1073741824 columns .* as CSR"):
        resized(as_rows(np.ones((1000, 2))), 2**30)
