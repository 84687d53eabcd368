"""Artefacts are what they were when somebody last read them beside the engine's documentation.

Two models of numbers that are short in decimals and different from each other, so that a file can
be read beside this one: a weight of 0 that is left out, a negative one, a scaling that is folded
in. ``python tests/export/test_golden.py`` writes the files anew; read the difference: the other
tests say whether they rank rightly.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from exported_models import statistics
from serving import exported

import linrank
from linrank import LinearModel
from linrank.data.missing import Missing
from linrank.data.scaling import Scaling
from linrank.export import TARGETS

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
    known = statistics(mean - 2 * _DEVIATIONS, mean + 3 * _DEVIATIONS)
    scaling = Scaling("standard", 1.0 / _DEVIATIONS)
    missing = Missing("mean", mean)
    coef = scaling.fold(_WEIGHTS)
    return LinearModel(coef, _NAMES, scaling, missing=missing, statistics=known)


# Name of a folder -> how its artefact is made.
CASES = {
    **{f"{target}-plain": (plain_model, target, {}) for target in TARGETS},
    **{f"{target}-full": (full_model, target, {}) for target in TARGETS},
    "sql-table": (full_model, "sql", {"table": "documents", "qid": "query_id"}),
}


def texts_of(case: str) -> dict[str, str]:
    """The files of an artefact as text; the version of linrank does not count."""
    make, target, options = CASES[case]
    artefact = exported(make(), target, name="golden", **options)
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


@pytest.mark.parametrize("case", CASES)
def test_the_artefact_is_the_one_that_was_read(case):
    golden = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / case).iterdir()}
    assert texts_of(case) == golden


def test_there_is_no_golden_file_of_another_time():
    assert {path.name for path in FOLDER.iterdir()} == set(CASES)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    for case in CASES:
        (FOLDER / case).mkdir(parents=True)
        for name, text in texts_of(case).items():
            (FOLDER / case / name).write_text(text, encoding="utf-8", newline="\n")
