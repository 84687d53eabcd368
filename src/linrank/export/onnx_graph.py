"""The graph that scores rows: what the ONNX export and the converter for skl2onnx share.

Without missing values it is one product,

    score = MatMul(X, w),                                         w of shape [d, 1].

With them it is the definition of the score, ``Σ_j (x_j missing ? m_j : w_j x_j)``, by four
operators of the core set that every runtime has:

    score = ReduceSum(Where(IsNaN(X), m, Mul(X, w)), axis 1),     w and m of shape [1, d].

Filling in the values themselves and multiplying after that would take as many, and lose a mean
that float32 cannot hold where its product with the weight is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.export.curve_form import CurveForm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.export.linear_form import LinearForm


@dataclass(frozen=True)
class Node:
    """One operator: its type, what it reads and writes, its attributes."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Graph:
    """Operators from ``X`` to ``score``, and the constants that they use."""

    constants: dict[str, NDArray[Any]]
    nodes: tuple[Node, ...]


def scoring_graph(form: LinearForm, dtype: type[np.floating[Any]]) -> Graph:
    """The graph of a form that has all columns of the model, in their order.

    Parameters
    ----------
    form : LinearForm
        Weights of every column.
    dtype : numpy.float32 or numpy.float64
        What the graph computes in.
    """
    if isinstance(form, CurveForm):
        return _curve_graph(form, dtype)
    weights = form.weights.astype(dtype)
    if form.missing == "error":
        return Graph({"weights": weights[:, None]}, (Node("MatMul", ("X", "weights"), "score"),))
    constants: dict[str, NDArray[Any]] = {
        "weights": weights[None, :],
        "if_missing": _held(form, dtype)[None, :],
        "by_row": np.array([1], dtype=np.int64),
    }
    nodes = (
        Node("IsNaN", ("X",), "missing"),
        Node("Mul", ("X", "weights"), "products"),
        Node("Where", ("missing", "if_missing", "products"), "added"),
        Node("ReduceSum", ("added", "by_row"), "score", {"keepdims": 1}),
    )
    return Graph(constants, nodes)


def _curve_graph(form: CurveForm, dtype: type[np.floating[Any]]) -> Graph:
    """Pieces found by counting the knots below each value, then ``v + s (x - t)`` of each piece."""
    sizes, pieces = np.diff(form.curves.offsets), np.concatenate
    knots = np.full((len(sizes), max(1, int(sizes.max()))), np.inf)
    for j, (_, t, _, _) in enumerate(form.curves):
        knots[j, : len(t)] = t
    origins = [t[:1].tolist() + t.tolist() or [0.0] for _, t, _, _ in form.curves]
    constants: dict[str, NDArray[Any]] = {
        "knots": knots.astype(dtype)[None],
        "values": form.curves.values.astype(dtype),
        "slopes": form.curves.slopes.astype(dtype),
        "origins": pieces([np.array(each) for each in origins]).astype(dtype),
        "first": (form.curves.offsets[:-1] + np.arange(len(sizes)))[None, :],
        "if_missing": _held(form, dtype)[None, :],
        "by_knot": np.array([2], dtype=np.int64),
        "by_row": np.array([1], dtype=np.int64),
    }
    nodes = [
        Node("Unsqueeze", ("X", "by_knot"), "each"),
        Node("Greater", ("each", "knots"), "above"),
        Node("Cast", ("above",), "counted", {"to": 7}),  # int64
        Node("ReduceSum", ("counted", "by_knot"), "count", {"keepdims": 0}),
        Node("Add", ("count", "first"), "piece"),
        *(
            Node("Gather", (name, "piece"), f"{name}_of")
            for name in ("values", "slopes", "origins")
        ),
        Node("Sub", ("X", "origins_of"), "distance"),
        Node("Mul", ("slopes_of", "distance"), "moved"),
        Node("Add", ("values_of", "moved"), "heights"),
    ]
    if form.missing == "error":
        del constants["if_missing"]
    else:
        nodes += [
            Node("IsNaN", ("X",), "missing"),
            Node("Where", ("missing", "if_missing", "heights"), "added"),
        ]
    last = "heights" if form.missing == "error" else "added"
    nodes.append(Node("ReduceSum", (last, "by_row"), "score", {"keepdims": 1}))
    return Graph(constants, tuple(nodes))


def _held(form: LinearForm, dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """What missing values add, in the type of the graph; the factor was chosen for the weights."""
    with np.errstate(over="ignore"):
        added: NDArray[Any] = form.contributions.astype(dtype)
    lost = np.flatnonzero(~np.isfinite(added))
    if lost.size:
        j = int(lost[0])
        raise ValueError(
            f"a missing {form.names[j]!r} adds {form.contributions[j]:g} to the score, which "
            f"{np.dtype(dtype).name} cannot hold; export with precision='float64', or rescale the "
            "feature"
        )
    return added
