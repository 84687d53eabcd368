"""A model as an ONNX graph: ``X`` of shape [N, d] in, ``score`` of shape [N, 1] out."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from linrank import __version__
from linrank.data import Array, first_true
from linrank.data.curves import Curves
from linrank.export.artefact import Artefact, fill_text
from linrank.export.form import Form

# ---- the graph that scores rows: what the ONNX export and the converter for skl2onnx share ------
# Without missing values it is one product,
#
#     score = MatMul(X, w),                                         w of shape [d, 1].
#
# With them it is the definition of the score, ``Σ_j (x_j missing ? m_j : w_j x_j)``, by four
# operators of the core set that every runtime has:
#
#     score = ReduceSum(Where(IsNaN(X), m, Mul(X, w)), axis 1),     w and m of shape [1, d].
#
# Filling in the values themselves and multiplying after that would take as many, and lose a mean
# that float32 cannot hold where its product with the weight is harmless.


class Node(NamedTuple):
    """One operator: its type, what it reads and writes, its attributes."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any] = {}  # noqa: RUF012


Graph = tuple[dict[str, Array], list[Node]]  # constants, and operators from X to score


def scoring_graph(form: Form, dtype: type[np.floating[Any]]) -> Graph:
    """The graph of a form that has all columns of the model, in their order.

    Parameters
    ----------
    form : Form
        Weights of every column.
    dtype : numpy.float32 or numpy.float64
        What the graph computes in.
    """
    weights = form.weights.astype(dtype)
    if form.curves is not None:
        constants, nodes = _curve_terms(form.curves, dtype)
    elif form.missing == "error":
        return {"weights": weights[:, None]}, [Node("MatMul", ("X", "weights"), "score")]
    else:
        constants = {"weights": weights[None, :]}
        nodes = [Node("Mul", ("X", "weights"), "products")]
    added = nodes[-1].output
    if form.missing != "error":
        constants["if_missing"] = _contributions(form, dtype)[None, :]
        where = Node("Where", ("missing", "if_missing", added), "added")
        nodes, added = [Node("IsNaN", ("X",), "missing"), *nodes, where], "added"
    constants["by_row"] = np.array([1], dtype=np.int64)
    nodes.append(Node("ReduceSum", (added, "by_row"), "score", {"keepdims": 1}))
    return constants, nodes


def _curve_terms(curves: Curves, dtype: type[np.floating[Any]]) -> Graph:
    """Pieces found by counting the knots below each value, then ``v + s (x - t)`` of each piece."""
    sizes = np.diff(curves.offsets)
    knots = np.full((len(sizes), max(1, int(sizes.max()))), np.inf)
    origins: list[float] = []
    for j, (_, t, _, _) in enumerate(curves):
        knots[j, : len(t)] = t
        origins += [*t[:1].tolist(), *t.tolist()] or [0.0]
    constants: dict[str, Array] = {
        "knots": knots.astype(dtype)[None],
        "values": curves.values.astype(dtype),
        "slopes": curves.slopes.astype(dtype),
        "origins": np.array(origins).astype(dtype),
        "first": (curves.offsets[:-1] + np.arange(len(sizes)))[None, :],
        "by_knot": np.array([2], dtype=np.int64),
    }
    gathered = ("values", "slopes", "origins")
    return constants, [
        Node("Unsqueeze", ("X", "by_knot"), "each"),
        Node("Greater", ("each", "knots"), "above"),
        Node("Cast", ("above",), "counted", {"to": 7}),  # int64
        Node("ReduceSum", ("counted", "by_knot"), "count", {"keepdims": 0}),
        Node("Add", ("count", "first"), "piece"),
        *(Node("Gather", (name, "piece"), f"{name}_of") for name in gathered),
        Node("Sub", ("X", "origins_of"), "distance"),
        Node("Mul", ("slopes_of", "distance"), "moved"),
        Node("Add", ("values_of", "moved"), "heights"),
    ]


def _contributions(form: Form, dtype: type[np.floating[Any]]) -> Array:
    """What missing values add, in the type of the graph; the factor was chosen for the weights."""
    with np.errstate(over="ignore"):
        added: Array = form.contributions.astype(dtype)
    if (j := first_true(~np.isfinite(added))) is not None:
        raise ValueError(
            f"a missing {form.names[j]!r} adds {form.contributions[j]:g} to the score, which "
            f"{np.dtype(dtype).name} cannot hold; export with precision='float64', or rescale the "
            "feature"
        )
    return added


# The oldest that has all four operators with doubles; what was trained today is to run in the
# engines of three years ago.
_OPSET, _IR_VERSION = 17, 8


def write(form: Form, name: str, *, precision: str = "float32") -> Artefact:
    """The model as an ONNX file.

    Parameters
    ----------
    form : Form
        Weights of all columns of the model.
    name : str
        Name of the graph and of the file.
    precision : {"float32", "float64"}
        Type of ``X`` and ``score``, and what is computed in.
    """
    model = _model(form, name, np.float32 if precision == "float32" else np.float64)
    files = {"model.onnx": model.SerializeToString(deterministic=True)}
    return Artefact("onnx", files, _instructions(form, precision))


def _model(form: Form, name: str, dtype: type[np.floating[Any]]) -> Any:
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise ImportError("the export to ONNX needs onnx: pip install onnx") from None
    values, operators = scoring_graph(form, dtype)
    constants = [numpy_helper.from_array(value, key) for key, value in values.items()]
    nodes = [
        helper.make_node(op, inputs, [output], **attributes)
        for op, inputs, output, attributes in operators
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    rows = helper.make_tensor_value_info("X", element, ["N", len(form.names)])
    score = helper.make_tensor_value_info("score", element, ["N", 1])
    model = helper.make_model(
        helper.make_graph(nodes, name, [rows], [score], constants),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="linrank",
        producer_version=__version__,
    )
    helper.set_model_props(model, _properties(form))
    onnx.checker.check_model(model, full_check=True)
    return model


def _properties(form: Form) -> dict[str, str]:
    """What a program that finds the file later wants to know; values are JSON."""
    told = {
        "feature_names": list(form.names),
        "linrank_version": __version__,
        "factor": form.factor,
        "missing": form.missing,
        "scaling": form.scale,
    }
    return {key: json.dumps(value, ensure_ascii=False) for key, value in told.items()}


def _instructions(form: Form, precision: str) -> str:
    missing = "NaN stands for a missing value."
    if form.missing == "error":
        missing = "The model refuses missing values: a row with a NaN scores NaN."
    told: dict[str, Any] = {"n_features": len(form.names), "number": _VESPA[precision]}
    return fill_text("onnx", "text", precision=precision, missing=missing, **told)


_VESPA = {"float32": "float", "float64": "double"}
