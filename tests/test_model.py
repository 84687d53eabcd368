"""LinearModel: scores, explanations, and a file that gives the same model back."""

import json
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from any_models import assert_same, kernel_models, linear_models, sparse_models
from hypothesis_profiles import examples
from linrank import KernelModel, LinearModel, ModelFormatError, load_model, make_ranking
from linrank.data.scaling import Scaling
from linrank.kernels.functions import Kernel
from linrank.models import file as model_file
from strategies import datasets


@examples(60)
@given(model=linear_models() | sparse_models() | kernel_models())
def test_round_trip_is_exact_and_deterministic(model, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round-trip.json"
    model.save(path)
    content = path.read_bytes()
    again = load_model(path)
    assert_same(model, again)
    again.save(path)
    assert path.read_bytes() == content
    assert_same(model, pickle.loads(pickle.dumps(model)))


def test_the_file_is_plain_json_with_at_most_17_digits(tmp_path):
    path = tmp_path / "m.json"
    LinearModel([0.1, 1 / 3, -0.0, 5e-324], ["a", "b", "c", "é"], training={"C": 1.0}).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["format"] == "linrank-model"
    assert document["version"] == 1
    assert document["feature_names"] == ["a", "b", "c", "é"]
    assert path.read_text().splitlines()[-2] == '"coef": [0.1, 0.3333333333333333, -0.0, 5e-324]'


@given(model=sparse_models())
def test_coefficients_are_written_in_the_shorter_form(model):
    written, full = json.loads(model.to_json())["coef"], json.dumps(model.coef.tolist())
    stored = [j for j, value in enumerate(model.coef.tolist()) if str(value) != "0.0"]
    indices, values = json.dumps(stored), json.dumps([model.coef[j] for j in stored])
    short = f'{{"indices": {indices}, "values": {values}}}'
    assert json.dumps(written) == min(full, short, key=len)


@pytest.mark.parametrize("kind", ["short", "names", "factors", "half"])
def test_what_is_neither_short_nor_sparse_is_packed(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(model_file, "MAX_LISTED", 1000)
    n = 3000 if kind == "short" else 1001
    coef = np.zeros(n)
    coef[:: 1 if kind == "names" else 2 if kind == "half" else n] = 1 / 3
    coef[-1] = -0.0
    names = [f'f"{i}\n' for i in range(n)] if kind == "names" else None
    factors = np.full(n, 1 / 3) if kind == "factors" else np.abs(coef)
    model = LinearModel(coef, names, Scaling("standard", factors))
    model.save(tmp_path / "m.json")
    size = (tmp_path / "m.json").stat().st_size
    assert size < (1000 if kind == "short" else 23 * n + (16 * n if names else 2000))
    assert_same(model, load_model(tmp_path / "m.json"))


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("MAX_BYTES", r"bytes is more than there is free memory for \(100\); .* or load it where"),
        ("MAX_VALUES", "more than 100 values"),
        ("MAX_SPARSE", "1002 entries, and there is free memory for 100; .* or load it where"),
    ],
)
def test_what_is_saved_is_read_where_there_is_memory(tmp_path, monkeypatch, limit, message):
    """Models of any size are saved; the limits of files of strangers grow with the memory."""
    coef = np.zeros(501)
    coef[500] = 0.5
    names = [f"f{j}" for j in range(501)] if limit == "MAX_VALUES" else None
    model = LinearModel(coef, names, Scaling("standard", coef))
    monkeypatch.setattr(model_file, limit, 100)
    model.save(tmp_path / "m.json")
    monkeypatch.setattr(model_file, "available", lambda: 0)
    with pytest.raises(ModelFormatError, match=message):
        load_model(tmp_path / "m.json")
    monkeypatch.setattr(model_file, "available", lambda: 100_000)
    assert_same(model, load_model(tmp_path / "m.json"))


