"""Kernel models on the command line: scores, measures, a card."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from linrank import KernelModel, load
from linrank.data.rows import as_rows, resized
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel
from linrank.metrics import evaluate

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
