"""Pipelines that end in a linear or additive ranker as ONNX graphs, by skl2onnx.

    import linrank.onnx
    from skl2onnx import to_onnx

    linrank.onnx.register()
    pipeline = make_pipeline(StandardScaler(), RankSVM()).fit(X, y, ranksvm__qid=qid)
    graph = to_onnx(pipeline, X[:1].astype("float32"))

A ranker alone needs none of this: ``ranker.export("onnx")`` does without skl2onnx.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linrank.errors import ExportWarning
from linrank.estimators.base import LinearRanker
from linrank.export.form import Form
from linrank.export.onnx_graph import scoring_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["register"]

_OPSET = 13  # of the operators as they are written here


def register() -> list[type[LinearRanker]]:
    """Make linear rankers known to skl2onnx, so that it converts pipelines which end in one.

    Every linear estimator of linrank is registered, with its curves if it has any, and every class
    derived from one that is defined by then; calling it again does no harm. A ranker gives one
    output, ``variable`` of shape [N, 1], the scores. It is computed in the type of its input,
    float32 or float64; weights that float32 cannot hold are multiplied by a power of two, which
    keeps the order.

    Returns
    -------
    list of types
        The classes that were registered.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise ImportError("converting pipelines needs skl2onnx: pip install skl2onnx") from None
    # A class is known to be derived from LinearRanker once it is imported: those of linrank are.
    for name in ("cross_validation", "domination", "ranksvm", "sgd"):
        import_module(f"linrank.estimators.{name}")
    found = list(dict.fromkeys(_below(LinearRanker)))
    for cls in found:
        alias = f"Linrank{cls.__module__}.{cls.__qualname__}"
        update_registered_converter(cls, alias, _set_shape, _convert)
    return found


def _below(cls: type[LinearRanker]) -> Iterator[type[LinearRanker]]:
    for derived in cls.__subclasses__():
        yield derived
        yield from _below(derived)


def _set_shape(operator: Any) -> None:
    """One score a row, of the type of the features; integers and booleans make float32."""
    from skl2onnx.common.data_types import guess_tensor_type

    features = operator.inputs[0].type
    score = guess_tensor_type(features)
    score.shape = [features.shape[0], 1]
    operator.outputs[0].type = score


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of `scoring_graph` for one fitted ranker."""
    from onnx.helper import np_dtype_to_tensor_dtype
    from skl2onnx.common.data_types import guess_proto_type

    score = operator.outputs[0]
    element = guess_proto_type(score.type)
    double = element == np_dtype_to_tensor_dtype(np.dtype(np.float64))
    dtype = np.float64 if double else np.float32
    form = _form(operator.raw_operator, np.dtype(dtype).name)
    names = {"X": _cast(scope, operator.inputs[0], element, container), "score": score.full_name}
    constants, nodes = scoring_graph(form, dtype)
    for key, value in constants.items():
        names[key] = scope.get_unique_variable_name(key)
        kind = np_dtype_to_tensor_dtype(value.dtype)
        container.add_initializer(names[key], kind, list(value.shape), value.ravel().tolist())
    for op, inputs, output, attributes in nodes:
        if output not in names:
            names[output] = scope.get_unique_variable_name(output)
        read, label = [names[key] for key in inputs], scope.get_unique_operator_name(op)
        container.add_node(op, read, names[output], op_version=_OPSET, name=label, **attributes)


def _form(ranker: LinearRanker, precision: str) -> Form:
    check_is_fitted(ranker, "model_")
    model = ranker.model_
    if getattr(model, "interactions", None) is not None:
        raise ValueError(
            "interactions of features have no operators in ONNX; train with interactions=0, or "
            "export to JSON"
        )
    form = Form.of(model, precision=precision, dense=True, named=False)
    for text in form.warnings:
        warnings.warn(text, ExportWarning, stacklevel=2)
    return form


def _cast(scope: Any, features: Any, element: int, container: Any) -> str:
    """The name of the features as floating-point numbers."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    name: str = features.full_name
    if isinstance(features.type, DoubleTensorType | FloatTensorType):
        return name
    cast: str = scope.get_unique_variable_name("features")
    label = scope.get_unique_operator_name("Cast")
    container.add_node("Cast", name, cast, op_version=_OPSET, name=label, to=element)
    return cast