def test_saving_through_a_link_keeps_the_link_and_the_usual_permissions(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    before = os.umask(0o027)
    try:
        LinearModel([1.0]).save(link)
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert_array_equal(load_model(link).coef, [1.0])


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, copy = tmp_path / "pipe", tmp_path / "copy.json"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(pipe.read_bytes)
        LinearModel([1.0, 2.0]).save(pipe)
        copy.write_bytes(received.result(timeout=120))
    assert pipe.is_fifo()
    assert load_model(copy).coef.tolist() == [1.0, 2.0]


@given(datasets())
def test_scores_and_contributions_agree(data):
    coef = np.linspace(-1, 2, data.n_features)
    model = LinearModel(coef)
    X = np.asarray(data.X.toarray() if sparse.issparse(data.X) else data.X, dtype=np.float64)
    scores = model.predict(data)
    assert_allclose(scores, X @ coef, atol=1e-12)
    assert_array_equal(scores, model.predict(data.X))
    parts = model.explain(data.X)
    assert sparse.issparse(parts) == sparse.issparse(data.X)
    assert_allclose(parts.sum(axis=1), scores, atol=1e-12)
    i, j = 0, data.n_rows - 1
    difference = model.explain(data, pair=(i, j))
    assert_allclose(difference, coef * (X[i] - X[j]))
    assert_allclose(difference.sum(), scores[i] - scores[j], atol=1e-12)


def test_a_model_scaled_by_query_needs_the_queries():
    data = make_ranking(n_queries=4, n_features=3, random_state=1)
    model = LinearModel(np.ones(3), scaling=Scaling("query"))
    with pytest.raises(ValueError, match="scoring needs qid"):
        model.predict(data.X)
    scores = model.predict(data)
    assert_array_equal(scores, model.predict(data.X, qid=data.qid))
    scaled = Scaling("query").transform(data.rows, data.queries).values
    assert_allclose(scores, scaled.sum(axis=1), rtol=1e-5)
    pair = model.explain(data.X, qid=data.qid, pair=(2, 0))
    assert_allclose(pair, np.float64(scaled[2]) - np.float64(scaled[0]))


def test_rows_that_do_not_fit_are_an_error():
    model = LinearModel([1.0, 2.0], ["a", "b"])
    data = make_ranking(n_queries=1, n_features=2, random_state=0)
    object.__setattr__(data, "feature_names", ("b", "a"))
    frame = pd.DataFrame({"b": [1.0], "a": [0.0]})
    swapped = r"feature 0 is 'b', the model was trained with 'a'"
    wider = r"X has 3 columns, the model 2 features; it was not trained on 'price': select its"
    for rows, words in (
        (np.ones((1, 3)), r"3 features, the model 2; .* pass n_features=2"),
        (data, swapped),
        (frame, swapped),
        (frame.assign(price=1.0), wider),
        (frame[["a"]], "1 columns, the model 2 features; X lacks 'b': "),
        (frame[["a", "b"]].assign(price=1.0), wider),
    ):
        with pytest.raises(ValueError, match=words):
            model.predict(rows)
    assert model.predict(frame.assign(price=1.0)[list(model.feature_names)]) == [2.0]
    with pytest.raises(ValueError, match="pair names row 5, but there are 2 rows"):
        model.explain(np.ones((2, 2)), pair=(0, 5))
    with pytest.raises(TypeError, match=r"pair must be two row numbers \(i, j\), got 3"):
        model.explain(np.ones((2, 2)), pair=3)


def test_a_model_is_shown_in_one_line():
    model = LinearModel([1.0, 2.0], training={"C": 0.5, "solver": "newton", "n_pairs": 7})
    assert repr(model) == (
        "<LinearModel 2 features, scale='none', C=0.5, solver='newton', n_pairs=7>"
    )
    assert repr(LinearModel([0.0, 2.0, -0.0])) == (
        "<LinearModel 3 features, 1 with a weight, scale='none'>"
    )
    kernel, training = Kernel("poly", 0.5, 2, 1.0), {"C": 2.0, "n_pairs": 7}
    assert repr(KernelModel([[0.0], [1.0]], [1.0, 2.0], kernel, training=training)) == (
        "<KernelModel poly, gamma=0.5, degree=2, coef0=1, 2 support rows, 1 features, "
        "scale='none', C=2.0, n_pairs=7>"
    )


def test_the_density_counts_the_weights_that_are_not_zero():
    model = LinearModel([0.0, 2.0, -0.0, 5e-324])
    assert (model.n_nonzero, model.density) == (2, 0.5)
    assert (LinearModel([0.0]).n_nonzero, LinearModel([1.0]).density) == (0, 1.0)


def test_the_coefficients_cannot_be_changed_and_are_a_copy():
    coef, kernel = np.ones(2), Kernel("linear")
    models = LinearModel(coef), KernelModel([[0.0], [1.0]], coef, kernel, np.arange(2), 3)
    coef[0] = 7.0
    for array in (*(model.coef for model in models), models[1].support):
        assert array[0] in (0, 1.0)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coef": []}, "non-empty vector"),
        ({"coef": [[1.0]]}, r"got shape \(1, 1\)"),
        ({"coef": [1.0, np.nan]}, r"coef\[1\] is nan"),
        ({"coef": [1.0], "feature_names": ["a", "b"]}, "2 feature names for 1"),
        ({"coef": [1.0], "feature_names": [3]}, "must be strings, got 3"),
        ({"coef": [1.0], "feature_names": ["\ud800"]}, "not valid Unicode"),
        ({"coef": [1.0], "training": {"C": [1]}}, r"training\['C'\] must be"),
        ({"coef": [1.0], "scaling": Scaling("minmax", np.ones(2))}, "2 scaling factors for 1"),
    ],
)
def test_a_wrong_model_is_an_error(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        LinearModel(**arguments)


def test_numbers_that_json_cannot_hold_become_null(tmp_path):
    training = {"gap": np.inf, "n": np.int64(3), "x": np.float32(0.5), "b": np.bool_(True)}
    LinearModel([1.0], training=training).save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json").training
    assert loaded == {"gap": None, "n": 3, "x": 0.5, "b": True}
    assert [type(v) for _, v in sorted(loaded.items())] == [bool, type(None), int, float]


def test_models_score_without_scipy_and_scikit_learn(tmp_path):
    """Serving a model takes NumPy only: the modules are made unimportable."""
    LinearModel([1.0, 2.0], scaling=Scaling("query")).save(tmp_path / "linear")
    KernelModel([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0], Kernel("linear")).save(tmp_path / "kernel")
    code = (
        "import sys; sys.modules['scipy'] = sys.modules['sklearn'] = None\n"
        "import linrank\n"
        "for path in sys.argv[1:]:\n"
        "    model = linrank.load_model(path)\n"
        "    print(model.predict([[1.0, 2.0], [3.0, 2.0]], qid=[0, 0]).tolist())\n"
    )
    paths = [str(tmp_path / "linear"), str(tmp_path / "kernel")]
    found = subprocess.check_output([sys.executable, "-c", code, *paths], text=True)
    assert found == "[0.5, 1.5]\n[1.0, -1.0]\n"


def test_the_order_of_the_summary_does_not_change_the_bytes(tmp_path):
    for name, training in (("a", {"C": 1.0, "gap": 2.0}), ("b", {"gap": 2.0, "C": 1.0})):
        LinearModel([1.0], training=training).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[1.0, 2.0], [1e308, 1e308]], "the score of row 1 is nan (1 such rows)"),
        ([[1e308, 0.0], [1.0, 0.0], [0.0, 1e308]], "the score of row 0 is inf (2 such rows)"),
    ],
)
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_scores_beyond_all_floats_are_refused(rows, told, make):
    model = LinearModel(np.array([400.0, -400.0]))
    with pytest.raises(ValueError, match=re.escape(told) + ".*divide such features"):
        model.predict(make(rows))


def test_large_scores_whose_sum_is_no_float_are_scores():
    assert LinearModel(np.ones(1)).predict([[1.5e308], [1.5e308]]).tolist() == [1.5e308, 1.5e308]
