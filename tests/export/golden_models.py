"""The two models whose artefacts are kept as golden files, and the artefacts as text.

Numbers that are short in decimals and different from each other, so that a file can be read
beside this one: a weight of 0 that is left out, a negative one, a scaling that is folded in.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import linrank
from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.data.rows import ColumnStatistics
from linrank.data.scaling import Scaling
from linrank.errors import ExportWarning
from linrank.export import TARGETS
from linrank.export.artefact import Artefact

FOLDER = Path(__file__).resolve().parent / "golden"
_NAMES = ("bm25_title", "age", "popularity", "length")
_WEIGHTS = np.array([2.0, -0.5, 0.0, 1.5])  # of the scaled features
_DEVIATIONS = np.array([4.0, 0.125, 1.0, 1000.0])


def plain_model() -> LinearModel:
    """Weights 2, -0.5, 0 and 1.5 of raw features; no statistics, no rule for missing values."""
    return LinearModel(_WEIGHTS, _NAMES)


def full_model() -> LinearModel:
    """Standard deviations 4, 0.125, 1, 1000; means 10, 0.25, 3, 2500 for missing values."""
    mean = np.array([10.0, 0.25, 3.0, 2500.0])
    statistics = ColumnStatistics(
        100.0, 100, mean, _DEVIATIONS**2, mean - 2 * _DEVIATIONS, mean + 3 * _DEVIATIONS,
        np.full(4, 100),
    )  # fmt: skip
    scaling = Scaling("standard", 1.0 / _DEVIATIONS)
    missing = Missing("mean", mean)
    coef = scaling.fold(_WEIGHTS)
    return LinearModel(coef, _NAMES, scaling, missing=missing, statistics=statistics)


# Name of a folder -> how its artefact is made.
CASES = {
    **{f"{target}-plain": (plain_model, target, {}) for target in TARGETS},
    **{f"{target}-full": (full_model, target, {}) for target in TARGETS},
    "sql-table": (full_model, "sql", {"table": "documents", "qid": "query_id"}),
}


def artefact_of(case: str) -> Artefact:
    make, target, options = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        return make().export(target, name="golden", **options)


def texts_of(artefact: Artefact) -> dict[str, str]:
    """The files as text; the version of linrank does not count."""
    texts = dict(_text(name, content) for name, content in artefact.files.items())
    return {name: text.replace(linrank.__version__, "VERSION") for name, text in texts.items()}


def _text(name: str, content: bytes) -> tuple[str, str]:
    if name.endswith(".onnx"):
        return f"{name}.txt", _onnx_text(content)
    return name, content.decode()


def _onnx_text(content: bytes) -> str:
    """What a graph computes; not how the installed version of onnx packs it."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    model = onnx.load_from_string(content)
    lines = [f"opset {entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import]
    lines += [f"property {entry.key} = {entry.value}" for entry in model.metadata_props]
    for kind, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            tensor = value.type.tensor_type
            shape = [size.dim_param or size.dim_value for size in tensor.shape.dim]
            lines.append(
                f"{kind} {value.name} {onnx.TensorProto.DataType.Name(tensor.elem_type)} {shape}"
            )
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        lines.append(f"constant {tensor.name} {array.dtype} {array.tolist()}")
    for node in model.graph.node:
        lines.append(f"{', '.join(node.output)} = {node.op_type}({', '.join(node.input)})")
    return "".join(f"{line}\n" for line in lines)
