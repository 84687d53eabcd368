"""Export to ONNX: onnxruntime orders rows as the model does."""

import builtins

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from portable_models import KINDS, NAMES, assert_scores, code_in, model_of, rows_of

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


def test_a_model_that_refuses_missing_values_is_one_product_that_scores_nan():
    artefact = model_of("error").export("onnx")
    model = onnx.load_model_from_string(artefact.content)
    assert [node.op_type for node in model.graph.node] == ["MatMul"]
    X = np.ones((3, len(NAMES)), dtype=np.float32)
    X[1, 0] = np.nan
    assert np.isnan(run(artefact, X)).tolist() == [False, True, False]


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
