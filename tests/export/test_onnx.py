"""Export to ONNX: onnxruntime orders rows as the model does."""

import builtins
import json

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from portable_models import KINDS, NAMES, assert_scores, code_in, model_of, rows_of

from linrank import LinearModel, __version__
from linrank.data.missing import Missing

UNITS = {"float32": 2.0**-24, "float64": 2.0**-53}


def run(artefact, X):
    session = onnxruntime.InferenceSession(artefact.content)
    (scores,) = session.run(["score"], {"X": X})
    assert scores.shape == (len(X), 1)
    assert scores.dtype == X.dtype
    return scores[:, 0]


@pytest.mark.parametrize("precision", UNITS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_runtime_orders_rows_as_the_model_does(kind, precision):
    model = model_of(kind)
    X = rows_of(100_000, len(NAMES), missing=kind != "error", dtype=precision)
    artefact = model.export("onnx", precision=precision)
    assert_scores(run(artefact, X), model, X, UNITS[precision])


@pytest.mark.parametrize("coef", [[3e-40, 1e-42], [2e38, -1e39], [1e-250, 1e-251]])
def test_weights_that_float32_cannot_hold_are_multiplied_by_a_power_of_two(coef):
    model = LinearModel(coef, missing=Missing("mean", np.array([0.5, 2.0])))
    artefact = model.export("onnx")
    factor = json.loads(properties(artefact)["factor"])
    assert np.log2(factor) % 1 == 0
    assert factor != 1.0
    X = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    X[::3, 1] = np.nan
    assert_scores(run(artefact, X), model, X, UNITS["float32"], factor)


def test_a_mean_beyond_float32_is_kept_by_its_product():
    model = LinearModel([1e-38, 1.0], missing=Missing("mean", np.array([1e40, 0.0])))
    artefact = model.export("onnx")
    factor = json.loads(properties(artefact)["factor"])
    X = np.array([[np.nan, 1.0], [1.0, np.nan]], dtype=np.float32)
    np.testing.assert_allclose(run(artefact, X), factor * np.array([101.0, 1e-38]), rtol=1e-6)


def properties(artefact):
    model = onnx.load_model_from_string(artefact.content)
    return {prop.key: prop.value for prop in model.metadata_props}


def test_what_the_file_says_of_itself():
    model = onnx.load_model_from_string(model_of("mean").export("onnx", name="ranker").content)
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.name == "ranker"
    assert (model.producer_name, model.producer_version) == ("linrank", __version__)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    assert model.ir_version == 8
    told = {prop.key: json.loads(prop.value) for prop in model.metadata_props}
    assert told == {
        "feature_names": list(NAMES),
        "linrank_version": __version__,
        "factor": 1.0,
        "missing": "mean",
        "scaling": "none",
    }


def test_a_model_that_refuses_missing_values_is_one_product_that_scores_nan():
    artefact = model_of("error").export("onnx")
    model = onnx.load_model_from_string(artefact.content)
    assert [node.op_type for node in model.graph.node] == ["MatMul"]
    X = np.ones((3, len(NAMES)), dtype=np.float32)
    X[1, 0] = np.nan
    assert np.isnan(run(artefact, X)).tolist() == [False, True, False]


def test_the_same_model_gives_the_same_bytes():
    assert model_of("mean").export("onnx").content == model_of("mean").export("onnx").content


def test_the_code_of_the_instructions_runs(tmp_path, monkeypatch):
    model, X = model_of("mean"), rows_of(50, len(NAMES), dtype=np.float32)
    artefact = model.export("onnx")
    artefact.save(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    told = {"frame": pd.DataFrame(X, columns=NAMES)[sorted(NAMES)]}
    code = code_in(artefact.instructions.split("In Vespa")[0])
    exec(code, told)
    assert_scores(told["score"], model, X, UNITS["float32"])


def test_another_precision_is_refused():
    with pytest.raises(ValueError, match="precision must be 'float32' or 'float64', got 'half'"):
        model_of().export("onnx", precision="half")


def test_without_the_package_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "onnx":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install onnx"):
        model_of().export("onnx")
